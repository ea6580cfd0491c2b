package expr

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A reader evaluates a filter while it parses the filter, in the plainest way: pair by pair,
// and with rational numbers. It panics on filters that it cannot parse.
type reader struct {
	rest             string
	payload, context any
}

func evaluate(filter string, payload, context any) bool {
	r := &reader{filter, payload, context}
	holds := r.or()
	if r.skip(); r.rest != "" {
		panic("left over: " + r.rest)
	}
	return holds
}

func (r *reader) skip() { r.rest = strings.TrimLeft(r.rest, " \t\r\n") }

// take reads the match of a regular expression at the beginning of the rest.
func (r *reader) take(pattern string) (string, bool) {
	r.skip()
	found := regexp.MustCompile(`^(?:` + pattern + `)`).FindString(r.rest)
	r.rest = r.rest[len(found):]
	return found, found != ""
}

// keyword reads a word that ends where words end.
func (r *reader) keyword(words string) (string, bool) {
	r.skip()
	word := regexp.MustCompile("^[^ \t\r\n\"'()\\[\\]{},]*").FindString(r.rest)
	if !slices.Contains(strings.Fields(words), word) {
		return "", false
	}
	r.rest = r.rest[len(word):]
	return word, true
}

func (r *reader) or() bool {
	holds := r.and()
	for {
		if _, ok := r.keyword("or"); !ok {
			return holds
		}
		next := r.and()
		holds = holds || next
	}
}

func (r *reader) and() bool {
	holds := r.unary()
	for {
		if _, ok := r.keyword("and"); !ok {
			return holds
		}
		next := r.unary()
		holds = holds && next
	}
}

func (r *reader) unary() bool {
	if _, ok := r.keyword("not"); ok {
		return !r.unary()
	}
	if _, ok := r.keyword("exists"); ok {
		values, _ := r.operand()
		return len(values) > 0
	}
	if _, ok := r.take(`\(`); ok {
		holds := r.or()
		if _, ok := r.take(`\)`); !ok {
			panic("no )")
		}
		return holds
	}
	return r.test()
}

func (r *reader) test() bool {
	left, isPath := r.operand()
	if _, ok := r.keyword("exists"); ok && isPath {
		return len(left) > 0
	}
	_, negative := r.keyword("not")
	operator, ok := r.take(`==|!=|<=|>=|<|>`)
	if !ok {
		operator, ok = r.keyword("in contains starts_with ends_with matches")
	}
	switch {
	case !ok:
		return slices.ContainsFunc(left, func(v any) bool {
			return v != nil && v != false && v != "" && !same(v, json.Number("0"))
		})
	case operator == "matches":
		re := regexp.MustCompile(r.pattern())
		return negative != slices.ContainsFunc(left, func(v any) bool {
			s, ok := v.(string)
			return ok && len(s) <= 64<<10 && re.MatchString(s)
		})
	case operator == "!=":
		operator, negative = "==", true
	}
	right, _ := r.operand()
	for _, v := range left {
		for _, w := range right {
			if related(v, operator, w) {
				return !negative
			}
		}
	}
	return negative
}

func (r *reader) pattern() string {
	if r.skip(); r.rest[0] == '"' || r.rest[0] == '\'' {
		return r.value().(string)
	}
	pattern, _ := r.take("[^ \t\r\n]+")
	return pattern
}

func (r *reader) operand() (values []any, isPath bool) {
	if r.skip(); !strings.HasPrefix(r.rest, "$") {
		return []any{r.value()}, false
	}
	root := r.payload
	if strings.HasPrefix(r.rest, "$$") {
		root, r.rest = r.context, r.rest[1:]
	}
	for length := min(len(r.rest), maxPath); ; length-- {
		if path, err := ParsePath(r.rest[:length]); err == nil {
			r.rest = r.rest[length:]
			return selected(path, root), true
		}
	}
}

func (r *reader) value() any {
	r.skip()
	switch r.rest[0] {
	case '"':
		var v string
		d := json.NewDecoder(strings.NewReader(r.rest))
		if err := d.Decode(&v); err != nil {
			panic(err)
		}
		r.rest = r.rest[d.InputOffset():]
		return v
	case '\'':
		v, rest, _ := strings.Cut(r.rest[1:], "'")
		r.rest = rest
		return v
	case '[':
		r.rest = r.rest[1:]
		list := []any{}
		for {
			if _, ok := r.take(`\]`); ok {
				return list
			}
			list = append(list, r.value())
			r.take(",")
		}
	}
	word, ok := r.take("[^ \t\r\n\"'()\\[\\]{},]+")
	if !ok {
		panic("no value: " + r.rest)
	}
	if v, ok := parseJSON([]byte(word)); ok {
		return v
	}
	return word
}

// same is deep equality.
func same(v, w any) bool {
	switch v := v.(type) {
	case json.Number:
		w, ok := w.(json.Number)
		return ok && rational(v).Cmp(rational(w)) == 0
	case []any:
		w, ok := w.([]any)
		return ok && slices.EqualFunc(v, w, same)
	case map[string]any:
		w, ok := w.(map[string]any)
		if !ok || len(v) != len(w) {
			return false
		}
		for name, item := range v {
			if other, ok := w[name]; !ok || !same(item, other) {
				return false
			}
		}
		return true
	}
	switch w.(type) {
	case []any, map[string]any:
		return false
	}
	return v == w
}

func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic("no number: " + n)
	}
	return r
}

func related(v any, operator string, w any) bool {
	isSame := func(item any) bool { return same(item, v) }
	switch operator {
	case "==":
		return same(v, w)
	case "in":
		list, _ := w.([]any)
		return slices.ContainsFunc(list, isSame)
	}
	if list, ok := v.([]any); ok && operator == "contains" {
		return slices.ContainsFunc(list, func(item any) bool { return same(item, w) })
	}
	if m, ok := v.(json.Number); ok {
		n, ok := w.(json.Number)
		return ok && ordered(operator, func() int { return rational(m).Cmp(rational(n)) })
	}
	s, isText := v.(string)
	text, bothTexts := w.(string)
	if !isText || !bothTexts {
		return false
	}
	switch operator {
	case "contains":
		return strings.Contains(s, text)
	case "starts_with":
		return strings.HasPrefix(s, text)
	case "ends_with":
		return strings.HasSuffix(s, text)
	}
	return ordered(operator, func() int { return slices.Compare([]rune(s), []rune(text)) })
}

func ordered(operator string, compare func() int) bool {
	switch operator {
	case "<":
		return compare() < 0
	case "<=":
		return compare() <= 0
	case ">":
		return compare() > 0
	case ">=":
		return compare() >= 0
	}
	return false
}

// agree compares a filter with the reference.
func agree(t rapid.TB, f *Filter, filter string, payload []byte) {
	t.Helper()
	d := NewDocument(payload, "")
	members := map[string]any{"event": map[string]any{"id": "evt_1", "type": "order.created", "n": json.Number("1")}}
	got := holds(t, f, d, NewContext(func() map[string]any { return members }))
	if want := evaluate(filter, d.Value(), members); got != want {
		t.Fatalf("Match(%q) of %q = %v, the reference says %v", filter, payload, got, want)
	}
	if negated, err := ParseFilter("not (" + filter + " )"); err == nil && holds(t, negated, d, NewContext(func() map[string]any { return members })) == got {
		t.Fatalf("Match(%q) of %q = %v, and so is its negation", filter, payload, got)
	}
}

// TestFilterAgainstReference makes filters and payloads from few values, so that they often
// match.
func TestFilterAgainstReference(t *testing.T) {
	values := rapid.SampledFrom([]string{`1`, `1.0`, `-1`, `10e-1`, `0`, `2`, `""`, `"a"`, `"ab"`, `"b"`, `"é"`, `true`, `false`, `null`, `[]`, `["a"]`, `[1, "b"]`, `[[1.0]]`})
	roots := rapid.SampledFrom([]string{`$`, `$.a`, `$.b`, `$.a[*]`, `$.b[0]`, `$..a`, `$..*`, `$.c`, `$.a['a','b']`, `$$.event.n`, `$$.event.*`, `$.b[?@ != 1]`})
	var payload, filter func(t *rapid.T, depth int) string
	payload = func(t *rapid.T, depth int) string {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		switch {
		case depth == 0 || kind == 0:
			return values.Draw(t, "value")
		case kind == 1:
			return "[" + payload(t, depth-1) + "," + payload(t, depth-1) + "]"
		}
		return fmt.Sprintf(`{"a": %s, "b": %s}`, payload(t, depth-1), payload(t, depth-1))
	}
	filter = func(t *rapid.T, depth int) string {
		kind := rapid.IntRange(0, 8).Draw(t, "kind")
		switch {
		case depth > 0 && kind == 0:
			return "not " + filter(t, depth-1)
		case depth > 0 && kind < 4:
			joined := rapid.SampledFrom([]string{" and ", " or ", " and not "}).Draw(t, "joined")
			return filter(t, depth-1) + joined + filter(t, depth-1)
		case depth > 0 && kind == 4:
			return "(" + filter(t, depth-1) + ")"
		case kind == 5:
			return rapid.SampledFrom([]string{"", "exists "}).Draw(t, "exists") + roots.Draw(t, "path")
		}
		sides := rapid.SampledFrom([]*rapid.Generator[string]{values, roots, roots})
		operator := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "not contains", "starts_with", "ends_with", "matches"}).Draw(t, "operator")
		right := sides.Draw(t, "right").Draw(t, "right value")
		if operator == "matches" {
			right = rapid.SampledFrom([]string{`^a`, `'b$'`, `"^$"`, `(?i)A`}).Draw(t, "pattern")
		}
		return sides.Draw(t, "left").Draw(t, "left value") + " " + operator + " " + right
	}
	drawn, parsed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		drawn++
		text := filter(t, 3)
		f, err := ParseFilter(text)
		if err != nil {
			return
		}
		parsed++
		agree(t, f, text, []byte(payload(t, 3)))
	})
	if parsed <= drawn/10 {
		t.Errorf("%d of %d filters were any, want more", parsed, drawn)
	}
}

// largeExponent finds numbers that are too large to expand.
var largeExponent = regexp.MustCompile(`[0-9][eE][+-]?0*[0-9]{3}`)

// FuzzFilter: an accepted filter gives the result of the reference, and its negation the
// opposite. A refused filter has an error of one line.
func FuzzFilter(f *testing.F) {
	var table filterCases
	readCases(f, "filter.json", &table)
	for _, c := range table.Cases {
		f.Add(c.Filter, []byte(table.Documents[c.Document]))
	}
	for _, c := range table.Errors {
		f.Add(c.Filter, []byte(`{"a": 1}`))
	}
	for _, filter := range []string{`$ == '\'`, `$.a in $..b and not exists $$.event.id`, `[a,"b"] contains $.a`, `$.a=="\u0061"or $.b<=-1.0e0`, `$.a matches (?i)A`, `$$.event.* >= $..*`} {
		f.Add(filter, []byte(`{"a": ["a", 1, {"b": ["a", -1]}], "b": -1}`))
	}
	f.Fuzz(func(t *testing.T, filter string, payload []byte) {
		parsed, err := ParseFilter(filter)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("ParseFilter(%q): %q, want one line", filter, err)
			}
			return
		}
		if len(filter) > 300 || len(payload) > 1000 || largeExponent.MatchString(filter) || largeExponent.Match(payload) {
			return
		}
		agree(t, parsed, filter, payload)
	})
}

func TestDecimalCompare(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := json.Number(number.Draw(t, "a")), json.Number(number.Draw(t, "b"))
		got, want := parseDecimal(a).compare(parseDecimal(b)), rational(a).Cmp(rational(b))
		if max(-1, min(1, got)) != want {
			t.Fatalf("compare(%s, %s) = %d, want %d", a, b, got, want)
		}
	})
	ascending := []json.Number{`-1e99999999999999999999`, `-9e9999999999999999999`, `-1e999999999`, `-2`, `-1.5`, `-1`, `-1e-5`, `-1e-999999999999999999999`, `0e999999999999999`,
		`1e-1000000000000000000000`, `1e-999999999999999999999`, `0.001`, `1`, `1.00000000000000000000000000000001`, `1.5`, `9007199254740992`, `9007199254740993`, `1e999999999`, `11e999999998`, `1e1000000000`, `1e99999999999999999999`}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := parseDecimal(a).compare(parseDecimal(b)); max(-1, min(1, got)) != max(-1, min(1, i-j)) {
				t.Errorf("compare(%s, %s) = %d", a, b, got)
			}
		}
	}
}
