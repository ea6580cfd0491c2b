package worker

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// How the feeder learns which lanes are due: by the bell and the alarm, and by looks, which
// ask the store.

// listen makes two kinds of lanes ready: lanes for which the bell rang, and lanes whose gate
// opens now. A lane whose gate is known to be closed waits for the gate.
func (f *feeder) listen(now time.Time) {
	f.foretold()
	rung := f.rung()
	for l, at := range f.gated {
		if !at.After(now) {
			rung = append(rung, l)
			delete(f.gated, l)
		}
	}
	for _, l := range rung {
		f.nothingDue = false
		switch at := f.gates.opensAt(l, now); {
		// A look tells when a hold is over that lasts longer, and a tick that ends by itself does
		// not wait for it.
		case f.gates.gate(l).Held(now) && at.After(now.Add(core.GateHorizon)):
			f.alarm.lookIn(f.rest())
		case at.After(now):
			f.gated[l] = at
		case !slices.Contains(f.ready, l):
			f.ready = append(f.ready, l)
		}
	}
}

// rung returns the lanes for which the bell rang, or that the alarm has as due, since the last
// call. It adopts a lane that is not configured, or leaves the lane out.
func (f *feeder) rung() []core.Lane {
	lanes := slices.DeleteFunc(f.heard.Rung(), func(l core.Lane) bool { return !f.roster.adopt(l) })
	for _, l := range f.alarm.takeDue() {
		if !slices.Contains(lanes, l) {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// foretold sets the alarm to the times at which lanes will have work, as RingAt announced them.
func (f *feeder) foretold() {
	for l, at := range f.heard.Coming() {
		if f.roster.adopt(l) {
			f.nothingDue = false // a tick that ends by itself learns the time from a look
			f.alarm.expect(at)
		}
	}
}

// look asks the store which lanes are due and how their gates stand, and decides when to ask
// next: soon while there is something to take, to find jobs of the other lanes; else when the
// next job is due.
func (f *feeder) look(ctx context.Context, room, ahead int) error {
	now, budget := f.Clock(), f.window.budget
	// Lanes whose attempts do not fit any more matter only to a budget with Room, which reports
	// them as Look.Beyond.
	asked := f.roster.lanes()
	if budget.Room == 0 {
		asked = f.window.fitting(now)
	}
	f.steady = f.chores.allRan() && f.idle() && f.quiet()
	f.alarm.lookIn(f.rest()) // a retry that is settled from here on makes it earlier
	// The version is read before the store is asked: see gateView.looked.
	version := f.gates.now()
	outlooks, err := f.Worklist.Due(ctx, asked)
	if err != nil {
		f.alarm.lookIn(0)
		return err
	}
	f.closeUnused(ctx, outlooks)
	f.gates.looked(asked, outlooks, version)
	due := f.dueTimes(outlooks, now)
	var next time.Time
	// From here on the answer replaces all that the feeder knew of due lanes.
	f.ready, next = split(due, now)
	clear(f.expectDue)
	for _, l := range f.ready {
		f.expectDue[l] = true
	}
	f.nothingDue = len(f.ready)+len(f.gated) == 0
	f.lastLook.Next = f.firstAfter(now, due)
	// Work is at hand, so the next look comes early, for the lanes that were not due yet.
	if len(f.quotas(room, ahead, now)) > 0 {
		end := f.Clock()
		next = end.Add(max(freshness, 9*end.Sub(now)))
	}
	f.alarm.expect(next)
	if budget.Looked != nil {
		f.alarm.expect(budget.Looked(ctx, f.lastLook))
	}
	return nil
}

// dueTimes returns when jobs of each lane can be taken, by a look that began at a time. It
// begins lastLook and gated anew.
func (f *feeder) dueTimes(outlooks map[core.Lane]core.Outlook, now time.Time) map[core.Lane]time.Time {
	first := f.lastLook.Began.IsZero()
	f.lastLook = core.Look{Began: now}
	clear(f.gated)
	due := map[core.Lane]time.Time{}
	for l, o := range outlooks {
		// A lane that a person holds without an end is as good as empty until then.
		if o.DueAt.IsZero() || o.Gate.Stopped() {
			continue
		}
		at := later(o.DueAt, f.roster.target(l).opensAt(o.Gate, now))
		if !f.window.fits(l, later(at, now)) && f.window.need(l) < f.window.budget.Room {
			f.lastLook.Beyond = sooner(f.lastLook.Beyond, at)
		}
		if !f.window.fits(l, now) {
			continue
		}
		if !o.DueAt.After(now) && first {
			f.lastWork = now // any process may take it; after the first look only jobs that this tick takes count as work
		}
		opens := f.gates.opensAt(l, now)
		if opens.Equal(core.NoEnd) {
			continue // an outcome that was stored since the look began shows a hold
		}
		due[l] = later(o.DueAt, opens, f.contended[l])
		if soon := now.Add(core.GateHorizon); due[l].After(now) && !due[l].After(soon) && !o.DueAt.After(now) {
			f.gated[l] = due[l]
		}
	}
	return due
}

// firstAfter returns when the first of the lanes is due that is not due yet and whose attempts
// fit then; zero if there is none.
func (f *feeder) firstAfter(now time.Time, due map[core.Lane]time.Time) (first time.Time) {
	for l, at := range due {
		if at.After(now) && f.window.fits(l, at) {
			first = sooner(first, at)
		}
	}
	return first
}

// closeUnused closes breakers of lanes whose targets have none, and learns how their gates
// stand then. It sets the failures of such a lane to zero, so that a breaker that is
// configured again counts from zero.
func (f *feeder) closeUnused(ctx context.Context, outlooks map[core.Lane]core.Outlook) {
	var unused []core.Lane
	for l, o := range outlooks {
		if o.Gate.Failures > 0 && f.roster.target(l).Breaker == nil {
			unused = append(unused, l)
		}
	}
	if len(unused) == 0 {
		return
	}
	now := f.Clock()
	closed, err := f.Worklist.CloseBreakers(ctx, now, unused...)
	if err != nil {
		f.Observe(core.Troubled{Doing: "close breakers", Err: err})
		return
	}
	// The view gets the gates as CloseBreakers left them, since this look read them before.
	closedGates := make(map[core.Lane]core.Gate, len(unused))
	for _, l := range unused {
		g := outlooks[l].Gate
		g.Failures, g.OpenUntil, g.MovedBy = 0, time.Time{}, ""
		if slices.Contains(closed, l) {
			g.ClosedAt = time.UnixMilli(now.UnixMilli()).UTC()
			f.Observe(core.BreakerMoved{Lane: l, Gate: g})
		}
		closedGates[l] = g
	}
	f.gates.learn(closedGates)
}

const (
	// briefStay is how long a brief tick without Stay goes on after it last took something.
	// A caller may nudge at most once a second: the worker that it wakes stays up long
	// enough to see events accepted just after the nudge. briefRest is how often it looks in
	// that time.
	briefStay = 1500 * time.Millisecond
	briefRest = 500 * time.Millisecond
)

// finished reports whether a tick that ends by itself has nothing left to do: nothing is due,
// or will be in its time, and nothing that was taken is still held. It has the store asked for
// the first as soon as the second is true. It waits at most settleGrace for outcomes that
// cannot be stored.
func (f *feeder) finished(ctx context.Context) bool {
	now, budget := f.Clock(), f.window.budget
	switch {
	// First condition: no job is under way. The end of a job may make another one due.
	case !f.idle():
		f.idleSince = time.Time{}
		return false
	case f.idleSince.IsZero():
		f.idleSince = now
	}
	switch {
	// Second condition: each chore ran, everything is stored, and a look that began after that
	// found nothing.
	case !f.chores.allRan():
		return false
	case !f.quiet():
		return f.nothingDue && now.Sub(f.idleSince) > settleGrace
	case !f.steady || !f.nothingDue:
		if len(f.ready)+len(f.gated) == 0 {
			f.alarm.lookIn(0)
		}
		return false
	}
	switch {
	// Third condition, for ticks that may wait for work: none is to be expected in time.
	case !budget.Brief:
		return true
	case budget.Stay == nil:
		next := f.lastLook.Next
		return f.lastLook.Began.Sub(f.lastWork) >= briefStay && (next.IsZero() || !next.Before(budget.Until))
	}
	again := budget.Stay(ctx, f.lastLook)
	f.alarm.expect(again)
	return again.IsZero()
}

// idle reports whether no job waits for a slot or has one.
func (f *feeder) idle() bool {
	_, _, idle := f.queue.load()
	return idle
}

// quiet reports whether everything that was taken is settled and led to no lane that is due.
// The order matters: a lane is due before the lease is dropped that made it so.
func (f *feeder) quiet() bool { return f.leases.none() && f.alarm.nothingDue() }
