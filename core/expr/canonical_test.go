package expr

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	long := strings.Repeat("7", 1000)
	for _, c := range []struct{ value, want string }{
		{`null`, `null`}, {`true`, `true`}, {`false`, `false`}, {`""`, `""`}, {`[]`, `[]`}, {`{}`, `{}`},
		{`{"b": 1, "a": [2, {"d": 3, "c": 4}], "B": 5}`, `{"B":5,"a":[2,{"c":4,"d":3}],"b":1}`},
		{`"<&>\u2028é\u00e9\/"`, "\"<&>\u2028éé/\""},
		{`"\"\\\b\f\n\r\t\u0000\u001f\u007f"`, `"\"\\\b\f\n\r\t\u0000\u001f` + "\x7f\""},
		{`"\ud83d\ude00\ud800"`, "\"😀\uFFFD\""},

		{`0`, `0`}, {`-0`, `0`}, {`0.000`, `0`}, {`0e99`, `0`}, {`-0E-99999999999999999999`, `0`},
		{`1`, `1`}, {`1.0`, `1`}, {`1e0`, `1`}, {`10e-1`, `1`}, {`0.1E+1`, `1`}, {`-1.0`, `-1`},
		{`100`, `100`}, {`1e2`, `100`}, {`1.50`, `1.5`}, {`12.5e1`, `125`}, {`0.000001`, `0.000001`}, {`0.0000001`, `1e-7`}, {`15e-8`, `1.5e-7`},
		{`9007199254740993`, `9007199254740993`}, {`9007199254740992`, `9007199254740992`},
		{`340282366920938463463374607431768211455`, `340282366920938463463374607431768211455`},
		{`1e39`, `1` + strings.Repeat("0", 39)}, {`1e40`, `1e40`}, {`-1234e40`, `-1.234e43`}, {`1` + strings.Repeat("0", 40), `1e40`},
		{`1e999999999`, `1e999999999`}, {`0.1e1000000000`, `1e999999999`}, {`10e999999998`, `1e999999999`},
		{`1e99999999999999999999`, `1e99999999999999999999`}, {`10e99999999999999999999`, `1e100000000000000000000`},
		{`0.01e100000000000000000000`, `1e99999999999999999998`}, {`0.1e1000000000000000000`, `1e999999999999999999`},
		{`0.1e10000000000000000000`, `1e9999999999999999999`}, {`10e-10000000000000000000`, `1e-9999999999999999999`},
		{`0.1e-9999999999999999999`, `1e-10000000000000000000`}, {`1e00000000000000000000000000007`, `10000000`}, {`1e-0`, `1`},
		{long, "7." + long[1:] + "e999"}, {`0.` + long, "0." + long},
	} {
		if got := Canonical(tree(t, c.value)); got != c.want {
			t.Errorf("Canonical(%s) = %s, want %s", c.value, got, c.want)
		}
	}
}

// TestCanonicalDistinguishes: values that are not equal have different canonical texts.
func TestCanonicalDistinguishes(t *testing.T) {
	seen := map[string]string{}
	for _, value := range []string{`1`, `"1"`, `true`, `"true"`, `null`, `"null"`, `""`, `[]`, `{}`, `[1]`, `[[1]]`, `{"a":null}`, `{"a":1}`,
		`["a,b"]`, `["a","b"]`, `9007199254740993`, `9007199254740992`, `-1`, `0`, `0.1`, `0.10000000000000001`, `1e400`, `1e401`, `1e-400`} {
		text := Canonical(tree(t, value))
		if other, ok := seen[text]; ok {
			t.Errorf("Canonical(%s) = Canonical(%s) = %s", value, other, text)
		}
		seen[text] = value
	}
}

func TestDecimalInteger(t *testing.T) {
	for n, want := range map[json.Number]bool{
		"0": true, "-0.0": true, "1": true, "1.0": true, "1.5": false, "15e-1": false, "150e-1": true, "1e-1": false, "1.25e2": true, "1.255e2": false,
		"1e999999999999999999999": true, "1e-999999999999999999999": false, "12345678901234567890.5": false, "0e-5": true,
	} {
		if got := parseDecimal(n).integer(); got != want {
			t.Errorf("parseDecimal(%s).integer() = %v, want %v", n, got, want)
		}
	}
}

func TestAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringMatching(`[+-]?(0{0,3}[0-9]{1,40}|9{15,40}|10{15,40})`).Draw(t, "a")
		n := rapid.IntRange(-1<<40, 1<<40).Draw(t, "n")
		want, _ := new(big.Int).SetString(a, 10)
		want.Add(want, big.NewInt(int64(n)))
		if got := add(a, n); got != want.String() {
			t.Fatalf("add(%s, %d) = %s, want %s", a, n, got, want)
		}
	})
}

// FuzzCanonical: a canonical text is JSON and its own canonical text. Two numbers have the same
// canonical text exactly if they are equal.
func FuzzCanonical(f *testing.F) {
	for _, pair := range [][2]string{
		{`1`, `1.0`}, {`1e2`, `100`}, {`0`, `-0`}, {`0.1`, `1e-1`}, {`9007199254740993`, `9007199254740992`}, {`12e-3`, `0.0120`}, {`1e40`, `10e39`},
		{`{"a":[1,{"b":"\u0001"}]}`, `"\ud83d\ude00"`}, {`1e999999999`, `10e999999998`}, {`-5E+3`, `-5000`},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, ok := parseJSON([]byte(a))
		if !ok {
			return
		}
		text := Canonical(x)
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			t.Fatalf("Canonical(%q) = %q, want JSON", a, text)
		}
		if len(text) > 10*len(a)+maxPlain {
			t.Fatalf("Canonical(%q) has %d bytes of %d", a, len(text), len(a))
		}
		again, _ := parseJSON([]byte(text))
		if got := Canonical(again); got != text {
			t.Fatalf("Canonical(%q) = %q, and of that %q", a, text, got)
		}
		y, ok := parseJSON([]byte(b))
		if !ok {
			return
		}
		if equal, known := equalNumbers(x, y); known && equal != (text == Canonical(y)) {
			t.Fatalf("Canonical(%q) = %q, Canonical(%q) = %q; numbers equal: %v", a, text, b, Canonical(y), equal)
		}
	})
}

// equalNumbers compares two numbers as rationals. It returns known=false if they are too large
// to expand.
func equalNumbers(x, y any) (equal, known bool) {
	m, ok := x.(json.Number)
	n, also := y.(json.Number)
	if !ok || !also || !small(m) || !small(n) {
		return false, false
	}
	p, ok := new(big.Rat).SetString(string(m))
	q, also := new(big.Rat).SetString(string(n))
	return ok && also && p.Cmp(q) == 0, ok && also
}

func small(n json.Number) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	return len(n) < 200 && len(strings.TrimLeft(exponent, "+-0")) < 4
}
