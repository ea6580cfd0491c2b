package expr

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// readCases reads a table of the contract.
func readCases(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/cases/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// holds reports whether a filter matches; the filter must not run out of steps.
func holds(t interface{ Fatal(...any) }, f *Filter, d *Document, c *Context) bool {
	ok, err := f.Match(d, c)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func mustFilter(t testing.TB, text string) *Filter {
	t.Helper()
	f, err := ParseFilter(text)
	if err != nil {
		t.Fatalf("ParseFilter(%q): %v", text, err)
	}
	return f
}

// A refused is an expression that is wrong, and a part of the error.
type refused struct{ Name, Filter, Template, Error string }

type filterCases struct {
	Documents map[string]json.RawMessage
	Cases     []struct {
		Name, Filter, Document string
		Match                  bool
	}
	Errors []refused
}

func TestFilterCases(t *testing.T) {
	var table filterCases
	readCases(t, "filter.json", &table)
	if len(table.Cases) < 49 || len(table.Errors) < 14 {
		t.Fatalf("the table has %d cases and %d errors, want 49 and 14", len(table.Cases), len(table.Errors))
	}
	for _, c := range table.Cases {
		t.Run(c.Name, func(t *testing.T) {
			d := NewDocument(table.Documents[c.Document], "application/json")
			if got := holds(t, mustFilter(t, c.Filter), d, nil); got != c.Match {
				t.Errorf("Match(%s) = %v, want %v", c.Filter, got, c.Match)
			}
			if negated := "not (" + c.Filter + " )"; holds(t, mustFilter(t, negated), d, nil) == c.Match {
				t.Errorf("Match(%s) = %v, want the opposite", negated, c.Match)
			}
		})
	}
	for _, c := range table.Errors {
		if _, err := ParseFilter(c.Filter); err == nil || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s: ParseFilter(%q): %v, want %q in it", c.Name, c.Filter, err, c.Error)
		}
	}
}

// TestFilterSemantics holds cases that the table of the contract does not have.
func TestFilterSemantics(t *testing.T) {
	const payload = `{
		"s": "abc", "empty": "", "n": 12.50, "zero": 0.0, "tiny": -1e-400, "huge": 1e999999999, "neg": -7, "t": true, "f": false, "nil": null,
		"list": [1, "two", null, [3], {"a": 1.0}], "o": {"b": [1], "a": "x"}, "same": {"a": "x", "b": [1e0]}, "none": [], "nothing": {},
		"words": ["b", "zz"], "prefixes": ["x", "ab"], "nested": [["a"], ["b", "c"]], "numbers": [5, 1, 9], "astral": "😀", "bmp": "\uff5e",
		"quote": "it's", "and": 1, "sign": "a==b", "sum": "1&2", "dollar": "$.s", "slash": "a\\b", "big": 123456789012345678901234567890
	}`
	d := NewDocument([]byte(payload), "")
	c := NewContext(func() map[string]any {
		return map[string]any{"event": map[string]any{"type": "order.created"}, "step": map[string]any{"attempt": json.Number("2")}}
	})
	for filter, want := range map[string]bool{
		// paths and the context
		`$$.event.type == order.created`: true, `$$.event.type == $.s`: false, `$$.step.attempt >= 2`: true, `exists $$.run`: false,
		`$.and == 1`: true, `$`: true, `$$`: true, "$.s\n==\tabc": true, `$.s=="abc"`: true, `$.n>1`: true, `$.n<$.zero`: false, `$.s==abc`: true,
		`($.s==abc)`: true, `not($.s==abc)and $.t`: false, `$.list[ 0 ] exists or true == $.x`: true,
		// truth
		`$.zero`: false, `$.tiny`: true, `$.huge`: true, `$.f`: false, `$.t`: true, `$.none`: true, `$.nothing`: true, `$.list[*]`: true, `$.none[*]`: false,
		`not not $.t`: true, `not $.f and not $.zero or $.f`: true, `$.t or $.f and $.f`: true, `not ($.t or $.f) and $.f`: false,
		// equality
		`$.n == 12.5`: true, `$.n == 1.25e1`: true, `$.zero == -0`: true, `$.zero == 0e77`: true, `$.huge == 10e999999998`: true, `$.huge == 1e999999998`: false,
		`$.nil == null`: true, `$.nil == false`: false, `$.list == [1.0, two, null, [3], 5]`: false, `$.o == $.same`: true, `$.same == $.o`: true, `$.none == []`: true,
		`$.nothing == []`: false, `$.list[*] == [3e0]`: true, `$.list[*] == $.numbers[*]`: true, `$.words[*] == $.numbers[*]`: false, `$.words[*] != $.numbers[*]`: true,
		`$.x == $.y`: false, `$.x != $.y`: true, `"abc" == $.s`: true, `$.s == ABC`: false, `$.sign == a==b`: true, `$.sum == 1&2`: true, `$.dollar == "$.s"`: true,
		`$.quote == "it's"`: true, `$.slash == 'a\b'`: true, `$.slash == "a\\b"`: true, `$.astral == "\ud83d\ude00"`: true, `$.empty == ''`: true, `$.t == "true"`: false,
		// order
		`$.neg < -6`: true, `$.neg < -7`: false, `$.neg <= -7.0`: true, `$.tiny < 0`: true, `$.tiny > -1e-399`: true, `$.huge > 1e999999998`: true, `0 > $.neg`: true,
		`$.bmp < $.astral`: true, `$.s < abd`: true, `$.s < ab`: false, `$.numbers[*] > 8`: true, `$.numbers[*] > 9`: false, `8 < $.numbers[*]`: true, `9 < $.numbers[*]`: false,
		`$.numbers[*] < $.numbers[*]`: true, `$.neg >= $.numbers[*]`: false, `$.list[*] >= two`: true, `$.t > $.f`: false, `$.t >= $.t`: false, `$.nil <= $.nil`: false,
		`az < $.words[*]`: true, `zz < $.words[*]`: false, `c > $.words[*]`: true, `b > $.words[*]`: false, `$.s <= $.prefixes[*]`: true,
		`$.big > 123456789012345678901234567889`: true, `$.big < 123456789012345678901234567891`: true, `$.x <= $.x`: false, `not $.x <= $.x`: true,
		// in and contains
		`$.n in [1, 12.5]`: true, `$.nil in [null]`: true, `$.nil in []`: false, `$.list[3] in [[3]]`: true, `$.s in $.words`: false, `$.words[0] in $.nested[*]`: true,
		`$.words[*] in $.nested[*]`: true, `$.s not in $.s`: true, `$.x not in [a]`: true, `b in $.words`: true, `[3] in $.list`: true, `abc in $.s`: false,
		`$.list contains 1`: true, `$.list contains null`: true, `$.list contains [3.0]`: true, `$.list contains tw`: false, `$.s contains bc`: true, `$.s contains ''`: true,
		`$.nested[*] contains c`: true, `$.nested contains c`: false, `$.o contains a`: false, `[abc, d] contains $.s`: true, `"xabcx" contains $.s`: true,
		`"xzzx" contains $.words[*]`: true, `$.s contains $.words[0]`: true, `$.s not contains $.words[1]`: true, `$.s contains $.numbers[0]`: false,
		// affixes and patterns
		`$.s starts_with $.prefixes[1]`: true, `$.s starts_with $.prefixes[0]`: false, `"abc" starts_with $.prefixes[*]`: true, `$.s not starts_with ab`: false,
		`$.s ends_with ''`: true, `$.n starts_with "1"`: false, `$.s matches B`: false, `$.s matches (?i)B`: true, `$.s matches ^a[bx]c$ and $.t`: true, `$.n matches '1'`: false,
		`$.s not matches '^b'`: true, `$.astral matches ^.$`: true, "$.s matches\t^abc$\nand $.t": true, `$.slash matches "\\\\"`: true, `$.words[*] matches '^z+$'`: true,
	} {
		// One payload is read for this filter alone, the other for all of them.
		for _, d := range []*Document{NewDocument([]byte(payload), ""), d} {
			if got := holds(t, mustFilter(t, filter), d, c); got != want {
				t.Errorf("Match(%s) = %v, want %v", filter, got, want)
			}
		}
	}
}

func TestFilterOfWhatIsNotJSON(t *testing.T) {
	for _, c := range []struct{ payload, filter string }{
		{"hello world", `$ contains world`}, {"hello", `$.a != 1`}, {"", `$ == ""`}, {"\xff", "$ == '\uFFFD'"},
	} {
		if !holds(t, mustFilter(t, c.filter), NewDocument([]byte(c.payload), ""), nil) {
			t.Errorf("Match(%s) of %q = false, want true", c.filter, c.payload)
		}
	}
}

func TestFilterPatternBounds(t *testing.T) {
	f := mustFilter(t, `$ matches x`)
	for size, want := range map[int]bool{maxSubject: true, maxSubject + 1: false} {
		if got := holds(t, f, NewDocument([]byte(strings.Repeat("x", size)), ""), nil); got != want {
			t.Errorf("Match of %d bytes = %v, want %v", size, got, want)
		}
	}
}

func TestFilterBounds(t *testing.T) {
	test := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, c := range []struct {
		filter string
		ok     bool
	}{
		{test("(", "$.a", ")", 50), true}, {test("(", "$.a", ")", 51), false},
		{test("not ", "$.a", "", 50), true}, {test("not ", "$.a", "", 51), false},
		{"$.a == " + test("[", "", "]", 50), true}, {"$.a == " + test("[", "", "]", 51), false},
		{test("(", "$.a", ") and $.a", 40) + " and " + test("(", "$.a", ")", 50), true},
		{"$.a in [" + strings.Repeat("[],", 60) + "[]]", true}, {"$.a" + strings.Repeat(" and not $.a", 60), true},
		{"$.a == " + strings.Repeat("x", maxFilter-7), true}, {"$.a == " + strings.Repeat("x", maxFilter-6), false},
		{"$.a matches " + strings.Repeat("x", maxRegexp), true}, {"$.a matches " + strings.Repeat("x", maxRegexp+1), false},
	} {
		if _, err := ParseFilter(c.filter); (err == nil) != c.ok {
			t.Errorf("ParseFilter(%s): %v, want one: %v", shown(c.filter), err, !c.ok)
		}
	}
}

// TestContextIsMadeOnce: the context is made at most once, and only if an expression reads it.
func TestContextIsMadeOnce(t *testing.T) {
	made := 0
	c := NewContext(func() map[string]any { made++; return map[string]any{"a": true} })
	d := NewDocument(nil, "")
	holds(t, mustFilter(t, "$.a"), d, c)
	if made != 0 {
		t.Errorf("the context was made %d times for $.a, want 0", made)
	}
	for range 2 {
		if !holds(t, mustFilter(t, "$$.a and $$.a"), d, c) || made != 1 {
			t.Errorf("the context was made %d times for $$.a, want once", made)
		}
	}
	if holds(t, mustFilter(t, "exists $$.a"), d, nil) {
		t.Error("exists $$.a holds without a context")
	}
}

// plainFilters are filters of the kinds that run for every event. They must not allocate.
var plainFilters = []string{
	`$.id == "evt_1"`, `$.order.total > 12`, `$.id starts_with "evt_"`, `$.id in ["evt_0", "evt_1"]`, `$.id matches '^evt_\d+$'`, `exists $.order.items[0]`,
	`$.order and not $.id == "x"`, `$$.event.type == "order.created"`,
}

func eventContext() *Context {
	return NewContext(func() map[string]any { return map[string]any{"event": map[string]any{"type": "order.created"}} })
}

func TestPlainFiltersAllocateNothing(t *testing.T) {
	d, c := NewDocument([]byte(strings.Replace(benchmarkPayload, "12.50", "1250", 1)), ""), eventContext()
	for _, text := range plainFilters {
		f := mustFilter(t, text)
		if !holds(t, f, d, c) {
			t.Errorf("Match(%s) = false, want true", text)
		}
		if n := testing.AllocsPerRun(100, func() { holds(t, f, d, c) }); n != 0 {
			t.Errorf("Match(%s) allocates %v times, want 0", text, n)
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	d, c := NewDocument([]byte(benchmarkPayload), ""), eventContext()
	for _, text := range plainFilters {
		b.Run(text, func(b *testing.B) {
			f := mustFilter(b, text)
			b.ReportAllocs()
			for b.Loop() {
				holds(b, f, d, c)
			}
		})
	}
}

// TestPairsAreLinear: filters over 10^10 pairs of values return at once. A filter that compared
// each pair would run longer than the test's timeout.
func TestPairsAreLinear(t *testing.T) {
	var a, b []string
	for i := range 100_000 {
		a = append(a, fmt.Sprint(2*i))
		b = append(b, fmt.Sprint(2*i+1))
	}
	d := NewDocument([]byte(`{"a": [`+strings.Join(a, ",")+`], "b": [`+strings.Join(b, ",")+`], "n": [`+strings.Repeat("7", 100_000)+`]}`), "")
	for filter, want := range map[string]bool{
		`$.a[*] == $.b[*]`: false, `$.a[*] in $.b`: false, `$.a contains $.b[0]`: false, `$.a[*] > $.b[*]`: true, `$.b[*] < $.a[0]`: false,
		`$.n[0] == $.a[*]`: false, `$.n[0] <= $.a[*]`: false, `$.a[*] == $.n[0]`: false, `$.a[*] > $.n[0]`: false, `$.n == $.a[*]`: false,
	} {
		if got := holds(t, mustFilter(t, filter), d, nil); got != want {
			t.Errorf("Match(%s) = %v, want %v", filter, got, want)
		}
	}
}
