package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
)

const queueLane = core.Lane("queue/q")

// addHeld puts n running messages into the queue, at the given attempt of attempts. Their
// leases end at end.
func (b *bench) addHeld(n, attempt, attempts int, end time.Time) {
	b.add(queueLane, n, attempts)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range b.jobs {
		if j.Lane == queueLane && j.Status == core.Available {
			j.Status, j.Attempt, j.DueAt, j.Lease = core.Running, attempt, end, "theirs"
		}
	}
}

// newSweeping makes a worker with a queue among its Queues and an obituary for each dead
// message.
func newSweeping() *bench {
	b := newBench(Limits{Slots: 2, Batch: 2, Drain: time.Second}, Target{Sender: takesTime(0, ok)})
	b.Worker.Queues = []core.Lane{queueLane}
	b.Worker.Obituary = func(j core.TakenJob, o core.Outcome) *core.Arrival {
		return &core.Arrival{Event: core.Event{ID: "about-" + j.ID}, Jobs: []core.NewJob{{Lane: "alert/1"}}}
	}
	return b
}

func factsOf[F core.Fact](b *bench) (found []F) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.facts {
		if f, ok := f.(F); ok {
			found = append(found, f)
		}
	}
	return found
}

// A message whose last lease ends while no client polls is dead within ten seconds, and its
// alert is accepted. A message with attempts left is not touched, nor is one whose lease has
// not ended.
func TestLapsedMessagesAreBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		rung := b.bell.Listen("alert/1")
		stop := b.serve(t)
		time.Sleep(time.Minute)
		b.addHeld(1, 3, 3, time.Now())
		b.addHeld(1, 2, 3, time.Now())
		b.addHeld(1, 3, 3, time.Now().Add(time.Hour))
		time.Sleep(10 * time.Second)
		if n := b.count(core.Dead); n != 1 {
			t.Errorf("%d dead, want the one without attempts whose lease is over", n)
		}
		if r := stop(); r != (core.Report{Failed: 1, Dead: 1}) {
			t.Errorf("Tick = %+v, want one dead", r)
		}
		settled := factsOf[core.Settled](b)
		if len(settled) != 1 {
			t.Fatalf("%d settled, want 1", len(settled))
		}
		o := settled[0].Outcome
		want := core.Attempt{Number: 3, Error: core.LeaseExpired, StartedAt: o.At}
		if diff := cmp.Diff(want, o.Attempt); diff != "" || o.Lease != "theirs" || o.Lane != queueLane {
			t.Errorf("lease %q, lane %q, attempt (-want +got):\n%s", o.Lease, o.Lane, diff)
		}
		if diff := cmp.Diff([]core.Pulled{{Queue: "q", Action: core.MessagesDead, Messages: 1}}, factsOf[core.Pulled](b)); diff != "" {
			t.Errorf("Pulled (-want +got):\n%s", diff)
		}
		if a := factsOf[core.Accepted](b); len(a) != 1 || a[0].Event.ID != "about-"+o.JobID || a[0].Jobs != 1 {
			t.Errorf("Accepted = %+v, want the alert", a)
		}
		if lanes := rung.Rung(); !slices.Equal(lanes, []core.Lane{"alert/1"}) {
			t.Errorf("rung: %v, want that of the alert", lanes)
		}
	})
}

// A function buries all lapsed messages before it returns, in batches of lapseBatch.
func TestFunctionBuriesAllLapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		b.addHeld(3*lapseBatch, 1, 1, time.Now())
		r, err := b.Tick(context.Background(), core.Budget{})
		if err != nil || r.Dead != 3*lapseBatch || b.count(core.Dead) != 3*lapseBatch || b.lapses != 4 {
			t.Errorf("Tick = %+v, %v with %d looks, want all dead with 4", r, err, b.lapses)
		}
	})
}

// A worker without queues never asks for lapsed messages. A worker with queues asks about
// every five seconds.
func TestIdleSweeper(t *testing.T) {
	for _, with := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, least, most := newSweeping(), 9, 17
			if !with {
				b.Worker.Queues, least, most = nil, 0, 0
			}
			stop := b.serve(t)
			time.Sleep(time.Minute)
			stop()
			if b.lapses < least || b.lapses > most {
				t.Errorf("queues: %v: %d looks in an idle minute, want %d to %d", with, b.lapses, least, most)
			}
		})
	}
}

// answersLate acknowledges each lapsed message after the worker has read it and before the
// worker buries it. The acknowledgement wins.
type answersLate struct{ *pile }

func (a answersLate) Lapsed(ctx context.Context, now time.Time, lanes []core.Lane, limit int) ([]core.TakenJob, error) {
	jobs, err := a.pile.Lapsed(ctx, now, lanes, limit)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range jobs {
		p := a.jobs[j.ID]
		p.Status, p.DueAt, p.Lease = core.Completed, time.Time{}, ""
	}
	return jobs, err
}

func TestLapsedMessageThatIsAckedAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		b.Worker.Worklist = answersLate{b.pile}
		b.addHeld(lapseBatch, 1, 1, time.Now())
		r, err := b.Tick(context.Background(), core.Budget{})
		if err != nil || r != (core.Report{}) || len(b.facts) != 0 || b.count(core.Completed) != lapseBatch {
			t.Errorf("Tick = %+v, %v, %d facts, want nothing done and nothing said", r, err, len(b.facts))
		}
	})
}

// If the store is down, the sweep is tried again.
func TestSweeperOutlivesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		b.addHeld(1, 1, 1, time.Now())
		b.breakdown(true)
		stop := b.serve(t)
		time.Sleep(time.Minute)
		b.breakdown(false)
		time.Sleep(10 * time.Second)
		if n := b.count(core.Dead); n != 1 {
			t.Errorf("%d dead, want 1", n)
		}
		stop()
	})
}

// The lanes of queues are not strays.
func TestQueuesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		b.add(queueLane, 1, 1)
		stop := b.serve(t)
		time.Sleep(core.StrayTime + 2*time.Hour)
		stop()
		if n := b.count(core.Available); n != 1 {
			t.Errorf("%d messages left available, want 1", n)
		}
	})
}

// A tick ends soon after its context, even if the store is down while jobs are being buried.
func TestBuryingEndsWithTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSweeping()
		b.add("handler/gone", strayBatch, 1)
		b.strays["handler/gone"] = time.Now().Add(-core.StrayTime)
		o := observe(b)
		o.settleTakes = time.Second
		b.lag = 0
		stop := b.serve(t)
		time.Sleep(100 * time.Millisecond) // the first are being settled
		b.breakdown(true)
		stop()
	})
}
