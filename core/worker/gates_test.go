package worker

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A handler is a Sender that records the time of each call. Its fields say how it answers at
// the moment.
type handler struct {
	mu    sync.Mutex
	calls []time.Time
	down  bool
	jams  bool // every call ends with an error before anything is sent
	takes time.Duration
}

func (h *handler) Send(ctx context.Context, _ core.TakenJob) Reply {
	h.mu.Lock()
	h.calls = append(h.calls, time.Now())
	reply := ok
	if h.down {
		reply = Reply{StatusCode: 500, Error: "status: 500"}
	}
	if h.jams {
		reply = Reply{Error: "template: no such field", Unsent: true}
	}
	takes := h.takes
	h.mu.Unlock()
	time.Sleep(takes) // virtual
	return reply
}

func (h *handler) set(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

func (h *handler) jam(jams bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jams = jams
}

// since returns the times of the calls from start on, in seconds after start.
func (h *handler) since(start time.Time) (at []float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if !c.Before(start) {
			at = append(at, c.Sub(start).Seconds())
		}
	}
	return at
}

// within counts the values of at in [from, to).
func within(at []float64, from, to float64) (n int) {
	for _, a := range at {
		if from <= a && a < to {
			n++
		}
	}
	return n
}

// beside makes another worker over the pile of b, like a second process on the same store.
func (b *bench) otherWorker(targets ...Target) *bench {
	other := newBench(b.limits, targets...)
	other.pile = b.pile
	other.Worker.Worklist = b.pile
	return other
}

func breaker(h *handler) Target {
	return Target{Sender: h, Breaker: &Breaker{}, Retry: core.Retry{Interval: time.Hour, Fixed: true}}
}

// Two workers share one breaker: five failures open it, both together send one probe a
// minute, and after it has closed deliveries ramp up from a low rate.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{down: true, takes: 10 * time.Millisecond}
		b := newBench(Limits{Slots: 10, Batch: 10}, breaker(h))
		other := b.otherWorker(breaker(h))
		b.add(lane, 3000, 9)
		start := time.Now()
		stops := []func() core.Report{b.serve(t), other.serve(t)}
		time.Sleep(5*time.Minute + 30*time.Second)
		calls := h.since(start)
		if n := within(calls, 0, 59); n < core.BreakerThreshold || n > 2*(10+core.BreakerThreshold) {
			t.Errorf("%d deliveries until the breaker opened, want 5 of each worker and what was under way", n)
		}
		for minute := 1; minute <= 5; minute++ {
			from := float64(minute)*60 - 1
			if n := within(calls, from, from+59); n != 1 {
				t.Errorf("%d deliveries in minute %d, want one probe", n, minute)
			}
		}
		if n := b.count(core.Running); n != 0 {
			t.Errorf("%d jobs are held behind an open breaker, want none", n)
		}

		h.set(false)
		time.Sleep(27 * time.Second)
		for open := true; open; {
			time.Sleep(10 * time.Millisecond)
			b.pile.mu.Lock()
			open = b.gate(lane).Open()
			b.pile.mu.Unlock()
		}
		closed := time.Now()
		time.Sleep(30 * time.Second)
		calls = h.since(closed)
		for second, most := range []int{7, 13, 25, 48, 95} {
			if n := within(calls, float64(second), float64(second+1)); n < most*6/10 || n > most {
				t.Errorf("%d deliveries in second %d after the breaker closed, want about %d", n, second, 5<<second)
			}
		}
		if n := b.count(core.Completed); n < 2_960 {
			t.Errorf("%d of 3,000 delivered 30 s after the breaker closed, want nearly all", n)
		}
		for _, stop := range stops {
			stop()
		}
		moves := slices.DeleteFunc(append(b.facts, other.facts...), func(f core.Fact) bool { _, ok := f.(core.BreakerMoved); return !ok })
		if len(moves) != 2 {
			t.Errorf("reported %d moves of the breaker, want that it opened and that it closed: %v", len(moves), moves)
		}
	})
}

// TestBreakerIsToldOnce: probes of the job that opened the breaker cause no second
// BreakerMoved, whether they fail or are not sent.
func TestBreakerIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{down: true}
		target := breaker(h)
		target.Retry = core.Retry{Max: 50, Interval: time.Second, Fixed: true}
		b := newBench(Limits{Slots: 1, Batch: 1}, target)
		b.add(lane, 1, 50)
		stop := b.serve(t)
		time.Sleep(30 * time.Second)
		h.jam(true)
		time.Sleep(45 * time.Second)
		h.jam(false)
		time.Sleep(10 * time.Minute)
		sent := len(h.since(time.Time{}))
		h.set(false)
		time.Sleep(2 * time.Minute)
		stop()
		var moves []string
		for _, f := range b.facts {
			if m, ok := f.(core.BreakerMoved); ok {
				moves = append(moves, map[bool]string{true: "open", false: "closed"}[m.Gate.Open()])
			}
		}
		if sent < core.BreakerThreshold+3 || !slices.Equal(moves, []string{"open", "closed"}) {
			t.Errorf("after %d failed deliveries reported %q, want that it opened and that it closed", sent, moves)
		}
	})
}

// A job that was taken but not yet sent when the breaker opened is released without a counted
// attempt.
func TestBreakerUsesUpNoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{down: true, takes: time.Second}
		b := newBench(Limits{Slots: 2, Batch: 20}, breaker(h))
		b.delay = 5 * time.Second // taking looks slow: take ahead
		b.add(lane, 30, 9)
		stop := b.serve(t)
		time.Sleep(50 * time.Second)
		stop()
		sent := len(h.calls)
		attempts := 0
		for _, j := range b.jobs {
			attempts += j.Attempt
		}
		if attempts != sent || sent > core.BreakerThreshold+2 {
			t.Errorf("%d attempts are counted of %d deliveries, want as many, and at most %d", attempts, sent, core.BreakerThreshold+2)
		}
		if b.released == 0 {
			t.Error("nothing was given back, want what had been taken ahead")
		}
	})
}

// A failure before anything was sent does not count against the handler.
func TestBreakerIgnoresUnsentAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unsent := takesTime(0, Reply{Error: "transform: no", Unsent: true, Final: true})
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: unsent, Breaker: &Breaker{}})
		b.add(lane, 20, 1)
		if _, err := b.Tick(context.Background(), core.Budget{}); err != nil || b.count(core.Dead) != 20 {
			t.Errorf("%d dead, %v, want 20", b.count(core.Dead), err)
		}
	})
}

// Two processes share one rate limit, and their deliveries are evenly spaced.
func TestRateLimit(t *testing.T) {
	rates := []int{1, 7, 50, 200}
	if testing.Short() {
		rates = rates[:3] // the last one takes most of the time
	}
	for _, rate := range rates {
		synctest.Test(t, func(t *testing.T) {
			h := &handler{takes: 5 * time.Millisecond}
			limited := Target{Sender: h, Interval: time.Second / time.Duration(rate)}
			b := newBench(Limits{Slots: 10, Batch: 10}, limited)
			b.delay = time.Millisecond
			other := b.otherWorker(limited)
			b.add(lane, 22*rate, 1)
			start := time.Now()
			stops := []func() core.Report{b.serve(t), other.serve(t)}
			time.Sleep(20 * time.Second)
			calls := h.since(start)
			for _, stop := range stops {
				stop()
			}
			if n := len(calls); n < 20*rate*95/100-1 || n > 20*rate*105/100+1 {
				t.Errorf("limit %d: %d deliveries in 20 s, want %d", rate, n, 20*rate)
			}
			for i := range calls {
				if n := within(calls, calls[i], calls[i]+1); n > rate+1+rate/50 { // allows for some jitter of the takes
					t.Fatalf("limit %d: %d deliveries in the second from %.3f", rate, n, calls[i])
				}
			}
			if n := b.count(core.Running); n != 0 {
				t.Errorf("limit %d: %d jobs left running", rate, n)
			}
		})
	}
}

// A single job of a rate-limited handler is delivered at once if the limit permits.
func TestRateLimitOfNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		b := newBench(Limits{Slots: 2, Batch: 10}, Target{Sender: h, Interval: 100 * time.Millisecond})
		stop := b.serve(t)
		for range 20 {
			synctest.Wait()
			sent := time.Now()
			b.add(lane, 1, 1)
			b.bell.Ring(lane)
			time.Sleep(101 * time.Millisecond)
			if at := h.since(sent); len(at) != 1 || at[0] != 0 {
				t.Errorf("delivered after %v s, want at once", at)
			}
		}
		stop()
	})
}

// Neither a handler that hangs with all its jobs due nor a rate-limited handler delays the
// deliveries to other handlers.
func TestNeighbours(t *testing.T) {
	healthy := []core.Lane{"handler/b", "handler/c", "handler/d", "handler/e", "handler/f", "handler/g", "handler/h", "handler/i", "handler/j"}
	slowest := func(t *testing.T, neighbours ...Target) (worst time.Duration) {
		var mu sync.Mutex
		due := map[core.Lane]time.Time{}
		targets := neighbours
		for _, l := range healthy {
			targets = append(targets, Target{Lane: l, Sender: sends(func(ctx context.Context, j core.TakenJob) Reply {
				mu.Lock()
				worst = max(worst, time.Since(due[j.Lane]))
				mu.Unlock()
				return takesTime(5*time.Millisecond, ok)(ctx, j)
			})})
		}
		b := newBench(Limits{Slots: 10, Batch: 10}, targets...)
		b.delay = time.Millisecond
		for _, n := range neighbours {
			b.add(n.Lane, 1000, 9)
		}
		stop := b.serve(t)
		time.Sleep(2 * time.Second)
		rounds := 500
		if testing.Short() {
			rounds = 100
		}
		for range rounds {
			for i, l := range healthy[:3] {
				mu.Lock()
				due[l] = time.Now()
				mu.Unlock()
				b.add(l, 1, 1)
				b.bell.Ring(l)
				time.Sleep(time.Duration(5+i) * time.Millisecond)
			}
			healthy = append(healthy[3:], healthy[:3]...)
			time.Sleep(20 * time.Millisecond)
		}
		b.limits.Drain = 0
		stop()
		return worst
	}
	synctest.Test(t, func(t *testing.T) {
		alone := max(slowest(t), 2*time.Millisecond) // a take is under way, and the next one takes the job
		hangs := Target{Lane: "handler/hangs", Sender: takesTime(time.Hour, ok), Timeout: 30 * time.Second}
		limited := Target{Lane: "handler/limited", Sender: takesTime(time.Millisecond, ok), Interval: 20 * time.Millisecond}
		for name, n := range map[string][]Target{"hangs": {hangs}, "limited": {limited}, "both": {hangs, limited}} {
			if got := slowest(t, n...); got > 2*alone {
				t.Errorf("beside %s the slowest delivery began after %v, want at most twice as late as alone, %v", name, got, alone)
			}
		}
	})
}

// Jobs of a removed handler die after core.StrayTime, each with an obituary.
func TestStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
		b.Obituary = func(j core.TakenJob, o core.Outcome) *core.Arrival {
			return &core.Arrival{Event: core.Event{ID: "about " + j.ID}, Jobs: []core.NewJob{{Lane: lane}}}
		}
		b.add("handler/gone", 250, 3)
		stop := b.serve(t)
		time.Sleep(core.StrayTime - time.Minute)
		if n := b.count(core.Available); n != 250 {
			t.Errorf("%d of 250 wait for a handler that is gone for less than a day, want all", n)
		}
		time.Sleep(2 * strayRest)
		report := stop()
		if n := b.count(core.Dead); n != 250 || report.Dead != 250 {
			t.Errorf("%d of 250 are dead after a day (%d reported), want all", n, report.Dead)
		}
		for _, o := range b.settled {
			if o.Attempt.Error != NotConfigured || o.GivesRise == nil {
				t.Fatalf("settled %+v, want the error %q and an obituary", o, NotConfigured)
			}
		}
		accepted := slices.DeleteFunc(b.facts, func(f core.Fact) bool { _, ok := f.(core.Accepted); return !ok })
		if len(accepted) != 250 {
			t.Errorf("reported %d alerts, want 250", len(accepted))
		}
	})
}

// The arrival that a job's death causes is stored with the last outcome, and rings for the
// lane of the arrival's job.
func TestObituary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := takesTime(0, Reply{StatusCode: 500, Error: "status: 500"})
		b := newBench(Limits{Slots: 1, Batch: 1},
			Target{Sender: fails, Retry: core.Retry{Interval: time.Second, Fixed: true}}, Target{Lane: "alert/x", Sender: takesTime(0, ok)})
		b.Obituary = func(j core.TakenJob, o core.Outcome) *core.Arrival {
			if j.Lane.Alert() {
				t.Errorf("asked what comes of the death of %s", j.ID)
			}
			return &core.Arrival{Jobs: []core.NewJob{{Lane: "alert/x"}}}
		}
		heard := b.bell.Listen("alert/x")
		b.add(lane, 1, 2)
		stop := b.serve(t)
		time.Sleep(5 * time.Second)
		stop()
		if n := len(b.settled); n != 2 || b.settled[0].GivesRise != nil || b.settled[1].GivesRise == nil {
			t.Errorf("settled %+v, want two outcomes, and of the last one that it gives rise to something", b.settled)
		}
		if rung := heard.Rung(); len(rung) != 1 {
			t.Errorf("rung: %v, want alert/x", rung)
		}
	})
}

// A worker without targets does nothing.
func TestNoTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2})
		b.add(lane, 1, 1)
		if r, err := b.Tick(context.Background(), core.Budget{}); err != nil || r != (core.Report{}) {
			t.Errorf("Tick without targets = %+v, %v", r, err)
		}
	})
}
