package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// panics returns the panics among the reported facts.
func panics(b *bench) (found []core.Panic) {
	for _, f := range factsOf[core.Troubled](b) {
		if p := (*core.Panic)(nil); errors.As(f.Err, &p) {
			found = append(found, *p)
		}
	}
	return found
}

// A sender that panics fails that one attempt. Other jobs are delivered, and the breaker
// counts no failure.
func TestSenderThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		poison := core.ID("")
		sender := sends(func(_ context.Context, j core.TakenJob) Reply {
			if j.ID == poison {
				panic("\xff" + strings.Repeat("x", 2*maxPanic))
			}
			return ok
		})
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: sender, Breaker: &Breaker{}, Retry: core.Retry{Interval: time.Second, Fixed: true}})
		b.add(lane, 1, 2*core.BreakerThreshold)
		for id := range b.jobs {
			poison = id
		}
		b.add(lane, 20, 1)
		stop := b.serve(t)
		time.Sleep(time.Minute)
		want := core.Report{Completed: 20, Failed: 2 * core.BreakerThreshold, Dead: 1}
		if r := stop(); r != want {
			t.Errorf("Tick = %+v, want %+v", r, want)
		}
		for _, o := range b.settled {
			if e := o.Attempt.Error; o.JobID == poison && (!strings.HasPrefix(e, "panic: ?xxx") || len(e) != maxPanic) {
				t.Errorf("recorded as %q, want it to begin with panic: and to be short", e)
			}
		}
		if found := panics(b); len(found) != 2*core.BreakerThreshold || !strings.Contains(found[0].Stack, "TestSenderThatPanics") {
			t.Errorf("reported %d panics, want each with its stack", len(found))
		}
	})
}

// An obituary that panics does not prevent the death of its job.
func TestObituaryThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(0, Reply{Error: "status: 500"})})
		b.Worker.Obituary = func(core.TakenJob, core.Outcome) *core.Arrival { panic("no words") }
		b.add(lane, 1, 1)
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Failed: 1, Dead: 1}); err != nil || r != want || len(panics(b)) != 1 {
			t.Errorf("Tick = %+v, %v with %d panics reported, want %+v with one", r, err, len(panics(b)), want)
		}
	})
}

// A step whose attempt panics is released for a while, like a step whose attempt returns an
// error.
func TestStepThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		f.try = func(context.Context, core.TakenJob) (endOf, error) { panic("no such step") }
		b.add(lane, 3, 1)
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Completed: 3, Released: 1}); err != nil || r != want || len(panics(b)) != 1 {
			t.Errorf("Tick = %+v, %v with %d panics reported, want %+v with one", r, err, len(panics(b)), want)
		}
	})
}

// settlesBadly is a Steps whose Settle panics.
type settlesBadly struct{ *flow }

func (settlesBadly) Settle(context.Context, ...core.StepEnd) ([]core.StepSettled, error) {
	panic("no such run")
}

// A step whose end cannot be stored keeps its lease until that ends. Outcomes of other jobs
// are stored.
func TestStepThatPanicsWhenItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		target := b.targets[flowLane]
		target.Steps = settlesBadly{f}
		b.targets[flowLane] = target
		b.add(lane, 3, 1)
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Completed: 3}); err != nil || r != want || len(panics(b)) != 1 {
			t.Errorf("Tick = %+v, %v with %d panics reported, want %+v with one", r, err, len(panics(b)), want)
		}
		if n := b.count(core.Running); n != 1 {
			t.Errorf("%d jobs left to their lease, want one", n)
		}
	})
}
