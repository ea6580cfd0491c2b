package web

import "testing"

// What a database may refuse to be asked for is refused before.
func TestNamed(t *testing.T) {
	for text, want := range map[string]bool{
		"shop": true, "order created": true, "größe": true, "\ufffd": true,
		"": false, "\x00": false, "a\x00b": false, "a\xff": false, "\xc0\x80": false,
	} {
		if got := named(text); got != want {
			t.Errorf("named(%q) = %t, want %t", text, got, want)
		}
	}
}
