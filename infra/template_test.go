package infra_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const stack = "../template.yaml"

// nestedIn returns the templates of a stack and of its nested stacks, by their paths.
func nestedIn(t *testing.T, name string) map[string]*template {
	t.Helper()
	all := map[string]*template{name: load(t, name)}
	for _, r := range all[name].Resources {
		if r.Type == "AWS::CloudFormation::Stack" {
			path := filepath.Join(filepath.Dir(name), r.Properties["TemplateURL"].(string))
			maps.Copy(all, nestedIn(t, path))
		}
	}
	return all
}

// A template is a CloudFormation template. A tag is decoded as its long form: !Ref x is {Ref:
// x}, and !GetAtt a.b is {Fn::GetAtt: [a, b]}.
type template struct {
	path       string
	Metadata   map[string]any
	Parameters map[string]parameter
	Mappings   map[string]map[string]map[string]any
	Conditions map[string]any
	Rules      map[string]any
	Globals    struct{ Function map[string]any }
	Resources  map[string]resource
	Outputs    map[string]output
}

type parameter struct {
	Type, Description string
	Default           any
	AllowedValues     []any
}

type resource struct {
	Type, Condition, DeletionPolicy string
	DependsOn                       any
	Metadata, Properties            map[string]any
}

type output struct {
	Condition string
	Value     any
}

func load(t *testing.T, path string) *template {
	t.Helper()
	tpl, err := readTemplate(read(t, path))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	tpl.path = path
	return tpl
}

func readTemplate(text []byte) (*template, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if err := plain(&doc); err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := doc.Decode(&whole); err != nil {
		return nil, err
	}
	data, err := json.Marshal(whole) // JSON keeps the spelling of names
	if err != nil {
		return nil, err
	}
	tpl := &template{}
	return tpl, json.Unmarshal(data, tpl)
}

// short maps each tag to its long form.
var short = map[string]string{
	"!Ref": "Ref", "!Condition": "Condition", "!GetAtt": "Fn::GetAtt", "!Sub": "Fn::Sub", "!If": "Fn::If", "!Join": "Fn::Join",
	"!Split": "Fn::Split", "!Select": "Fn::Select", "!FindInMap": "Fn::FindInMap", "!Equals": "Fn::Equals", "!Not": "Fn::Not",
	"!And": "Fn::And", "!Or": "Fn::Or", "!Contains": "Fn::Contains", "!Cidr": "Fn::Cidr", "!GetAZs": "Fn::GetAZs",
}

// plain replaces tags by their long form. It refuses aliases, which CloudFormation does not
// support.
func plain(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("line %d: CloudFormation takes no anchors and aliases", n.Line)
	}
	for _, child := range n.Content {
		if err := plain(child); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!") {
		return nil
	}
	long, ok := short[n.Tag]
	if !ok {
		return fmt.Errorf("line %d: there is no function %s", n.Line, n.Tag)
	}
	inner := *n
	inner.Tag = ""
	if long == "Fn::GetAtt" && n.Kind == yaml.ScalarNode {
		of, attribute, _ := strings.Cut(n.Value, ".")
		inner = yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: of, Tag: "!!str"}, {Kind: yaml.ScalarNode, Value: attribute, Tag: "!!str"},
		}}
	}
	*n = yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: long, Tag: "!!str"}, &inner}}
	return nil
}

// pseudo are the parameters that every stack has.
var pseudo = []string{"AWS::AccountId", "AWS::NoValue", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName"}

// attributes are the known attributes of each type.
var attributes = map[string][]string{
	"AWS::Serverless::Function": {"Arn"},
	"AWS::IAM::Role":            {"Arn"},
	"AWS::Logs::LogGroup":       {"Arn"},
	"AWS::ApiGatewayV2::Api":    {"ApiEndpoint"},
	"AWS::Lambda::Url":          {"FunctionUrl"},
	"AWS::EC2::VPC":             {"CidrBlock"},
	"AWS::EC2::EIP":             {"AllocationId"},
	"AWS::RDS::DBProxy":         {"Endpoint"},
	"AWS::RDS::DBCluster":       {"Endpoint.Address"},
	"AWS::RDS::DBInstance":      {"Endpoint.Address"},
}

// A walker checks a template. It records faults and used names.
type walker struct {
	*template
	nested map[string]*template // by the name of their resource
	used   map[string]bool
	needs  map[string][]string // for each resource, the resources that must exist before it
	faults []string
}

func walk(tpl *template, nested map[string]*template) *walker {
	w := &walker{template: tpl, nested: nested, used: map[string]bool{}, needs: map[string][]string{}}
	for name, c := range tpl.Conditions {
		w.value("Conditions."+name, c, nil)
	}
	w.value("Rules", map[string]any(tpl.Rules), nil)
	w.value("Globals", tpl.Globals.Function, nil)
	for name, r := range tpl.Resources {
		at := "Resources." + name
		w.value(at, r.Properties, w.holding(at, r.Condition, nil))
		for _, other := range list(r.DependsOn) {
			w.reference(at, fmt.Sprint(other), w.holding(at, r.Condition, nil))
		}
		w.used[name] = true // a resource needs no other use
	}
	for name, o := range tpl.Outputs {
		w.value("Outputs."+name, o.Value, w.holding("Outputs."+name, o.Condition, nil))
	}
	w.unused()
	w.circles()
	slices.Sort(w.faults)
	return w
}

// circles finds resources that depend on themselves.
func (w *walker) circles() {
	for name, r := range w.Resources {
		if r.Type == "AWS::Serverless::Function" {
			w.needs[name] = append(w.needs[name], w.needs[""]...) // dependencies in the globals of all functions
		}
	}
	for name := range w.Resources {
		before := slices.Clone(w.needs[name])
		for i := 0; i < len(before); i++ {
			for _, next := range w.needs[before[i]] {
				if !slices.Contains(before, next) {
					before = append(before, next)
				}
			}
		}
		if slices.Contains(before, name) {
			w.fault("Resources."+name, "is needed before it is there")
		}
	}
}

// resourceOf returns the name of the resource at a place, or "".
func resourceOf(at string) string {
	name, ok := strings.CutPrefix(at, "Resources.")
	if !ok {
		return ""
	}
	return regexp.MustCompile(`^\w+`).FindString(name)
}

func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

func (w *walker) fault(at, format string, args ...any) {
	w.faults = append(w.faults, w.path+": "+at+": "+fmt.Sprintf(format, args...))
}

func (w *walker) unused() {
	for _, names := range [][]string{
		slices.Collect(maps.Keys(w.Parameters)), slices.Collect(maps.Keys(w.Conditions)), slices.Collect(maps.Keys(w.Mappings)),
	} {
		for _, name := range names {
			if !w.used[name] {
				w.fault(name, "nothing uses it")
			}
		}
	}
}

// holding returns the conditions that hold for an object with this condition: the conditions
// from before, the condition and its parts.
func (w *walker) holding(at, condition string, before []string) []string {
	if condition == "" {
		return before
	}
	w.used[condition] = true
	c, ok := w.Conditions[condition]
	if !ok {
		w.fault(at, "there is no condition %s", condition)
	}
	all := append(slices.Clone(before), condition)
	for _, name := range conditions(c, "Fn::And") {
		all = w.holding(at, name, all)
	}
	return all
}

// failing returns the conditions that hold if condition does not.
func (w *walker) failing(condition string, before []string) []string {
	all := slices.Clone(before)
	for name, c := range w.Conditions {
		if slices.Contains(conditions(c, "Fn::Not"), condition) {
			all = append(all, name)
		}
	}
	return all
}

// conditions returns the conditions in the arguments of a function.
func conditions(c any, function string) (names []string) {
	m, _ := c.(map[string]any)
	parts, _ := m[function].([]any)
	for _, part := range parts {
		if named, ok := part.(map[string]any); ok && named["Condition"] != nil {
			names = append(names, named["Condition"].(string))
		}
	}
	return names
}

// value checks a value under conditions that hold.
func (w *walker) value(at string, v any, holds []string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			w.value(fmt.Sprintf("%s[%d]", at, i), item, holds)
		}
	case map[string]any:
		for key, inner := range v {
			if !w.function(at, key, inner, holds) {
				w.value(at+"."+key, inner, holds)
			}
		}
	}
}

// function checks a call of an intrinsic function. It returns false if name is not one.
func (w *walker) function(at, name string, arg any, holds []string) bool {
	switch name {
	case "Ref":
		w.reference(at, arg.(string), holds)
	case "Condition":
		condition, ok := arg.(string) // a policy has its own Condition
		if ok {
			w.holding(at, condition, nil)
		}
		return ok
	case "Fn::GetAtt":
		a := arg.([]any)
		w.attribute(at, a[0].(string), a[1].(string), holds)
	case "Fn::Sub":
		w.sub(at, arg, holds)
	case "Fn::FindInMap":
		w.find(at, arg.([]any))
		return false
	case "Fn::If":
		a := arg.([]any)
		w.value(at, a[1], w.holding(at, a[0].(string), holds))
		w.value(at, a[2], w.failing(a[0].(string), holds))
	default:
		return false
	}
	return true
}

var filling = regexp.MustCompile(`\$\{([^}!]+)\}`)

func (w *walker) sub(at string, arg any, holds []string) {
	text, own := arg, map[string]any{}
	if a, ok := arg.([]any); ok {
		text, own = a[0], a[1].(map[string]any)
		w.value(at, own, holds)
	}
	for _, m := range filling.FindAllStringSubmatch(text.(string), -1) {
		name, attribute, dotted := strings.Cut(m[1], ".")
		switch {
		case own[m[1]] != nil:
		case dotted:
			w.attribute(at, name, attribute, holds)
		default:
			w.reference(at, name, holds)
		}
	}
	for name := range own {
		if !strings.Contains(text.(string), "${"+name+"}") {
			w.fault(at, "nothing uses %s", name)
		}
	}
}

func (w *walker) find(at string, arg []any) {
	name := arg[0].(string)
	w.used[name] = true
	if w.Mappings[name] == nil {
		w.fault(at, "there is no mapping %s", name)
	}
	for _, row := range w.Mappings[name] {
		if _, ok := row[arg[2].(string)]; !ok {
			w.fault(at, "a row of %s has no %s", name, arg[2])
		}
	}
}

// reference checks a reference to a parameter, or to a resource that must exist under these
// conditions.
func (w *walker) reference(at, name string, holds []string) {
	w.used[name] = true
	_, isParameter := w.Parameters[name]
	r, isResource := w.Resources[name]
	if isResource && !strings.HasPrefix(at, "Outputs.") {
		w.needs[resourceOf(at)] = append(w.needs[resourceOf(at)], name)
	}
	switch {
	case isParameter, slices.Contains(pseudo, name):
	case !isResource:
		w.fault(at, "there is no %s", name)
	case r.Condition != "" && !slices.Contains(holds, r.Condition):
		w.fault(at, "%s is not there unless %s", name, r.Condition)
	}
}

func (w *walker) attribute(at, of, attribute string, holds []string) {
	w.reference(at, of, holds)
	r := w.Resources[of]
	if output, ok := strings.CutPrefix(attribute, "Outputs."); ok && w.nested[of] != nil {
		if _, ok := w.nested[of].Outputs[output]; !ok {
			w.fault(at, "%s has no output %s", of, output)
		}
		return
	}
	if !slices.Contains(attributes[r.Type], attribute) {
		w.fault(at, "%s, of type %s, has no attribute %s that is known here", of, r.Type, attribute)
	}
}

// checkNested: a stack gives its nested stacks the parameters that they need.
func (w *walker) checkNested() {
	for name, inner := range w.nested {
		given, _ := w.Resources[name].Properties["Parameters"].(map[string]any)
		for p := range given {
			if _, ok := inner.Parameters[p]; !ok {
				w.fault(name, "%s has no parameter %s", inner.path, p)
			}
		}
		for p, declared := range inner.Parameters {
			if given[p] == nil && declared.Default == nil {
				w.fault(name, "%s needs the parameter %s", inner.path, p)
			}
		}
	}
}

// TestTemplates: each name in a template exists under the conditions of its use, and each
// declared name is used.
func TestTemplates(t *testing.T) {
	all := nestedIn(t, stack)
	if len(all) != 4 {
		t.Errorf("there are %d templates, want 4", len(all))
	}
	for _, tpl := range all {
		nested := map[string]*template{}
		for name, r := range tpl.Resources {
			if r.Type == "AWS::CloudFormation::Stack" {
				nested[name] = all[filepath.Join(filepath.Dir(tpl.path), r.Properties["TemplateURL"].(string))]
			}
		}
		w := walk(tpl, nested)
		w.checkNested()
		for _, fault := range w.faults {
			t.Error(fault)
		}
	}
}

// TestParameters: the form of a deployment describes each parameter, in one group.
func TestParameters(t *testing.T) {
	tpl := load(t, stack)
	shown, _ := json.Marshal(tpl.Metadata["AWS::CloudFormation::Interface"])
	for name, p := range tpl.Parameters {
		n := strings.Count(string(shown), `"`+name+`"`) - strings.Count(string(shown), `:"`+name+`"`)
		if n != 1 || p.Description == "" || p.Default == nil {
			t.Errorf("%s is in %d groups, described as %q, by default %v", name, n, p.Description, p.Default)
		}
	}
	for _, name := range regexp.MustCompile(`"(\w+)=`).FindAllStringSubmatch(string(read(t, "sam/samconfig.toml")), -1) {
		if _, ok := tpl.Parameters[name[1]]; !ok {
			t.Errorf("samconfig.toml gives %s, which is no parameter", name[1])
		}
	}
}

// TestTemplateFaults: the walker finds each kind of fault.
func TestTemplateFaults(t *testing.T) {
	const conditional = "{Conditions: {C: !Equals [1, 1], D: !And [!Condition C, !Equals [1, 1]], E: !Not [!Condition C]}, " +
		"Resources: {D: {Type: T, Condition: D}, E: {Type: T, Condition: E}, A: {Type: T, Condition: C}, B: "
	for text, want := range map[string]string{
		`Resources: {A: {Type: T, Properties: {X: !Ref B}}}`:                                                    "Resources.A.X: there is no B",
		`Resources: {A: {Type: T, Properties: {X: !Sub "${B}"}}}`:                                               "Resources.A.X: there is no B",
		`Resources: {A: {Type: T, Properties: {X: !Sub ["${B}", {B: 1, C: 2}]}}}`:                               "Resources.A.X: nothing uses C",
		`Resources: {A: {Type: T, DependsOn: B}}`:                                                               "Resources.A: there is no B",
		`Resources: {R: {Type: AWS::IAM::Role}, A: {Type: T, Properties: {X: !GetAtt R.Name}}}`:                 "Resources.A.X: R, of type AWS::IAM::Role, has no attribute Name that is known here",
		`Resources: {A: {Type: T, Condition: C}}`:                                                               "Resources.A: there is no condition C",
		`{Parameters: {P: {Type: String}}, Resources: {A: {Type: T}}}`:                                          "P: nothing uses it",
		`{Mappings: {M: {a: {X: 1}, b: {}}}, Resources: {A: {Type: T, Properties: {X: !FindInMap [M, a, X]}}}}`: "Resources.A.X: a row of M has no X",
		conditional + `{Type: T, Properties: {X: !Ref A}}}}`:                                                    "Resources.B.X: A is not there unless C",
		conditional + `{Type: T, Properties: {X: !If [C, !Ref A, 0]}}}}`:                                        "",
		conditional + `{Type: T, Properties: {X: !If [C, 0, !Ref A]}}}}`:                                        "Resources.B.X: A is not there unless C",
		conditional + `{Type: T, Properties: {X: !If [C, 0, !Ref E]}}}}`:                                        "",
		`Resources: {A: {Type: T, Properties: {X: !Ref B}}, B: {Type: T, DependsOn: A}}`:                        "Resources.A: is needed before it is there; : Resources.B: is needed before it is there",
		conditional + `{Type: T, Condition: D, Properties: {X: !Ref A}}}}`:                                      "",
	} {
		tpl, err := readTemplate([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(strings.Join(walk(tpl, nil).faults, "; "), ": "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"a: &x 1\nb: *x", "a: !Reference b", "a: 1\na: 2"} {
		if _, err := readTemplate([]byte(text)); err == nil {
			t.Errorf("%q is taken for a template", text)
		}
	}
}
