package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const mebibyte = 1 << 20

// filled repeats a text until a payload has a size.
func filled(before, repeated, after string, size int) string {
	n := (size - len(before) - len(after)) / (len(repeated) + 1)
	return before + strings.TrimSuffix(strings.Repeat(repeated+",", n), ",") + after
}

// An attack is a payload made to cost an expression as much as it can.
type attack struct {
	name    string
	filter  string // or
	made    string // a template
	payload string
	most    int   // steps; 0: the whole budget
	want    error // nil, ErrBudget or ErrTooLarge
}

func attacks() []attack {
	numbers := filled("[", "0", "]", mebibyte)
	deep := func(width int) string { // 190 levels, each with a list beside the next one
		s := strings.Repeat(`{"b":[`+strings.Repeat("0,", width)+`0],"a":`, 190) + "1" + strings.Repeat("}", 190)
		return s
	}
	text := func(s string) string { return `{"text": "` + s + `", "n": 1}` }
	return []attack{
		// A literal pattern costs its own size times the size of the text.
		{name: "search in many texts", filter: `exists $.items[?search(@.t, '(a|b|ab)*c')]`, payload: filled(`{"items":[`, `{"t":"`+strings.Repeat("ab", 50)+`"}`, `]}`, mebibyte), most: 2 << 20},
		{name: "search with a large pattern", filter: `exists $[?search(@, '[^x]{900}[^y]{900}[^z]{900}')]`, payload: filled("[", `"`+strings.Repeat("a", 1000)+`"`, "]", mebibyte), want: ErrBudget},
		{name: "matches with a large pattern", filter: `$[*] matches '[^x]{900}[^y]{900}[^z]{900}'`, payload: filled("[", `"`+strings.Repeat("a", 60000)+`"`, "]", mebibyte), want: ErrBudget},
		{name: "matches in all text", filter: `$[*] matches '(?i)error|failed|timeout'`, payload: filled("[", `"`+strings.Repeat("erro ", 12000)+`"`, "]", mebibyte), most: 4 << 20},

		// Parts that do not depend on @ are evaluated once.
		{name: "length of a text for each item", filter: `exists $.items[?length($.text) > @]`, payload: filled(`{"text":"`+strings.Repeat("é", 200000)+`","items":[`, "9999999", "]}", mebibyte), most: 1 << 20},
		{name: "search in a text for each item", filter: `exists $.items[?search($.text, 'b$')]`, payload: filled(`{"text":"`+strings.Repeat("a", 100000)+`","items":[`, "9", "]}", mebibyte), most: 3 << 20},
		{name: "count of all for each item", filter: `exists $.items[?count($..*) == @]`, payload: filled(`{"items":[`, "-1", "]}", mebibyte/2), most: 3 << 20},
		{name: "a large value for each item", filter: `exists $.items[?@ == $.big]`, payload: filled(`{"big":[`+strings.Repeat("1,", 100000)+`1],"items":[`, "[1,1]", "]}", mebibyte), most: 1 << 20},
		{name: "an inner path through all, once", filter: `exists $.items[?$.items[?@.x == 2]]`, payload: filled(`{"items":[`, `{"x":1}`, "]}", mebibyte), most: 2 << 20},

		// Paths.
		{name: "descendants", filter: `$..a == 2`, payload: numbers, most: 2 << 20},
		{name: "descendants of a deep payload", filter: `exists $..a.a.a.a.a.a.b[5000]`, payload: deep(2700), most: 4 << 20},
		{name: "selectors that multiply", filter: `exists $[*,*][*,*][*,*][*,*][*,*][*,*].a`, payload: filled("[", "[[[[[0]]]]]", "]", mebibyte), want: ErrBudget},
		{name: "all of all", filter: `$..[*,*,*,*,*,*,*,*] == 2`, payload: numbers, want: ErrBudget},
		{name: "slices", filter: `exists $[::1,::1,::1,::1,::1,::1,::-1,::-2,::3].a`, payload: numbers, want: ErrBudget},
		{name: "a slice of huge steps", filter: `exists $[0:9007199254740991:9007199254740991].a`, payload: numbers, most: 1000},
		{name: "nested conditions", filter: `exists $..[?@[?@[?@[?@ == 2]]]]`, payload: filled("[", "[[[[0]]]]", "]", mebibyte), want: ErrBudget},
		{name: "nested conditions of one list", filter: `exists $[?@[?@[?@[?@ == 2]]]]`, payload: filled("[", "[[[[0]]]]", "]", mebibyte), most: 4 << 20},
		{name: "descendants of each", filter: `exists $[?count(@..*) > 99]`, payload: filled("[", "[[[[0]]]]", "]", mebibyte), most: 4 << 20},
		{name: "an object with many names", filter: `exists $.* and exists $[*,*,*,*].a`, payload: filled("{", `"`+"a"+`":0`, "}", 100) + "", most: 1000},
		{name: "many names, again and again", filter: `exists $[*,*,*,*,*,*,*,*].a`, payload: names(mebibyte), want: ErrBudget},

		// Values.
		{name: "many tests", filter: strings.TrimSuffix(strings.Repeat("$..a == 2 or ", 300), " or "), payload: numbers, want: ErrBudget},
		{name: "contains in large texts", filter: `$.text contains $.n or $.text contains 'ab' or $.text contains $.text`, payload: text(strings.Repeat("a", 900000)), most: 1 << 20},
		{name: "ends_with", filter: strings.TrimSuffix(strings.Repeat("$..a ends_with 'x' or ", 180), " or "), payload: filled("[", `{"a":"`+strings.Repeat("y", 90)+`"}`, "]", mebibyte), want: ErrBudget},
		{name: "trees beside trees", filter: `$..* in $..*`, payload: deep(2000), want: ErrBudget},
		{name: "a huge exponent", filter: `$.n < $.m and $.n[?@ < $.m] exists or $.n > 1`, payload: `{"n": 1e999999999, "m": 1e-999999999}`, most: 100},
		{name: "a huge number", filter: `$[*] < $[*]`, payload: filled("[", strings.Repeat("9", 1000)+"e"+strings.Repeat("9", 1000), "]", mebibyte), most: 1 << 20},
		{name: "huge numbers in a condition", filter: `exists $[?@ < 1 && @ == 2 || @ > 1e300]`, payload: filled("[", "1"+strings.Repeat("0", 10), "]", mebibyte), most: 4 << 20},
		{name: "one huge number", filter: `$ == 1`, payload: strings.Repeat("1", mebibyte), most: 1 << 20},

		// Templates: the result is bounded while the template writes it.
		{name: "copies of the payload", made: `[` + strings.TrimSuffix(strings.Repeat("{{ $ }},", 5000), ",") + `]`, payload: numbers, want: ErrTooLarge},
		{name: "copies of the payload as text", made: `["` + strings.Repeat("{{ $ }}", 5000) + `"]`, payload: numbers, want: ErrTooLarge},
		{name: "copies that are thrown away", made: `[` + strings.TrimSuffix(strings.Repeat("{{ $..* | number ?? 1 }},", 2000), ",") + `]`, payload: numbers, want: ErrBudget},
		{name: "texts that are thrown away", made: `[` + strings.TrimSuffix(strings.Repeat("{{ $ | json | number ?? 1 }},", 2000), ",") + `]`, payload: numbers, want: ErrTooLarge},
		{name: "all of a deep payload", made: `[{{ $..* }}]`, payload: deep(2000), want: ErrTooLarge},
		{name: "all of a deep payload, joined", made: `[{{ $..* | join(',') }}]`, payload: deep(2000), want: ErrTooLarge},
		{name: "a long separator", made: `[{{ $ | join('` + strings.Repeat("x", 60000) + `') }}]`, payload: numbers, want: ErrTooLarge},
		{name: "quotes in quotes", made: `[{{ $ | json | json | json | json | json | json }}]`, payload: `"` + strings.Repeat(`\"`, 400000) + `"`, want: ErrTooLarge},
		{name: "control characters", made: `["{{ $ }}{{ $ }}{{ $ }}{{ $ }}{{ $ }}"]`, payload: `"` + strings.Repeat(`\u0001`, 170000) + `"`, want: ErrTooLarge},
	}
}

// names is an object with as many members as fit into size bytes.
func names(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// TestAttacks counts steps, since time depends on the machine.
func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			d := NewDocument([]byte(a.payload), "application/json")
			size, err := a.run(t, d)
			used := max(leastSteps, stepsPerByte*len(a.payload)) - d.budget.left
			t.Logf("%d steps, %d bytes made, %v", used, size, err)
			if !errors.Is(err, a.want) || err != nil && a.want == nil {
				t.Errorf("%v, want %v", err, a.want)
			}
			if a.most > 0 && used > a.most {
				t.Errorf("%d steps, want at most %d", used, a.most)
			}
			if size > maxResult {
				t.Errorf("%d bytes were made, want at most %d", size, maxResult)
			}
		})
	}
}

// run evaluates the expression, and returns how much a template made.
func (a attack) run(t testing.TB, d *Document) (int, error) {
	t.Helper()
	if a.filter != "" {
		_, err := mustFilter(t, a.filter).Match(d, nil)
		return 0, err
	}
	out, err := mustTemplate(t, a.made).Render(d, nil)
	return len(out), err
}

// TestSensibleExpressions: expressions as users write them for real events need at most half
// of the budget, on payloads of the largest size that the gateway accepts.
func TestSensibleExpressions(t *testing.T) {
	const item = `{"sku":"ABC-12345","title":"A thing, and what is to be said of it","qty":3,"price":12.50,"tags":["new","sale"],"dimensions":{"w":1.5,"h":20}}`
	orders := filled(`{"id":"evt_1","limit":10,"items":[`, item, `]}`, mebibyte)
	mail := `{"subject":"Re: invoice","body":"` + strings.Repeat("Dear all, the report is attached. ", 1800) + `"}`
	for filter, payload := range map[string]string{
		`exists $.items[?@.sku == 'XYZ' && @.qty > 3 || @.price >= 100]`:                             orders,
		`$.items[*].tags contains "gone" or $.items[*].sku in ["A", "B"]`:                            orders,
		`$..sku == "x" or $..w > 100 or $..title contains "nothing"`:                                 orders,
		`$.items[*].sku matches '^[A-Z]{4}-[0-9]{4,8}$'`:                                             orders,
		`exists $.items[?search(@.title, '(?:refund|return)ed') && @.qty > $.limit]`:                 orders,
		`exists $.items[?count(@.tags[*]) > 2] or exists $.items[?length(@.sku) > 20]`:               orders,
		`$.body matches '(?i)\b(refund|charge ?back|cancel(l?ed)?|complaint|invoice overdue|legal)'`: mail,
	} {
		d := NewDocument([]byte(payload), "")
		if holds(t, mustFilter(t, filter), d, nil) {
			t.Errorf("%s holds, want it to look at everything", filter)
		}
		used := leastSteps - d.budget.left
		t.Logf("%s: %d steps", filter, used)
		if used > leastSteps/2 {
			t.Errorf("%s takes %d steps, want at most half of %d", filter, used, leastSteps)
		}
	}
}

// TestBudgetGrowsWithThePayload: on a payload of 8 MiB a filter can still look at every node.
func TestBudgetGrowsWithThePayload(t *testing.T) {
	d := NewDocument([]byte(filled("[", `{"id": 1}`, "]", 8*mebibyte)), "")
	if holds(t, mustFilter(t, "$..id == 2"), d, nil) {
		t.Error("it holds")
	}
}

// TestBudgetIsOfEach: each expression has its whole budget, although another one ran out on
// the same payload.
func TestBudgetIsOfEach(t *testing.T) {
	d := NewDocument([]byte(filled("[", "0", "]", mebibyte)), "")
	costly, cheap := mustFilter(t, `$..[*,*,*,*,*,*,*,*] == 2`), mustFilter(t, `$[0] == 0`)
	for range 3 {
		if ok, err := costly.Match(d, nil); ok || !errors.Is(err, ErrBudget) {
			t.Errorf("Match = %v, %v, want %v", ok, err, ErrBudget)
		}
		if ok, err := mustFilter(t, `not $..[*,*,*,*,*,*,*,*] == 2`).Match(d, nil); ok || !errors.Is(err, ErrBudget) {
			t.Errorf("Match of the opposite = %v, %v, want %v too", ok, err, ErrBudget)
		}
		if !holds(t, cheap, d, nil) {
			t.Errorf("the cheap one does not hold after the costly one")
		}
	}
	path, err := ParseReference(`$..[*,*,*,*,*,*,*,*]`)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := path.Select(d, nil); all != nil || !errors.Is(err, ErrBudget) {
		t.Errorf("Select = %d values, %v, want %v", len(all), err, ErrBudget)
	}
}

func BenchmarkAttack(b *testing.B) {
	for _, a := range attacks() {
		b.Run(strings.ReplaceAll(a.name, " ", "_"), func(b *testing.B) {
			d := NewDocument([]byte(a.payload), "application/json")
			d.Value()
			for b.Loop() {
				_, _ = a.run(b, d)
			}
		})
	}
}
