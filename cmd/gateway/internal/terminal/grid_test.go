package terminal

import "testing"

// A text that is padded to its width plus two gets two blanks: Width and Pad count the same columns.
func TestWidth(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"billing", 7},
		{"Grüße", 5},
		{"Gru\u0308ße", 5}, // with a combining mark
		{"世界", 4},
		{"😀", 2},
		{"👍🏽", 4}, // with a skin tone, which a table counts too
		{"🇩🇪", 2}, // two letters
	} {
		if got := Width(c.text); got != c.want {
			t.Errorf("Width(%q) = %d, want %d", c.text, got, c.want)
		}
		if got, want := Pad(c.text, Width(c.text)+2), c.text+"  "; got != want {
			t.Errorf("Pad(%q, Width + 2) = %q, want %q", c.text, got, want)
		}
	}
}
