package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// When a tick ends: its time is over, too little is left of it for any lane, or, in one
// that ends by itself, there is nothing to do.

const (
	// endGrace is how long before the end of the process an attempt is to be over, so
	// that its outcome can be stored; lateGrace is what one must have left of that which
	// had to wait for its slot.
	endGrace  = 2 * time.Second
	lateGrace = time.Second

	// cutGrace is how long before that end deliveries are cut off.
	cutGrace = time.Second

	// wake is how long a brief tick stays after it last found something due. Who tells of
	// events, but not more often than once a second, may rely on that the one whom it
	// woke sees what came right after. It looks each wakeRest in that time.
	wake     = 1500 * time.Millisecond
	wakeRest = 500 * time.Millisecond
)

// endsItself tells whether a tick returns when there is nothing to do.
func endsItself(b core.Budget) bool { return b.Rest == 0 || b.Brief }

func (t *tick) over(ctx context.Context, b core.Budget) bool {
	until := t.until(b)
	return ctx.Err() != nil || !until.IsZero() && !t.Clock().Before(until)
}

// until is when to take no more: the budget says so, or no lane is left whose attempts
// would be over in time. It is zero if that is never.
func (t *tick) until(b core.Budget) time.Time {
	if t.end.IsZero() {
		return b.Until
	}
	return sooner(b.Until, t.roster.Load().last(t.end))
}

// last is when the last attempt may begin that is over by end.
func (r *roster) last(end time.Time) time.Time {
	var least time.Duration
	for i, l := range r.lanes {
		if d := r.targets[l].Timeout; i == 0 || d < least {
			least = d
		}
	}
	return end.Add(-endGrace - least)
}

// Last is when a tick of a process that ends at end begins nothing more: the time left is
// too short for the quickest of the lanes.
func (w *Worker) Last(end time.Time) time.Time { return (&roster{w.lanes, w.targets}).last(end) }

// need is how long before the end of the process an attempt has to begin.
func (t *tick) need(l core.Lane) time.Duration { return t.target(l).Timeout + endGrace }

// fits tells whether an attempt that begins at a time is over before the end.
func (t *tick) fits(l core.Lane, at time.Time) bool {
	return t.end.IsZero() || at.Add(t.need(l)).Before(t.end)
}

// fitting are the lanes that may be taken from.
func (t *tick) fitting(now time.Time) []core.Lane {
	if t.end.IsZero() {
		return t.lanes()
	}
	return slices.DeleteFunc(slices.Clone(t.lanes()), func(l core.Lane) bool { return !t.fits(l, now) })
}

// forgo forgets lanes for which too little time is left.
func (t *tick) forgo(now time.Time) {
	if t.end.IsZero() {
		return
	}
	t.ready = slices.DeleteFunc(t.ready, func(l core.Lane) bool { return !t.fits(l, now) })
	for l := range t.paced {
		if !t.fits(l, now) {
			delete(t.paced, l)
		}
	}
}

// holdOf is how long a job is leased: if the process ends before it is settled, somebody
// else is to have it soon.
func (t *tick) holdOf(l core.Lane, now time.Time) time.Duration {
	to := t.target(l)
	if t.end.IsZero() {
		return to.Hold
	}
	return max(to.Timeout+endGrace, min(to.Hold, t.end.Sub(now)))
}

// left is how long the end of a tick may take: all that is left of its process but a
// grace, or as long as is usual in one that goes on.
func (t *tick) left(usual, grace time.Duration) time.Duration {
	if t.end.IsZero() {
		return usual
	}
	return max(0, t.end.Sub(t.Clock())-grace)
}

// tellTooSlow states, once, the lanes from which no tick of this process ever takes. One
// that begins late in an invocation has less time than others, and says nothing.
func (t *tick) tellTooSlow() {
	now := t.Clock()
	if !t.end.IsZero() && !t.longest(t.end.Sub(now)) {
		return
	}
	for _, l := range t.lanes() {
		if t.fits(l, now) {
			continue
		}
		if _, told := t.tooSlow.LoadOrStore(l, true); !told {
			t.Observe(core.Troubled{Doing: "take", Err: fmt.Errorf(
				"%s: one attempt may take %v, and this process ends after %v, so nothing of it is delivered: raise the timeout of the function, or lower that of the handler",
				l.Consumer(), t.target(l).Timeout, t.end.Sub(now).Round(time.Second))})
		}
	}
}

// longestSlack is by how much the times of invocations differ, for nothing but how long
// it took to begin.
const longestSlack = time.Second

// longest tells whether no tick had more time than one with so much.
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

// beside does a chore beside the feeding until the tick ends, or once in one that has no
// time to wait. A tick that ends by itself does so when its chores have been done once.
// A chore returns how long to pause after it.
func (t *tick) beside(ctx context.Context, b core.Budget, chore func(context.Context, core.Budget) time.Duration) {
	t.chores.Add(1)
	t.burying.Go(func() {
		once := sync.OnceFunc(func() { t.chores.Add(-1); t.nudge() })
		defer once()
		for !t.over(ctx, b) {
			pause := chore(ctx, b)
			once()
			if b.Rest == 0 {
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
}

// through tells whether a tick that ends by itself has done everything: nothing is due,
// or will be in its time, and nothing will come of what was taken. It has the store asked
// for the first as soon as the second is so. For what cannot be stored it does not wait
// for ever.
func (t *tick) through(ctx context.Context, b core.Budget) bool {
	now := t.Clock()
	switch {
	case !t.idle():
		t.idleSince = time.Time{}
		return false
	case t.idleSince.IsZero():
		t.idleSince = now
	}
	switch {
	case t.chores.Load() > 0:
		return false
	case !t.quiet():
		return t.dry && now.Sub(t.idleSince) > settleGrace
	case !t.calm || !t.dry:
		if len(t.ready)+len(t.paced) == 0 {
			t.lookIn(0)
		}
		return false
	}
	switch {
	case !b.Brief:
		return true
	case b.Stay == nil:
		next := t.last.Next
		return t.last.Began.Sub(t.found) >= wake && (next.IsZero() || !next.Before(b.Until))
	}
	again := b.Stay(ctx, t.last)
	t.expect(again)
	return again.IsZero()
}

func (t *tick) idle() bool {
	_, _, idle := t.queue.load()
	return idle
}

// firstAfter is when the first of the lanes is due that are not yet and can be taken from
// then; zero if none is.
func (t *tick) firstAfter(now time.Time, due map[core.Lane]time.Time) (first time.Time) {
	for l, at := range due {
		if at.After(now) && t.fits(l, at) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Next asks the store when the next job can be taken: a time that has passed if one is due,
// zero if none waits. The first time is that of jobs whose attempt is over by end, the
// second that of the others, as far as an attempt takes less than room. Jobs in lanes that a
// tick adopts do not count.
func (w *Worker) Next(ctx context.Context, end time.Time, room time.Duration) (next, beyond time.Time, err error) {
	now := w.Clock()
	outlooks, err := w.Worklist.Due(ctx, w.lanes)
	for l, o := range outlooks {
		if o.DueAt.IsZero() {
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

// Longest is the most time that an attempt may take.
func (w *Worker) Longest() (most time.Duration) {
	for _, to := range w.targets {
		most = max(most, to.Timeout)
	}
	return most
}

// sooner is the earlier of two times, of which a zero one is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rest is how long to leave the store alone when nothing is known to be due.
func (t *tick) rest(b core.Budget) time.Duration {
	if b.Brief && b.Stay == nil && t.Clock().Sub(t.found) < wake {
		b.Rest = min(b.Rest, wakeRest)
	}
	return rest(b)
}
