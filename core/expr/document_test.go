package expr

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func nest(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestDocumentValue(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ payload, contentType, want string }{
		{`{"a": 1.50, "b": [true, null]}`, "application/json", `{"a":1.5,"b":[true,null]}`},
		{`{"a": 1}`, "text/plain; charset=utf-8", `{"a":1}`},
		{`{"a": 1, "a": 2}`, "", `{"a":2}`},
		{" 42\n", "", `42`},
		{`"x"`, "", `"x"`},
		{"", "", `""`},
		{"", "application/json", `""`},
		{"", form, `""`},
		{" ", "", `" "`},
		{"hello", "text/plain", `"hello"`},
		{`{"a": 1} x`, "application/json", `"{\"a\": 1} x"`},
		{`{"a": 1}{}`, "", `"{\"a\": 1}{}"`},
		{`{"a": 01}`, "", `"{\"a\": 01}"`},
		{"[1,2", "", `"[1,2"`},
		{"a\xffb", "", `"a` + "\uFFFD" + `b"`},
		{nest(200), "", nest(200)},
		{nest(201), "", "null"}, // see TestJSONWithoutView
		{`["\"[", ` + nest(199) + `]`, "", `["\"[",` + nest(199) + `]`},

		{"a=1&b=x+y%21", form, `{"a":"1","b":"x y!"}`},
		{"a=1&a=2&b=", form + "; charset=UTF-8", `{"a":["1","2"],"b":""}`},
		{"a=1", " Application/X-WWW-Form-Urlencoded ", `{"a":"1"}`},
		{"flag", form, `{"flag":""}`},
		{"42", form, `{"42":""}`},
		{"null", form, `{"null":""}`},
		{"payload=%7B%22a%22%3A1%7D", form, `{"a":1}`},
		{"payload=%7B%22a%22", form, `{"payload":"{\"a\""}`},
		{"payload=1&payload=2", form, `{"payload":["1","2"]}`},
		{"payload=%7B%7D&x=1", form, `{"payload":"{}","x":"1"}`},
		{`{"a":1}`, form, `{"a":1}`},
		{`{"a"=1&b=2`, form, `{"b":"2","{\"a\"":"1"}`},
		{"a=%zz", form, `"a=%zz"`},
		{"a=1;b=2", form, `"a=1;b=2"`},
		{"&&", form, `"&&"`},
		{"a=%ff", form, `{"a":"` + "\uFFFD" + `"}`},
		{"%ff=a&%fe=b", form, `"%ff=a&%fe=b"`},
		{"a=1", "multipart/form-data", `"a=1"`},
	} {
		d := NewDocument([]byte(c.payload), c.contentType)
		if got := Canonical(d.Value()); got != c.want {
			t.Errorf("NewDocument(%q, %q).Value() = %s, want %s", c.payload, c.contentType, got, c.want)
		}
	}
}

func TestDocumentKeepsNumbersAsSpelt(t *testing.T) {
	v := NewDocument([]byte(`{"n": 9007199254740993.0}`), "").Value()
	if diff := cmp.Diff(map[string]any{"n": json.Number("9007199254740993.0")}, v); diff != "" {
		t.Errorf("Value() differs (-want +got):\n%s", diff)
	}
}

func TestDocumentDecodesOnce(t *testing.T) {
	d := NewDocument([]byte(`{"a": {}}`), "")
	first := d.Value().(map[string]any)
	first["mark"] = true
	if d.Value().(map[string]any)["mark"] != true {
		t.Error("Value() decodes again, want the tree it gave before")
	}
}

// FuzzDocument: every payload has a view, which is valid JSON. The view of JSON that is not too
// deep is the JSON itself. The view of a payload that is neither JSON nor a form is its text.
func FuzzDocument(f *testing.F) {
	for _, p := range []string{``, `{"a":[1,"x",null,true]}`, `1e5`, `"\ud800"`, `{"a":1}x`, "a=1&a=2", "payload=%7B%7D", "\xff", nest(201), `{"a":"]"}`} {
		f.Add([]byte(p), true)
		f.Add([]byte(p), false)
	}
	f.Fuzz(func(t *testing.T, payload []byte, form bool) {
		contentType := ""
		if form {
			contentType = formType
		}
		v := NewDocument(payload, contentType).Value()
		canonical := Canonical(v)
		if !json.Valid([]byte(canonical)) || !utf8.ValidString(canonical) {
			t.Fatalf("Canonical(Value(%q)) = %q, want JSON", payload, canonical)
		}
		if depthOf(v) > maxDepth {
			t.Fatalf("Value(%q) is %d levels deep, want at most %d", payload, depthOf(v), maxDepth)
		}
		if form {
			return
		}
		var plain any
		text := bytes.TrimPrefix(payload, []byte("\ufeff"))
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		switch err := d.Decode(&plain); {
		case unreadable(text) != nil || err == nil && json.Valid(text) && depthOf(plain) > maxDepth:
			plain = nil
		case err != nil || !json.Valid(text):
			plain = strings.ToValidUTF8(string(payload), "\uFFFD")
		}
		if diff := cmp.Diff(plain, v); diff != "" {
			t.Fatalf("Value(%q) differs (-want +got):\n%s", payload, diff)
		}
	})
}

func depthOf(v any) (deepest int) {
	e := evaluation{budget: &budget{leastSteps}}
	for _, child := range e.children(v) {
		deepest = max(deepest, depthOf(child))
	}
	switch v.(type) {
	case []any, map[string]any:
		return deepest + 1
	}
	return 0
}

func TestJSONIsAsItIsWritten(t *testing.T) {
	tests := []struct {
		payload, contentType, want string
		ok                         bool
	}{
		{" {\"b\": 1.0,\n \"a\": \"\\u0041\"} ", "", "{\"b\": 1.0,\n \"a\": \"\\u0041\"}", true},
		{`5`, "text/plain", `5`, true},
		{`payload=%7B%22b%22%3A1%2C%22a%22%3A2%7D`, "application/x-www-form-urlencoded", `{"b":1,"a":2}`, true},
		{`a=1&b=2`, "application/x-www-form-urlencoded", "", false},
		{`{"a": `, "application/json", "", false},
		{``, "", "", false},
		{strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "", false},
	}
	for _, tt := range tests {
		got, ok := NewDocument([]byte(tt.payload), tt.contentType).JSON()
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("JSON of %.40q (%s) = %q, %v, want %q, %v", tt.payload, tt.contentType, got, ok, tt.want, tt.ok)
		}
	}
}
