package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzTransform: a template that is taken makes valid JSON of every payload, which
// is the template's own but for the holes: nothing else is added or lost.
func FuzzTransform(f *testing.F) {
	table, _, _ := readTemplateCases(f)
	for _, c := range table.Cases {
		f.Add(c.Template, []byte(table.Document))
	}
	for _, c := range table.Errors {
		f.Add(c.Template, []byte(table.Document))
	}
	for _, template := range []string{`["{{ $ }}", {{ $ | json | json }}]`, `"\\{{ $..* | join('","') }}\n"`, `{"a": {{ $['a"b'] ?? [1, 'x'] }}, "b": "\u0041{{ $$.event.id }}"}`, `[{{ $.a | number ?? -1e5 }}]`} {
		f.Add(template, []byte(`{"a": "\",\\", "a\"b": [" 1 ", {"\"": "}}"}]}`))
		f.Add(template, []byte("\xff\"}"))
	}
	context := map[string]any{"event": map[string]any{"id": "\"evt\"", "n": json.Number("1.0")}}
	f.Fuzz(func(t *testing.T, text string, payload []byte) {
		template, err := ParseTemplate(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("ParseTemplate(%q): %q, want one line", text, err)
			}
			return
		}
		if len(payload) > 1<<12 {
			return
		}
		out, err := template.Render(NewDocument(payload, ""), NewContext(func() map[string]any { return context }))
		switch {
		case errors.Is(err, ErrTooLarge):
			return
		case err != nil || len(out) > maxResult || !json.Valid(out) || !utf8.Valid(out):
			t.Fatalf("Render(%q) of %q = %q, %v, want JSON of at most 4 MiB", text, payload, out, err)
		}
		s := skeletonOf(template)
		if got := decoded(t, out); !s.holds(decoded(t, []byte(s.text)), got) {
			t.Fatalf("Render(%q) of %q = %s, which is not made of %s", text, payload, out, s.text)
		}
	})
}

// A skeleton is a template with marks in its holes.
type skeleton struct{ text, value, inText string }

// skeletonOf picks marks that are not in the template.
func skeletonOf(template *Template) skeleton {
	var all string
	for _, p := range template.parts {
		all += strings.ToLower(p.text)
	}
	var marks []string
	for r := '\ue000'; len(marks) < 2; r++ {
		if !strings.ContainsRune(all, r) && !strings.Contains(all, fmt.Sprintf("%x", r)) {
			marks = append(marks, string(r))
		}
	}
	s := skeleton{value: marks[0], inText: marks[1]}
	for _, p := range template.parts {
		switch {
		case p.hole == nil:
			s.text += p.text
		case p.quoted:
			s.text += s.inText
		default:
			s.text += `"` + s.value + `"`
		}
	}
	return s
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decoding %q: %v", text, err)
	}
	return v
}

// holds reports whether a result is the skeleton with something in its holes.
func (s skeleton) holds(want, got any) bool {
	switch want := want.(type) {
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !s.holds(want[i], list[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || len(object) != len(want) {
			return false
		}
		for name := range want {
			if item, ok := object[name]; !ok || !s.holds(want[name], item) {
				return false
			}
		}
		return true
	case string:
		return want == s.value || s.textHolds(want, got)
	}
	return want == got
}

// textHolds looks for the pieces between the marks in their order.
func (s skeleton) textHolds(want string, got any) bool {
	text, ok := got.(string)
	if !ok {
		return false
	}
	pieces := strings.Split(want, s.inText)
	if len(pieces) == 1 {
		return text == want
	}
	last := pieces[len(pieces)-1]
	if !strings.HasPrefix(text, pieces[0]) || !strings.HasSuffix(text[len(pieces[0]):], last) {
		return false
	}
	text = text[len(pieces[0]) : len(text)-len(last)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		_, rest, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
