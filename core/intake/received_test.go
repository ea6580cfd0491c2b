package intake

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestReceivedAt: an event is received when its request came in, to the millisecond,
// unless the clock was set back before it got its id.
func TestReceivedAt(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.UTC)
	whole := at.Truncate(time.Millisecond)
	for made, want := range map[time.Time]time.Time{
		at:                           whole,
		at.Add(30 * time.Second):     whole,
		at.Add(time.Hour):            whole,
		whole.Add(-59 * time.Second): whole,
		whole.Add(-time.Hour):        whole.Add(-time.Hour),
	} {
		if got := receivedAt(at, core.FirstID(made)); !got.Equal(want) {
			t.Errorf("receivedAt(%v), with an id of %v = %v, want %v", at, made, got, want)
		}
	}
}
