package infra_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// grants are the actions that somebody here may take, and why.
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

// everywhere tells why an action is granted on all resources.
var everywhere = map[string]string{
	"ec2:": "network interfaces have no names before they are made, and a denial beside it keeps the function's code out",
}

// A statement of a policy, with what it is about as CloudFormation would fill it in.
type statement struct {
	effect    string
	actions   []string
	resource  string
	condition any
}

// statements are those of all policies in v, whatever they hang on. Who may take a role is
// looked at elsewhere.
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

// mayOf are the statements of a function: those of its role and of its policies.
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

// fullest is a stack that grants all that one of its kind can.
var fullest = map[string]any{"Database": "rds", "SecretsKeyArn": "the key"}

// TestFunctionsMay: each function may do what it needs, on what it needs it.
func TestFunctionsMay(t *testing.T) {
	d := deployed(t, fullest)
	const parameters = "arn:AWS::Partition:ssm:AWS::Region:AWS::AccountId:parameter/gateway/*"
	const secrets = "arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:/gateway/*"
	for function := range d.functions() {
		name := strings.TrimSuffix(function, "Function")
		want := map[string]string{
			"logs:CreateLogStream": name + "Log.Arn", "logs:PutLogEvents": name + "Log.Arn",
			"ssm:GetParameter": parameters, "secretsmanager:GetSecretValue": secrets, "kms:Decrypt": "the key",
			"lambda:InvokeFunction": "WorkerFunction.Arn", // the worker may, too: it wakes its successor
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

// TestGrants: each action that anybody may take is on the list above, and on all
// resources only with a reason, and not without the denial.
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

// deniedToCode tells whether another statement denies to the functions' code what this
// one allows.
func (s statement) deniedToCode(other statement) bool {
	return other.effect == "Deny" && slices.Equal(other.actions, s.actions) && strings.Contains(fmt.Sprint(other.condition), "lambda:SourceFunctionArn")
}

// TestRolesAreOfServices: only Lambda takes the roles of functions, only RDS that of its
// proxy.
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

// TestDoors: the HTTP API may call two functions and is the only one of its kind; a
// Function URL has both permissions it needs, and neither allows any other call.
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
