"""expand.py template.yaml: what SAM's translator makes of a template, as JSON. It asks nobody for anything."""
import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")

from cfnlint.decode import cfn_yaml  # it reads !Ref, !Sub and !GetAtt
from samtranslator.translator.managed_policy_translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform


class NoManagedPolicies(ManagedPolicyLoader):
    """The real one asks IAM. The template names policies of its own only."""

    def __init__(self):
        self.max_items = 0

    def load(self):
        return {}


def plain(node):
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(value) for value in node]
    return str(node) if isinstance(node, str) else node


template = plain(cfn_yaml.load(sys.argv[1]))
template["Globals"]["Function"]["CodeUri"] = "s3://packaged/code"  # as "sam package" would have it
made = transform(template, {"AWS::Region": "eu-west-1"}, NoManagedPolicies())
json.dump(made, sys.stdout)
