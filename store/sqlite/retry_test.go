package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A halting Conn fails batches that read a job, while it is on.
type halting struct {
	store.Conn
	on bool
}

var errHalted = errors.New("the read is halted")

func (h *halting) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if h.on && len(stmts) == 1 && stmts[0].Name == "job" {
		return nil, errHalted
	}
	return h.Conn.Batch(ctx, stmts...)
}

// TestRetryReadsFirst: a retry of one job changes nothing if it cannot find out whether the job is one
// of a line. A job of a line that was made due without a slot would run beside the holder of the slot.
func TestRetryReadsFirst(t *testing.T) {
	var h *halting
	s := open(t, func(c store.Conn) store.Conn { h = &halting{Conn: c}; return h })
	const lane = core.Lane("handler/a")
	now, ids := core.SystemClock().UTC(), core.NewIDs(core.SystemClock)
	take := func() []core.TakenJob {
		t.Helper()
		jobs, err := s.Take(t.Context(), now.Add(time.Second), []core.Quota{{Lane: lane, N: 5, Hold: time.Minute, Lines: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	var first core.ID
	for range 2 {
		event := core.Event{ID: ids.Next(), Source: "shop", Type: "order", CreatedAt: now}
		job := core.NewJob{ID: ids.Next(), Lane: lane, MaxAttempts: 1, Line: core.Line{Key: "k", Limit: 1}}
		if first == "" {
			first = job.ID
		}
		if _, err := s.Accept(t.Context(), core.Arrival{Event: event, Jobs: []core.NewJob{job}}); err != nil {
			t.Fatal(err)
		}
	}
	j := take()[0]
	// The line goes on without the dead job: the second job has the slot.
	dead := core.Outcome{JobID: j.ID, Lease: j.Lease, Lane: lane, Status: core.Dead, At: now, Line: core.Line{Key: "k", Limit: 1}, Attempt: core.Attempt{Number: 1, Error: "no", StartedAt: now}}
	if _, err := s.Settle(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	h.on = true
	if n, err := s.Retry(t.Context(), now, first, ""); n != 0 || !errors.Is(err, errHalted) {
		t.Errorf("Retry while the read fails = %d, %v", n, err)
	}
	h.on = false
	if jobs := take(); len(jobs) != 1 || jobs[0].ID == first {
		t.Errorf("%d jobs were taken, the first %s; want the second job alone", len(jobs), jobs[0].ID)
	}
}
