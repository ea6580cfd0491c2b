package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// TestNumberIsRenewed: a source that was released long ago is held again, and another process takes
// in the moment between the renewal of its number and the hold. It must not forget the number:
// without it the hold would have no effect.
func TestNumberIsRenewed(t *testing.T) {
	const lane, source = core.Lane("queue/mail"), core.Lane("source/shop")
	quota := []core.Quota{{Lane: lane, N: 5, Hold: time.Minute}}
	var now time.Time
	var other *store.Store // the other process
	between := false
	s := open(t, func(c store.Conn) store.Conn {
		other = store.New(c, store.SQLite, core.SystemClock)
		return storetest.Watched(c, func(st store.Stmt) {
			if between && st.Name == "hold_lane" {
				between = false
				if _, err := other.Take(t.Context(), now, quota); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	now = core.SystemClock().UTC()
	ids := core.NewIDs(core.SystemClock)
	hold := func() {
		t.Helper()
		if err := s.Hold(t.Context(), now, source, time.Time{}, ""); err != nil {
			t.Fatal(err)
		}
	}
	hold()
	if _, err := s.Unhold(t.Context(), now, source); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10 * time.Minute)
	between = true
	hold()
	if between {
		t.Fatal("the other process took nothing between")
	}
	event := core.Event{ID: ids.Next(), Source: "shop", Type: "order", CreatedAt: now}
	if _, err := s.Accept(t.Context(), core.Arrival{Event: event, Jobs: []core.NewJob{{ID: ids.Next(), Lane: lane, MaxAttempts: 1}}}); err != nil {
		t.Fatal(err)
	}
	jobs, err := other.Take(t.Context(), now, quota)
	if err != nil || len(jobs) > 0 {
		t.Errorf("Take = %d jobs, %v, want none of a held source", len(jobs), err)
	}
}

// TestMostHeldSources: 1,000 sources can be held at the same time. One more is refused, and the
// number of a released one is free after a minute, once a Take has looked.
func TestMostHeldSources(t *testing.T) {
	s := open(t, func(c store.Conn) store.Conn { return c })
	now := core.SystemClock().UTC()
	hold := func(n int) error {
		return s.Hold(t.Context(), now, core.SourceLane(fmt.Sprint("s", n)), time.Time{}, "")
	}
	for n := range 1000 {
		if err := hold(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := hold(7); err != nil {
		t.Errorf("Hold again = %v, want no error", err)
	}
	if err := hold(1000); !core.IsKind(err, core.Invalid) {
		t.Errorf("Hold of one more = %v, want a refusal of kind Invalid", err)
	}
	if _, err := s.Unhold(t.Context(), now, "source/s7"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := s.Take(t.Context(), now, []core.Quota{{Lane: "queue/mail", N: 1, Hold: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if err := hold(1000); err != nil {
		t.Errorf("Hold after a release = %v, want no error", err)
	}
}
