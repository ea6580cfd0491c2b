package boot

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// How a worker that was nudged stays awake after nothing is due any more. The process that
// nudged it sends no other nudge for a second (see nudgeEvery), and counts on a worker that
// finds what is stored meanwhile. So that a busy gateway does not keep one worker awake for
// each nudge, only one in each second is: the others deliver what is due and leave the rest
// to it. It is awake for a second after the last of them was nudged.
const (
	awakeTurn = "nudged"
	awakeFor  = nudgeEvery + awakeHold
	awakeHold = time.Second
	lookEvery = 400 * time.Millisecond
)

// How a worker that was nudged waits for a job that comes due within the minute: one worker
// waits for all of them, slice by slice. Slices are short: a worker that
// finds the turn taken knows that another was awake, with nothing to do, two seconds ago at
// most. It still waits for a job itself that comes due before the other is sure to have
// looked again.
const (
	lingerTurn  = "linger"
	lingerSlice = awakeFor
	lingerLooks = 2*lingerSlice + time.Second
)

// A worker whose time is over while a job comes due within the minute nudges its successor:
// the minute's tick may have come and gone before that job was stored. The one that waits
// for all does it always; of the others, one in so long: under a backlog no worker is woken
// for each that ends.
const (
	relieveTurn = "relieve"
	relieveHold = 10 * time.Second
)

// A worker that has too little time left for an attempt that is due nudges a fresh worker,
// also while other attempts go on. A fresh worker stays awake for as long as freshHold, so
// one in that time is enough for all workers. It has freshWait to begin the attempt, before
// the same worker nudges again for it.
const (
	freshTurn = "fresh"
	freshHold = awakeHold
	freshWait = 3 * time.Second

	// startTime is how long a successor may take until it can begin an attempt.
	startTime = 5 * time.Second
)

// A vigil is what a worker knows of why it stays awake.
type vigil struct {
	*function
	invocation
	a     *assembly
	until time.Time // when it begins nothing more
	awake time.Time // a look is to begin after that before the worker sleeps

	relief sync.WaitGroup // calls for other workers that are under way

	mu     sync.Mutex
	ahead  time.Duration // how soon a job is due for which a successor is nudged at the end
	slice  time.Time     // until when this worker is the one that waits for due jobs
	called time.Time     // when the attempt was due for which a fresh worker was nudged last
	retry  time.Time     // when to nudge again for the same attempt
}

// clock is the database's, as all times of a vigil are.
func (v *vigil) clock() time.Time { return v.a.database.times.Now() }

func (f *function) newVigil(a *assembly, in invocation, b core.Budget) *vigil {
	return &vigil{function: f, invocation: in, a: a, until: earlier(b.Until, a.Worker.Last(in.end)), ahead: 2 * b.Rest}
}

// keep delivers what is due, and what is stored in the moment after. If more comes due
// within the minute, one of the workers that are awake waits for that.
func (v *vigil) keep(ctx context.Context, b core.Budget, report *workReport) error {
	v.foresee(minuteAhead)
	b = v.budget(b)
	b.Brief, b.Stay = true, v.stay
	for {
		if err := work(ctx, v.a, b, report); err != nil {
			return err
		}
		if more, err := v.more(ctx); err != nil || !more {
			return err
		}
	}
}

// more looks once more before the worker sleeps, and tells whether it is to stay. A look of
// a tick may begin above jobs that others stored with a time that had passed.
func (v *vigil) more(ctx context.Context) (bool, error) {
	looked := v.clock()
	if ctx.Err() != nil || !looked.Before(v.until) {
		return false, nil
	}
	v.a.store.Distrust()
	next, beyond, err := v.a.Worker.Next(ctx, v.end, v.room())
	if err != nil {
		return false, err
	}
	return !v.stay(ctx, core.Look{Began: looked, Next: next, Beyond: beyond}).IsZero(), nil
}

// budget has the looks of a tick watched.
func (v *vigil) budget(b core.Budget) core.Budget {
	b.Looked, b.Room = v.looked, v.room()
	return b
}

// tight tells whether there are attempts that a worker has too little time for before it
// begins nothing more.
func (v *vigil) tight() bool { return !v.until.Add(v.a.Worker.Longest() + startTime).Before(v.end) }

// room is how long an attempt may take that a fresh worker begins.
func (v *vigil) room() time.Duration { return v.end.Sub(v.began) - startTime }

// begin decides how long the worker is awake in any case. If the database cannot say whose
// turn it is, it is every worker's.
func (v *vigil) begin(ctx context.Context) {
	v.awake = v.clock()
	if v.turn(ctx, v.awake, awakeTurn, awakeHold) {
		v.awake = v.awake.Add(awakeFor)
	}
}

// turn tells whether a turn is this worker's. A turn that the database cannot tell of is this worker's.
func (v *vigil) turn(ctx context.Context, now time.Time, name string, hold time.Duration) bool {
	mine, err := v.a.Store.Turn(ctx, now, name, hold)
	if err != nil {
		v.log.Debug("the database does not tell whose turn it is", "turn", name, "error", err)
	}
	return mine || err != nil
}

// stay is that of a core.Budget.
func (v *vigil) stay(ctx context.Context, last core.Look) (again time.Time) {
	fresh := v.freshen(ctx, last.Beyond)
	again = v.watch(ctx, last.Began, sooner(last.Next, fresh))
	if again.IsZero() {
		return again
	}
	return sooner(again, fresh)
}

// looked is that of a core.Budget. Other workers leave to this one what is stored while it
// stays awake or waits, so it looks then although an attempt goes on for longer.
func (v *vigil) looked(ctx context.Context, last core.Look) (by time.Time) {
	if last.Began.Before(v.awake) {
		by = earlier(last.Began.Add(lookEvery), v.awake)
	} else if slice := v.sliceEnd(); last.Began.Before(slice) {
		by = slice
	}
	return sooner(by, v.freshen(ctx, last.Beyond))
}

// freshen has a fresh worker nudged, beside the caller, once an attempt is due for which this
// worker has too little time left. It returns when to look again for that attempt; zero if
// there is none.
func (v *vigil) freshen(ctx context.Context, beyond time.Time) (again time.Time) {
	now := v.clock()
	if beyond.IsZero() || beyond.After(now) {
		return beyond
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if beyond.Equal(v.called) && now.Before(v.retry) {
		return v.retry
	}
	v.called, v.retry = beyond, now.Add(freshHold)
	v.relief.Go(func() {
		if !v.callFresh(context.WithoutCancel(ctx)) {
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if beyond.Equal(v.called) {
			v.retry = now.Add(freshWait)
		}
	})
	return v.retry
}

// callFresh nudges a fresh worker if an attempt is still due for which this one has too
// little time left. It is false if the attempt waits for the turn to do so.
func (v *vigil) callFresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*nudgeTimes)
	defer cancel()
	v.a.store.Distrust()
	now := v.clock()
	_, beyond, err := v.a.Worker.Next(ctx, v.end, v.room())
	switch {
	case err != nil:
		return false
	case beyond.IsZero() || beyond.After(now):
		return true
	case !v.turn(ctx, now, freshTurn, freshHold):
		return false
	}
	_ = v.a.nudger.call(ctx)
	return true
}

// watch is when to look again for a worker that knows when the next job comes due.
func (v *vigil) watch(ctx context.Context, looked, next time.Time) (again time.Time) {
	now := v.clock()
	switch {
	case looked.Before(v.awake):
		return earlier(now.Add(lookEvery), v.awake)
	case next.IsZero() || !next.Before(now.Add(minuteAhead)):
		return time.Time{} // the tick of a minute sees it
	case !next.After(now):
		return now
	case now.Before(v.sliceEnd()):
		return v.sliceEnd()
	case v.until.Before(now.Add(lingerSlice)):
		return v.wait(v.until) // no other worker is to count on this one for longer
	case v.turn(ctx, now, lingerTurn, lingerSlice):
		return v.wait(now.Add(lingerSlice))
	case next.Before(now.Add(lingerLooks)):
		return now.Add(lingerSlice)
	}
	return time.Time{} // another worker waits for it
}

func (v *vigil) sliceEnd() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.slice
}

func (v *vigil) wait(until time.Time) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slice = until
	return until
}

// relieveAtEnd has a successor nudged when the time of the worker is over, while deliveries
// that it has begun go on, if a job is due as soon as foresee says. From then on it has one nudged for
// each retry and step that those deliveries leave. The function it returns is to be called
// when the worker is done, and returns when nothing of this goes on.
func (v *vigil) relieveAtEnd(ctx context.Context) (done func()) {
	ctx = context.WithoutCancel(ctx)
	over := make(chan struct{})
	v.relief.Go(func() {
		timer := time.NewTimer(v.until.Sub(v.clock()))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-over:
			if v.clock().Before(v.until) {
				return
			}
		}
		_ = v.a.nudger.rung() // the store tells of that
		v.relieve(ctx)
		for {
			select {
			case <-v.a.nudger.bell():
				v.passOn(ctx)
			case <-over:
				v.passOn(ctx)
				return
			}
		}
	})
	return func() {
		close(over)
		v.relief.Wait()
	}
}

// foresee sets how soon a job is due for which a successor is nudged when the time is over.
// A worker that waited for all that comes due within the minute has it nudged for all that.
// One that the schedule invoked leaves to the worker of the next minute, which is awake by
// then, what is due after that has looked.
func (v *vigil) foresee(ahead time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ahead = ahead
}

func (v *vigil) foreseen() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ahead
}

// relieve nudges a successor if one is to be awake for something that it has the time for,
// unless another worker has the turn to.
func (v *vigil) relieve(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*nudgeTimes)
	defer cancel()
	v.a.store.Distrust()
	now := v.clock()
	_, next, err := v.a.Worker.Next(ctx, now, v.room()) // nothing can be done by now
	lingered := now.Before(v.sliceEnd().Add(lingerSlice))
	switch {
	case err == nil && (next.IsZero() || !next.Before(now.Add(v.foreseen()))):
	case lingered, err == nil && v.turn(ctx, now, relieveTurn, relieveHold):
		_ = v.a.nudger.call(ctx)
	}
}

// passOn nudges a worker if a lane was rung, unless another worker has just nudged one. That
// one stays awake for as long as freshHold.
func (v *vigil) passOn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*nudgeTimes)
	defer cancel()
	if v.a.nudger.rung() && v.turn(ctx, v.clock(), freshTurn, freshHold) {
		_ = v.a.nudger.call(ctx)
	}
}

// sooner is the earlier of two times, of which a zero one is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
