package flows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A witness keeps what a ledger reports.
type witness struct {
	testing.TB
	reported []string
}

func (w *witness) Errorf(format string, args ...any) {
	w.reported = append(w.reported, fmt.Sprintf(format, args...))
}

// endings is a connection that knows of which leases the end is stored.
type endings []string

func (e endings) Batch(_ context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	var r store.Result
	if slices.Contains(e, stmts[0].Args[1].(string)) {
		r.Rows = [][]any{{int64(1)}}
	}
	return []store.Result{r}, nil
}

func (endings) Close() error { return nil }

// TestLedgerOfLateAnswers: gateway 1 gets its answer after its lease is over, and gateway 2 has taken
// the job. If the answer could not be stored, the step may be called again after a redrive. If it was
// stored, or if the job was not taken again, it may not.
func TestLedgerOfLateAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		stored     endings
		takenAgain bool
		want       []string
	}{
		"taken again, not stored": {takenAgain: true},
		"taken again, stored":     {stored: endings{"lease 1"}, takenAgain: true, want: []string{"a is called again by gateway 3 after gateway 1 was answered 200"}},
		"not taken again":         {want: []string{"a is called again by gateway 3 after gateway 1 was answered 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{TB: t}
			l := newLedger(&world{t: w, clock: newClock(), conn: c.stored}, newHospital(), rand.New(rand.NewPCG(1, 1)))
			l.calm()
			call := func(generation int, job string) {
				l.taking(generation)([]core.TakenJob{{Job: core.Job{ID: core.ID(job), Lease: core.Lease(fmt.Sprint("lease ", generation)), DueAt: l.clock.now().Add(time.Minute)}}})
				q := &request{step: "a", key: "key"}
				q.Header = http.Header{"User-Agent": {fmt.Sprint("gateway/", generation)}, "X-Gateway-Job-Id": {job}}
				l.answer(q)
				l.calls[len(l.calls)-1].answered = true
			}
			call(1, "job")
			l.clock.move(2 * time.Minute)
			if c.takenAgain {
				call(2, "job")
				l.calls[1].said.status = http.StatusNotFound
				l.settledAll(2)
			}
			l.settledAll(1)
			l.clock.move(2 * time.Minute)
			call(3, "job of the redrive")
			if !slices.Equal(w.reported, c.want) {
				t.Errorf("reported %q, want %q", w.reported, c.want)
			}
		})
	}
}
