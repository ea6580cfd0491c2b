package store

import (
	"bytes"
	"testing"
)

// TestSharing: equal texts are stored in memory once and counted once.
func TestSharing(t *testing.T) {
	s := sharing{of: map[string][]byte{}}
	one, other := bytes.Repeat([]byte("x"), 2*apartFrom), bytes.Repeat([]byte("y"), 2*apartFrom)
	for range 3 {
		if got := s.share("", bytes.Clone(one)); !bytes.Equal(got, one) {
			t.Fatalf("share returns another text: %.20s", got)
		}
		if got := s.share(nameOf(other), bytes.Clone(other)); !bytes.Equal(got, other) {
			t.Fatalf("share returns another text: %.20s", got)
		}
	}
	if a, b := s.share("", bytes.Clone(one)), s.share(nameOf(one), bytes.Clone(one)); &a[0] != &b[0] || s.bytes != len(one)+len(other) {
		t.Errorf("%d bytes are held of two texts with %d each", s.bytes, len(one))
	}
	if small := []byte("{}"); s.share("", small) == nil || s.share("", nil) != nil {
		t.Error("a small text, or none, is not what it was")
	}
}

// TestNamesOfTexts: the name of a text contains the size of the text.
func TestNamesOfTexts(t *testing.T) {
	for _, text := range []string{"", "{}", string(bytes.Repeat([]byte("x"), 1<<20))} {
		if name := nameOf([]byte(text)); sizeOf(name) != len(text) || len(name) > 60 || name == nameOf([]byte(text+" ")) {
			t.Errorf("a text of %d bytes is called %q, which says %d", len(text), name, sizeOf(name))
		}
	}
	if n := sizeOf(""); n != 0 {
		t.Errorf("no name says %d bytes", n)
	}
}
