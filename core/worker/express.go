package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An Express brings new events straight to the worker of this process, and to consumers who wait at an
// empty queue: their jobs are taken in the commit that stores them. Such a job needs no claim, which costs
// a database about as much as storing the job, and it is delivered a commit and a round trip sooner.
//
// Only jobs are taken that a claim would get at this moment: none for which there is no room (queue.hasRoom),
// and none of a lane in which older jobs are known to wait. The zero Express is ready to use. It takes
// nothing until a long-lived worker with it begins its tick.
type Express struct {
	tick      atomic.Pointer[tick]
	consumers atomic.Pointer[Consumers]
	accepting atomic.Int32 // calls of Accept under way
	crowded   atomic.Int64 // until when many were, in Unix nanoseconds
}

// Consumers wait at queues. See package pull.
type Consumers interface {
	// Reserve reports whether a consumer waits for a new message of a lane, and for how long to
	// lease it. After ok the caller calls Arrive in any case.
	Reserve(lane core.Lane) (hold time.Duration, ok bool)

	// Arrive brings the message, or nil if it was not taken.
	Arrive(lane core.Lane, message *core.TakenJob)
}

// Serve has new messages go to these consumers, and no longer to those of an earlier call.
func (e *Express) Serve(c Consumers) { e.consumers.Store(&c) }

// Inbox returns an inbox of a store. Its receipts say how many jobs were taken: see
// [core.Receipt.Taken]. AcceptAll takes no jobs: those of many events are claimed together.
func (e *Express) Inbox(store ExpressStore) core.Inbox { return &expressInbox{store, e} }

// An ExpressStore stores events in either way.
type ExpressStore interface {
	core.Inbox
	core.Express
}

type expressInbox struct {
	ExpressStore
	express *Express
}

// Accept implements [core.Inbox].
func (i *expressInbox) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	t := i.express.tick.Load()
	if t == nil {
		return i.ExpressStore.Accept(ctx, a)
	}
	defer i.express.accepting.Add(-1)
	now := t.Clock()
	to := takers{tick: t, consumers: i.express.consumers.Load()}
	if i.express.enter(now) {
		to.consumers = nil
	}
	holds := to.reserve(a, now)
	if len(holds) == 0 {
		return i.ExpressStore.Accept(ctx, a)
	}
	var taken []core.TakenJob
	defer func() { to.arrive(a, holds, taken) }() // also after a panic, or the room would be lost
	receipt, jobs, err := i.AcceptAndTake(ctx, now, a, holds)
	if err != nil {
		t.unanswered.add(jobs...)
		return core.Receipt{}, err
	}
	t.queue.pace.take.add(t.Clock().Sub(now))
	taken, receipt.Taken = jobs, len(jobs)
	return receipt, nil
}

// Of more than mostExpress events at the same time, no messages are given to consumers as they are stored,
// nor of those that come within crowdedFor after them: a consumer who receives several messages at once gets
// them by one claim.
const (
	mostExpress = 2
	crowdedFor  = 100 * time.Millisecond
)

// enter notes that an Accept begins, and reports whether too many for consumers are under way, or were.
func (e *Express) enter(now time.Time) (crowded bool) {
	if e.accepting.Add(1) > mostExpress {
		e.crowded.Store(now.Add(crowdedFor).UnixNano())
		return true
	}
	until := e.crowded.Load()
	return now.UnixNano() < until && until-now.UnixNano() <= int64(crowdedFor) // else the clock was set back
}

// join has the tick take new jobs, until leave is called. Only a tick that goes on for ever does: the
// others end when nothing is due, and their leases are short.
func (e *Express) join(t *tick) (leave func()) {
	b := t.window.budget
	if e == nil || t.window.endsItself() || !b.End.IsZero() || !b.Until.IsZero() {
		return func() {}
	}
	e.tick.Store(t)
	return func() { e.tick.CompareAndSwap(t, nil) } // after a reload, another tick may have joined
}

// takers are the tick and the consumers to which the jobs of an arrival may go.
type takers struct {
	tick      *tick
	consumers *Consumers // nil if none were ever served, or many events come
}

// reserve returns the jobs of an arrival that have a taker, and for how long to lease each. The caller
// calls arrive in any case.
func (to takers) reserve(a core.Arrival, now time.Time) (holds map[core.ID]time.Duration) {
	for _, j := range a.Jobs {
		if j.Key != "" || j.Line.Key != "" || a.Due(j).After(now) {
			continue
		}
		hold, ok := to.room(j.Lane, now)
		if !ok {
			continue
		}
		if holds == nil {
			holds = make(map[core.ID]time.Duration, len(a.Jobs))
		}
		holds[j.ID] = hold
	}
	return holds
}

// room keeps room for a job of a lane.
func (to takers) room(l core.Lane, now time.Time) (hold time.Duration, ok bool) {
	if l.Queue() != "" {
		if to.consumers == nil {
			return 0, false
		}
		return (*to.consumers).Reserve(l)
	}
	t := to.tick
	// After the tick has left, another worker takes from the lanes.
	if t.left.Load() || !t.open(l, now) || !t.queue.reserve(l) {
		return 0, false
	}
	return t.window.hold(l, now), true
}

// arrive gives the jobs that were taken to their takers, and the room of the others back.
func (to takers) arrive(a core.Arrival, holds map[core.ID]time.Duration, taken []core.TakenJob) {
	for _, j := range a.Jobs {
		if _, reserved := holds[j.ID]; !reserved {
			continue
		}
		var job *core.TakenJob
		for i := range taken {
			// The jobs that have arrived belong to others, who change them: only the id stays.
			if taken[i].ID == j.ID {
				job = &taken[i]
			}
		}
		if j.Lane.Queue() != "" {
			(*to.consumers).Arrive(j.Lane, job)
		} else {
			to.tick.settler.arrive(j.Lane, job)
		}
	}
}

// open reports whether jobs of a lane may be taken at once, as far as the tick knows. Lanes with lines
// are left out, since a new job may have to wait in its line; and workflows, whose jobs come with
// their situations.
func (t *tick) open(l core.Lane, now time.Time) bool {
	if !t.window.roster.has(l) {
		return false
	}
	to := t.window.roster.target(l)
	return to.Steps == nil && to.Lines.Limit == 0 && t.gates.interval(l, now) == 0 && !t.gates.opensAt(l, now).After(now)
}
