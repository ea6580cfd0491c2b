package alert

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Desk that replaces another continues its counts and its minute, while both get failures.
func TestDeskTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		var s seen
		tallies := NewTallies()
		desk := func() *Desk {
			return New(Deps{
				Inbox: &b, IDs: core.NewIDs(time.Now), Clock: time.Now, Observe: s.observe,
				MaxAttempts: 5, Places: places, Tallies: tallies,
			})
		}
		var running sync.WaitGroup
		run := func(d *Desk) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			running.Go(func() { d.Run(ctx) })
			return cancel
		}
		first := desk()
		stopFirst := run(first)
		synctest.Wait()
		for range 3 {
			first.Unverified(t.Context(), failure("github"))
		}
		second := desk()
		stopSecond := run(second)
		stopFirst()
		time.Sleep(10 * time.Second)
		second.Unverified(t.Context(), failure("github"))
		first.Unverified(t.Context(), failure("github")) // of a request that it still serves
		time.Sleep(time.Hour)
		if got, want := b.counts(t, "github"), []int{1, 4}; !slices.Equal(got, want) {
			t.Errorf("alerts count %v, want %v", got, want)
		}
		stopSecond()
		running.Wait()
	})
}

// A signal for the Desk that takes over may reach the other one first, which then passes it
// on.
func TestDeskPassesTheSignalOn(t *testing.T) {
	d := New(Deps{Places: places})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	d.Run(ctx)
	select {
	case <-d.Tallies.counted:
	default:
		t.Error("who runs next is not told to look")
	}
}
