package core

import (
	"testing"
	"time"
)

func TestFirstID(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	before, then := NewIDs(func() time.Time { return at.Add(-time.Millisecond) }), NewIDs(func() time.Time { return at })
	first := FirstID(at)
	if b, a := before.Next(), then.Next(); !(b < first && first <= a) {
		t.Errorf("FirstID = %s, want it between %s, made before, and %s, made then", first, b, a)
	}
	if got := FirstID(time.Time{}); got != "00000000000000000000000000" {
		t.Errorf("FirstID of no time = %s, want the lowest id", got)
	}
}

func TestNextID(t *testing.T) {
	for id, want := range map[ID]ID{
		"01J90000000000000000000000": "01J90000000000000000000001",
		"01J9000000000000000000000Z": "01J90000000000000000000010",
		"01J9ZZZZZZZZZZZZZZZZZZZZZZ": "01JA0000000000000000000000",
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ": "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
		"none":                       "none",
	} {
		if got := id.Next(); got != want {
			t.Errorf("%s.Next() = %s, want %s", id, got, want)
		}
	}
}
