package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestBlockChars: the ids of a block begin with the same blockChars characters, and the spans of an event
// have what they should: the first one its block and no more than one beside it, the later one all.
func TestBlockChars(t *testing.T) {
	ids := core.NewIDs(core.SystemClock)
	for range 10_000 {
		block, other := ids.Block(), core.FirstID(core.SystemClock().Add(-time.Hour))
		event := block.At(rand.Uint32N(core.BlockSize))
		for _, d := range databases {
			first, later := d.spans(event)
			for _, place := range []uint32{0, 1, rand.Uint32N(core.BlockSize), core.BlockSize - 1} {
				if job := string(block.At(place)); job < first.low || job >= first.high || job < later.low || job >= later.high {
					t.Fatalf("%s: job %s of event %s is not in %q or not in %q", d.Name, job, event, first, later)
				}
			}
			if id := string(other); (id >= first.low && id < first.high) != (d.Name == MySQL.Name) || id < later.low || id >= later.high {
				t.Fatalf("%s: id %s beside event %s: the spans are %q and %q", d.Name, id, event, first, later)
			}
		}
	}
}
