package operate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// behind gives the world a service whose clock is so far behind that of the processes that accept
// events and settle jobs.
func (w *world) behind(by time.Duration) {
	clock := func() time.Time { return w.now().Add(-by) }
	w.service = manage.NewOperations(w.deps.Walker, core.NewIDs(clock), clock)
}

// An operation acts on all records that are stored when it begins, also if the clocks of other processes
// are ahead: processes learn the time of the database with an error.
func TestClocksAhead(t *testing.T) {
	const n = 5
	for name, tc := range map[string]struct {
		make func(w *world)
		op   core.Operation
	}{
		"jobs that just died": {func(w *world) { w.fail("handler/a", "status: 500") },
			core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/a"}}},
		"jobs that were just made": {func(*world) {},
			core.Operation{Action: core.CancelAction, Filter: core.OperationFilter{Lane: "handler/a"}}},
		"events that were just accepted": {func(*world) {},
			core.Operation{Action: core.ReplayAction, Filter: core.OperationFilter{Source: "shop"}, To: []core.Lane{"handler/b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.behind(80 * time.Millisecond)
				for range n {
					w.put("shop", "{}", "handler/a")
				}
				tc.make(w)
				plan, err := w.service.Plan(t.Context(), tc.op)
				if err != nil || plan.Matches != n {
					t.Errorf("Plan = %+v, %v; want %d matches", plan, err, n)
				}
				got := w.run(w.begin(tc.op), func() {})
				if got.State != core.OperationFinished || got.Acted != n {
					t.Errorf("operation = %+v, want that it acted on %d", got, n)
				}
			})
		})
	}
}

// The runs that just failed are redriven too.
func TestClocksAheadRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := &clinic{Model: w.Model, now: w.now, redriven: map[core.ID]int{}}
		c.runs = []core.Run{{ID: w.ids.Next(), Workflow: "fulfil", Status: core.RunFailed, FinishedAt: w.now()}}
		w.deps.Store, w.deps.Mover = c, c
		w.behind(80 * time.Millisecond)
		got := w.run(w.begin(core.Operation{Action: core.RedriveAction, Filter: core.OperationFilter{Lane: "workflow/fulfil"}}), func() {})
		if got.State != core.OperationFinished || got.Acted != 1 {
			t.Errorf("operation = %+v, want that it acted on the run", got)
		}
	})
}

// A record of a clock that is far ahead does not move an operation into the future: its slices would
// wait.
func TestClockFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("shop", "{}", "handler/a")
		w.fail("handler/a", "status: 500")
		w.behind(time.Hour)
		begun := w.now().Add(-time.Hour)
		op := w.begin(core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/a"}})
		if !op.CreatedAt.Equal(begun) || !op.ID.Time().Equal(begun) {
			t.Errorf("the operation begins at %s with the id of %s, want %s", op.CreatedAt, op.ID.Time(), begun)
		}
	})
}
