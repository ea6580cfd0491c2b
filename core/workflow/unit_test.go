package workflow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

func TestCheck(t *testing.T) {
	d := compiled(t, `
params: [{name: order_id}, {name: items, type: array}, {name: note, required: false}, {name: "a b", type: boolean, required: false}]
steps: [{name: a, url: http://a.example/}]`)
	tests := []struct{ payload, want string }{
		{`{"order_id": "1", "items": []}`, ""},
		{`{"order_id": "1", "items": [], "note": "n", "a b": true}`, ""},
		{`{}`, "$.order_id: is missing; it must be a string|$.items: is missing; it must be an array"},
		{`{"order_id": "1", "items": [], "note": null, "a b": null}`, ""},
		{`{"order_id": null, "items": [], "note": 1}`, "$.order_id: must be a string, not null|$.note: must be a string, not a number"},
		{`{"order_id": 1, "items": {}, "note": null, "a b": "yes"}`,
			`$.order_id: must be a string, not a number|$.items: must be an array, not an object|$["a b"]: must be a boolean, not a string`},
		{`[]`, "$: must be an object, not an array"},
		{`text`, "$: must be an object, not a string"},
	}
	for _, tt := range tests {
		if got := strings.Join(d.Check(document([]byte(tt.payload))), "|"); got != tt.want {
			t.Errorf("Check(%s) = %s, want %s", tt.payload, got, tt.want)
		}
	}
	if d.Name() != "w" || d.First() != "a" || d.Timeout() != 0 {
		t.Errorf("Name, First, Timeout = %q, %q, %v", d.Name(), d.First(), d.Timeout())
	}
}

func TestCheckStopsAtTen(t *testing.T) {
	var params []config.Param
	for i := range 20 {
		params = append(params, config.Param{Name: fmt.Sprint("p", i), Required: true})
	}
	d := &Definition{params: params}
	if got := d.Check(document([]byte("{}"))); len(got) != maxViolations || got[9] != "$.p9: is missing; it must be a string" {
		t.Errorf("Check({}) = %q", got)
	}
	if got := (&Definition{params: []config.Param{{Name: "p"}}}).Check(document([]byte("[]"))); got != nil {
		t.Errorf("Check([]) with an optional param = %q, want none", got)
	}
	if got := new(Definition).Check(expr.NewDocument(nil, "")); got != nil {
		t.Errorf("Check without params = %q, want none", got)
	}
}

func TestPlacement(t *testing.T) {
	tests := []struct{ path, state, want string }{
		{"", `{"a":1}`, `"R"`},
		{"$", `{"a":1}`, `"R"`},
		{"$.b", `{"a":1}`, `{"a":1,"b":"R"}`},
		{"$.b", `null`, `{"b":"R"}`},
		{`$ ['it\'s "b"'] ["\u00e9\\"] .c`, `{}`, `{"it's \"b\"":{"é\\":{"c":"R"}}}`},
		{`$['a]b'][0][0]`, `{}`, `{"a]b":[["R"]]}`},
		{"$[1]", `[1, 2, 3]`, `[1,"R",3]`},
		{"$[ 3 ].x", `[1, 2, 3]`, `[1,2,3,{"x":"R"}]`},
		{"$[4]", `[1, 2, 3]`, `$ has 3 elements, so the result cannot be put at index 4`},
		{"$[-1]", `[1, 2, 3]`, `$ has 3 elements, so the result cannot be put at index -1`},
		{"$.a.b", `{"a": "text"}`, `$.a is no object, so the result cannot be put into it`},
		{"$.a[0].b", `{"a": {}}`, `$.a is no array, so the result cannot be put into it`},
		{"$.a[0].b", `{"a": [7]}`, `$.a[0] is no object, so the result cannot be put into it`},
	}
	for _, tt := range tests {
		path := config.Parsed[*expr.Path]{Text: tt.path}
		if tt.path != "" {
			var err error
			if path.Value, err = expr.ParsePath(tt.path); err != nil {
				t.Fatal(err)
			}
		}
		state := document([]byte(tt.state)).Value()
		before, _ := encode(state)
		tree, err := put(state, placementOf(path).steps, "R")
		text, _ := encode(tree)
		if err != nil {
			text = []byte(err.Error())
		}
		if string(text) != tt.want {
			t.Errorf("put(%s, %s) = %s, want %s", tt.state, tt.path, text, tt.want)
		}
		if after, _ := encode(state); string(after) != string(before) {
			t.Errorf("put(%s, %s) made %s of the state", tt.state, tt.path, after)
		}
	}
}

func TestTimes(t *testing.T) {
	tests := []struct {
		v    any
		want string
	}{
		{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000"},
		{"2026-01-02t03:04:05.1239z", "2026-01-02T03:04:05.123"},
		{"2026-01-02T03:04:05+0130", "2026-01-02T01:34:05.000"},
		{"2026-01-02 03:04:05", "2026-01-02T03:04:05.000"},
		{"2026-01-02T03:04-01:00", "2026-01-02T04:04:00.000"},
		{"2026-01-02", "2026-01-02T00:00:00.000"},
		{json.Number("1767323045"), "2026-01-02T03:04:05.000"},
		{json.Number("1767323045.25"), "2026-01-02T03:04:05.250"},
		{json.Number("1767323045123"), "2026-01-02T03:04:05.123"},
		{json.Number("99999999999"), "5138-11-16T09:46:39.000"},
		{json.Number("1e11"), "1973-03-03T09:46:40.000"},
		{json.Number("1e9999"), "9999-12-31T23:59:59.999"},
		{json.Number("x"), ""},
		{"20260102T030405Z", "2026-01-02T03:04:05.000"},
		{"20260102t030405.1239z", "2026-01-02T03:04:05.123"},
		{"20260102T030405,5+0130", "2026-01-02T01:34:05.500"},
		{"20260102T030405", "2026-01-02T03:04:05.000"},
		{"20260102T0304-01", "2026-01-02T04:04:00.000"},
		{"20260102 0304", "2026-01-02T03:04:00.000"},
		{"20260102", "2026-01-02T00:00:00.000"},
		{"2026-01-02 03:04:05+01", "2026-01-02T02:04:05.000"},
		{"1767323045", "2026-01-02T03:04:05.000"},
		{"1767323045.25", "2026-01-02T03:04:05.250"},
		{"1767323045123", "2026-01-02T03:04:05.123"},
		{"176732304", "1975-08-08T12:18:24.000"},
		{"-176732304", "1964-05-26T11:41:36.000"},
		{strings.Repeat("9", 400), "9999-12-31T23:59:59.999"},
		{"17673230", ""}, // a day of the year 1767 that is none
		{"2026", ""},     // rather a year than a second of 1970
		{"1.767323045e9", ""},
		{"+1767323045", ""},
		{" 1767323045", ""},
		{"1767323045.", ""},
		{"1767323045s", ""},
		{"20261302T030405Z", ""},
		{"20260102T30405Z", ""},
		{"2026-01-02T030405Z", ""},
		{"", ""},
		{true, ""},
		{nil, ""},
	}
	for _, tt := range tests {
		got, err := timeOf(tt.v)
		if core.FormatTime(got) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("timeOf(%v) = %v, %v, want %s", tt.v, got, err, tt.want)
		}
	}
}

// when returns a parsed condition, as config.Load does.
func when(text string) config.Parsed[*expr.Filter] {
	f, err := expr.ParseFilter(text)
	if err != nil {
		panic(err)
	}
	return config.Parsed[*expr.Filter]{Text: text, Value: f}
}

func TestAt(t *testing.T) {
	d := compiled(t, `
steps:
  - {name: p, type: parallel, branches: [{name: a, url: http://a.example/}, {name: b, steps: [{name: m, type: map, items_path: $, url: http://b.example/}]}]}
  - {name: q, type: choice, choices: [{when: $, goto: p}]}`)
	for path, want := range map[string]string{
		"p": "parallel", "p#2": "parallel", "p#2/a": "http", "p/b/m": "map", "p#7/b/m#3/17/item": "http", "q": "choice",
		"": "", "x": "", "p/x": "", "p/a/a": "", "p/b": "", "p/b/x": "", "p/b/m/1": "", "p/b/m/1/x": "", "q/a": "", "p/a/": "http",
	} {
		got := ""
		if s := d.at(path); s != nil {
			got = s.kind.typ()
		}
		if got != want {
			t.Errorf("at(%q) is of type %q, want %q", path, got, want)
		}
	}
}

// Compile refuses workflows whose steps do not fit together, because definitions come from a store.
func TestCompileRefuses(t *testing.T) {
	http := config.Step{Name: "a", Type: "http"}
	root, err := expr.ParseReference("$")
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*config.Step)) []config.Step {
		s := http
		change(&s)
		return []config.Step{s}
	}
	tests := map[string][]config.Step{
		"there are no steps":    nil,
		`there is no type "x"`:  with(func(s *config.Step) { s.Type = "x" }),
		`there is no step "b"`:  with(func(s *config.Step) { s.Goto = "b" }),
		`no step "c"`:           with(func(s *config.Step) { s.Catch = []config.Catch{{Goto: "c"}} }),
		"choice 1: ":            with(func(s *config.Step) { s.Type, s.Choices = "choice", []config.Choice{{Goto: "a"}} }),
		`no step "d"`:           with(func(s *config.Step) { s.Type, s.Choices = "choice", []config.Choice{{When: when("$"), Goto: "d"}} }),
		`no step "e"`:           with(func(s *config.Step) { s.Type, s.Default = "choice", "e" }),
		"there are no branches": with(func(s *config.Step) { s.Type = "parallel" }),
		`branch "f": step "f": `: with(func(s *config.Step) {
			s.Type, s.Branches = "parallel", []config.Branch{{Name: "f", Steps: with(func(s *config.Step) { s.Name, s.Type = "f", "?" })}}
		}),
		"there is no items_path": with(func(s *config.Step) { s.Type = "map" }),
		`step "item": `:          with(func(s *config.Step) { s.Type, s.ItemsPath.Value, s.Iterator = "map", root, &config.Step{Type: "?"} }),
	}
	for want, steps := range tests {
		if _, err := Compile(config.Workflow{Name: "w", Steps: steps}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%+v) = %v, want %s", steps, err, want)
		}
	}
}

func TestCarry(t *testing.T) {
	one := 1
	for _, c := range []carry{
		{}, {Visits: map[string]int{"a": 2, "b": 1}}, {Index: &one, Expires: 5}, {Turn: 9},
		{Error: &caughtFailure{Class: core.Class4xx, Message: `"m"`, Status: 404, Step: "s"}},
	} {
		if got := readCarry(c.text()); !reflect.DeepEqual(got, c) {
			t.Errorf("readCarry(%s) = %+v, want %+v", c.text(), got, c)
		}
	}
	if text := (carry{}).text(); text != "" {
		t.Errorf("an empty carry is %q", text)
	}
}

func TestTooDeep(t *testing.T) {
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + `"]\"["` + strings.Repeat("]", n)) }
	if _, err := checked(nest(200), nil); err != nil {
		t.Errorf("checked(200 levels): %v", err)
	}
	if _, err := checked(nest(201), nil); err == nil {
		t.Error("checked(201 levels): want an error")
	}
	if got, err := resultOf(nest(201)); err == nil {
		t.Errorf("resultOf(201 levels) = %.40q, want an error and no text", got)
	}
	if got, err := resultOf([]byte("\ufeff[1]")); err != nil || string(got) != "[1]" {
		t.Errorf("resultOf(a byte order mark and JSON) = %q, %v; want the JSON", got, err)
	}
	if state := annotated(nest(3), &caughtFailure{}); string(state) != string(nest(3)) {
		t.Errorf("annotated(an array) = %s", state)
	}
	full := []byte(`{"a":"` + strings.Repeat("x", maxState-8) + `"}`)
	if state := annotated(full, &caughtFailure{Message: "m"}); !slices.Equal(state, full) {
		t.Errorf("annotated(1 MiB) has %d bytes", len(state))
	}
}

func TestGraph(t *testing.T) {
	d := compiled(t, `
on_failure: no
steps:
  - {name: call, url: http://a.example/, catch: [{errors: [4xx, timeout], goto: last}], on_failure: continue}
  - {name: pick, type: choice, choices: [{when: '$.a == "<b>" and $.c', goto: ask}], default: both}
  - {name: ask, type: callback}
  - name: both
    type: parallel
    branches:
      - {name: one, url: http://a.example/}
      - {name: two, steps: [{name: each, type: map, items_path: $.items, url: http://a.example/}, {name: nap, type: wait, seconds: 90}]}
  - {name: until, type: wait, timestamp_path: $.at, catch: [{errors: [all], goto: no}]}
  - {name: last, url: http://a.example/, on_failure: continue, end: true}
  - {name: no, type: fail}`)
	want := `flowchart TD
    begin((" "))
    s1["call"]
    s2{"pick"}
    s3[/"ask"/]
    subgraph s4["both: all of"]
        s5["one"]
        subgraph b1["two"]
            subgraph s6["each: each of $.items"]
                s7["item"]
            end
            s8(["nap<br>wait 1m30s"])
            s6 --> s8
        end
    end
    s9(["until<br>until $.at"])
    s10["last"]
    s11{{"no<br>fails"}}
    s1 --> s2
    s1 -.->|"4xx, timeout"| s10
    s1 -.->|"failed"| s2
    s2 -->|"$.a == #34;#60;b#62;#34; and $.c"| s3
    s2 -->|"else"| s4
    s3 --> s4
    s4 --> s9
    s9 --> s10
    s9 -.->|"all"| s11
    s10 --> done
    s10 -.->|"failed"| done
    begin --> s1
    failed(("failed"))
    failed -.-> s11
    done(((" ")))
`
	if got := d.Graph(); got != want {
		t.Errorf("Graph() = %s", got)
	}
}

func TestTaskTimes(t *testing.T) {
	if passed(time.Time{}, epoch) || !passed(epoch, epoch) || passed(epoch.Add(1), epoch) {
		t.Error("over: a deadline has come at its time, and none never comes")
	}
}
