package worker

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
)

// sends makes a function a Sender.
type sends func(context.Context, core.TakenJob) Reply

func (f sends) Send(ctx context.Context, j core.TakenJob) Reply { return f(ctx, j) }

// takesTime makes a Sender that answers with r after d. If the deadline comes first, it fails
// with the error "timeout".
func takesTime(d time.Duration, r Reply) sends {
	return func(ctx context.Context, _ core.TakenJob) Reply {
		select {
		case <-time.After(d):
			return r
		case <-ctx.Done():
			return Reply{Error: "timeout"}
		}
	}
}

const lane = core.Lane("handler/a")

type bench struct {
	*pile
	*Worker
	bell  core.Bell
	facts []core.Fact
}

// newBench makes a worker over a new pile, with defaults for the fields of targets that are
// zero. It collects the reported facts.
func newBench(l Limits, targets ...Target) *bench {
	b := &bench{pile: newPile()}
	for i := range targets {
		t := &targets[i]
		t.Lane = orElse(t.Lane, lane)
		t.Timeout, t.Hold = orElse(t.Timeout, 30*time.Second), orElse(t.Hold, 45*time.Second)
	}
	b.Worker = New(Deps{
		Worklist: b.pile,
		Bell:     &b.bell,
		Clock:    core.SystemClock,
		Observe:  func(f core.Fact) { b.mu.Lock(); defer b.mu.Unlock(); b.facts = append(b.facts, f) },
	}, l, targets)
	return b
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// serve starts a tick without an end. The function stop ends the tick and returns its report.
func (b *bench) serve(t *testing.T) (stop func() core.Report) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reports := make(chan core.Report)
	go func() {
		r, err := b.Tick(ctx, core.Budget{Rest: time.Second})
		if err != nil {
			t.Errorf("Tick: %v", err)
		}
		reports <- r
	}()
	return func() core.Report { cancel(); return <-reports }
}

var ok = Reply{OK: true, StatusCode: 200}

func TestTickDrainsDueJobsAndReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 3, Batch: 2}, Target{Sender: takesTime(time.Second, ok)})
		b.add(lane, 7, 1)
		b.add("handler/unknown", 1, 1)
		got, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Completed: 7}); err != nil || got != want {
			t.Errorf("Tick = %+v, %v, want %+v", got, err, want)
		}
		if n := b.count(core.Available); n != 1 {
			t.Errorf("%d jobs of unknown handlers left available, want 1", n)
		}
	})
}

func TestTickReturnsStoreErrorsToAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(0, ok)})
		b.breakdown(true)
		if _, err := b.Tick(context.Background(), core.Budget{}); !errors.Is(err, errBroken) {
			t.Errorf("Tick = %v, want %v", err, errBroken)
		}
	})
}

func TestThroughputFollowsSlotsOverLatency(t *testing.T) {
	for _, latency := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 10, Batch: 10}, Target{Sender: takesTime(latency, ok)})
			b.add(lane, 1000, 1)
			began := time.Now()
			stop := b.serve(t)
			for b.count(core.Completed) < 1000 {
				time.Sleep(latency / 2)
			}
			took := time.Since(began)
			stop()
			if ideal := 100 * latency; took > ideal+latency {
				t.Errorf("1000 jobs on 10 slots at %v took %v, want %v", latency, took, ideal)
			}
		})
	}
}

func TestBellWakesAnIdleWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(0, ok)})
		stop := b.serve(t)
		synctest.Wait() // it is idle
		b.add(lane, 1, 1)
		began := time.Now()
		b.bell.Ring(lane)
		synctest.Wait()
		if n := b.count(core.Completed); n != 1 || time.Since(began) != 0 {
			t.Errorf("after the bell %d completed in %v, want 1 at once", n, time.Since(began))
		}
		stop()
	})
}

// A job that another part of this process stores for a later time is taken at that time,
// without a look before, even if Rest is a minute.
func TestBellOfALaterJob(t *testing.T) {
	for _, wait := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var took time.Duration
			var began time.Time
			b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: sends(func(context.Context, core.TakenJob) Reply {
				took = time.Since(began)
				return ok
			})})
			ctx, cancel := context.WithCancel(context.Background())
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = b.Tick(ctx, core.Budget{Rest: time.Minute})
			}()
			synctest.Wait() // it is idle
			looks := b.looked()
			began = time.Now()
			b.addLater(lane, wait)
			b.bell.RingAt(lane, began.Add(wait))
			synctest.Wait()
			if n := b.looked(); n != looks {
				t.Errorf("%d looks before anything is due, want none", n-looks)
			}
			time.Sleep(10 * time.Second)
			if n := b.count(core.Completed); n != 1 || took != wait {
				t.Errorf("due after %v: %d completed after %v, want 1 on time", wait, n, took)
			}
			cancel()
			<-over
		})
	}
}

func TestIdleWorkerLooksOnceASecondAndTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 10, Batch: 10}, Target{Sender: takesTime(0, ok)})
		stop := b.serve(t)
		time.Sleep(time.Minute)
		stop()
		if b.looks < 45 || b.looks > 81 || len(b.takes) != 0 {
			t.Errorf("in an idle minute %d looks and %d takes, want about 60 and none", b.looks, len(b.takes))
		}
	})
}

func TestEventsOfThisProcessNeedNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 10, Batch: 10}, Target{Sender: takesTime(0, ok)})
		stop := b.serve(t)
		synctest.Wait()
		before := b.looks
		for range 200 { // in less than the rest of a second
			b.add(lane, 1, 1)
			b.bell.Ring(lane)
			synctest.Wait()
		}
		stop()
		if n := b.count(core.Completed); n != 200 || b.looks > before {
			t.Errorf("%d of 200 delivered with %d looks, want all with none", n, b.looks-before)
		}
	})
}

func TestRetriesGrowAndEndDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := takesTime(0, Reply{StatusCode: 500, Error: "status: 500"})
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: fails, Retry: core.Retry{Max: 4, Interval: 10 * time.Second}})
		b.add(lane, 1, 4)
		began := time.Now()
		stop := b.serve(t)
		time.Sleep(5 * time.Minute)
		if got, want := stop(), (core.Report{Failed: 4, Dead: 1}); got != want {
			t.Errorf("Tick = %+v, want %+v", got, want)
		}
		var statuses []core.Status
		for i, o := range b.settled {
			statuses = append(statuses, o.Status)
			if o.Attempt.Number != i+1 {
				t.Errorf("attempt %d has number %d", i+1, o.Attempt.Number)
			}
			if i == 0 {
				continue
			}
			base := 10 * time.Second << (i - 1)
			gap := o.Attempt.StartedAt.Sub(b.settled[i-1].At)
			if gap < base*8/10 || gap > base*12/10 {
				t.Errorf("attempt %d came %v after the one before, want %v ± 20 %%", i+1, gap, base)
			}
		}
		if want := []core.Status{core.Retryable, core.Retryable, core.Retryable, core.Dead}; !slices.Equal(statuses, want) {
			t.Errorf("statuses %v, want %v (since %v)", statuses, want, began)
		}
	})
}

func TestShortRetriesDoNotWaitForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := takesTime(0, Reply{Error: "connect: refused"})
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: fails, Retry: core.Retry{Max: 3, Interval: 10 * time.Millisecond, Fixed: true}})
		b.add(lane, 1, 3)
		stop := b.serve(t)
		time.Sleep(30 * time.Millisecond)
		stop()
		if n := b.count(core.Dead); n != 1 {
			t.Errorf("3 attempts 10 ms apart: %d dead after 30 ms, want 1", n)
		}
	})
}

func TestTwoHandlersShareTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := Target{Lane: "handler/hangs", Sender: takesTime(time.Hour, ok), Timeout: 2 * time.Hour}
		b := newBench(Limits{Slots: 10, Batch: 10}, hangs, Target{Sender: takesTime(10*time.Millisecond, ok)})
		b.add("handler/hangs", 100, 1)
		b.add(lane, 500, 1)
		stop := b.serve(t)
		time.Sleep(1100 * time.Millisecond) // five slots of ten would need 1 s
		if n := b.count(core.Completed); n != 500 {
			t.Errorf("beside a hanging handler %d of 500 were delivered, want all", n)
		}
		b.limits.Drain = 0
		stop()
	})
}

func TestSlowHandlersHaveNothingWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sending atomic.Int64
		sender := sends(func(ctx context.Context, j core.TakenJob) Reply {
			sending.Add(1)
			defer sending.Add(-1)
			return takesTime(10*time.Second, ok)(ctx, j)
		})
		b := newBench(Limits{Slots: 4, Batch: 10}, Target{Sender: sender})
		b.add(lane, 40, 1)
		stop := b.serve(t)
		for range 8 {
			time.Sleep(9 * time.Second)
			synctest.Wait()
			if running := b.count(core.Running); int64(running) != sending.Load() {
				t.Errorf("%d jobs taken, %d being sent; nothing may wait behind a slow handler", running, sending.Load())
			}
		}
		b.limits.Drain = time.Minute
		stop()
	})
}

func TestFastHandlersAreFedInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 10, Batch: 10}, Target{Sender: takesTime(time.Millisecond, ok)})
		b.delay = 500 * time.Microsecond
		b.add(lane, 2000, 1)
		if _, err := b.Tick(context.Background(), core.Budget{}); err != nil {
			t.Fatal(err)
		}
		if n := len(b.takes); n > 2000/4 {
			t.Errorf("2000 jobs in %d takes, want batches of 4 and more on average", n)
		}
	})
}

func TestStoppingGivesBackTheUnstartedAndFinishesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 10, Drain: time.Minute}, Target{Sender: takesTime(10*time.Second, ok), Hold: time.Hour})
		b.delay = time.Minute // taking looks slow, sending quick: take ahead
		b.add(lane, 2, 1)
		stop := b.serve(t)
		time.Sleep(3 * time.Minute)
		b.add(lane, 20, 1)
		time.Sleep(2*time.Minute + 5*time.Second) // into the sending of the next two
		report := stop()
		if report.Released == 0 || b.released != report.Released {
			t.Errorf("released %d, reported %d, want some and the same", b.released, report.Released)
		}
		if running := b.count(core.Running); running != 0 {
			t.Errorf("%d jobs left running, want 0", running)
		}
		if done, open := b.count(core.Completed), b.count(core.Available); done+open != 22 || report.Completed != done {
			t.Errorf("%d completed (%d reported), %d available, want 22 in all", done, report.Completed, open)
		}
	})
}

func TestDrainIsBoundedAndLeavesTheRestToTheirLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2, Drain: 5 * time.Second}, Target{Sender: takesTime(20*time.Second, ok)})
		b.add(lane, 2, 3)
		stop := b.serve(t)
		time.Sleep(time.Second)
		began := time.Now()
		report := stop()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("stopping took %v, want 5s", took)
		}
		if running := b.count(core.Running); running != 2 || report != (core.Report{}) {
			t.Errorf("%d running, report %+v: cut-off deliveries must be left as they are", running, report)
		}
	})
}

func TestUntilEndsATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1, Drain: time.Minute}, Target{Sender: takesTime(10*time.Second, ok)})
		b.add(lane, 100, 1)
		began := time.Now()
		r, err := b.Tick(context.Background(), core.Budget{Until: began.Add(35 * time.Second), Rest: time.Second})
		if took := time.Since(began); err != nil || r.Completed != 4 || took != 40*time.Second {
			t.Errorf("Tick = %+v, %v in %v, want 4 completed in 40s", r, err, took)
		}
	})
}

func TestOutcomesSurviveADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		sender := sends(func(ctx context.Context, j core.TakenJob) Reply {
			sent.Add(1)
			return takesTime(time.Second, ok)(ctx, j)
		})
		b := newBench(Limits{Slots: 4, Batch: 4}, Target{Sender: sender})
		b.add(lane, 40, 1)
		stop := b.serve(t)
		time.Sleep(1500 * time.Millisecond)
		b.breakdown(true)
		time.Sleep(20 * time.Second) // less than the lease
		b.breakdown(false)
		time.Sleep(20 * time.Second)
		stop()
		if n := b.count(core.Completed); n != 40 || sent.Load() != 40 {
			t.Errorf("%d completed, %d sent, want 40 of each", n, sent.Load())
		}
		if !slices.ContainsFunc(b.facts, func(f core.Fact) bool { _, is := f.(core.Troubled); return is }) {
			t.Error("no Troubled fact while the database was away")
		}
	})
}

// TestLeasesThatEndWhileTheDatabaseIsAway: the feeder sees jobs as due that this worker still
// holds, since their outcomes wait to be stored.
func TestLeasesThatEndWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		sender := sends(func(ctx context.Context, j core.TakenJob) Reply {
			sent.Add(1)
			return takesTime(2*time.Second, ok)(ctx, j)
		})
		b := newBench(Limits{Slots: 4, Batch: 4}, Target{Sender: sender, Hold: 20 * time.Second})
		b.add(lane, 12, 1)
		stop := b.serve(t)
		time.Sleep(time.Second)
		b.breakdown(true)
		time.Sleep(time.Minute) // three leases
		b.breakdown(false)
		time.Sleep(time.Minute)
		r := stop()
		if n := b.count(core.Completed); n != 12 || sent.Load() != 12 || r.Lost != 0 || r.Dead != 0 {
			t.Errorf("%d completed, %d sent, report %+v, want 12 of each and none lost or dead", n, sent.Load(), r)
		}
	})
}

// TestRetryThatIsDueBeforeItsFailureIsKnown: the feeder may take a job again before the
// settler knows that the last attempt is stored.
func TestRetryThatIsDueBeforeItsFailureIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		sender := sends(func(context.Context, core.TakenJob) Reply {
			if sent.Add(1) < 3 {
				return Reply{Error: "status: 500", StatusCode: 500}
			}
			return ok
		})
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: sender, Retry: core.Retry{Max: 5, Interval: time.Millisecond, Fixed: true}})
		b.lag = 50 * time.Millisecond
		b.add(lane, 1, 5)
		stop := b.serve(t)
		ring := time.NewTicker(2 * time.Millisecond)
		for range 200 { // the feeder is kept looking
			<-ring.C
			b.bell.Ring(lane)
		}
		ring.Stop()
		r := stop()
		if want := (core.Report{Completed: 1, Failed: 2}); r != want || sent.Load() != 3 || len(b.settled) != 3 {
			t.Errorf("Tick = %+v with %d sent and %d settled, want %+v with 3 of each", r, sent.Load(), len(b.settled), want)
		}
		for i, o := range b.settled {
			if o.Attempt.Number != i+1 {
				t.Errorf("attempt %d is recorded as %d", i+1, o.Attempt.Number)
			}
		}
	})
}

// TestDeliveryOutlivesItsLease: a delivery that outlives its lease is sent once and counts
// once. That holds too if its outcome is refused before the tick knows that it took the job
// again.
func TestDeliveryOutlivesItsLease(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 2, Batch: 2, Drain: time.Minute}, Target{Sender: takesTime(25*time.Second, ok), Hold: 10 * time.Second})
			b.takeDelay = late
			b.add(lane, 2, 1)
			stop := b.serve(t)
			time.Sleep(time.Minute)
			if r, want := stop(), (core.Report{Completed: 2}); r != want {
				t.Errorf("taking is known %v late: Tick = %+v, want %+v", late, r, want)
			}
		})
	}
}

func TestSupersededOutcomesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(time.Second, ok)})
		b.add(lane, 1, 3)
		go func() {
			time.Sleep(500 * time.Millisecond)
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, j := range b.jobs {
				j.Lease, j.DueAt = "somebody else's", time.Now().Add(time.Hour)
			}
		}()
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Lost: 1}); err != nil || r != want {
			t.Errorf("Tick = %+v, %v, want %+v", r, err, want)
		}
	})
}

func TestSpentJobIsBuriedUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: sends(func(context.Context, core.TakenJob) Reply {
			t.Error("a job without attempts was sent")
			return ok
		})})
		b.add(lane, 1, 2)
		for _, j := range b.jobs { // its last attempt began three times
			j.Status, j.Attempt, j.Lease = core.Running, 2+core.MaxRepeats, "gone"
		}
		if r, err := b.Tick(context.Background(), core.Budget{}); err != nil || r.Dead != 1 {
			t.Errorf("Tick = %+v, %v, want one dead", r, err)
		}
		a := b.settled[0].Attempt
		if a.Number != 2 || a.Error != core.ProcessEnded {
			t.Errorf("buried with %+v, want attempt 2, %q", a, core.ProcessEnded)
		}
	})
}

// The outcome of a last attempt is unknown if its worker vanished. The attempt is repeated
// under the same number, and the outcome of the repeat is final.
func TestLastAttemptIsRepeated(t *testing.T) {
	for begun := 1; begun <= core.MaxRepeats; begun++ {
		for _, reply := range []Reply{ok, {StatusCode: 500, Error: "status: 500"}} {
			synctest.Test(t, func(t *testing.T) {
				var sent []int
				b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: sends(func(_ context.Context, j core.TakenJob) Reply {
					sent = append(sent, j.Number())
					return reply
				})})
				b.add(lane, 1, 2)
				for _, j := range b.jobs {
					j.Status, j.Attempt, j.Lease = core.Running, 1+begun, "gone"
				}
				want := core.Report{Completed: 1}
				if !reply.OK {
					want = core.Report{Failed: 1, Dead: 1}
				}
				if r, err := b.Tick(context.Background(), core.Budget{}); err != nil || r != want {
					t.Errorf("Tick = %+v, %v, want %+v", r, err, want)
				}
				if a := b.settled[0].Attempt; !slices.Equal(sent, []int{2}) || a.Number != 2 || a.Error != reply.Error {
					t.Errorf("sent as attempts %v, settled with %+v, want attempt 2 and error %q", sent, a, reply.Error)
				}
			})
		}
	}
}

func TestOutcome(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	retry := core.Retry{Max: 3, Interval: time.Minute, Fixed: true}
	tests := []struct {
		name     string
		attempt  int
		reply    Reply
		status   core.Status
		min, max time.Duration // until due again
	}{
		{"accepted", 1, ok, core.Completed, 0, 0},
		{"failed with attempts left", 2, Reply{StatusCode: 500}, core.Retryable, 48 * time.Second, 72 * time.Second},
		{"failed for the last time", 3, Reply{StatusCode: 500}, core.Dead, 0, 0},
		{"asked for more time", 1, Reply{StatusCode: 503, RetryAfter: time.Hour}, core.Retryable, time.Hour, time.Hour},
		{"asked for less time than the backoff", 1, Reply{StatusCode: 429, RetryAfter: time.Second}, core.Retryable, 48 * time.Second, 72 * time.Second},
		{"asked for too much time", 1, Reply{StatusCode: 503, RetryAfter: 999 * time.Hour}, core.Retryable, core.MaxBackoff, core.MaxBackoff},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			job := core.TakenJob{Job: core.Job{ID: "J", Lease: "L", Attempt: tt.attempt, MaxAttempts: 3}}
			o := outcome(&job, retry, tt.reply, at.Add(-time.Second), at)
			if o.Status != tt.status || o.Lease != "L" || o.Attempt.Number != tt.attempt || o.Attempt.Duration != time.Second {
				t.Errorf("outcome = %+v, want %s", o, tt.status)
			}
			wait := time.Duration(0)
			if !o.DueAt.IsZero() {
				wait = o.DueAt.Sub(at)
			}
			if wait < tt.min || wait > tt.max {
				t.Errorf("due after %v, want %v to %v", wait, tt.min, tt.max)
			}
		})
	}
}

func TestShare(t *testing.T) {
	quota := func(l core.Lane, n int) core.Quota { return core.Quota{Lane: l, N: n} }
	tests := []struct {
		name       string
		n          int
		held, most [3]int
		want       []core.Quota
	}{
		{"evenly", 6, [3]int{}, [3]int{9, 9, 9}, []core.Quota{quota("a", 2), quota("b", 2), quota("c", 2)}},
		{"longest due first", 4, [3]int{}, [3]int{9, 9, 9}, []core.Quota{quota("a", 2), quota("b", 1), quota("c", 1)}},
		{"fewer than lanes", 2, [3]int{}, [3]int{9, 9, 9}, []core.Quota{quota("a", 1), quota("b", 1)}},
		{"the lane that holds least first", 3, [3]int{8, 1, 0}, [3]int{9, 9, 9}, []core.Quota{quota("b", 1), quota("c", 2)}},
		{"no more than the most", 9, [3]int{0, 8, 0}, [3]int{1, 2, 0}, []core.Quota{quota("a", 1), quota("b", 2)}},
		{"nothing", 0, [3]int{}, [3]int{9, 9, 9}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lanes []claim
			for i, l := range []core.Lane{"a", "b", "c"} {
				lanes = append(lanes, claim{lane: l, held: tt.held[i], most: tt.most[i]})
			}
			if diff := cmp.Diff(tt.want, share(tt.n, lanes)); diff != "" {
				t.Errorf("share(%d, %v) (-want +got):\n%s", tt.n, lanes, diff)
			}
		})
	}
}
