package store

import (
	"bytes"
	"testing"
)

// TestTextPool: equal texts are stored in memory once and counted once. Otherwise a redrive of
// a run with one large state in a thousand steps would be refused.
func TestTextPool(t *testing.T) {
	s := textPool{byName: map[string][]byte{}}
	one, other := bytes.Repeat([]byte("x"), 2*sharedTextMin), bytes.Repeat([]byte("y"), 2*sharedTextMin)
	for range 3 {
		if got := s.intern("", bytes.Clone(one)); !bytes.Equal(got, one) {
			t.Fatalf("share returns another text: %.20s", got)
		}
		if got := s.intern(nameOf(other), bytes.Clone(other)); !bytes.Equal(got, other) {
			t.Fatalf("share returns another text: %.20s", got)
		}
	}
	if a, b := s.intern("", bytes.Clone(one)), s.intern(nameOf(one), bytes.Clone(one)); &a[0] != &b[0] || s.bytes != len(one)+len(other) {
		t.Errorf("%d bytes are held of two texts with %d each", s.bytes, len(one))
	}
	if small := []byte("{}"); s.intern("", small) == nil || s.intern("", nil) != nil {
		t.Error("a small text, or none, is not what it was")
	}
}

// TestTextNames: the name of a text contains the size of the text.
func TestTextNames(t *testing.T) {
	for _, text := range []string{"", "{}", string(bytes.Repeat([]byte("x"), 1<<20))} {
		if name := nameOf([]byte(text)); sizeOf(name) != len(text) || len(name) > 60 || name == nameOf([]byte(text+" ")) {
			t.Errorf("a text of %d bytes is called %q, which says %d", len(text), name, sizeOf(name))
		}
	}
	if n := sizeOf(""); n != 0 {
		t.Errorf("no name says %d bytes", n)
	}
}
