package operate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/operate"
	"github.com/eventgateway/gateway/store/storetest"
)

// A world is a store in memory with a handler, and Doers and a service over it.
type world struct {
	*storetest.Model
	t       *testing.T
	now     core.Clock
	ids     *core.IDs
	service *manage.Operations
	facts   []core.Fact
	deps    operate.Deps
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	clock := func() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
	w.now = clock
	w.Model, w.ids = storetest.NewModel(clock), core.NewIDs(clock)
	match := func(e core.Event) core.Arrival {
		return core.Arrival{Event: e, Jobs: []core.NewJob{
			{ID: w.ids.Next(), Lane: "handler/a", MaxAttempts: 3}, {ID: w.ids.Next(), Lane: "handler/b", MaxAttempts: 3}}}
	}
	walker := operate.Walker{Store: w.Model, Match: match, Select: func(text string) (func(core.Event) bool, error) {
		return func(e core.Event) bool { return string(e.Payload) == text }, nil
	}}
	w.service = manage.NewOperations(walker, w.ids, clock)
	w.deps = operate.Deps{Walker: walker, Worklist: w.Model, IDs: w.ids, Clock: clock, Bell: &core.Bell{},
		Observe: func(f core.Fact) { w.facts = append(w.facts, f) }, Every: 100 * time.Millisecond}
	return w
}

func (w *world) put(source, payload string, lanes ...core.Lane) core.Arrival {
	w.t.Helper()
	a := core.Arrival{Event: core.Event{ID: w.ids.Next(), Source: source, Type: "order", Payload: []byte(payload), CreatedAt: w.now()}}
	for _, l := range lanes {
		a.Jobs = append(a.Jobs, core.NewJob{ID: w.ids.Next(), Lane: l, MaxAttempts: 1})
	}
	if _, err := w.Accept(context.Background(), a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

// fail takes all due jobs of a lane and settles them as dead.
func (w *world) fail(lane core.Lane, why string) (n int) {
	w.t.Helper()
	for {
		jobs, err := w.Take(context.Background(), w.now(), []core.Quota{{Lane: lane, N: 50, Hold: time.Minute}})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, j := range jobs {
			o := core.Outcome{JobID: j.ID, Lease: j.Lease, Lane: lane, Status: core.Dead, At: w.now(), Attempt: core.Attempt{Number: j.Attempt, Error: why, StartedAt: w.now()}}
			if _, err := w.Settle(context.Background(), o); err != nil {
				w.t.Fatal(err)
			}
		}
		if n += len(jobs); len(jobs) == 0 {
			return n
		}
	}
}

func (w *world) begin(op core.Operation) core.Operation {
	w.t.Helper()
	op, err := w.service.Begin(context.Background(), op)
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// take takes the job of operations, if it is due.
func (w *world) take() []core.TakenJob {
	w.t.Helper()
	jobs, err := w.Take(context.Background(), w.now(), []core.Quota{{Lane: core.OperationLane, N: 1, Hold: time.Minute}})
	if err != nil {
		w.t.Fatal(err)
	}
	return jobs
}

// attempt takes and settles the job of operations as a worker does. It reports whether it took one.
func (w *world) attempt(d *operate.Doer) bool {
	w.t.Helper()
	jobs := w.take()
	for _, j := range jobs {
		end, current, err := d.Attempt(context.Background(), j)
		if err != nil || !current {
			w.t.Fatalf("Attempt = %+v, %t, %v", end, current, err)
		}
		if _, err := d.Settle(context.Background(), end); err != nil {
			w.t.Fatal(err)
		}
	}
	return len(jobs) > 0
}

// run does an operation to its end, with two workers in turn. after runs after each attempt.
func (w *world) run(op core.Operation, after func()) core.Operation {
	w.t.Helper()
	doers := []*operate.Doer{operate.New(w.deps), operate.New(w.deps)}
	for i := range 2000 {
		w.attempt(doers[i%2])
		after()
		now, err := w.Operation(context.Background(), op.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		if now.State != core.OperationRunning {
			w.attempt(doers[0])
			return now
		}
		time.Sleep(time.Second)
	}
	w.t.Fatal("the operation does not end")
	return op
}

// An operation retries each job that was dead when it was made once, although retried jobs die
// again at once. The plan says so before.
func TestRetryOnce(t *testing.T) { synctest.Test(t, testRetryOnce) }

func testRetryOnce(t *testing.T) {
	w := newWorld(t)
	for range 137 {
		w.put("shop", "{}", "handler/a", "handler/b")
	}
	w.fail("handler/a", "status: 500")
	w.fail("handler/b", "connect: refused")
	time.Sleep(time.Second)
	op := core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Error: "500", Source: "shop"}, Rate: 20}
	plan, err := w.service.Plan(t.Context(), op)
	if err != nil || plan.Matches != 137 || plan.Consumers["handler/a"] != 137 || len(plan.Consumers) != 1 || plan.More || plan.Takes != 6850*time.Millisecond {
		t.Errorf("Plan = %+v, %v", plan, err)
	}
	died := 0
	got := w.run(w.begin(op), func() { time.Sleep(time.Millisecond); died += w.fail("handler/a", "status: 500") })
	if got.State != core.OperationFinished || got.Acted != plan.Matches || died != plan.Matches {
		t.Errorf("operation = %+v, and %d jobs were tried; want %d", got, died, plan.Matches)
	}
	if n, _ := w.Depth(t.Context()); n != 0 {
		t.Errorf("%d jobs wait after the operation, want none", n)
	}
	if n := len(w.facts); n == 0 {
		t.Error("no fact tells of the end")
	}
}

// A replay makes jobs for the named consumer only, of the events that match.
func TestReplayTo(t *testing.T) { synctest.Test(t, testReplayTo) }

func testReplayTo(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.put([]string{"shop", "other"}[i%2], []string{"x", "x", "y"}[i%3])
	}
	op := core.Operation{Action: core.ReplayAction, Filter: core.OperationFilter{Source: "shop", Match: "x"}, To: []core.Lane{"handler/b"}, Rate: 1000}
	plan, err := w.service.Plan(t.Context(), op)
	if err != nil || plan.Matches != 20 || plan.Consumers["handler/b"] != 20 || len(plan.Consumers) != 1 {
		t.Errorf("Plan = %+v, %v", plan, err)
	}
	tried := 0
	got := w.run(w.begin(op), func() { tried += w.fail("handler/b", "no") })
	if got.Acted != 20 || tried != 20 || w.fail("handler/a", "no") != 0 {
		t.Errorf("operation = %+v, %d deliveries to b; want 20 and none to a", got, tried)
	}
}

// A cancel ends jobs that wait, leaves jobs that a worker holds, and stops within a slice when
// it is canceled itself.
func TestCancelStops(t *testing.T) { synctest.Test(t, testCancelStops) }

func testCancelStops(t *testing.T) {
	w := newWorld(t)
	for range 50 {
		w.put("shop", "{}", "handler/a")
	}
	time.Sleep(time.Second)
	op := w.begin(core.Operation{Action: core.CancelAction, Filter: core.OperationFilter{Lane: "handler/a"}, Rate: 5})
	w.attempt(operate.New(w.deps))
	now, _ := w.Operation(t.Context(), op.ID)
	if now.Acted == 0 || now.Acted > 10 {
		t.Errorf("after one attempt at 5 a second: %+v", now)
	}
	ended, err := w.service.Cancel(t.Context(), op.ID)
	if err != nil || ended.State != core.OperationCanceled {
		t.Errorf("Cancel = %+v, %v", ended, err)
	}
	time.Sleep(time.Minute)
	w.attempt(operate.New(w.deps))
	if after, _ := w.Operation(t.Context(), op.ID); after.Acted != now.Acted {
		t.Errorf("a canceled operation went on: %+v", after)
	}
	if w.attempt(operate.New(w.deps)) {
		t.Error("the job of a canceled operation is still there")
	}
	if got := w.fail("handler/a", "no"); got != 50-now.Acted {
		t.Errorf("%d jobs were left, want %d", got, 50-now.Acted)
	}
}

// Wrong fields are refused with their names.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	for _, op := range []core.Operation{
		{Action: core.RetryAction},
		{Action: "undo", Filter: core.OperationFilter{Source: "shop"}},
		{Action: core.RetryAction, Filter: core.OperationFilter{Source: "shop"}, Rate: core.MaxRate + 1},
		{Action: core.RetryAction, Filter: core.OperationFilter{Status: "running"}},
		{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "workflow/x"}},
		{Action: core.RedriveAction, Filter: core.OperationFilter{Lane: "handler/x"}},
		{Action: core.CancelAction, Filter: core.OperationFilter{Source: "shop"}, To: []core.Lane{"handler/a"}},
		{Action: core.ReplayAction, Filter: core.OperationFilter{Lane: "handler/a"}},
		{Action: core.RetryAction, Filter: core.OperationFilter{Match: "x"}},
		{Action: core.RetryAction, Filter: core.OperationFilter{DeliveryID: "x"}},
		{Action: core.CancelAction, Filter: core.OperationFilter{First: w.ids.Next()}},
		{Action: core.RedriveAction, Filter: core.OperationFilter{Last: w.ids.Next()}},
		{Action: core.ReplayAction, Filter: core.OperationFilter{First: "01J90000000000000000000002", Last: "01J90000000000000000000001"}},
		{Action: core.RetryAction, Filter: core.OperationFilter{Since: w.now(), Until: w.now()}},
	} {
		if got, err := w.service.Begin(t.Context(), op); !core.IsKind(err, core.Invalid) {
			t.Errorf("Begin(%+v) = %+v, %v; want a refusal of kind Invalid", op, got, err)
		}
	}
}

// The alert about an operation is stored with the completion of its job: once, and only for the worker
// that holds the job.
func TestEndingIsStoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("shop", "{}", "handler/a")
		w.fail("handler/a", "timeout")
		time.Sleep(time.Second)
		var states []core.OperationState
		w.deps.Ending = func(op core.Operation, at time.Time) *core.Arrival {
			states = append(states, op.State)
			return &core.Arrival{Event: core.Event{ID: w.ids.Next(), Source: core.AlertSource, Type: "alert.operation_finished", Payload: []byte("{}"), CreatedAt: at},
				Jobs: []core.NewJob{{ID: w.ids.Next(), Lane: "alert/x", MaxAttempts: 1}}}
		}
		w.begin(core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/a"}})
		d := operate.New(w.deps)
		jobs := w.take()
		end, _, err := d.Attempt(context.Background(), jobs[0])
		if err != nil || !end.Final {
			t.Fatalf("Attempt = %+v, %v; want the end", end, err)
		}
		late := end
		late.Job.Lease = "another"
		for _, e := range []core.StepEnd{late, end, end} {
			if _, err := d.Settle(context.Background(), e); err != nil {
				t.Error(err)
			}
		}
		page, err := w.Jobs(context.Background(), core.JobFilter{Lane: "alert/x", Limit: 10})
		if err != nil || len(page.Items) != 1 || states[0] != core.OperationFinished {
			t.Errorf("%d alerts, %v, of states %v; want one of a finished operation", len(page.Items), err, states)
		}
		accepted := 0
		for _, f := range w.facts {
			if _, ok := f.(core.Accepted); ok {
				accepted++
			}
		}
		if accepted == 0 || accepted > 2 {
			t.Errorf("%d facts of an accepted alert; want one, or one each time that the same end is settled", accepted)
		}
	})
}
