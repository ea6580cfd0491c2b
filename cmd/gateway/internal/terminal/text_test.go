package terminal

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "order.created", "order.created"},
		{"empty", "", ""},
		{"letters", "Grüße 世界 ✓ 😀", "Grüße 世界 ✓ 😀"},
		{"backslash", `C:\x1b`, `C:\x1b`},
		{"escape", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"window title", "\x1b]0;owned\a", `\x1b]0;owned\x07`},
		{"lines", "a\r\nb\tc", `a\r\nb\tc`},
		{"nul and backspace", "\x00\b", `\x00\x08`},
		{"delete", "\x7f", `\x7f`},
		{"C1", "\u009b31m", `\u009b31m`},
		{"right to left override", "\u202egnp.exe", `\u202egnp.exe`},
		{"isolates", "\u2066\u2069", `\u2066\u2069`},
		{"marks", "\u200e\u200f\u061c", `\u200e\u200f\u061c`},
		{"invisible", "a\u200bb\ufeff", `a\u200bb\ufeff`},
		{"separators", "\u2028\u2029\u0085", `\u2028\u2029\u0085`},
		{"tag characters", "\U000e0041", `\U000e0041`},
		{"not UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"overlong", "\xc0\x9b", `\xc0\x9b`},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"replacement character", "\ufffd", "\ufffd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Visible(c.in); got != c.want {
				t.Errorf("Visible(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("order.created")
	f.Add("\x1b[31m\u202e\u009b\xff\x7f\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Visible(s)
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || !strconv.IsPrint(r) {
				t.Fatalf("Visible(%q) = %q holds %U", s, got, r)
			}
		}
		if !utf8.ValidString(got) {
			t.Fatalf("Visible(%q) = %q is not UTF-8", s, got)
		}
		if again := Visible(got); again != got {
			t.Fatalf("Visible(Visible(%q)) = %q, want %q", s, again, got)
		}
	})
}

// FuzzVisibleJSON checks that escaping keeps the meaning of a document.
func FuzzVisibleJSON(f *testing.F) {
	f.Add(`{"a\u202eb": "` + "\u202e\u009b\x7f\U000e0041" + `", "n": [1.50, null]}`)
	f.Add(`"\\` + "\u2028" + `"`)
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			t.Skip()
		}
		got := VisibleJSON(Indented([]byte(s)))
		for _, r := range string(got) {
			if r != '\n' && !strconv.IsPrint(r) {
				t.Fatalf("VisibleJSON(%q) = %q holds %U", s, got, r)
			}
		}
		if a, b := parsed(t, []byte(s)), parsed(t, got); !reflect.DeepEqual(a, b) {
			t.Fatalf("VisibleJSON(%q) = %q, another document", s, got)
		}
	})
}

func parsed(t *testing.T, doc []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	return v
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"äöüß", 3, "äö…"},
	} {
		if got := Clip(c.in, c.most); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.most, got, c.want)
		}
	}
}
