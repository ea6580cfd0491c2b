package infra_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// grants are the allowed actions in the templates, with the reasons.
var grants = map[string]string{
	"logs:CreateLogStream":           "a copy of a function has a log of its own",
	"logs:PutLogEvents":              "what it tells",
	"ssm:GetParameter":               "secrets of gateway.yaml",
	"secretsmanager:GetSecretValue":  "secrets of gateway.yaml, and for the proxy the password",
	"kms:Decrypt":                    "secrets under a key of the user's",
	"lambda:InvokeFunction":          "nudges of the worker",
	"ec2:CreateNetworkInterface":     "Lambda puts the function into a network",
	"ec2:DeleteNetworkInterface":     "Lambda puts the function into a network",
	"ec2:DescribeNetworkInterfaces":  "Lambda puts the function into a network",
	"ec2:DescribeSubnets":            "Lambda puts the function into a network",
	"ec2:AssignPrivateIpAddresses":   "Lambda puts the function into a network",
	"ec2:UnassignPrivateIpAddresses": "Lambda puts the function into a network",
}

// everywhere has the reasons for actions that are granted on all resources.
var everywhere = map[string]string{
	"ec2:": "network interfaces have no names before they are made, and a denial beside it keeps the function's code out",
}

// A statement is a statement of a policy, with evaluated resources.
type statement struct {
	effect    string
	actions   []string
	resource  string
	condition any
}

// statements returns the statements of all policies in v. Other tests check trust policies.
func statements(v any) (all []statement) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = append(all, statements(item)...)
		}
	case map[string]any:
		if v["Effect"] != nil && v["Principal"] == nil {
			return []statement{statementOf(v)}
		}
		for _, inner := range v {
			all = append(all, statements(inner)...)
		}
	}
	return all
}

func statementOf(v map[string]any) statement {
	s := statement{effect: fmt.Sprint(v["Effect"]), resource: fmt.Sprint(v["Resource"]), condition: v["Condition"]}
	for _, a := range list(v["Action"]) {
		s.actions = append(s.actions, a.(string))
	}
	return s
}

// mayOf returns the statements of a function's role and policies.
func (d deployment) mayOf(function string) (all []statement) {
	role := d.Resources[strings.TrimSuffix(fmt.Sprint(d.functions()[function]["Role"]), ".Arn")]
	properties := d.value(role.Properties).(map[string]any)
	all = statements(properties["Policies"])
	for _, name := range list(properties["ManagedPolicyArns"]) {
		all = append(all, statements(d.value(d.Resources[name.(string)].Properties))...)
	}
	for name := range d.there("AWS::IAM::ManagedPolicy") {
		policy := d.value(d.Resources[name].Properties).(map[string]any)
		if slices.Contains(list(policy["Roles"]), any(strings.TrimSuffix(fmt.Sprint(d.functions()[function]["Role"]), ".Arn"))) {
			all = append(all, statements(policy)...)
		}
	}
	return all
}

// fullest are the parameters with the most grants.
var fullest = map[string]any{"Database": "rds", "SecretsKeyArn": "the key"}

// TestFunctionsMay: each function may do the actions that it needs, on the resources that it
// needs.
func TestFunctionsMay(t *testing.T) {
	d := deployed(t, fullest)
	const parameters = "arn:AWS::Partition:ssm:AWS::Region:AWS::AccountId:parameter/gateway/*"
	const secrets = "arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:/gateway/*"
	for function := range d.functions() {
		name := strings.TrimSuffix(function, "Function")
		want := map[string]string{
			"logs:CreateLogStream": name + "Log.Arn", "logs:PutLogEvents": name + "Log.Arn",
			"ssm:GetParameter": parameters, "secretsmanager:GetSecretValue": secrets, "kms:Decrypt": "the key",
			"lambda:InvokeFunction": "WorkerFunction.Arn", // the worker may too: it wakes its successor
		}
		got := map[string]string{}
		for _, s := range d.mayOf(function) {
			for _, a := range s.actions {
				if s.effect == "Allow" && s.resource != "*" {
					got[a] = s.resource
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s may %q, want %q", function, got, want)
		}
	}
	for _, function := range []string{"IntakeFunction", "WorkerFunction"} {
		for _, s := range deployed(t, map[string]any{"Nudge": "off"}).mayOf(function) {
			if slices.ContainsFunc(s.actions, func(a string) bool { return !strings.HasPrefix(a, "logs:") && !strings.Contains(a, ":Get") }) {
				t.Errorf("with nudges off and without a network, %s may %q", function, s.actions)
			}
		}
	}
}

// TestGrants: each granted action is in grants. An action on all resources has a reason and
// the denial.
func TestGrants(t *testing.T) {
	seen := map[string]bool{}
	for path, tpl := range nestedIn(t, stack) {
		d := deployment{tpl, nil}
		if path == stack {
			d.given = fullest
		}
		for name, r := range tpl.Resources {
			given := statements(r.Properties) // with both branches of each If
			for _, s := range given {
				for _, a := range s.actions {
					seen[a] = true
					if grants[a] == "" || strings.Contains(a, "*") {
						t.Errorf("%s: %s: nobody said why %s is granted", path, name, a)
					}
					service, _, _ := strings.Cut(a, ":")
					if s.resource == "*" && everywhere[service+":"] == "" {
						t.Errorf("%s: %s: nobody said why %s is granted everywhere", path, name, a)
					}
				}
				if s.resource == "*" && s.effect == "Allow" && !slices.ContainsFunc(given, s.deniedToCode) {
					t.Errorf("%s: %s: the functions' code may %q everywhere", path, name, s.actions)
				}
			}
		}
	}
	for a := range grants {
		if !seen[a] {
			t.Errorf("%s is granted to nobody", a)
		}
	}
}

// deniedToCode reports whether other denies the actions of this statement to the functions'
// code.
func (s statement) deniedToCode(other statement) bool {
	return other.effect == "Deny" && slices.Equal(other.actions, s.actions) && strings.Contains(fmt.Sprint(other.condition), "lambda:SourceFunctionArn")
}

// TestRolesAreOfServices: only Lambda can take the roles of functions, and only RDS the role
// of its proxy.
func TestRolesAreOfServices(t *testing.T) {
	want := map[string]string{"ProxyRole": "rds.amazonaws.com"}
	roles := 0
	for path, tpl := range nestedIn(t, stack) {
		for name, r := range tpl.Resources {
			if r.Type != "AWS::IAM::Role" {
				continue
			}
			roles++
			service := want[name]
			if service == "" {
				service = "lambda.amazonaws.com"
			}
			assume := fmt.Sprint(r.Properties["AssumeRolePolicyDocument"].(map[string]any)["Statement"])
			if assume != "[map[Action:sts:AssumeRole Effect:Allow Principal:map[Service:"+service+"]]]" {
				t.Errorf("%s: %s may be taken by %s", path, name, assume)
			}
		}
	}
	if roles != 5 {
		t.Errorf("looked at %d roles", roles)
	}
}

// TestDoors: the HTTP API may call two functions, and no other API may. A Function URL has
// both permissions that it needs. No permission allows any other call.
func TestDoors(t *testing.T) {
	for door, want := range map[string][]string{
		"http-api": {
			"IntakeFunction lambda:InvokeFunction apigateway.amazonaws.com of Api/*",
			"PullFunction lambda:InvokeFunction apigateway.amazonaws.com of Api/*",
		},
		"function-urls": {
			"IntakeFunction lambda:InvokeFunction * by its URL",
			"IntakeFunction lambda:InvokeFunctionUrl * NONE",
			"PullFunction lambda:InvokeFunction * by its URL",
			"PullFunction lambda:InvokeFunctionUrl * NONE",
		},
	} {
		d := deployed(t, map[string]any{"FrontDoor": door})
		var got []string
		for _, r := range d.there("AWS::Lambda::Permission") {
			got = append(got, permission(d.value(r.Properties).(map[string]any)))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", door, got, want)
		}
		if apis, urls := len(d.there("AWS::ApiGatewayV2::Api")), len(d.there("AWS::Lambda::Url")); apis*2+urls != 2 {
			t.Errorf("%s has %d APIs and %d URLs", door, apis, urls)
		}
	}
}

var ofAPI = regexp.MustCompile(`^arn:AWS::Partition:execute-api:AWS::Region:AWS::AccountId:(\w+/\*)$`)

func permission(p map[string]any) string {
	kind := fmt.Sprint(p["FunctionUrlAuthType"])
	if p["InvokedViaFunctionUrl"] == true {
		kind = "by its URL"
	}
	if m := ofAPI.FindStringSubmatch(fmt.Sprint(p["SourceArn"])); m != nil {
		kind = "of " + m[1]
	}
	return fmt.Sprint(p["FunctionName"], " ", p["Action"], " ", p["Principal"], " ", kind)
}
