package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The breaker of a handler has its own number of failures and its own cooldown.
func TestBreakerNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{down: true}
		target := breaker(h)
		target.Breaker.Breaker = core.Breaker{Failures: 2, Cooldown: 20 * time.Second}
		b := newBench(Limits{Slots: 1, Batch: 1}, target)
		b.add(lane, 50, 9)
		start := time.Now()
		stop := b.serve(t)
		time.Sleep(90 * time.Second)
		stop()
		calls := h.since(start)
		if n := within(calls, 0, 19); n != 2 {
			t.Errorf("%d deliveries until the breaker opened, want 2", n)
		}
		for probe := 1; probe <= 3; probe++ {
			from := float64(probe)*20 - 1
			if n := within(calls, from, from+20); n != 1 {
				t.Errorf("%d deliveries in the 20 s from %v s, want one probe", n, from)
			}
		}
	})
}

// TestBreakerOff: if an earlier configuration left an open breaker, a handler without a
// breaker gets deliveries all the same.
func TestBreakerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		b := newBench(Limits{Slots: 2, Batch: 10}, Target{Sender: h})
		b.add(lane, 20, 1)
		gate := b.pile.gate(lane)
		gate.Failures, gate.OpenUntil = core.BreakerThreshold, time.Now().Add(time.Hour)
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		if n := b.count(core.Completed); n != 20 {
			t.Errorf("%d of 20 delivered after 10 s, want all", n)
		}
		h.set(true)
		b.add(lane, 3*core.BreakerThreshold, 1)
		b.bell.Ring(lane)
		time.Sleep(10 * time.Second)
		if n := b.count(core.Dead); n != 3*core.BreakerThreshold {
			t.Errorf("%d of %d that failed are dead, want all", n, 3*core.BreakerThreshold)
		}
		stop()
	})
}

// TestBreakerReset: an operator closes a breaker while a worker runs. The worker notices it
// at a look, and deliveries ramp up.
func TestBreakerReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{down: true}
		b := newBench(Limits{Slots: 2, Batch: 10}, breaker(h))
		b.add(lane, 100, 9)
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		h.set(false)
		reset := time.Now()
		if closed, err := b.pile.CloseBreakers(t.Context(), reset, lane); err != nil || len(closed) != 1 {
			t.Fatalf("CloseBreakers = %v, %v, want one", closed, err)
		}
		time.Sleep(20 * time.Second)
		stop()
		calls := h.since(reset)
		if n := within(calls, 0, 2); n == 0 || n > 15 {
			t.Errorf("%d deliveries in the 2 s after the breaker was reset, want a few", n)
		}
		if n := within(calls, 0, 20); n < 90 {
			t.Errorf("%d deliveries in the 20 s after the breaker was reset, want nearly all", n)
		}
	})
}

func TestVerdicts(t *testing.T) {
	const none, good, bad = core.NoVerdict, core.Success, core.Failure
	own := &Breaker{Counts: []core.ErrorClass{core.Class5xx}}
	silent := &Breaker{Counts: []core.ErrorClass{core.ClassTimeout, core.ClassNetwork}}
	for name, c := range map[string]struct {
		reply            Reply
		all, own, silent core.Verdict // verdicts of breakers that count all failures, 5xx, and silence
	}{
		"taken":               {ok, good, good, good},
		"not sent":            {Reply{Error: "transform: no", Unsent: true}, none, none, none},
		"500":                 {Reply{StatusCode: 500, Error: "status: 500 Internal Server Error"}, bad, bad, good},
		"599":                 {Reply{StatusCode: 599, Error: "status: 599"}, bad, bad, good},
		"404":                 {Reply{StatusCode: 404, Error: "status: 404 Not Found"}, bad, good, good},
		"a redirect":          {Reply{StatusCode: 302, Error: "status: 302 Found"}, bad, good, good},
		"timeout":             {Reply{Error: "timeout: no answer within 30s"}, bad, none, bad},
		"dns":                 {Reply{Error: "dns: no such host"}, bad, none, bad},
		"connect":             {Reply{Error: "connect: refused"}, bad, none, bad},
		"gRPC UNAVAILABLE":    {Reply{Error: "status: UNAVAILABLE: later"}, bad, bad, good},
		"gRPC, no message":    {Reply{Error: "status: INTERNAL"}, bad, bad, good},
		"gRPC success false":  {Reply{Error: "status: refused: no"}, bad, good, good},
		"gRPC NOT_FOUND":      {Reply{Error: "status: NOT_FOUND: UNAVAILABLE"}, bad, good, good},
		"an error of no kind": {Reply{Error: "odd"}, bad, none, bad},
	} {
		for i, b := range []*Breaker{{}, own, silent} {
			want := []core.Verdict{c.all, c.own, c.silent}[i]
			if got := b.verdict(c.reply, false); got != want {
				t.Errorf("%s: verdict %d = %v, want %v", name, i, got, want)
			}
			if want == none && !c.reply.Unsent {
				want = bad // a probe that got no answer
			}
			if got := b.verdict(c.reply, true); got != want {
				t.Errorf("%s: verdict %d of a probe = %v, want %v", name, i, got, want)
			}
		}
	}
}
