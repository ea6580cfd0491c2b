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

// Ids of blocks are above all ids made before, below all made later, and told again by one
// of them.
func TestBlocks(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	ids := NewIDs(func() time.Time { return at })
	last := ids.Next()
	for i := range 1000 {
		if i%100 == 0 {
			at = at.Add(time.Millisecond)
		}
		b := ids.Block()
		first, middle, highest, next := b.At(0), b.At(uint32(i)+1), b.At(BlockSize-1), ids.Next()
		if !(last < first && first < middle && middle < highest && highest < next) {
			t.Fatalf("block %d: %s, %s, %s between %s and %s, want them in that order", i, first, middle, highest, last, next)
		}
		if again, place := BlockOf(middle); again != b || place != uint32(i)+1 {
			t.Fatalf("BlockOf(%s) = %v, %d, want %v, %d", middle, again, place, b, i+1)
		}
		last = next
	}
}
