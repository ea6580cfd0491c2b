package hosted

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestRowsWritten counts the rows that D1 bills for a delivered event: as it is stored, taken, settled
// and purged. The manual has the sum for functions, where workers claim jobs: see functions.md.
func TestRowsWritten(t *testing.T) {
	c := connect(t, faces["api"](database(t)))
	b := &bill{RoundTripper: c.client.HTTPClient.Transport}
	c.client.HTTPClient.Transport = b
	s, now, ids := migrated(t, c), time.Now(), core.NewIDs(core.SystemClock)
	const events = 50
	written := func(what string, want int64, do func()) {
		t.Helper()
		b.written = 0
		if do(); b.written != events*want {
			t.Errorf("%s %d events writes %d rows, want %d for each", what, events, b.written, want)
		}
	}
	var taken []core.TakenJob
	store := func(hold time.Duration) {
		for range events {
			block := ids.Block()
			a := core.Arrival{Event: core.Event{ID: block.At(1), Source: "s", Type: "t", Payload: []byte("{}"), DeliveryID: string(block.At(1)), CreatedAt: now},
				Jobs: []core.NewJob{{ID: block.At(2), Lane: "handler/a", MaxAttempts: 9}}}
			holds := map[core.ID]time.Duration{}
			if hold > 0 {
				holds[a.Jobs[0].ID] = hold
			}
			_, jobs, err := s.AcceptAndTake(t.Context(), now, a, holds)
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, jobs...)
		}
	}
	settle := func() {
		if len(taken) != events {
			t.Fatalf("%d jobs were taken, want %d", len(taken), events)
		}
		for _, j := range taken {
			o := core.Outcome{JobID: j.Job.ID, Lease: j.Job.Lease, Lane: "handler/a", Status: core.Completed, At: now, Verdict: core.Success,
				Attempt: core.Attempt{Number: 1, StatusCode: 200, StartedAt: now}}
			if settled, err := s.Settle(t.Context(), o); err != nil || len(settled.Lost) > 0 {
				t.Fatalf("Settle = %+v, %v", settled, err)
			}
		}
		taken = nil
	}
	purge := func() {
		for more := true; more; {
			var err error
			if _, more, err = s.Purge(t.Context(), now.Add(time.Hour), 500); err != nil {
				t.Fatal(err)
			}
		}
	}

	written("storing and taking", 7, func() { store(time.Hour) })
	written("settling", 3, settle)
	written("purging", 2, purge)

	written("storing", 7, func() { store(0) })
	written("claiming", 2, func() {
		var err error
		if taken, err = s.Take(t.Context(), now, []core.Quota{{Lane: "handler/a", N: events, Hold: time.Hour}}); err != nil {
			t.Fatal(err)
		}
	})
	written("settling", 3, settle)
	written("purging", 2, purge)
}
