package expr

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/theory/jsonpath/parser"
	"github.com/theory/jsonpath/registry"
)

// tree decodes JSON as payloads are decoded.
func tree(t testing.TB, text string) any {
	t.Helper()
	v, ok := parseJSON([]byte(text))
	if !ok {
		t.Fatalf("parseJSON(%s) is no JSON", text)
	}
	return v
}

func mustPath(t testing.TB, text string) *Path {
	t.Helper()
	p, err := ParsePath(text)
	if err != nil {
		t.Fatalf("ParsePath(%s): %v", text, err)
	}
	return p
}

// payloadPatterns are valid cases of the suite that this package refuses: their patterns come
// from the document, so that the document would decide their cost.
var payloadPatterns = map[string]bool{
	"functions, match, regex from the document":       true,
	"functions, match, arg is a function expression":  true,
	"functions, search, regex from the document":      true,
	"functions, search, arg is a function expression": true,
}

// A compliance is a case of the official suite of RFC 9535.
type compliance struct {
	Name, Selector  string
	Document        json.RawMessage
	Result          json.RawMessage
	Results         []json.RawMessage // one of them
	InvalidSelector bool              `json:"invalid_selector"`
}

func suite(t testing.TB) []compliance {
	t.Helper()
	data, err := os.ReadFile("testdata/cts/cts.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Tests []compliance }
	if err := json.Unmarshal(data, &all); err != nil || len(all.Tests) < 700 {
		t.Fatalf("the suite has %d cases, %v; want 700 or more", len(all.Tests), err)
	}
	return all.Tests
}

func TestCompliance(t *testing.T) {
	for _, c := range suite(t) {
		t.Run(c.Name, func(t *testing.T) {
			p, err := ParsePath(c.Selector)
			switch {
			case c.InvalidSelector && err == nil:
				t.Fatalf("ParsePath(%q) takes what is no path", c.Selector)
			case c.InvalidSelector:
				return
			case payloadPatterns[c.Name] && (err == nil || !strings.Contains(err.Error(), "must be a text in quotes")):
				t.Fatalf("ParsePath(%q): %v, want it refused for its pattern", c.Selector, err)
			case payloadPatterns[c.Name]:
				return
			case err != nil:
				t.Fatalf("ParsePath(%q): %v", c.Selector, err)
			}
			got := Canonical(append([]any{}, selected(p, tree(t, string(c.Document)))...))
			wants := c.Results
			if c.Result != nil {
				wants = append(wants, c.Result)
			}
			for _, w := range wants {
				if got == Canonical(tree(t, string(w))) {
					return
				}
			}
			t.Errorf("Select(%q) of %s = %s, want %s", c.Selector, c.Document, got, wants)
		})
	}
}

// TestReference: one $ is the document, two are the context, and nothing else differs.
func TestReference(t *testing.T) {
	d := NewDocument([]byte(`{"id": 1.0, "list": [{"a": 1}, {"a": 2}]}`), "")
	c := NewContext(func() map[string]any {
		return map[string]any{"id": "of the context", "list": []any{json.Number("3")}}
	})
	for _, tt := range []struct {
		text     string
		singular bool
		in       *Context
		want     string // all that is selected
	}{
		{"$.id", true, c, `[1]`},
		{"$$.id", true, c, `["of the context"]`},
		{"$.list", true, c, `[[{"a":1},{"a":2}]]`},
		{"$.list[*].a", false, c, `[1,2]`},
		{"$$.list[*]", false, c, `[3]`},
		{"$$", true, c, `[{"id":"of the context","list":[3]}]`},
		{"$$.id", true, nil, `[]`},
		{"$$.none", true, c, `[]`},
	} {
		r, err := ParseReference(tt.text)
		if err != nil || r.String() != tt.text || r.Singular() != tt.singular {
			t.Errorf("ParseReference(%q) = %v, %v, want it singular: %v", tt.text, r, err, tt.singular)
			continue
		}
		found, err := r.Select(d, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		all := append([]any{}, found...)
		if got := Canonical(all); got != tt.want {
			t.Errorf("Select(%q) = %s, want %s", tt.text, got, tt.want)
		}
		if first, ok := r.One(d, tt.in); ok != (tt.singular && len(all) > 0) || ok && Canonical(first) != Canonical(all[0]) {
			t.Errorf("One(%q) = %v, %v, want the first of %s", tt.text, first, ok, tt.want)
		}
	}
	for text, want := range map[string]string{
		"$$.a-b": "at column 5: a name with a dash needs brackets: $['a-b']",
		"$.a-b":  "at column 4: a name with a dash needs brackets: $['a-b']",
		"$$$.a":  "at column 3: a path begins with $ in the payload and with $$ in the context",
		"a":      "at column 1: a path begins with $, as in $.a",
	} {
		if _, err := ParseReference(text); err == nil || err.Error() != want {
			t.Errorf("ParseReference(%q): %v, want %s", text, err, want)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"", "a path is empty; the whole payload is $, a member of it $.name"},
		{"$." + strings.Repeat("a", 511), "a path has at most 512 bytes, not 513"},
		{"$.\xff", "a path must be valid UTF-8"},
		{"id", "at column 1: a path begins with $, as in $.id"},
		{"order.id", "at column 1: a path begins with $, as in $.name"},
		{"$$.event.id", "at column 2: a path begins with one $, as in $.name"},
		{"$.content-type", "at column 10: a name with a dash needs brackets: $['content-type']"},
		{"$.größe-cm.x", "at column 8: a name with a dash needs brackets: $['größe-cm']"},
		{"$.items.0.id", "at column 9: a position needs brackets: [0]"},
		{"$.items.-1", "at column 9: a position needs brackets: [-1]"},
		{"$.items.", "at column 9: a name or * belongs after a dot"},
		{"$.items[0", `at column 10: the bracket is not closed; write "]"`},
		{"$.items[00]", "at column 9: invalid number literal"},
		{"$['a", "at column 5: the bracket is not closed; write \"]\""},
		{"$.a ", "at column 4: remove the blanks around the path"},
		{" $.a", "at column 1: remove the blanks around the path"},
		{"$.a b", "at column 4: a blank space does not belong here"},
		{"$[?@.a=1]", "at column 7: invalid comparison operator; write ==, !=, <, <=, > or >="},
		{"$[a]", "at column 3: a word does not belong here"},
		{"$..a..b", `at column 5: a path has one ".." at most; name the members on the way`},
		{"$..a[?@..b]", `at column 8: a path has one ".." at most; name the members on the way`},
		{"$[?search(@.a, @.p)]", "at column 16: the pattern of search must be a text in quotes: what a pattern costs depends on it, so it cannot come from a payload"},
		{"$[?@.b && !match( @.a ,\t$.p)]", "at column 25: the pattern of match must be a text in quotes: what a pattern costs depends on it, so it cannot come from a payload"},
		{"$.a[?@[?match(@, value(@.p))]]", "at column 18: the pattern of match must be a text in quotes: what a pattern costs depends on it, so it cannot come from a payload"},
		{"$[?search(@.a, 'a(b')]", "at column 16: the pattern of search is none: missing closing ): a(b"},
		{"$" + strings.Repeat("[*,*]", 7), "the path's lists of selectors combine in more than 64 ways; shorten them, or use two paths"},
		{"$[?match(@.a)]", "at column 9: function match() expected 2 arguments but found 1"},
	} {
		if _, err := ParsePath(c.path); err == nil || err.Error() != c.want {
			t.Errorf("ParsePath(%q): %v, want %s", c.path, err, c.want)
		}
	}
}

func TestParsePathTakesWhatIsInQuotes(t *testing.T) {
	for _, path := range []string{
		`$['..']..a`, `$["$.*"]`, `$[?@.a == '$..x']`, `$[?@.a == "\"$.*" && @["'$.*"]]`, `$[?$['*'].a == $.b["\\"][0]]`,
		"$" + strings.Repeat("[*,*]", 6), "$" + strings.Repeat("['a,b']", 30),
	} {
		if _, err := ParsePath(path); err != nil {
			t.Errorf("ParsePath(%q): %v, want none", path, err)
		}
	}
}

func TestSelectInOrder(t *testing.T) {
	payload := tree(t, `{"z": {"b": 1, "a": [2, {"b": 3}]}, "a": {"b": 4}, "m": []}`)
	for _, c := range []struct{ path, want string }{
		{"$.*", `[{"b":4},[],{"a":[2,{"b":3}],"b":1}]`},
		{"$..b", `[4,1,3]`},
		{"$..*", `[{"b":4},[],{"a":[2,{"b":3}],"b":1},4,[2,{"b":3}],1,2,{"b":3},3]`},
		{"$.z['b','a','b']", `[1,[2,{"b":3}],1]`},
		{"$.z.a[::-1]", `[{"b":3},2]`},
		{"$[?@.b]", `[{"b":4},{"a":[2,{"b":3}],"b":1}]`},
		{"$.z.a[-1].b", `[3]`},
		{"$.z.a[-3]", `[]`},
		{"$.m.b", `[]`},
		{"$", `[{"a":{"b":4},"m":[],"z":{"a":[2,{"b":3}],"b":1}}]`},
	} {
		p := mustPath(t, c.path)
		all := selected(p, payload)
		if got := Canonical(append([]any{}, all...)); got != c.want {
			t.Errorf("Select(%s) = %s, want %s", c.path, got, c.want)
		}
		one, ok := p.one(&budget{leastSteps}, payload)
		if ok != (len(all) > 0) || ok && Canonical(one) != Canonical(all[0]) {
			t.Errorf("One(%s) = %v, %v, want the first of %v", c.path, one, ok, all)
		}
	}
}

func TestSingular(t *testing.T) {
	for path, want := range map[string]bool{
		"$": true, "$.a['b'][0][-1]": true, "$.*": false, "$..a": false, "$['a','b']": false, "$[0:1]": false, "$[?@.a]": false,
	} {
		if got := mustPath(t, path).Singular(); got != want {
			t.Errorf("ParsePath(%s).Singular() = %v, want %v", path, got, want)
		}
	}
}

// The result of a workflow step is written to these names and indexes of its state.
func TestSteps(t *testing.T) {
	for path, want := range map[string]string{
		"$":                  "[]",
		"$.a.b":              `["a" "b"]`,
		"$[0][-2]":           "[0 -2]",
		`$ ['it\'s "b"'] .c`: `["it's \"b\"" "c"]`,
		`$["\u00e9"][ 3 ]`:   `["é" 3]`,
		"$[*]":               "[]",
		"$..a":               "[]",
	} {
		var steps []string
		for _, step := range mustPath(t, path).Steps() {
			steps = append(steps, fmt.Sprintf("%#v", step))
		}
		if got := fmt.Sprint(steps); got != want {
			t.Errorf("ParsePath(%s).Steps() = %s, want %s", path, got, want)
		}
	}
}

// TestMatchOfNothing: the library's own match and search panic here.
func TestMatchOfNothing(t *testing.T) {
	payload := tree(t, `[{"a": "x"}, {"a": 1}, {}, "s", {"a": "ab\nc", "p": "a.*c"}, {"a": "b", "p": "("}]`)
	for _, c := range []struct{ path, want string }{
		{`$[?match(@.a, 'x')]`, `[{"a":"x"}]`},
		{`$[?search(@.a, 'x|b')].a`, `["x","ab\nc","b"]`},
		{`$[?match(@.a, 'xyz|ab')].a`, `[]`},
		{`$[?match(@.a, 'ab|x|yz')].a`, `["x"]`},
		{`$[?!match(@.a, '.*')].a`, `[1,"ab\nc"]`},
	} {
		if got := Canonical(append([]any{}, selected(mustPath(t, c.path), payload)...)); got != c.want {
			t.Errorf("Select(%s) = %s, want %s", c.path, got, c.want)
		}
	}
}

// TestPathIsShared: concurrent evaluations of a path do not see each other's memos.
func TestPathIsShared(t *testing.T) {
	p := mustPath(t, `$.list[?@ < $.limit]`)
	var wait sync.WaitGroup
	for limit := range 4 {
		payload := tree(t, fmt.Sprintf(`{"limit": %d, "list": [0, 1, 2, 3]}`, limit))
		wait.Go(func() {
			for range 100 {
				if got := len(selected(p, payload)); got != limit {
					t.Errorf("below %d: %d values, want as many", limit, got)
				}
			}
		})
	}
	wait.Wait()
}

// TestSelectIsLinear: the allocations of ".." grow with the depth of the payload. The library
// copies the results once per level, so its allocations grow with the square.
func TestSelectIsLinear(t *testing.T) {
	nested := func(depth int) any {
		var v any = map[string]any{"a": json.Number("1")}
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	p := mustPath(t, "$..a")
	allocations := func(depth int) float64 {
		payload := nested(depth)
		if got := len(selected(p, payload)); got != depth+1 {
			t.Fatalf("Select($..a) of depth %d = %d values, want %d", depth, got, depth+1)
		}
		return testing.AllocsPerRun(10, func() { selected(p, payload) })
	}
	if small, large := allocations(100), allocations(1000); large > 20*small {
		t.Errorf("Select($..a) allocates %v times at depth 100 and %v at 1000, want about ten times as often", small, large)
	}
}

func TestOneAllocatesNothing(t *testing.T) {
	payload, p := tree(t, benchmarkPayload), mustPath(t, "$.order.items[-1]['line-id']")
	steps := &budget{leastSteps}
	if v, ok := p.one(steps, payload); !ok || v != any("b-2") {
		t.Fatalf("One = %v, %v, want b-2", v, ok)
	}
	if n := testing.AllocsPerRun(100, func() { p.one(steps, payload) }); n != 0 {
		t.Errorf("One allocates %v times, want 0", n)
	}
}

const benchmarkPayload = `{"id": "evt_1", "order": {"items": [{"line-id": "a-1"}, {"line-id": "b-2"}], "total": 12.50}}`

func BenchmarkOne(b *testing.B) {
	payload, p := tree(b, benchmarkPayload), mustPath(b, "$.order.items[1]['line-id']")
	steps := &budget{leastSteps}
	b.ReportAllocs()
	for b.Loop() {
		p.one(steps, payload)
	}
}

// unlike finds expressions for which the library differs. It panics if match or search gets
// no value. It compares numbers as float64, and takes <= and >= between false and true for
// true.
var unlike = regexp.MustCompile(`match|search|[0-9]{16}|[0-9][eE]|[<>]=`)

// FuzzPath compares with the library's own evaluation, whose order of members is
// random.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"$", "$.a", "$['a'][0]", "$..a", "$..*", "$[*]", "$.a[1:3]", "$[::-2]", "$['a','b',0]", "$[?@.a>1]", "$[?@.a==$.b]",
		"$[?count(@.*)>1]", "$[?length(@)==2].a", "$..[?!@.a||@.b=='x']", "$[?value(@..a)==1]", "$['\\u263a']", "$[?@[?@.a]]",
	} {
		f.Add(path, `{"a": [1, {"a": 2, "b": "x"}, [3, 4]], "b": {"a": 1.0, "c": null}, "☺": true}`)
	}
	for _, c := range suite(f) {
		f.Add(c.Selector, string(c.Document))
	}
	f.Fuzz(func(t *testing.T, path, payload string) {
		p, err := ParsePath(path)
		if err != nil {
			if text := err.Error(); text == "" || strings.Contains(text, "\n") && !strings.Contains(path, "\n") {
				t.Fatalf("ParsePath(%q): %q, want one line", path, text)
			}
			return
		}
		root, ok := parseJSON([]byte(payload))
		if !ok || len(payload) > 1<<12 {
			return
		}
		got := selected(p, root)
		if again := selected(p, root); Canonical(append([]any{}, got...)) != Canonical(append([]any{}, again...)) {
			t.Fatalf("Select(%q) of %q differs from time to time", path, payload)
		}
		if p.Singular() && len(got) > 1 {
			t.Fatalf("Select(%q) = %d values of a singular path", path, len(got))
		}
		if unlike.MatchString(path) || unlike.MatchString(payload) {
			return
		}
		query, err := parser.Parse(registry.New(), path)
		if err != nil {
			t.Fatalf("ParsePath takes %q, the library does not: %v", path, err)
		}
		if diff := cmp.Diff(bag(query.Select(nil, root)), bag(got)); diff != "" {
			t.Fatalf("Select(%q) of %q differs from the library's (-want +got):\n%s", path, payload, diff)
		}
	})
}

// selected returns the values that a path selects of a tree, within the least budget.
func selected(p *Path, root any) []any { return p.all(&budget{leastSteps}, root) }

// bag is a list without its order.
func bag(values []any) map[string]int {
	counts := map[string]int{}
	for _, v := range values {
		counts[Canonical(v)]++
	}
	return counts
}
