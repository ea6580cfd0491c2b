package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// holdLane holds the lane of a bench, as another process would, without a ring. The zero time is
// no end.
func (p *pile) holdLane(l core.Lane, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gate(l)
	if g.HeldSince, g.HeldUntil = time.Now(), until; until.IsZero() {
		g.HeldUntil = core.NoEnd
	}
}

// unholdLane ends the hold.
func (p *pile) unholdLane(l core.Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate(l).HeldSince, p.gate(l).HeldUntil = time.Time{}, time.Now()
}

// TestHold: nothing is sent from a lane while a person holds it. No attempt is lost. After the
// hold, deliveries begin at the pace of the ramp.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		name  string
		until time.Duration // 0: a person ends the hold after a minute
	}{{"until a person ends it", 0}, {"until a time", time.Minute}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{}
				b := newBench(Limits{Slots: 4, Batch: 10}, breaker(h))
				b.add(lane, 200, 3)
				start := time.Now()
				var until time.Time
				if c.until > 0 {
					until = start.Add(c.until)
				}
				b.pile.holdLane(lane, until)
				stop := b.serve(t)
				time.Sleep(time.Minute - time.Millisecond)
				if n := len(h.since(start)); n != 0 {
					t.Errorf("%d deliveries while the lane was held, want none", n)
				}
				if c.until == 0 {
					b.pile.unholdLane(lane)
				}
				released := time.Now()
				time.Sleep(3 * time.Second)
				if n := len(h.since(released)); n == 0 || n > 60 {
					t.Errorf("%d deliveries in the first 3 s after the hold, want some, at the pace of the ramp", n)
				}
				time.Sleep(core.RampTime)
				if n := b.count(core.Completed); n != 200 {
					t.Errorf("%d of 200 delivered, want all", n)
				}
				for id, j := range b.pile.jobs {
					if j.Attempt != 1 {
						t.Errorf("job %s had %d attempts, want 1", id, j.Attempt)
					}
				}
				stop()
			})
		})
	}
}

// TestHoldOfTaken: jobs that were taken before the hold and not sent yet go back, with their
// attempts, once the worker has seen the hold.
func TestHoldOfTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: 2 * time.Second}
		b := newBench(Limits{Slots: 1, Batch: 10}, breaker(h))
		b.add(lane, 10, 3)
		start := time.Now()
		stop := b.serve(t)
		time.Sleep(time.Second)
		b.pile.holdLane(lane, time.Time{})
		time.Sleep(time.Minute)
		if n := len(h.since(start)); n > 2 {
			t.Errorf("%d deliveries, want the one under way and at most the one before the next look", n)
		}
		b.pile.unholdLane(lane)
		time.Sleep(time.Minute)
		if n := b.count(core.Completed); n != 10 {
			t.Errorf("%d of 10 delivered, want all", n)
		}
		for id, j := range b.pile.jobs {
			if j.Attempt != 1 {
				t.Errorf("job %s had %d attempts, want 1", id, j.Attempt)
			}
		}
		stop()
	})
}
