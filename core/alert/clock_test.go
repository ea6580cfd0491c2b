package alert

import (
	"context"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestClockIsSetBack: the clock is set back by an hour, after an alert and after an alert
// that could not be stored.
func TestClockIsSetBack(t *testing.T) {
	for name, lost := range map[string]error{"told": nil, "not stored": errDisk} {
		var b box
		now := time.Date(2026, 11, 20, 7, 28, 11, 0, time.UTC)
		clock := func() time.Time { return now }
		d := New(Deps{Inbox: &b, IDs: core.NewIDs(clock), Clock: clock, MaxAttempts: 5, Places: places})
		b.before = func(context.Context) error { return lost }
		d.Unverified(t.Context(), failure("github"))
		b.before = nil
		calls := b.calls

		now = now.Add(-time.Hour)
		d.Unverified(t.Context(), failure("github"))
		now = now.Add(window - time.Second)
		d.Unverified(t.Context(), failure("github"))
		if next := d.Flush(t.Context()); b.calls != calls || !next.Equal(now.Add(time.Second)) {
			t.Errorf("%s: Flush = %v with %d more alerts, want %v with none", name, next, b.calls-calls, now.Add(time.Second))
		}
		now = now.Add(time.Second)
		d.Unverified(t.Context(), failure("github"))
		if b.calls != calls+1 {
			t.Errorf("%s: %d alerts a minute after the clock was set back, want 1", name, b.calls-calls)
		}
	}
}
