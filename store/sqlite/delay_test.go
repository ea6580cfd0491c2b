package sqlite

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestDelaysOverAnHour: of 100,000 jobs that become due over an hour, a Take each second gets
// the due ones, each once.
func TestDelaysOverAnHour(t *testing.T) {
	const together, arrivals = core.MaxTogether, 100_000 / core.MaxTogether
	s := open(t, nil)
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ids, due := core.NewIDs(func() time.Time { return began }), map[core.ID]time.Time{}
	for range arrivals {
		all := make([]core.Arrival, together)
		for i := range all {
			id := ids.Next()
			due[id] = began.Add(rand.N(time.Hour)).Truncate(time.Millisecond)
			all[i] = core.Arrival{
				Event: core.Event{ID: ids.Next(), Source: "app", Type: "t", Payload: []byte(`{}`), CreatedAt: began},
				Jobs:  []core.NewJob{{ID: id, Lane: "handler/a", MaxAttempts: 1, DueAt: due[id]}},
			}
		}
		if _, err := s.AcceptAll(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	left := len(due)
	for now := began; now.Before(began.Add(time.Hour + time.Second)); now = now.Add(time.Second) {
		jobs, err := s.Take(t.Context(), now, []core.Quota{{Lane: "handler/a", N: 1000, Hold: 24 * time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if late := now.Sub(due[j.ID]); late < 0 || late >= time.Second {
				t.Fatalf("job %s was taken %v after its time, want less than a second", j.ID, late)
			}
			delete(due, j.ID)
		}
		left -= len(jobs)
	}
	if left != 0 || len(due) != 0 {
		t.Errorf("%d jobs were not taken", len(due))
	}
}
