package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A relay is two workers of one process. The second takes over from the first and has other
// senders.
type relay struct {
	*bench
	next     *Worker
	draining chan struct{}
	ended    chan core.Report // of the first, then of the second
	stop     [2]context.CancelFunc
}

// newRelay starts the first worker, whose deliveries last takes. The deliveries of the second
// take no time.
func newRelay(t *testing.T, slots int, takes time.Duration) *relay {
	t.Helper()
	l := Limits{Slots: slots, Batch: 10, Drain: 10 * time.Second}
	b := newBench(l, Target{Sender: takesTime(takes, ok), Timeout: 10 * time.Minute, Hold: 15 * time.Minute})
	return relayOn(t, b, Target{Lane: lane, Sender: takesTime(0, ok), Timeout: 30 * time.Second, Hold: 45 * time.Second})
}

func relayOn(t *testing.T, b *bench, second Target) *relay {
	r := &relay{bench: b, draining: make(chan struct{}), ended: make(chan core.Report, 2)}
	r.Draining = r.draining
	r.next = New(r.Deps, r.limits, []Target{second})
	r.begin(t, 0, r.Worker)
	return r
}

func (r *relay) begin(t *testing.T, which int, w *Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop[which] = cancel
	go func() {
		report, err := w.Tick(ctx, core.Budget{Rest: time.Hour}) // looks are rare, so only rings start work
		if err != nil {
			t.Errorf("Tick: %v", err)
		}
		r.ended <- report
	}()
	synctest.Wait()
}

// pass makes the second worker take over.
func (r *relay) pass(t *testing.T) {
	r.begin(t, 1, r.next)
	r.Leave()
	r.stop[0]()
	synctest.Wait()
}

// end stops the second worker and returns the reports of both.
func (r *relay) end() (first, second core.Report) {
	first = <-r.ended
	close(r.draining)
	r.stop[1]()
	return first, <-r.ended
}

// Jobs that the first worker has not begun go to the second at once. The first finishes the
// deliveries under way, however long they take. No job is delivered twice.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, 2, 5*time.Minute)
		r.add(lane, 2, 1)
		r.bell.Ring(lane)
		synctest.Wait()
		r.add(lane, 3, 1)
		r.bell.Ring(lane)
		r.pass(t)
		if n := r.count(core.Completed); n != 3 {
			t.Fatalf("%d completed right after another took over, want the 3 that were not begun", n)
		}
		first, second := r.end()
		if first != (core.Report{Completed: 2}) || second.Completed != 3 || len(r.settled) != 5 {
			t.Errorf("reports %+v and %+v, %d outcomes; want 2 and 3 completed, each once", first, second, len(r.settled))
		}
	})
}

// Jobs that are taken but have no slot yet are given back, and the second worker's lanes
// ring.
func TestHandoverOfTakenJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, 2, time.Minute)
		r.takeDelay = 5 * time.Second
		r.add(lane, 2, 1)
		r.bell.Ring(lane)
		time.Sleep(time.Second) // they are taken, and the first worker has not seen the answer yet
		r.pass(t)
		time.Sleep(10 * time.Second) // the answer to the second worker's take is late, too
		synctest.Wait()
		if n := r.count(core.Completed); n != 2 {
			t.Errorf("%d of 2 completed: the other worker did not learn that they were given back", n)
		}
		if first, second := r.end(); first.Released != 2 || second.Completed != 2 {
			t.Errorf("reports %+v and %+v, want 2 given back and then completed", first, second)
		}
	})
}

// The second worker begins the steps that follow from the first worker's last steps, without
// a look at the store.
func TestHandoverOfNextSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(2)
		f.try = func(context.Context, core.TakenJob) (endOf, error) { time.Sleep(10 * time.Second); return endOf{}, nil }
		r := relayOn(t, b, Target{Lane: flowLane, Steps: f, Timeout: 30 * time.Second, Hold: 45 * time.Second})
		r.pass(t)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := f.steps(); n != 2 {
			t.Errorf("%d steps of 10 s each in 20 s, want 2: the other worker did not learn of the second", n)
		}
		r.end()
	})
}

// Once Draining is closed, deliveries under way get the drain time and no more.
func TestHandoverIsBoundedByTheDrainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, 1, 5*time.Minute)
		r.add(lane, 1, 2)
		r.bell.Ring(lane)
		synctest.Wait()
		r.pass(t)
		time.Sleep(time.Minute)
		began := time.Now()
		close(r.draining)
		r.stop[1]()
		reports := []core.Report{<-r.ended, <-r.ended}
		if took := time.Since(began); took != 10*time.Second || slices.ContainsFunc(reports, func(r core.Report) bool { return r.Completed > 0 }) {
			t.Errorf("ended %v after draining began, with %+v, want after the drain time of 10 s with nothing", took, reports)
		}
	})
}

// After Leave, a lane that only the first worker had rings for the second worker. That
// includes rings from before Leave.
func TestHandoverOfLanes(t *testing.T) {
	bell := &core.Bell{}
	first := New(Deps{Bell: bell}, Limits{}, []Target{{Lane: "workflow/gone"}, {Lane: "workflow/too"}})
	other := New(Deps{Bell: bell}, Limits{}, nil)
	bell.Ring("workflow/gone")
	first.Leave()
	bell.Ring("workflow/too")
	if got, want := other.heard.Rung(), []core.Lane{"workflow/gone", "workflow/too"}; !slices.Equal(got, want) {
		t.Errorf("the other heard of %q, want %q", got, want)
	}
}

// Outcomes that cannot be stored while the second worker takes over are stored when the store
// is back. No job is delivered twice.
func TestHandoverWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, 2, time.Second)
		r.add(lane, 2, 1)
		r.bell.Ring(lane)
		synctest.Wait()
		r.breakdown(true)
		r.pass(t)
		time.Sleep(time.Minute)
		r.breakdown(false)
		first, _ := r.end()
		if first.Completed != 2 || r.count(core.Completed) != 2 {
			t.Errorf("%+v after the store was away for a minute, want 2 completed", first)
		}
	})
}

// A job that cannot be given back while the store is down is given back when the store is up
// again, even while a delivery is under way. The second worker's lane rings for it.
func TestHandoverOfJobsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, 2, 5*time.Minute)
		r.add(lane, 1, 1)
		r.bell.Ring(lane)
		synctest.Wait() // one is under way
		r.takeDelay = 5 * time.Second
		r.add(lane, 1, 1)
		r.bell.Ring(lane)
		time.Sleep(time.Second) // another is taken, and the first worker has not seen the answer yet
		r.pass(t)
		r.breakdown(true)
		time.Sleep(10 * time.Second)
		r.breakdown(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := r.count(core.Completed); n != 1 {
			t.Errorf("%d completed by the other 10 s after the store is back, want the 1 that was not begun", n)
		}
		if first, second := r.end(); first != (core.Report{Completed: 1, Released: 1}) || second.Completed != 1 {
			t.Errorf("reports %+v and %+v, want 1 completed by each and 1 given back", first, second)
		}
	})
}
