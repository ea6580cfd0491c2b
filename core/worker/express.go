package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An Express brings new events straight to the worker of this process: unless many come at the same
// time, the worker takes their jobs in the commit that stores them. Such a job needs no claim, so it
// is delivered a commit and a round trip sooner.
//
// The worker takes only jobs that a claim would get at this moment, and none of a lane in which
// older jobs are known to wait. The zero Express is ready to use. It takes nothing until a
// long-lived worker with it begins its tick.
type Express struct {
	tick      atomic.Pointer[tick]
	accepting atomic.Int32 // calls of Accept under way
	crowded   atomic.Int64 // until when many were, in Unix nanoseconds
}

// Inbox returns an inbox of a store. Its receipts say how many jobs the worker has: see
// [core.Receipt.Taken]. AcceptAll takes no jobs: those of many events are claimed together, which
// costs little for each.
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
	if i.express.enter(now) {
		return i.ExpressStore.Accept(ctx, a)
	}
	holds := t.reserve(a, now)
	if len(holds) == 0 {
		return i.ExpressStore.Accept(ctx, a)
	}
	var taken []core.TakenJob
	defer func() { t.arrive(a, holds, taken) }() // also after a panic, or the room would be lost
	receipt, jobs, err := i.AcceptAndTake(ctx, now, a, holds)
	if err != nil {
		t.doubts.add(jobs...)
		return core.Receipt{}, err
	}
	taken, receipt.Taken = jobs, len(jobs)
	return receipt, nil
}

// Of more than mostExpress events at the same time, no jobs are taken at once, nor of those that come
// within crowdedFor after them. They share commits, and claims get several of their jobs in one
// statement, so each costs less than a job that is taken as it is stored. With every job taken so, 100
// senders of a SQLite file got a sixth fewer events delivered; with two in each commit, 32 senders of
// PostgreSQL a fifth.
const (
	mostExpress = 2
	crowdedFor  = 100 * time.Millisecond
)

// enter notes that an Accept begins, and reports whether too many are under way, or were.
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

// reserve returns the jobs of an arrival that the tick has room for, and for how long to lease each.
// The caller calls arrive in any case.
func (t *tick) reserve(a core.Arrival, now time.Time) (holds map[core.ID]time.Duration) {
	if t.left.Load() {
		return nil // another worker takes from the lanes now
	}
	for _, j := range a.Jobs {
		if j.Key != "" || j.Line.Key != "" || a.Due(j).After(now) || !t.open(j.Lane, now) ||
			!t.queue.reserve(j.Lane) {
			continue
		}
		if holds == nil {
			holds = make(map[core.ID]time.Duration, len(a.Jobs))
		}
		holds[j.ID] = t.window.hold(j.Lane, now)
	}
	return holds
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

// arrive gives the jobs that were taken to the slots, and the room of the others back.
func (t *tick) arrive(a core.Arrival, holds map[core.ID]time.Duration, taken []core.TakenJob) {
	got := make(map[core.ID]*core.TakenJob, len(taken))
	for i := range taken {
		if job := &taken[i]; t.leases.note(job) {
			got[job.ID] = job
		}
	}
	for _, j := range a.Jobs {
		if _, reserved := holds[j.ID]; !reserved {
			continue
		}
		if job := got[j.ID]; !t.queue.arrive(j.Lane, job) && job != nil {
			t.returns.add(job) // the tick has ended meanwhile
		}
	}
}
