package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func levels(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }

// A caller that asks for the view of JSON without one gets an error, and never a text.
func TestJSONWithoutView(t *testing.T) {
	form := func(s string) string { return "payload=" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(s) }
	for _, tt := range []struct {
		payload, contentType string
		want                 error
		text                 bool // whether the view is a text
	}{
		{levels(200), "", nil, false},
		{levels(202), "", ErrTooDeep, false},
		{"\ufeff" + levels(202), "application/json", ErrTooDeep, false},
		{levels(202), formType, ErrTooDeep, false},
		{form(levels(200)), formType, nil, false},
		{form(levels(202)), formType, ErrTooDeep, false},
		{levels(9_000), "text/plain", ErrTooDeep, false},
		{levels(30_000), "", ErrTooDeep, false},
		{levels(30_000) + " ", "", ErrTooDeep, false},
		{levels(30_000) + "1", "", nil, true}, // no JSON
		{"[" + levels(30_000), "", nil, true},
		{strings.Repeat("[", 300), "", nil, true},
		{strings.Repeat("[", 1<<20), "", nil, true},
		{strings.Repeat("x[", 300), "", nil, true},
		{`"` + strings.Repeat("[", 300) + `"`, "", nil, true}, // a string
	} {
		for _, force := range []bool{true, false} {
			d := NewDocument([]byte(tt.payload), tt.contentType)
			if force {
				if err := d.Err(); err != tt.want {
					t.Errorf("Err of %.20q, %s = %v, want %v", tt.payload, tt.contentType, err, tt.want)
				}
			}
			_, isText := d.Value().(string)
			if err := d.Err(); err != tt.want || Unreadable(err) != (tt.want != nil) {
				t.Errorf("Err of %.20q, %s = %v after Value, want %v", tt.payload, tt.contentType, err, tt.want)
			}
			if isText != tt.text || tt.want != nil && d.Value() != nil {
				t.Errorf("Value of %.20q, %s is %T", tt.payload, tt.contentType, d.Value())
			}
			if _, ok := d.JSON(); ok == ((tt.text && tt.payload[0] != '"') || tt.want != nil) {
				t.Errorf("JSON of %.20q, %s: %v", tt.payload, tt.contentType, ok)
			}
		}
	}
}

// An expression fails if it asks for JSON that has no view, and works if it does not.
func TestExpressionsOnJSONWithoutView(t *testing.T) {
	d := NewDocument([]byte(levels(400)), "")
	context := NewContext(func() map[string]any { return map[string]any{"n": json.Number("1")} })
	for text, want := range map[string]error{"$$.n == 1": nil, "$.a == 1": ErrTooDeep, "not exists $.a": ErrTooDeep, "$ == null": ErrTooDeep, "$..a == 1": ErrTooDeep} {
		f, err := ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		if holds, err := f.Match(d, context); !errors.Is(err, want) || holds != (want == nil) {
			t.Errorf("%s: %v, %v; want %v", text, holds, err, want)
		}
	}
	for text, want := range map[string]error{`{"n": {{$$.n}}}`: nil, `{"n": {{$.a}}}`: ErrTooDeep, `{{$}}`: ErrTooDeep, `{"n": "{{$.a ?? 'x'}}"}`: ErrTooDeep} {
		tmpl, err := ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(d, context); !errors.Is(err, want) {
			t.Errorf("%s: %.40q, %v; want %v", text, got, err, want)
		}
	}
	path, err := ParsePath("$.a[*]")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.Select(path); err != ErrTooDeep {
		t.Errorf("Select = %v, %v; want %v", got, err, ErrTooDeep)
	}
}

// A byte order mark before JSON is no part of the JSON, and one before a text is part of it.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	f, err := ParseFilter("$.total > 5")
	if err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{"application/json", "", formType} {
		d := NewDocument([]byte(mark+`{"total": 7}`), contentType)
		if holds, err := f.Match(d, nil); !holds || err != nil {
			t.Errorf("%s: Match = %v, %v; want true", contentType, holds, err)
		}
		if text, ok := d.JSON(); !ok || string(text) != `{"total": 7}` {
			t.Errorf("%s: JSON = %q, %v", contentType, text, ok)
		}
	}
	for payload, want := range map[string]any{
		mark + "7": json.Number("7"), mark + "text": mark + "text", mark: mark, mark + mark + "7": mark + mark + "7", "7" + mark: "7" + mark,
	} {
		if got := NewDocument([]byte(payload), "").Value(); got != want {
			t.Errorf("Value(%q) = %q, want %q", payload, got, want)
		}
	}
}
