package web

import "testing"

// Names that some databases reject in queries are refused before any query is sent.
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
