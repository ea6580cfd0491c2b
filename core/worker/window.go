package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// endGrace is how long before the end of the process an attempt is to be over, so
	// that its outcome can be stored. lateGrace is the part of endGrace that an attempt
	// must have left that had to wait for its slot.
	endGrace  = 2 * time.Second
	lateGrace = time.Second

	// cutGrace is how long before that end deliveries are cut off.
	cutGrace = time.Second
)

// A window is the time in which a tick may begin attempts: until its budget is used up, or
// until too little of the process's time is left for the attempts of any lane.
type window struct {
	clock  core.Clock
	budget core.Budget
	roster *roster
}

// endsItself reports whether the tick returns when nothing is due.
func (w *window) endsItself() bool { return w.budget.Rest == 0 || w.budget.Brief }

// over reports whether the tick is to take no more jobs.
func (w *window) over(ctx context.Context) bool {
	until := w.until()
	return ctx.Err() != nil || !until.IsZero() && !w.clock().Before(until)
}

// until returns the time from which the tick takes no more jobs; zero if it has no end.
func (w *window) until() time.Time {
	if w.budget.End.IsZero() {
		return w.budget.Until
	}
	return sooner(w.budget.Until, w.roster.table().last(w.budget.End))
}

// last returns when the last attempt may begin that is over by end.
func (t *laneTable) last(end time.Time) time.Time {
	var least time.Duration
	for i, l := range t.lanes {
		if d := t.targets[l].Timeout; i == 0 || d < least {
			least = d
		}
	}
	return end.Add(-endGrace - least)
}

// Last returns when a tick of a process that ends at end begins its last attempt: after
// that, the time left is too short for the lane with the shortest timeout.
func (w *Worker) Last(end time.Time) time.Time { return (&laneTable{w.lanes, w.targets}).last(end) }

// need returns how long before the end of the process an attempt has to begin.
func (w *window) need(l core.Lane) time.Duration { return w.roster.target(l).Timeout + endGrace }

// fits reports whether an attempt that begins at a time is over before the process ends.
func (w *window) fits(l core.Lane, at time.Time) bool {
	return w.budget.End.IsZero() || at.Add(w.need(l)).Before(w.budget.End)
}

// fitting returns the lanes whose attempts fit if they begin now.
func (w *window) fitting(now time.Time) []core.Lane {
	if w.budget.End.IsZero() {
		return w.roster.lanes()
	}
	return slices.DeleteFunc(slices.Clone(w.roster.lanes()), func(l core.Lane) bool { return !w.fits(l, now) })
}

// hold returns for how long to lease a job. The lease of a process that ends is short, so
// that another process can take the job soon after.
func (w *window) hold(l core.Lane, now time.Time) time.Duration {
	to := w.roster.target(l)
	if w.budget.End.IsZero() {
		return to.Hold
	}
	return max(to.Timeout+endGrace, min(to.Hold, w.budget.End.Sub(now)))
}

// left returns how long the end of the tick may take. In a process that ends it is the rest of
// the process's time minus grace, otherwise it is usual.
func (w *window) left(usual, grace time.Duration) time.Duration {
	if w.budget.End.IsZero() {
		return usual
	}
	return max(0, w.budget.End.Sub(w.clock())-grace)
}

// reportTooSlow reports, once, the lanes from which no tick of this process ever takes. A
// tick that begins late in an invocation has less time than others, and reports nothing.
func (w *window) reportTooSlow(worker *Worker) {
	now, end := w.clock(), w.budget.End
	// Only the tick with the most time can tell that a lane never fits.
	if !end.IsZero() && !worker.longest(end.Sub(now)) {
		return
	}
	for _, l := range w.roster.lanes() {
		if w.fits(l, now) {
			continue
		}
		if _, reported := worker.tooSlow.LoadOrStore(l, true); !reported {
			worker.Observe(core.Troubled{Doing: "take", Err: fmt.Errorf(
				"%s: one attempt may take %v, and this process ends after %v, so nothing of it is delivered: raise the timeout of the function, or lower that of the handler",
				l.Consumer(), w.roster.target(l).Timeout, end.Sub(now).Round(time.Second))})
		}
	}
}

// longestSlack is by how much the times of invocations differ because some begin later.
const longestSlack = time.Second

// longest reports whether no earlier tick had more time than d.
// Ticks of one process may overlap, so most changes by compare-and-swap.
func (w *Worker) longest(d time.Duration) bool {
	for {
		most := w.most.Load()
		if int64(d) <= most {
			return d >= time.Duration(most)-longestSlack
		}
		if w.most.CompareAndSwap(most, int64(d)) {
			return true
		}
	}
}

// Next asks the store when the next job can be taken. The result next covers the jobs whose
// attempt can end before end. The result beyond covers the other jobs, as far as an attempt
// takes less than room. A time that has passed means that a job is due, and zero means that
// no job waits. Jobs in lanes that a person holds without an end, or that a tick adopts, do
// not count.
func (w *Worker) Next(ctx context.Context, end time.Time, room time.Duration) (next, beyond time.Time, err error) {
	now := w.Clock()
	outlooks, err := w.Worklist.Due(ctx, w.lanes)
	for l, o := range outlooks {
		if o.DueAt.IsZero() || o.Gate.Stopped() {
			continue
		}
		to := w.targets[l]
		at, need := later(o.DueAt, to.opensAt(o.Gate, now)), to.Timeout+endGrace
		switch {
		case later(at, now).Add(need).Before(end):
			next = sooner(next, at)
		case need < room:
			beyond = sooner(beyond, at)
		}
	}
	return next, beyond, err
}

// Longest returns the most time that an attempt may take.
func (w *Worker) Longest() (most time.Duration) {
	for _, to := range w.targets {
		most = max(most, to.Timeout)
	}
	return most
}

// sooner returns the earlier of two times, of which a zero one is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the latest of some times.
func later(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
