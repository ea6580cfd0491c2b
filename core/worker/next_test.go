package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// newTakingFlow is newFlow with next jobs that are taken as the ends before them are stored.
func newTakingFlow(length int) (*bench, *flow) {
	b, f := newFlow(length)
	f.takes = true
	return b, f
}

// claims returns the number of calls of Take that got a job.
func (f *flow) claims() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, jobs := range f.pile.takes {
		n += min(1, jobs)
	}
	return n
}

// running returns the jobs that are leased.
func (f *flow) running() (ids []core.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, j := range f.jobs {
		if j.Status == core.Running {
			ids = append(ids, id)
		}
	}
	return ids
}

// A run is executed with one claim, for its first step, by a process and by a function.
func TestNextStepNeedsNoClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(10)
		f.delay = 2 * time.Millisecond
		stop := b.serve(t)
		time.Sleep(time.Second)
		if r, want := stop(), (core.Report{Completed: 10}); r != want || f.claims() != 1 {
			t.Errorf("Tick = %+v with %d claims, want %+v with 1", r, f.claims(), want)
		}
		for _, j := range f.jobs {
			if j.Attempt != 1 {
				t.Errorf("job = %+v, want it completed by the first attempt", *j)
			}
		}
		if last := f.tried[9].Sub(f.tried[0]); last > 9*3*time.Millisecond {
			t.Errorf("the tenth step began %v after the first, want a commit between each", last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(10)
		r, err := b.Tick(context.Background(), core.Budget{End: time.Now().Add(5 * time.Minute)})
		if want := (core.Report{Completed: 10}); err != nil || r != want || f.claims() != 1 {
			t.Errorf("a function: Tick = %+v, %v with %d claims, want %+v with 1", r, err, f.claims(), want)
		}
	})
}

// A tick that may not begin the next attempt leaves its job to others.
func TestNextStepNearTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(100)
		f.try = func(context.Context, core.TakenJob) (endOf, error) {
			time.Sleep(time.Second)
			return endOf{kind: core.Replied}, nil
		}
		end := time.Now().Add(b.targets[flowLane].Timeout + endGrace + 3500*time.Millisecond)
		if _, err := b.Tick(context.Background(), core.Budget{End: end}); err != nil {
			t.Error(err)
		}
		if last := f.holds[len(f.holds)-1]; len(f.holds) != 4 || last != 0 {
			t.Errorf("holds = %v, want four, and none at last", f.holds)
		}
		if left := f.running(); len(left) > 0 {
			t.Errorf("leased after the tick: %v", left)
		}
	})
}

// With many runs, those that have begun go on first, and the others are not forgotten.
func TestNextStepsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs, steps = 100, 2000
		b, f := newTakingFlow(steps)
		b.add(flowLane, runs-1, core.Unlimited)
		first := func(id core.ID) bool { return id < "workflow/w-0100" }
		var begun []int // the number of attempts before that of each first step
		n := 0
		f.try = func(_ context.Context, j core.TakenJob) (endOf, error) {
			time.Sleep(time.Millisecond)
			f.mu.Lock()
			defer f.mu.Unlock()
			if n++; first(j.ID) {
				begun = append(begun, n)
			}
			return endOf{kind: core.Replied}, nil
		}
		f.delay = time.Millisecond
		stop := b.serve(t)
		time.Sleep(time.Minute)
		stop()
		if len(f.settled) < steps || len(begun) != runs {
			t.Fatalf("%d steps of %d runs, want %d of %d", len(f.settled), len(begun), steps, runs)
		}
		if half := begun[runs/2-1]; half > turnOfOlder*runs/2+runs || half < 2*runs {
			t.Errorf("half of the runs had begun after %d steps, want %d to %d", half, 2*runs, turnOfOlder*runs/2+runs)
		}
		if claims := f.claims(); claims > steps/8 {
			t.Errorf("%d claims for %d steps", claims, steps)
		}
	})
}

// A job that is taken as the tick ends is given back. So is its room if the end cannot be stored.
func TestNextStepAsTheTickEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(1000)
		f.delay = 10 * time.Millisecond
		stop := b.serve(t)
		time.Sleep(105 * time.Millisecond)
		stop()
		if left := f.running(); len(left) > 0 {
			t.Errorf("leased after the tick: %v", left)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(1000)
		stop := b.serve(t)
		time.Sleep(20 * time.Millisecond)
		f.mu.Lock()
		f.broken = true
		f.mu.Unlock()
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the tick took %v to end", took)
		}
	})
}

// Ends that are settled again after a lost answer bring their jobs once.
func TestNextStepWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(20)
		f.made, f.errs = map[core.ID]core.StepSettled{}, 3
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		if r, want := stop(), (core.Report{Completed: 20}); r != want || f.tries() != 20 {
			t.Errorf("Tick = %+v with %d tries, want %+v with 20", r, f.tries(), want)
		}
	})
}

// While the workflow is held, no next job is taken.
func TestNextStepOfAHeldWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newTakingFlow(1000)
		f.try = func(context.Context, core.TakenJob) (endOf, error) {
			time.Sleep(100 * time.Millisecond)
			return endOf{kind: core.Replied}, nil
		}
		stop := b.serve(t)
		time.Sleep(time.Second)
		f.mu.Lock()
		f.gate(flowLane).HeldUntil = time.Now().Add(time.Hour)
		f.mu.Unlock()
		b.Bell.Ring(flowLane)
		time.Sleep(10 * time.Second)
		tries := f.tries()
		time.Sleep(10 * time.Second)
		stop()
		if f.tries() != tries || tries < 10 {
			t.Errorf("%d steps began before the workflow was held, and %d more while it was", tries, f.tries()-tries)
		}
	})
}
