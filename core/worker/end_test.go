package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// linger runs a brief tick that ends at now plus until. It returns the report and how long
// the tick took.
func (b *bench) linger(t *testing.T, until, rest time.Duration) (core.Report, time.Duration) {
	t.Helper()
	began := time.Now()
	r, err := b.Tick(context.Background(), core.Budget{Until: began.Add(until), Rest: rest, Brief: true})
	if err != nil {
		t.Errorf("Tick = %v, want none", err)
	}
	return r, time.Since(began)
}

// after calls do after the duration d, on a goroutine of its own.
func after(d time.Duration, do func()) {
	go func() {
		time.Sleep(d) // virtual
		do()
	}()
}

func TestBriefTickWithNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
		if r, took := b.linger(t, 55*time.Second, time.Second); r != (core.Report{}) || took != 0 || b.looks > 2 {
			t.Errorf("Tick = %+v in %v with %d looks, want nothing at once with 1 or 2", r, took, b.looks)
		}
	})
}

// A brief tick finishes its chores before it returns: it buries lapsed messages and strays.
func TestBriefTickDoesItsChores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		b.delay = 10 * time.Millisecond
		b.addHeld(1, 1, 1, time.Now())
		b.strays["handler/gone"] = time.Now().Add(-core.StrayTime)
		b.add("handler/gone", 1, 1)
		if r, took := b.linger(t, 55*time.Second, time.Second); r.Dead != 2 || took > 3*time.Second {
			t.Errorf("Tick = %+v in %v, want two dead, and soon", r, took)
		}
	})
}

// A tick that adopts a lane by a chore also delivers the lane's jobs.
func TestBriefTickAdopts(t *testing.T) {
	for _, brief := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
			b.Worker.Adopt = func(core.Lane) (Target, bool) {
				return Target{Sender: takesTime(0, ok), Timeout: time.Second, Hold: time.Minute}, true
			}
			b.delay = 10 * time.Millisecond
			b.add("workflow/gone", 1, 1)
			budget := core.Budget{Brief: brief}
			if brief {
				budget.Rest = time.Second
			}
			if r, err := b.Tick(context.Background(), budget); err != nil || r.Completed != 1 {
				t.Errorf("brief %v: Tick = %+v, %v, want one completed", brief, r, err)
			}
		})
	}
}

func TestBriefTickWaitsForRetriesWithinItsTime(t *testing.T) {
	for _, tt := range []struct {
		interval, least, most time.Duration
		sent                  int
	}{
		{20 * time.Second, 16 * time.Second, 27 * time.Second, 2},
		{90 * time.Second, 0, 3 * time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &handler{down: true, takes: 100 * time.Millisecond}
			b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: h, Retry: core.Retry{Interval: tt.interval, Fixed: true}})
			b.add(lane, 1, 5)
			after(time.Second, func() { h.set(false) })
			r, took := b.linger(t, 55*time.Second, time.Second)
			if took < tt.least || took > tt.most || r.Completed+r.Failed != tt.sent {
				t.Errorf("retry after %v: Tick = %+v in %v, want %d attempts in %v to %v", tt.interval, r, took, tt.sent, tt.least, tt.most)
			}
		})
	}
}

// While a brief tick waits for a job, its looks find the jobs that other processes store.
func TestBriefTickDeliversJobsThatComeWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: h})
		b.add(lane, 1, 1)
		for _, j := range b.jobs {
			j.DueAt = time.Now().Add(50 * time.Second)
		}
		start := time.Now()
		after(20*time.Second, func() { b.add(lane, 1, 1) })
		r, took := b.linger(t, 55*time.Second, time.Second)
		if at := h.since(start); r.Completed != 2 || at[0] < 20 || at[0] > 21.25 || took < 51*time.Second || took > 53*time.Second {
			t.Errorf("Tick = %+v in %v, deliveries at %v s, want two, at 20 and 50", r, took, at)
		}
	})
}

// A brief tick still runs one second after work was due, and has returned three seconds
// after.
func TestBriefTickStaysAwakeForAMoment(t *testing.T) {
	for _, until := range []time.Duration{0, 55 * time.Second} { // with and without lingering
		for _, rest := range []time.Duration{100 * time.Millisecond, 5 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
				b.add(lane, 1, 1)
				began := time.Now()
				budget := core.Budget{Rest: rest, Brief: true}
				if until > 0 {
					budget.Until = began.Add(until)
				}
				after(time.Second, func() { b.add(lane, 1, 1) })
				r, err := b.Tick(context.Background(), budget)
				took := time.Since(began)
				if err != nil || r.Completed != 2 || took < 2500*time.Millisecond || took > 4*time.Second {
					t.Errorf("until %v, rest %v: Tick = %+v, %v in %v, want two completed in about 3 s", until, rest, r, err, took)
				}
			})
		}
	}
}

// A job that another process stores while a delivery hangs is taken by the time that Looked
// returns.
func TestLooksAreBoundWhileADeliveryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: 20 * time.Second}
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: h})
		b.add(lane, 1, 1)
		start := time.Now()
		after(time.Second, func() { b.add(lane, 1, 1) })
		r, err := b.Tick(context.Background(), core.Budget{
			Rest: 5 * time.Second, Brief: true,
			Stay: func(context.Context, core.Look) time.Time { return time.Time{} },
			Looked: func(_ context.Context, last core.Look) time.Time {
				if last.Began.Sub(start) < 2*time.Second {
					return last.Began.Add(400 * time.Millisecond)
				}
				return time.Time{}
			},
		})
		if at := h.since(start); err != nil || r.Completed != 2 || at[1] > 1.5 {
			t.Errorf("Tick = %+v, %v, deliveries at %v s, want two, at 0 and by 1.5", r, err, at)
		}
		if b.looked() > 15 {
			t.Errorf("%d looks, want a rest of 5 s between looks after the bound", b.looked())
		}
	})
}

// A look reports the due time of the first job whose attempt does not fit into the rest of
// the process's time. It does so during a delivery, too. Jobs whose attempts would not fit
// into another process either (Room) are left out.
func TestLooksReportJobsBeyondTheEnd(t *testing.T) {
	for _, tt := range []struct {
		room     time.Duration
		reported bool // of the job that is due after 3 s, by each look
	}{{0, false}, {32 * time.Second, false}, {33 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			h := &handler{takes: 10 * time.Second}
			b := newBench(Limits{Slots: 2, Batch: 2},
				Target{Sender: h, Timeout: 15 * time.Second}, Target{Lane: "handler/long", Sender: h, Timeout: 30 * time.Second})
			b.add(lane, 1, 1)
			b.addLater("handler/long", 3*time.Second)
			b.addLater("handler/long", 5*time.Second)
			start := time.Now()
			var seen []float64 // seconds; 0 for none
			r, err := b.Tick(context.Background(), core.Budget{
				Rest: time.Second, Brief: true, Room: tt.room, End: start.Add(33 * time.Second), Until: start.Add(8 * time.Second),
				Looked: func(_ context.Context, last core.Look) time.Time {
					var at float64
					if !last.Beyond.IsZero() {
						at = last.Beyond.Sub(start).Seconds()
					}
					seen = append(seen, at)
					return time.Time{}
				},
			})
			if err != nil || r.Completed != 1 || len(seen) < 5 || slices.Contains(seen, 3) != tt.reported || tt.reported && slices.Max(seen) != 3 {
				t.Errorf("room %v: Tick = %+v, %v, looks reported %v s, want one completed; of 3 s: %v", tt.room, r, err, seen, tt.reported)
			}
		})
	}
}

// An open breaker does not keep a tick without Until awake. A tick with an Until waits for
// the probe, if the probe is before Until.
func TestBriefTickBeforeAnOpenBreaker(t *testing.T) {
	for _, tt := range []struct{ until, least, most time.Duration }{
		{0, 0, 3 * time.Second},
		{20 * time.Second, 0, 3 * time.Second},
		{55 * time.Second, 30 * time.Second, 33 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 2, Batch: 10}, breaker(&handler{}))
			b.add(lane, 1, 1)
			gate, began := b.pile.gate(lane), time.Now()
			gate.Failures, gate.OpenUntil = core.BreakerThreshold, began.Add(30*time.Second)
			budget := core.Budget{Rest: time.Second, Brief: true}
			if tt.until > 0 {
				budget.Until = began.Add(tt.until)
			}
			r, err := b.Tick(context.Background(), budget)
			if took := time.Since(began); err != nil || took < tt.least || took > tt.most {
				t.Errorf("until %v: Tick = %+v, %v in %v, want %v to %v", tt.until, r, err, took, tt.least, tt.most)
			}
		})
	}
}

// A brief tick asks a broken store again until its Until has passed, and then returns the
// error.
func TestBriefTickWithoutAStore(t *testing.T) {
	for _, back := range []time.Duration{0, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
			b.add(lane, 1, 1)
			b.breakdown(true)
			if back > 0 {
				after(back, func() { b.breakdown(false) })
			}
			began := time.Now()
			r, err := b.Tick(context.Background(), core.Budget{Until: began.Add(55 * time.Second), Rest: time.Second, Brief: true})
			took := time.Since(began)
			if back == 0 && (!errors.Is(err, errBroken) || took != 55*time.Second) {
				t.Errorf("Tick = %v in %v, want %v in 55s", err, took, errBroken)
			}
			if back > 0 && (err != nil || r.Completed != 1 || took > 40*time.Second) {
				t.Errorf("Tick = %+v, %v in %v, want one completed soon after 30s", r, err, took)
			}
		})
	}
}

// No attempt begins that could outlast the process. A tick returns when no attempt could
// begin any more.
func TestEndLeavesJobsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick, slow := &handler{takes: time.Second}, &handler{takes: time.Second}
		b := newBench(Limits{Slots: 4, Batch: 4},
			Target{Lane: "handler/quick", Sender: quick, Timeout: 5 * time.Second},
			Target{Lane: "handler/slow", Sender: slow, Timeout: 30 * time.Second})
		b.add("handler/quick", 1000, 1)
		b.add("handler/slow", 1000, 1)
		began := time.Now()
		r, err := b.Tick(context.Background(), core.Budget{End: began.Add(60 * time.Second), Rest: time.Second})
		took := time.Since(began)
		if err != nil || took < 53*time.Second || took > 54*time.Second {
			t.Errorf("Tick = %v in %v, want it over when an attempt may take longer than is left, at 53 s", err, took)
		}
		last := func(h *handler) float64 { all := h.since(began); return all[len(all)-1] }
		if at := last(slow); at < 26 || at > 28 {
			t.Errorf("the last delivery that may take 30 s of 60 began at %v s, want 27", at)
		}
		if at := last(quick); at < 51 || at > 53 {
			t.Errorf("the last delivery that may take 5 s of 60 began at %v s, want 52", at)
		}
		if n := b.count(core.Running); n != 0 || r.Released != 0 || r.Completed != len(quick.since(began))+len(slow.since(began)) {
			t.Errorf("%d left running, report %+v, want none, and all that was taken settled", n, r)
		}
	})
}

// A ring for a lane whose attempts do not fit any more takes no job.
func TestEndIsNotRungFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 4, Batch: 4}, Target{Sender: takesTime(0, ok), Timeout: 5 * time.Second},
			Target{Lane: "handler/slow", Sender: takesTime(0, ok), Timeout: 30 * time.Second})
		after(40*time.Second, func() {
			b.add("handler/slow", 1, 1)
			b.add(lane, 1, 1)
			b.bell.Ring("handler/slow")
			b.bell.Ring(lane)
		})
		r, err := b.Tick(context.Background(), core.Budget{End: time.Now().Add(60 * time.Second), Rest: time.Second})
		if want := (core.Report{Completed: 1}); err != nil || r != want {
			t.Errorf("Tick = %+v, %v, want %+v", r, err, want)
		}
	})
}

// A tick does not wait for a retry that is due too late for an attempt.
func TestEndIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(0, ok), Timeout: 30 * time.Second})
		b.add(lane, 1, 1)
		for _, j := range b.jobs {
			j.DueAt = time.Now().Add(40 * time.Second)
		}
		began := time.Now()
		budget := core.Budget{Until: began.Add(55 * time.Second), End: began.Add(60 * time.Second), Rest: time.Second, Brief: true}
		if r, err := b.Tick(context.Background(), budget); err != nil || r.Completed != 0 || time.Since(began) > time.Second {
			t.Errorf("Tick = %+v, %v in %v, want nothing at once", r, err, time.Since(began))
		}
	})
}

func TestEndBoundsLeases(t *testing.T) {
	for _, tt := range []struct{ timeout, hold, end, want time.Duration }{
		{5 * time.Second, 10 * time.Minute, 60 * time.Second, 60 * time.Second},
		{5 * time.Second, 20 * time.Second, 60 * time.Second, 20 * time.Second},
		{57 * time.Second, 10 * time.Minute, 60 * time.Second, 60 * time.Second},
		{5 * time.Second, 10 * time.Minute, 0, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(time.Second, ok), Timeout: tt.timeout, Hold: tt.hold})
			b.add(lane, 1, 1)
			began := time.Now()
			var due time.Time
			after(time.Millisecond, func() {
				b.pile.mu.Lock()
				defer b.pile.mu.Unlock()
				for _, j := range b.jobs {
					due = j.DueAt
				}
			})
			budget := core.Budget{}
			if tt.end > 0 {
				budget.End = began.Add(tt.end)
			}
			if _, err := b.Tick(context.Background(), budget); err != nil || due.Sub(began) != tt.want {
				t.Errorf("timeout %v, hold %v, end %v: leased for %v, %v, want %v", tt.timeout, tt.hold, tt.end, due.Sub(began), err, tt.want)
			}
		})
	}
}

// Deliveries under way may go on until one second before End, however short Limits.Drain is.
func TestEndIsDrainedUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2, Drain: time.Second}, Target{Sender: takesTime(25*time.Second, ok), Timeout: 50 * time.Second})
		b.add(lane, 2, 2)
		ctx, cancel := context.WithCancel(context.Background())
		after(time.Second, cancel)
		began := time.Now()
		r, err := b.Tick(ctx, core.Budget{End: began.Add(55 * time.Second), Rest: time.Second})
		if took := time.Since(began); err != nil || r.Completed != 2 || took != 25*time.Second {
			t.Errorf("Tick = %+v, %v in %v, want both delivered in 25s", r, err, took)
		}
	})
}

// A step whose attempt outlasts the timeout of its lane is cut off one second before End. Its
// lease stays.
func TestEndCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newFlow(1)
		f.try = func(ctx context.Context, _ core.TakenJob) (endOf, error) { <-ctx.Done(); return endOf{}, ctx.Err() }
		began := time.Now()
		end := began.Add(40 * time.Second)
		r, err := b.Tick(context.Background(), core.Budget{Until: began.Add(5 * time.Second), End: end, Rest: time.Second})
		if took := time.Since(began); err != nil || r != (core.Report{}) || took != 39*time.Second {
			t.Errorf("Tick = %+v, %v in %v, want nothing done in 39s", r, err, took)
		}
		for _, j := range b.jobs {
			if j.Status != core.Running || !j.DueAt.Equal(end) {
				t.Errorf("job is %s until %v, want it running until %v", j.Status, j.DueAt, end)
			}
		}
	})
}

// A process that is killed at End leaves no lease that lasts longer.
func TestKilledAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: sends(func(context.Context, core.TakenJob) Reply {
			<-stuck // it ignores its context
			return ok
		}), Timeout: 20 * time.Second, Hold: time.Hour})
		b.add(lane, 2, 2)
		end := time.Now().Add(30 * time.Second)
		ticked := make(chan struct{})
		go func() {
			defer close(ticked)
			_, _ = b.Tick(context.Background(), core.Budget{Until: end.Add(-10 * time.Second), End: end, Rest: time.Second})
		}()
		time.Sleep(time.Until(end)) // the rest of the first tick does not count
		other := b.otherWorker(Target{Sender: takesTime(0, ok)})
		if r, err := other.Tick(context.Background(), core.Budget{}); err != nil || r.Completed != 2 {
			t.Errorf("Tick of the next process = %+v, %v, want both delivered", r, err)
		}
		close(stuck)
		<-ticked
	})
}

// Jobs that were taken ahead and may not start in time are given back.
func TestEndGivesBackTheUnstarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		b := newBench(Limits{Slots: 2, Batch: 20}, Target{Sender: h, Interval: 100 * time.Millisecond, Timeout: 10 * time.Second})
		b.add(lane, 1000, 1)
		began := time.Now()
		r, err := b.Tick(context.Background(), core.Budget{End: began.Add(20 * time.Second), Rest: 5 * time.Second})
		if took := time.Since(began); err != nil || took != 8*time.Second || r.Released == 0 || b.released != r.Released {
			t.Errorf("Tick = %+v, %v in %v with %d released, want some given back after 8s", r, err, took, b.released)
		}
		if n := b.count(core.Running); n != 0 {
			t.Errorf("%d left running, want none", n)
		}
	})
}

// A job that waited for its slot until too little time was left is not sent.
func TestEndIsTooNearToBegin(t *testing.T) {
	for late, sent := range map[time.Duration]int{1500 * time.Millisecond: 1, 2500 * time.Millisecond: 0} {
		synctest.Test(t, func(t *testing.T) {
			h := &handler{}
			b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: h, Timeout: 10 * time.Second},
				Target{Lane: "handler/quick", Sender: h, Timeout: time.Second}) // its attempts still fit
			b.takeDelay = late
			b.add(lane, 1, 1)
			began := time.Now()
			r, err := b.Tick(context.Background(), core.Budget{End: began.Add(13 * time.Second), Rest: time.Second})
			if want := (core.Report{Completed: sent, Released: 1 - sent}); err != nil || r != want || len(h.since(began)) != sent {
				t.Errorf("taking is known %v late: Tick = %+v, %v with %d deliveries, want %+v", late, r, err, len(h.since(began)), want)
			}
		})
	}
}

// A lane whose attempts never fit is reported once a process, and the other lanes are served.
func TestHandlersThatNeverFitAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok), Timeout: 5 * time.Second},
			Target{Lane: "handler/slow", Sender: takesTime(0, ok), Timeout: 2 * time.Minute})
		b.add(lane, 1, 1)
		b.add("handler/slow", 1, 1)
		for range 3 {
			if _, err := b.Tick(context.Background(), core.Budget{End: time.Now().Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
		want := "slow: one attempt may take 2m0s, and this process ends after 1m0s, so nothing of it is delivered: raise the timeout of the function, or lower that of the handler"
		if facts := factsOf[core.Troubled](b); len(facts) != 1 || facts[0].Err.Error() != want {
			t.Errorf("reported %v, want once: %s", facts, want)
		}
		if done, open := b.count(core.Completed), b.count(core.Available); done != 1 || open != 1 {
			t.Errorf("%d completed, %d left, want one of each", done, open)
		}
	})
}

// A tick that begins late in its process does not report lanes whose attempts fit into an
// earlier tick.
func TestLateTicksDoNotReportSlowHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok), Timeout: 50 * time.Second})
		end := time.Now().Add(time.Minute)
		for range 2 {
			if _, err := b.Tick(context.Background(), core.Budget{End: end}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second) // virtual
		}
		if facts := factsOf[core.Troubled](b); len(facts) != 0 {
			t.Errorf("reported %v, want nothing", facts)
		}
	})
}
