package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// observed is a pile that counts calls, and delays or fails some of them.
type observed struct {
	*pile
	count          sync.Mutex
	dues, asked    int
	releases       int
	settleTakes    time.Duration
	lateFrom       int           // the number of the first look, from 1, whose answer is late
	lookTakes      time.Duration // how late: the answer is read at once and returned after this long
	releasesFail   int           // the number of first releases that fail
	othersHoldJobs bool
}

func observe(b *bench) *observed {
	o := &observed{pile: b.pile}
	b.Worker.Worklist = o
	return o
}

func (o *observed) Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	o.count.Lock()
	o.dues++
	late := o.lateFrom > 0 && o.dues >= o.lateFrom
	o.count.Unlock()
	due, err := o.pile.Due(ctx, lanes)
	if late {
		time.Sleep(o.lookTakes) // virtual
	}
	return due, err
}

func (o *observed) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	o.count.Lock()
	o.asked++
	o.count.Unlock()
	if o.othersHoldJobs {
		return nil, nil
	}
	return o.pile.Take(ctx, now, quotas)
}

func (o *observed) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	time.Sleep(o.settleTakes) // virtual
	return o.pile.Settle(ctx, outcomes...)
}

func (o *observed) Release(ctx context.Context, due time.Time, jobs ...core.Job) error {
	o.count.Lock()
	o.releases++
	fail := o.releases <= o.releasesFail
	o.count.Unlock()
	if fail {
		return errBroken
	}
	return o.pile.Release(ctx, due, jobs...)
}

// The lane of a rate-limited handler takes no more jobs than its slots can send. A job that
// waited in the worker until its lease ended would be sent twice, or would die while it is
// being sent.
func TestLimitedLaneHoldsNoMoreThanItsSlots(t *testing.T) {
	for _, rate := range []int{50, 500, 5000} {
		synctest.Test(t, func(t *testing.T) {
			h := &handler{takes: 9 * time.Minute}
			slow := Target{Sender: h, Interval: time.Second / time.Duration(rate), Timeout: 10 * time.Minute, Hold: 615 * time.Second}
			b := newBench(Limits{Slots: 10, Batch: 10}, slow)
			b.delay = time.Millisecond
			other := b.otherWorker(slow)
			b.add(lane, 100, 1)
			stops := []func() core.Report{b.serve(t), other.serve(t)}
			time.Sleep(time.Minute)
			if n := b.count(core.Running); n > 20 {
				t.Errorf("limit %d: %d jobs held, want at most as many as there are slots, 20", rate, n)
			}
			time.Sleep(2 * time.Hour)
			for _, stop := range stops {
				stop()
			}
			if n := len(h.since(time.Time{})); n != 100 || b.count(core.Completed) != 100 {
				t.Errorf("limit %d: %d deliveries, %d completed, want 100 each", rate, n, b.count(core.Completed))
			}
		})
	}
}

// A job that waited so long for a slot that its lease would end during the delivery is given
// back.
func TestJobWhoseLeaseWouldNotLastIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: time.Second}
		b := newBench(Limits{Slots: 1, Batch: 20}, Target{Sender: h, Timeout: 10 * time.Second, Hold: 40 * time.Second})
		b.delay = 10 * time.Second // taking is slow and sending quick: take ahead
		b.add(lane, 1, 1)
		stop := b.serve(t)
		time.Sleep(time.Minute)
		h.mu.Lock()
		h.takes = 8 * time.Second // then sending is slow, too
		h.mu.Unlock()
		b.add(lane, 20, 1)
		time.Sleep(30 * time.Minute)
		stop()
		if n := len(h.since(time.Time{})); n != 21 || b.count(core.Completed) != 21 || b.released == 0 {
			t.Errorf("%d deliveries, %d completed, %d given back, want 21, 21 and some", n, b.count(core.Completed), b.released)
		}
	})
}

// While failures that will open a breaker wait to be stored, the worker does not claim from
// the lane.
func TestFailuresThatWaitToBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 10, Batch: 10}, breaker(&handler{takes: time.Millisecond, down: true}))
		b.delay = time.Millisecond
		o := observe(b)
		o.settleTakes = 5 * time.Second
		b.add(lane, 1000, 9)
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		stop()
		if o.asked > 5 || o.releases > 5 {
			t.Errorf("%d takes and %d releases in 10 s, want a few", o.asked, o.releases)
		}
	})
}

// A failure is not forgotten if it is stored while a look is under way. The look read the
// gates before that, and its answer is stale.
func TestLateLookForgetsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: time.Second, down: true}
		target := breaker(h)
		target.Breaker.Failures = 2
		b := newBench(Limits{Slots: 1, Batch: 3}, target)
		b.takeDelay = 2 * time.Second // taking is slower than sending: take ahead
		o := observe(b)
		o.settleTakes = 5 * time.Second            // of the first failure, from 3 s to 8 s
		o.lateFrom, o.lookTakes = 2, 6*time.Second // from 3 s to 9 s
		b.add(lane, 10, 9)
		stop := b.serve(t)
		time.Sleep(50 * time.Second)
		stop()
		if n := len(h.since(time.Time{})); n != 2 {
			t.Errorf("%d deliveries before the first probe, want as many as open the breaker, 2", n)
		}
	})
}

// A release that fails is tried again later.
func TestReleaseIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: time.Millisecond}
		b := newBench(Limits{Slots: 10, Batch: 10, Drain: time.Second}, Target{Sender: h, Interval: 10 * time.Millisecond})
		b.delay = time.Millisecond
		observe(b).releasesFail = 3
		b.add(lane, 200, 1)
		stop := b.serve(t)
		time.Sleep(1033 * time.Millisecond)
		report := stop()
		if n := b.count(core.Running); n != 0 || report.Released == 0 {
			t.Errorf("%d jobs left running, %d given back, want none and some", n, report.Released)
		}
	})
}

// If other workers hold the due jobs of a lane, the worker does not ask for them in a busy
// loop.
func TestJobsThatOthersHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 10, Batch: 10}, Target{Sender: &handler{}})
		o := observe(b)
		o.othersHoldJobs = true
		b.add(lane, 10, 1)
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		stop()
		if o.asked > 50 || o.dues > 100 {
			t.Errorf("%d takes and %d looks in 10 s, want a few a second", o.asked, o.dues)
		}
	})
}

// A function works until nothing is due: it waits for a rate limit, but not for an open
// breaker.
func TestFunctionWaitsForLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		b := newBench(Limits{Slots: 2, Batch: 10}, Target{Sender: h, Interval: time.Second})
		b.add(lane, 20, 1)
		began := time.Now()
		r, err := b.Tick(context.Background(), core.Budget{Until: began.Add(10 * time.Second)})
		if took := time.Since(began); err != nil || r.Completed < 10 || r.Completed > 11 || took > 11*time.Second {
			t.Errorf("Tick = %+v, %v in %v, want 10 completed in 10 s", r, err, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 10}, breaker(&handler{}))
		b.add(lane, 20, 1)
		gate := b.pile.gate(lane)
		gate.Failures, gate.OpenUntil = core.BreakerThreshold, time.Now().Add(30*time.Second)
		began := time.Now()
		if r, err := b.Tick(context.Background(), core.Budget{}); err != nil || r.Completed != 0 || time.Since(began) > time.Second {
			t.Errorf("Tick = %+v, %v in %v, want nothing done at once behind an open breaker", r, err, time.Since(began))
		}
	})
}

// A function buries strays, too.
func TestFunctionBuriesStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: &handler{}})
		b.delay = 2 * time.Millisecond
		b.add("handler/gone", 5, 1)
		for range 26 {
			if _, err := b.Tick(context.Background(), core.Budget{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if n := b.count(core.Dead); n != 5 {
			t.Errorf("%d of 5 strays are dead after 26 hours, want all", n)
		}
	})
}

// LimitOf returns the full timeout of an attempt, even if the sender starts late.
func TestAttemptsKnowTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit time.Duration
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Timeout: 500 * time.Millisecond, Sender: sends(func(ctx context.Context, _ core.TakenJob) Reply {
			time.Sleep(11 * time.Millisecond) // on a busy machine
			limit = core.LimitOf(ctx, time.Now())
			return ok
		})})
		b.add(lane, 1, 1)
		if _, err := b.Tick(context.Background(), core.Budget{}); err != nil || limit != 500*time.Millisecond {
			t.Errorf("LimitOf = %v, %v, want 500ms", limit, err)
		}
	})
}
