package boot

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A nudged worker stays awake after no job is due any more. The process that nudged the worker
// sends no other nudge for a second (see nudgeEvery). It counts on a worker that finds the
// work stored in that second. If each nudge kept its own worker awake, a busy gateway would
// pay for many idle workers. So one worker takes a turn each second and stays awake: the
// others deliver the due jobs and leave later work to that worker. It is awake for awakeFor,
// one second longer than its turn lasts.
const (
	awakeTurn = "nudged"
	awakeFor  = nudgeEvery + awakeHold
	awakeHold = time.Second
	lookEvery = 400 * time.Millisecond
)

// One worker waits for all jobs that come due within the minute. It takes a turn for each
// slice of its wait. A slice lasts 2 seconds: a worker that finds the turn taken knows that
// the other worker was awake, with no due job, at most 2 seconds ago. A worker without the
// turn still waits itself for a job that comes due before the other worker is sure to have
// looked again.
const (
	lingerTurn  = "linger"
	lingerSlice = awakeFor
	lingerLooks = 2*lingerSlice + time.Second
)

// A worker nudges a successor if its time is over while a job comes due within the minute: the
// minute's tick may have ended before that job was stored. The worker that waits for all jobs
// always nudges. Of the other workers, one nudges in each relieveHold. So a backlog does not
// wake a successor for each worker that ends.
const (
	relieveTurn = "relieve"
	relieveHold = 10 * time.Second
)

// A worker with too little time left for a due attempt nudges a fresh worker, also while its
// other attempts go on. A fresh worker stays awake for at least freshHold, so one nudge in
// that time is enough for all workers. The fresh worker has freshWait to begin the attempt.
// After that, the same worker nudges again for the attempt.
const (
	freshTurn = "fresh"
	freshHold = awakeHold
	freshWait = 3 * time.Second

	// startTime is the time after its nudge in which a successor can begin an attempt.
	startTime = 5 * time.Second
)

// A vigil decides how long a worker stays awake, and which other workers it nudges.
type vigil struct {
	*function
	invocation
	a     *assembly
	until time.Time // after this time the worker begins no attempt
	awake time.Time // the worker looks once after this time before it ends

	relief sync.WaitGroup // calls under way that nudge other workers

	mu     sync.Mutex
	ahead  time.Duration // at its end, the worker nudges a successor for jobs that are due within this time
	slice  time.Time     // until then, this worker waits for due jobs on behalf of all workers
	called time.Time     // due time of the attempt for which a fresh worker was nudged last
	retry  time.Time     // after this time, the worker nudges again for the same attempt
}

// clock returns the time of the database, like all times of a vigil.
func (v *vigil) clock() time.Time { return v.a.database.times.Now() }

// newVigil returns the vigil of a worker that is not awake beyond its due jobs yet.
func (f *function) newVigil(a *assembly, in invocation, b core.Budget) *vigil {
	return &vigil{function: f, invocation: in, a: a, until: earlier(b.Until, a.Worker.Last(in.end)), ahead: 2 * b.Rest}
}

// keep delivers the due jobs, and jobs stored in the moment after. If more jobs come due
// within the minute, one of the awake workers waits for them.
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

// more looks once more before the worker ends, and reports whether the worker stays awake. The
// last look of a tick can miss jobs: another process may have stored them later, with a due
// time before that look.
func (v *vigil) more(ctx context.Context) (bool, error) {
	looked := v.clock()
	if ctx.Err() != nil || !looked.Before(v.until) {
		return false, nil
	}
	// The store remembers below which due times it found no jobs. Jobs of other processes may lie
	// there.
	v.a.store.ForgetFloors()
	next, beyond, err := v.a.Worker.Next(ctx, v.end, v.room())
	if err != nil {
		return false, err
	}
	return !v.stay(ctx, core.Look{Began: looked, Next: next, Beyond: beyond}).IsZero(), nil
}

// budget adds to b the callback that sees each look of a tick.
func (v *vigil) budget(b core.Budget) core.Budget {
	b.Looked, b.Room = v.looked, v.room()
	return b
}

// tight reports whether some handler's longest attempt no longer fits into the invocation when
// the worker stops beginning attempts.
func (v *vigil) tight() bool { return !v.until.Add(v.a.Worker.Longest() + startTime).Before(v.end) }

// room returns the time that a fresh worker has for an attempt.
func (v *vigil) room() time.Duration { return v.end.Sub(v.began) - startTime }

// begin decides how long the worker is awake in any case. If the database cannot say which
// worker has the turn, every worker takes it.
func (v *vigil) begin(ctx context.Context) {
	v.awake = v.clock()
	if v.turn(ctx, v.awake, awakeTurn, awakeHold) {
		v.awake = v.awake.Add(awakeFor)
	}
}

// turn tries to take the turn called name for hold. It also returns true if the database does
// not answer.
func (v *vigil) turn(ctx context.Context, now time.Time, name string, hold time.Duration) bool {
	taken, err := v.a.Store.Turn(ctx, now, name, hold)
	if err != nil {
		v.log.Debug("the database does not tell whose turn it is", "turn", name, "error", err)
	}
	return taken || err != nil
}

// stay implements the field Stay of [core.Budget].
func (v *vigil) stay(ctx context.Context, last core.Look) (again time.Time) {
	fresh := v.freshen(ctx, last.Beyond)
	again = v.watch(ctx, last.Began, sooner(last.Next, fresh))
	if again.IsZero() {
		return again
	}
	return sooner(again, fresh)
}

// looked implements the field Looked of [core.Budget]. While this worker stays awake or waits,
// other workers leave newly stored jobs to it. So it looks for them then, even if one of its
// attempts takes longer.
func (v *vigil) looked(ctx context.Context, last core.Look) (by time.Time) {
	if last.Began.Before(v.awake) {
		by = earlier(last.Began.Add(lookEvery), v.awake)
	} else if slice := v.sliceEnd(); last.Began.Before(slice) {
		by = slice
	}
	return sooner(by, v.freshen(ctx, last.Beyond))
}

// freshen nudges a fresh worker in the background, once an attempt is due for which this worker
// has too little time left. It returns the time of the next look for that attempt, or the zero
// time if there is no such attempt.
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
	// The state is set before the nudge is sent, so that no second look starts another nudge.
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

// callFresh nudges a fresh worker if an attempt is still due for which this worker has too
// little time left. It returns false if the database fails or if another worker has the turn
// to nudge.
func (v *vigil) callFresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*nudgeTimes)
	defer cancel()
	v.a.store.ForgetFloors()
	now := v.clock()
	_, beyond, err := v.a.Worker.Next(ctx, v.end, v.room())
	switch {
	case err != nil:
		return false
	// Another worker has taken the attempt meanwhile.
	case beyond.IsZero() || beyond.After(now):
		return true
	case !v.turn(ctx, now, freshTurn, freshHold):
		return false
	}
	_ = v.a.nudger.call(ctx)
	return true
}

// watch returns the time of the next look, for a worker that knows when the next job comes
// due. The zero time ends the worker.
func (v *vigil) watch(ctx context.Context, looked, next time.Time) (again time.Time) {
	now := v.clock()
	switch {
	case looked.Before(v.awake):
		return earlier(now.Add(lookEvery), v.awake)
	case next.IsZero() || !next.Before(now.Add(minuteAhead)):
		return time.Time{} // the worker of the next minute's tick sees the job
	case !next.After(now):
		return now
	case now.Before(v.sliceEnd()):
		return v.sliceEnd()
	case v.until.Before(now.Add(lingerSlice)):
		return v.wait(v.until) // other workers must not count on this worker for longer
	case v.turn(ctx, now, lingerTurn, lingerSlice):
		return v.wait(now.Add(lingerSlice))
	case next.Before(now.Add(lingerLooks)):
		return now.Add(lingerSlice)
	}
	return time.Time{} // another worker waits for the job
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

// relieveAtEnd starts a goroutine that nudges a successor when the worker's time is over, if a
// job is due within the time set by foresee. Deliveries under way go on meanwhile. After that,
// the goroutine nudges a worker for each retry and step that those deliveries store. The
// caller calls done when the worker is done; done returns after the goroutine has ended.
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
		// Earlier rings are dropped: relieve asks the store, which has their jobs.
		_ = v.a.nudger.rung()
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

// foresee sets how far ahead the worker looks for due jobs when its time is over: it nudges a
// successor if a job is due within that time. A worker that waited for all jobs of the minute
// uses the whole minute. A worker invoked by the schedule uses a short time: the worker of the
// next minute is awake by then, and its first look sees later jobs.
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

// relieve nudges a successor if a job comes due within the foreseen time and the successor has
// enough time for it, unless another worker has the turn to nudge.
func (v *vigil) relieve(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*nudgeTimes)
	defer cancel()
	v.a.store.ForgetFloors()
	now := v.clock()
	_, next, err := v.a.Worker.Next(ctx, now, v.room()) // from now on, this worker begins nothing
	lingered := now.Before(v.sliceEnd().Add(lingerSlice))
	switch {
	case err == nil && (next.IsZero() || !next.Before(now.Add(v.foreseen()))):
	case lingered, err == nil && v.turn(ctx, now, relieveTurn, relieveHold):
		_ = v.a.nudger.call(ctx)
	}
}

// passOn nudges a worker if work was stored for a lane, unless another process nudged one
// within freshHold: that worker is still awake.
func (v *vigil) passOn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*nudgeTimes)
	defer cancel()
	if v.a.nudger.rung() && v.turn(ctx, v.clock(), freshTurn, freshHold) {
		_ = v.a.nudger.call(ctx)
	}
}

// sooner returns the earlier of two times. A zero time means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
