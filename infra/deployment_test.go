package infra_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A deployment is a template with its parameters.
type deployment struct {
	*template
	given map[string]any
}

// deployed returns the stack with the given parameters, and defaults for the others. With none
// given, all conditions hold that do not replace a resource by another.
func deployed(t *testing.T, given map[string]any) deployment {
	t.Helper()
	d := deployment{load(t, stack), given}
	for name := range given {
		if _, ok := d.Parameters[name]; !ok {
			t.Fatalf("%s has no parameter %s", stack, name)
		}
	}
	return d
}

// deployments are the stacks in the manual, by their databases.
var deployments = map[string]map[string]any{
	"hosted_sql": {"Database": "hosted_sql", "D1Endpoint": "https://gateway-d1-proxy.example.workers.dev"},
	"postgres":   {"Database": "postgres", "SubnetIds": "subnet-0a,subnet-0b", "SecurityGroupIds": "sg-0a", "FrontDoor": "function-urls", "PublicUrl": "https://events.example.com"},
	"rds":        {"Database": "rds", "SecretsKeyArn": "arn:aws:kms:eu-west-1:111122223333:key/a", "SecretsPrefix": "/team/gateway"},
}

// noValue stands for AWS::NoValue.
type noValue struct{}

// value evaluates a value of the template. Names of resources and their attributes stay as
// they are.
func (d deployment) value(v any) any {
	switch v := v.(type) {
	case []any:
		var all []any
		for _, item := range v {
			if item = d.value(item); item != (noValue{}) {
				all = append(all, item)
			}
		}
		return all
	case map[string]any:
		if name, arg, ok := call(v); ok {
			return d.call(name, arg)
		}
		all := map[string]any{}
		for key, inner := range v {
			if inner = d.value(inner); inner != (noValue{}) {
				all[key] = inner
			}
		}
		return all
	}
	return v
}

// call reports whether a mapping is a call of an intrinsic function.
func call(v map[string]any) (name string, arg any, ok bool) {
	for name, arg = range v {
		_, isText := arg.(string)
		ok = len(v) == 1 && (name == "Ref" || name == "Condition" && isText || strings.HasPrefix(name, "Fn::"))
	}
	return name, arg, ok
}

func (d deployment) call(name string, arg any) any {
	switch name {
	case "Ref":
		return d.ref(arg.(string))
	case "Condition":
		return d.value(d.Conditions[arg.(string)])
	case "Fn::Sub":
		return d.sub(arg)
	}
	a, _ := arg.([]any)
	switch name {
	case "Fn::If":
		if d.call("Condition", a[0]) == true {
			return d.value(a[1])
		}
		return d.value(a[2])
	case "Fn::GetAtt":
		return fmt.Sprintf("%s.%s", a...)
	case "Fn::Equals":
		return fmt.Sprint(d.value(a[0])) == fmt.Sprint(d.value(a[1]))
	case "Fn::Not":
		return d.value(a[0]) != true
	case "Fn::And":
		return !slices.Contains(d.value(a).([]any), any(false))
	case "Fn::Or":
		return slices.Contains(d.value(a).([]any), any(true))
	case "Fn::Contains":
		return slices.Contains(d.value(a[0]).([]any), d.value(a[1]))
	case "Fn::Join":
		return fmt.Sprint(d.value(a[1]))
	case "Fn::Split", "Fn::FindInMap":
		return name
	}
	panic("no function " + name + " is known here")
}

func (d deployment) ref(name string) any {
	if given, ok := d.given[name]; ok {
		return given
	}
	if p, ok := d.Parameters[name]; ok {
		return p.Default
	}
	if name == "AWS::NoValue" {
		return noValue{}
	}
	return name
}

func (d deployment) sub(arg any) string {
	own := map[string]any{}
	if a, ok := arg.([]any); ok {
		arg, own = a[0], a[1].(map[string]any)
	}
	return filling.ReplaceAllStringFunc(arg.(string), func(hole string) string {
		name := hole[2 : len(hole)-1]
		if v, ok := own[name]; ok {
			return fmt.Sprint(d.value(v))
		}
		return fmt.Sprint(d.ref(name))
	})
}

// there returns the resources of a type in the stack, by name.
func (d deployment) there(kind string) map[string]resource {
	all := map[string]resource{}
	for name, r := range d.Resources {
		if r.Type == kind && (r.Condition == "" || d.call("Condition", r.Condition) == true) {
			all[name] = r
		}
	}
	return all
}

// functions returns the functions of a stack by name, merged with the globals.
func (d deployment) functions() map[string]map[string]any {
	all := map[string]map[string]any{}
	for name, r := range d.there("AWS::Serverless::Function") {
		merged := maps.Clone(d.Globals.Function)
		maps.Copy(merged, r.Properties)
		variables := maps.Clone(variablesOf(d.Globals.Function))
		maps.Copy(variables, variablesOf(r.Properties))
		merged["Environment"] = map[string]any{"Variables": variables}
		all[name] = d.value(merged).(map[string]any)
	}
	return all
}

func variablesOf(properties map[string]any) map[string]any {
	environment, _ := properties["Environment"].(map[string]any)
	variables, _ := environment["Variables"].(map[string]any)
	return variables
}

// TestDeployments: this evaluation of templates gives the same values as CloudFormation.
func TestDeployments(t *testing.T) {
	for database, want := range map[string]string{
		"hosted_sql": "Api.ApiEndpoint  WorkerFunction",
		"postgres":   "https://events.example.com  WorkerFunction",
		"rds":        "Api.ApiEndpoint secretsmanager:PostgreSQL.Outputs.SecretArn#password WorkerFunction",
	} {
		v := variablesOf(deployed(t, deployments[database]).functions()["IntakeFunction"])
		if got := fmt.Sprint(v["GATEWAY_PUBLIC_URL"], " ", v["DATABASE_PASSWORD"], " ", v["GATEWAY_NUDGE"]); got != want {
			t.Errorf("%s: %q, want %q", database, got, want)
		}
	}
	off := deployed(t, map[string]any{"Nudge": "off", "IntakeConcurrency": 10})
	f := off.functions()["IntakeFunction"]
	if f["ReservedConcurrentExecutions"] != 10 || variablesOf(f)["GATEWAY_NUDGE"] != "" {
		t.Errorf("with bounds, and without nudges, it is %v", f)
	}
	if bound, ok := off.functions()["WorkerFunction"]["ReservedConcurrentExecutions"]; ok {
		t.Errorf("the worker is bound to %v", bound)
	}
	if rds := deployed(t, deployments["rds"]); len(rds.there("AWS::CloudFormation::Stack")) != 3 || len(rds.there("AWS::Lambda::Url")) != 0 {
		t.Error("rds lacks a stack, or has Function URLs")
	}
}

// refusals returns the errors of the stack's rules for its parameters.
func (d deployment) refusals() (all []string) {
	for _, r := range d.Rules {
		rule := r.(map[string]any)
		if when, ok := rule["RuleCondition"]; ok && d.value(when) != true {
			continue
		}
		for _, a := range rule["Assertions"].([]any) {
			if assertion := a.(map[string]any); d.value(assertion["Assert"]) != true {
				all = append(all, assertion["AssertDescription"].(string))
			}
		}
	}
	return all
}

// TestParametersThatCannotBe: the rules refuse invalid parameters before any resource is made.
func TestParametersThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		region, name string
		value        any
		want         string
	}{
		{"eu-west-1", "WorkerConcurrency", 1, "WorkerConcurrency must be 0"},
		{"eu-west-1", "WorkerConcurrency", 0, ""},
		{"eu-west-1", "WorkerConcurrency", 2, ""},
		{"eu-west-1", "D1Endpoint", "", "needs D1Endpoint"},
		{"me-central-1", "SecretsExtension", "", "SecretsExtension needs its ARN"},
		{"me-central-1", "SecretsExtension", "arn:aws:lambda:me-central-1:1:layer:x:1", ""},
	} {
		given := maps.Clone(deployments["hosted_sql"])
		given[tt.name] = tt.value
		d := deployed(t, given)
		given["AWS::Region"] = tt.region
		if got := strings.Join(d.refusals(), "; "); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s %v in %s: %q, want %q", tt.name, tt.value, tt.region, got, tt.want)
		}
	}
}

// TestRegions: the rule knows each region without its own layer.
func TestRegions(t *testing.T) {
	for region, row := range deployed(t, nil).Mappings["Extension"] {
		given := maps.Clone(deployments["hosted_sql"])
		d := deployed(t, given)
		given["AWS::Region"] = region
		if refused := len(d.refusals()) > 0; refused != (row["Layer"] == "none") {
			t.Errorf("%s: layer %v, refused %v", region, row["Layer"], refused)
		}
	}
}
