package expr

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseText(t *testing.T) {
	const payload = `{"id": 7, "why": "say \"no\"\n", "all": [1, "b"], "none": null}`
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"sold out", "sold out"},
		{"order {{ $.id }}: {{ $.why }}", "order 7: say \"no\"\n"},
		{`"{{ $.all }}" \ {{ $.none }}{{ $.missing ?? 'x' }}`, `"[1,"b"]" \ x`},
		{"a\nb <&> {{ '{{' }}é", "a\nb <&> {{é"},
		{"{{ $.id }}", "7"},
	} {
		template, err := ParseText(tt.text)
		if err != nil {
			t.Errorf("ParseText(%q): %v", tt.text, err)
			continue
		}
		text, err := template.Render(NewDocument([]byte(payload), ""), nil)
		var got string
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got != tt.want {
			t.Errorf("ParseText(%q) renders %q, %v, want %q", tt.text, got, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		`say "{{ $.a`:                 `at column 12: the hole that begins at column 6 is not closed: expected }}, ?? or |, not the end`,
		"é\n{{ $.a | upper }}":        "at line 2, column 10: unknown function upper; there are string, number, json and join(', ')",
		strings.Repeat("x", 64<<10+1): "a text has at most 65536 bytes, not 65537",
		"\xff":                        "a text must be valid UTF-8, without NUL characters",
	} {
		if _, err := ParseText(text); err == nil || err.Error() != want {
			t.Errorf("ParseText(%.20q): %v, want %s", text, err, want)
		}
	}
}
