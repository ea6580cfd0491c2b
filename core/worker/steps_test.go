package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
)

const flowLane = core.Lane("workflow/w")

// A flow is a Steps over a pile. Each settled job adds the next job of its run, until the run
// has length steps. The field try decides how attempts end.
type flow struct {
	*pile
	length  int                                                 // steps of each run
	stepGap time.Duration                                       // from the end of a step to the due time of the next one
	takes   bool                                                // leases a next job that is due for the worker
	try     func(context.Context, core.TakenJob) (endOf, error) // nil: succeeds

	calls   sync.Mutex
	tried   []time.Time
	settled []core.ID // jobs
	errs    int       // how many more calls of Settle fail, after they have stored
	made    map[core.ID]core.StepSettled
	holds   []time.Duration // of the ends
}

type endOf struct {
	kind  core.EndKind
	stale bool
}

func (f *flow) Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error) {
	f.calls.Lock()
	f.tried = append(f.tried, time.Now())
	f.calls.Unlock()
	end := core.StepEnd{Job: job, Kind: core.Replied}
	if f.try == nil {
		return end, true, nil
	}
	as, err := f.try(ctx, job)
	end.Kind = as.kind
	return end, !as.stale, err
}

// tries returns the number of attempts. steps returns the number of settled steps.
func (f *flow) tries() int {
	f.calls.Lock()
	defer f.calls.Unlock()
	return len(f.tried)
}

func (f *flow) steps() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.settled)
}

func (f *flow) Settle(_ context.Context, ends ...core.StepEnd) ([]core.StepSettled, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	var all []core.StepSettled
	for _, e := range ends {
		all = append(all, f.move(e))
	}
	f.mu.Unlock()
	f.calls.Lock()
	defer f.calls.Unlock()
	if f.errs--; f.errs >= 0 {
		return nil, errBroken
	}
	return all, nil
}

// move stores one end and returns the result. It counts an end as lost if the job was taken
// again since: the attempt number is the fence.
func (f *flow) move(e core.StepEnd) core.StepSettled {
	if done, ok := f.made[e.Job.ID]; ok {
		return done
	}
	j := f.jobs[e.Job.ID]
	if j.Attempt != e.Job.Attempt {
		return core.StepSettled{Lost: true}
	}
	j.Lease, j.DueAt, j.Status = "", time.Time{}, core.Completed
	f.settled, f.holds = append(f.settled, j.ID), append(f.holds, e.Hold)
	s := core.StepSettled{Status: core.Completed}
	switch {
	case e.Kind == core.Refused:
		j.Status, s.Status = core.Dead, core.Dead
	case len(f.settled) < f.length:
		s.Next = time.Now().Add(f.stepGap)
		id := core.ID(fmt.Sprintf("%s-%04d", j.Lane, len(f.jobs)))
		next := &core.Job{ID: id, Lane: j.Lane, Status: core.Available, MaxAttempts: core.Unlimited, DueAt: s.Next}
		f.jobs[id] = next
		if f.takes && e.Hold > 0 && f.stepGap == 0 && !f.gate(j.Lane).Held(s.Next) {
			f.pile.leases++
			next.Status, next.Attempt, next.DueAt, next.Lease = core.Running, 1, s.Next.Add(e.Hold), core.Lease(fmt.Sprint("next ", f.pile.leases))
			s.Taken, s.Next = &core.TakenJob{Job: *next}, time.Time{}
		}
	}
	if f.made != nil {
		f.made[e.Job.ID] = s
	}
	return s
}

// newFlow makes a worker with two lanes: a handler's, and that of a run of length steps, of
// which the first is due.
func newFlow(length int) (*bench, *flow) {
	f := &flow{length: length}
	b := newBench(Limits{Slots: 4, Batch: 4, Drain: time.Minute},
		Target{Sender: takesTime(time.Millisecond, ok)}, Target{Lane: flowLane, Steps: f})
	f.pile = b.pile
	b.add(flowLane, 1, core.Unlimited)
	return b, f
}

// A function works until the run has completed, and then returns. It hears no bell, and each
// call of the store takes delay.
func TestFunctionDrainsNextSteps(t *testing.T) {
	for _, delay := range []time.Duration{0, 2 * time.Millisecond, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			b, f := newFlow(10)
			b.delay = delay
			b.add(lane, 5, 1)
			began := time.Now()
			r, err := b.Tick(context.Background(), core.Budget{})
			if want := (core.Report{Completed: 15}); err != nil || r != want || len(f.settled) != 10 {
				t.Errorf("delay %v: Tick = %+v, %v with %d steps, want %+v with 10", delay, r, err, len(f.settled), want)
			}
			if took, most := time.Since(began), 50*delay+100*time.Millisecond; took > most {
				t.Errorf("delay %v: took %v, want at most %v", delay, took, most)
			}
		})
	}
}

// A step with a later due time is taken at that time, without a ring.
func TestWaitsEndOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(8)
		f.stepGap = 300 * time.Millisecond
		f.try = func(context.Context, core.TakenJob) (endOf, error) {
			time.Sleep(100 * time.Millisecond) // the feeder has looked before it ends
			return endOf{kind: core.Elapsed}, nil
		}
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		stop()
		for i := 1; i < len(f.tried); i++ {
			if gap := f.tried[i].Sub(f.tried[i-1]); gap != 400*time.Millisecond {
				t.Errorf("step %d came %v after the one before, want 400ms", i, gap)
			}
		}
		if len(f.tried) != 8 {
			t.Errorf("%d steps, want 8", len(f.tried))
		}
	})
}

// A step whose attempt returns an error is tried again once a minute. It loses no attempt,
// and each error is reported.
func TestStepWithUnknownWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		why := errors.New("GREETING is not set")
		f.try = func(context.Context, core.TakenJob) (endOf, error) { return endOf{}, why }
		stop := b.serve(t)
		time.Sleep(10*time.Minute + 30*time.Second)
		r := stop()
		if want := (core.Report{Released: 11}); r != want || len(f.tried) != 11 {
			t.Errorf("Tick = %+v with %d tries in 10 minutes, want %+v with 11", r, len(f.tried), want)
		}
		for _, j := range b.jobs {
			if j.Attempt != 0 || j.Status == core.Running {
				t.Errorf("job = %+v, want it waiting and untried", *j)
			}
		}
		if facts := factsOf[core.Troubled](b); len(facts) != 11 || !errors.Is(facts[0].Err, why) {
			t.Errorf("reported %v, want 11 times %v", facts, why)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		f.try = func(context.Context, core.TakenJob) (endOf, error) { return endOf{}, errBroken }
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Released: 1}); err != nil || r != want {
			t.Errorf("a function: Tick = %+v, %v, want %+v", r, err, want)
		}
	})
}

// A job that its run no longer needs is completed, and no attempt is reported.
func TestStaleStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		f.try = func(context.Context, core.TakenJob) (endOf, error) { return endOf{stale: true}, nil }
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Completed: 1}); err != nil || r != want || len(f.settled) != 0 {
			t.Errorf("Tick = %+v, %v with %d steps settled, want %+v with none", r, err, len(f.settled), want)
		}
		if o := b.pile.settled; len(o) != 1 || o[0].Status != core.Completed || o[0].Attempt.Error != MovedOn {
			t.Errorf("settled %v, want one completed since %s", o, MovedOn)
		}
		if facts := factsOf[core.Settled](b); len(facts) != 0 {
			t.Errorf("reported %v, want nothing", facts)
		}
	})
}

func TestStepsAreCounted(t *testing.T) {
	tests := []struct {
		name string
		kind core.EndKind
		lost bool
		want core.Report
	}{
		{"replied", core.Replied, false, core.Report{Completed: 1}},
		{"elapsed", core.Elapsed, false, core.Report{Completed: 1}},
		{"refused", core.Refused, false, core.Report{Failed: 1, Dead: 1}},
		{"lost", core.Replied, true, core.Report{Lost: 1}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			b, f := newFlow(1)
			f.try = func(_ context.Context, job core.TakenJob) (endOf, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if j := f.jobs[job.ID]; tt.lost { // another worker took the job and settled it
					j.Attempt, j.Status, j.DueAt, j.Lease = 2, core.Completed, time.Time{}, ""
				}
				return endOf{kind: tt.kind}, nil
			}
			r, err := b.Tick(context.Background(), core.Budget{})
			if err != nil || r != tt.want {
				t.Errorf("%s: Tick = %+v, %v, want %+v", tt.name, r, err, tt.want)
			}
			if facts := factsOf[core.Superseded](b); len(facts) != tt.want.Lost {
				t.Errorf("%s: reported %d that were superseded, want %d", tt.name, len(facts), tt.want.Lost)
			}
		})
	}
}

// Ends of steps are settled again until that succeeds, while outcomes of handlers are stored.
func TestEndsSurviveADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(3)
		f.errs, f.made = 4, map[core.ID]core.StepSettled{}
		b.add(lane, 3, 1)
		stop := b.serve(t)
		time.Sleep(20 * time.Second)
		r := stop()
		if want := (core.Report{Completed: 6}); r != want || len(f.tried) != 3 {
			t.Errorf("Tick = %+v with %d tries, want %+v with 3", r, len(f.tried), want)
		}
		if facts := factsOf[core.Troubled](b); len(facts) != 4 {
			t.Errorf("reported trouble %d times, want 4", len(facts))
		}
	})
}

// A function returns within a bounded time even if an end can never be stored.
func TestFunctionGivesUpUnstorableEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		f.errs = 1 << 30
		b.limits.Drain = time.Second
		began := time.Now()
		_, err := b.Tick(context.Background(), core.Budget{})
		if took := time.Since(began); err != nil || took > 3*settleGrace {
			t.Errorf("Tick: %v after %v, want its end within %v", err, took, 3*settleGrace)
		}
	})
}

// An attempt that outlives its lease does not count if the job was taken again meanwhile. The
// job that this worker took again is released and tried at once.
func TestStepThatOutlivesItsLease(t *testing.T) {
	for _, rest := range []time.Duration{time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			b, f := newFlow(1)
			b.delay = 10 * time.Millisecond
			f.try = func(context.Context, core.TakenJob) (endOf, error) {
				if f.tries() == 1 {
					time.Sleep(time.Minute) // the lease is over after 45 s, and the job is taken again
				}
				return endOf{kind: core.Replied}, nil
			}
			r, err := b.Tick(context.Background(), core.Budget{Rest: rest, Until: time.Now().Add(2 * time.Minute)})
			if want := (core.Report{Completed: 1, Lost: 1}); err != nil || r != want || len(f.tried) != 2 {
				t.Fatalf("Tick = %+v, %v with %d tries, want %+v with 2", r, err, len(f.tried), want)
			}
			if after := f.tried[1].Sub(f.tried[0]); after > time.Minute+100*time.Millisecond {
				t.Errorf("the second attempt began %v after the first, want a minute", after)
			}
		})
	}
}

// An attempt finds that the run no longer needs the job, and its lease ends before that is
// stored. The finding is lost, and the next attempt counts.
func TestStaleStepThatOutlivesItsLease(t *testing.T) {
	for _, rest := range []time.Duration{time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			b, f := newFlow(1)
			b.delay = 10 * time.Millisecond
			f.try = func(context.Context, core.TakenJob) (endOf, error) {
				if f.tries() == 1 {
					time.Sleep(time.Minute) // the lease is over after 45 s, and the job is taken again
					return endOf{stale: true}, nil
				}
				return endOf{kind: core.Replied}, nil
			}
			r, err := b.Tick(context.Background(), core.Budget{Rest: rest, Until: time.Now().Add(2 * time.Minute)})
			if want := (core.Report{Completed: 1, Lost: 1}); err != nil || r != want || len(f.tried) != 2 || len(b.pile.settled) != 0 {
				t.Errorf("Tick = %+v, %v with %d tries and %d closed, want %+v with 2 and none", r, err, len(f.tried), len(b.pile.settled), want)
			}
		})
	}
}

// A step whose run is busy (core.Unavailable) is released and tried again about a second
// later.
func TestStepAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		f.try = func(context.Context, core.TakenJob) (endOf, error) {
			if f.tries() <= 5 {
				return endOf{}, core.Refuse(core.Unavailable, "others are at this run")
			}
			return endOf{kind: core.Replied}, nil
		}
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		if r := stop(); r != (core.Report{Completed: 1, Released: 5}) {
			t.Errorf("Tick = %+v, want it completed after 5 times", r)
		}
		for i := 1; i < len(f.tried); i++ {
			if gap := f.tried[i].Sub(f.tried[i-1]); gap < 750*time.Millisecond || gap > 1250*time.Millisecond {
				t.Errorf("try %d came %v after the one before, want about a second", i, gap)
			}
		}
	})
}

// A Steps bounds its own calls. The worker bounds the attempt by the end of the lease.
func TestAttemptEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		var left time.Duration
		f.try = func(ctx context.Context, _ core.TakenJob) (endOf, error) {
			until, _ := ctx.Deadline()
			left = time.Until(until)
			return endOf{kind: core.Replied}, nil
		}
		if _, err := b.Tick(context.Background(), core.Budget{}); err != nil || left != 45*time.Second {
			t.Errorf("Tick: %v with %v for the attempt, want 45s", err, left)
		}
	})
}

// A call that the end of the tick cuts off is not settled. A call that succeeded in spite of
// the canceled context is settled.
func TestStoppingCutsStepsOff(t *testing.T) {
	for _, kind := range []core.EndKind{core.Refused, core.Replied} {
		synctest.Test(t, func(t *testing.T) {
			b, f := newFlow(1)
			f.try = func(ctx context.Context, _ core.TakenJob) (endOf, error) {
				<-ctx.Done()
				return endOf{kind: kind}, nil
			}
			b.limits.Drain = time.Second
			stop := b.serve(t)
			time.Sleep(time.Second)
			r := stop()
			want := 0
			if kind == core.Replied {
				want = 1
			}
			if len(f.settled) != want || r.Completed != want {
				t.Errorf("%v: Tick = %+v with %d settled, want %d", kind, r, len(f.settled), want)
			}
		})
	}
}

// Each end is settled by the Steps of its lane.
func TestTwoKindsOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &flow{length: 5}, &flow{length: 7}
		b := newBench(Limits{Slots: 4, Batch: 4}, Target{Lane: "workflow/one", Steps: one}, Target{Lane: "workflow/two", Steps: two})
		one.pile, two.pile = b.pile, b.pile
		b.add("workflow/one", 1, core.Unlimited)
		b.add("workflow/two", 1, core.Unlimited)
		r, err := b.Tick(context.Background(), core.Budget{})
		if err != nil || r.Completed != 12 || len(one.settled) != 5 || len(two.settled) != 7 {
			t.Errorf("Tick = %+v, %v: %d and %d steps, want 5 and 7", r, err, len(one.settled), len(two.settled))
		}
	})
}

func TestWriteEnds(t *testing.T) {
	a, c := &flow{}, &flow{}
	batch := []settlement{{steps: a}, {steps: c}, {steps: a}}
	var sizes []int
	for by, group := range bySteps(batch) {
		sizes = append(sizes, len(group))
		if slices.ContainsFunc(group, func(s settlement) bool { return s.steps != by }) {
			t.Error("a group holds ends of others")
		}
	}
	if diff := cmp.Diff([]int{2, 1}, sizes); diff != "" {
		t.Errorf("sizes of the groups (-want +got):\n%s", diff)
	}
}
