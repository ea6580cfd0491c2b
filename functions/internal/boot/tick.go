package boot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// How long ticks last.
const (
	workFor = 55 * time.Second // so that two are seldom under way
	fireFor = 60 * time.Second // so that no second between two is nobody's; slots that both see fire once

	// endBefore is what is left of an invocation when a tick has to be over.
	endBefore = time.Second
)

// How a worker that was nudged stays awake. Whoever nudged it sends no other for a second
// (see nudgeEvery), and counts on somebody finding what is stored meanwhile. So that a
// busy gateway does not keep one worker awake for each nudge, only one in each second
// is; those who come in that time deliver what is due and leave the rest to it: it is awake
// for a second after the last of them was nudged.
const (
	awakeTurn = "nudged"
	awakeFor  = nudgeEvery + awakeHold
	awakeHold = time.Second
	lookEvery = 400 * time.Millisecond
)

// How a worker that was nudged waits for what comes due within its time: in slices, of
// which each is had by one worker.
const (
	lingerTurn  = "linger"
	lingerSlice = 5 * time.Second
)

// A ticking is a function that ticks.
type ticking struct {
	*function
	tick func(context.Context, *assembly, invocation) (any, error)
}

// An invocation is what a tick knows of it.
type invocation struct {
	began, end time.Time
	nudged     bool
}

// Invoke ticks until there is nothing to do or the time is over, and answers with what
// was done.
func (t *ticking) Invoke(ctx context.Context, event []byte) (answer []byte, err error) {
	t.request.set(ctx)
	ctx, done := t.ticks.begin(ctx)
	defer done()
	defer func() {
		if v := recover(); v != nil {
			t.log.Error("panic in a tick", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	a, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	// A tick would wait for a database that is away; somebody is to hear of it instead.
	if err := a.Store.Ping(ctx); err != nil {
		return nil, err
	}
	a.store.Distrust()
	report, err := t.tick(ctx, a, t.invocation(ctx, event))
	if err != nil {
		return nil, err
	}
	return json.Marshal(report)
}

func (f *function) invocation(ctx context.Context, event []byte) invocation {
	var e struct{ Nudge bool }
	_ = json.Unmarshal(event, &e) // whatever else it is, it is the schedule's
	in := invocation{began: f.clock(), nudged: e.Nudge}
	in.end = in.began.Add(time.Hour) // somebody runs it by hand
	if deadline, ok := ctx.Deadline(); ok {
		in.end = deadline.Add(-endBefore)
	}
	return in
}

// until is when a tick stops to begin anything.
func (in invocation) until(lasts time.Duration) time.Time {
	return earlier(in.began.Add(lasts), in.end)
}

// A workReport is what a tick of the worker did, as the result of its function.
type workReport struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Dead      int `json:"dead"`
	Released  int `json:"released"`
	Lost      int `json:"lost"`
}

func (w *workReport) add(r core.Report) {
	w.Completed += r.Completed
	w.Failed += r.Failed
	w.Dead += r.Dead
	w.Released += r.Released
	w.Lost += r.Lost
}

// work delivers what is due. On its schedule it also deletes what is over.
func (f *function) work(ctx context.Context, a *assembly, in invocation) (any, error) {
	brief, err := f.brief()
	if err != nil {
		return nil, err
	}
	b := core.Budget{Until: in.until(workFor), End: in.end, Rest: a.Rest, Brief: brief}
	var report workReport
	if in.nudged {
		return &report, f.answerNudge(ctx, a, b, &report)
	}
	var purging sync.WaitGroup
	purging.Go(func() { f.purge(ctx, a, b) })
	err = work(ctx, a, b, &report)
	purging.Wait()
	return &report, err
}

// brief is whether a worker ends once nothing comes due within its time, or waits for what
// others store.
func (f *function) brief() (bool, error) {
	switch linger := cmp.Or(f.env("GATEWAY_LINGER"), "due"); linger {
	case "due":
		return true, nil
	case "always":
		return false, nil
	default:
		return false, core.Refuse(core.Invalid, "GATEWAY_LINGER: %q is neither due nor always", linger)
	}
}

// purge deletes what is over, in one pass. Failing to is no failure of the tick: the next
// one deletes as much more.
func (f *function) purge(ctx context.Context, a *assembly, b core.Budget) {
	defer func() {
		if v := recover(); v != nil {
			f.log.Error("panic while deleting old records", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	if err := a.Purger.Tick(ctx, core.Budget{Until: b.Until, End: b.End}); err != nil {
		f.log.Error("deleting old records failed", "error", err)
	}
}

// answerNudge delivers what is due, and what is stored in the moment after. If more comes
// due within its time, one of the workers who were nudged waits for that.
func (f *function) answerNudge(ctx context.Context, a *assembly, b core.Budget, report *workReport) error {
	if err := f.stayAwake(ctx, a, b, report); err != nil {
		return err
	}
	return f.linger(ctx, a, b, report)
}

func (f *function) stayAwake(ctx context.Context, a *assembly, b core.Budget, report *workReport) error {
	now := f.clock()
	mine, err := a.Store.Turn(ctx, now, awakeTurn, awakeHold)
	if err != nil {
		return err
	}
	awake := core.Budget{Until: earlier(b.Until, now.Add(awakeFor)), End: b.End}
	if mine {
		awake.Rest = min(b.Rest, lookEvery)
	}
	return work(ctx, a, awake, report)
}

// linger delivers what comes due, unless another worker does, until nothing will.
func (f *function) linger(ctx context.Context, a *assembly, b core.Budget, report *workReport) error {
	for ctx.Err() == nil {
		now := f.clock()
		if due, err := comesDue(ctx, a, b.Until); err != nil || !due || !now.Before(b.Until) {
			return err
		}
		slice := core.Budget{Until: earlier(b.Until, now.Add(lingerSlice)), End: b.End, Rest: b.Rest}
		if mine, err := a.Store.Turn(ctx, now, lingerTurn, slice.Until.Sub(now)); err != nil || !mine {
			return err
		}
		if err := work(ctx, a, slice, report); err != nil {
			return err
		}
	}
	return nil
}

// work adds to a report what a tick does.
func work(ctx context.Context, a *assembly, b core.Budget, report *workReport) error {
	r, err := a.Worker.Tick(ctx, b)
	report.add(r)
	return err
}

// comesDue tells whether something is due before a time. It misses nothing that is stored:
// if it says no, nobody may look again before the next minute.
func comesDue(ctx context.Context, a *assembly, until time.Time) (bool, error) {
	a.store.Distrust()
	outlooks, err := a.Store.Due(ctx, a.Worker.Lanes())
	for _, o := range outlooks {
		if !o.DueAt.IsZero() && o.DueAt.Before(until) {
			return true, err
		}
	}
	return false, err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// fire fires what cron sources have due, and what comes due while the invocation lasts.
func (f *function) fire(ctx context.Context, a *assembly, in invocation) (any, error) {
	if a.Cron == nil {
		return struct{}{}, nil
	}
	nudging, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { a.nudger.run(nudging) })
	err := a.Cron.Tick(ctx, core.Budget{Until: in.until(fireFor), End: in.end, Rest: a.Rest, Brief: true})
	stop()
	beside.Wait()
	a.nudger.flush(context.WithoutCancel(ctx))
	return struct{}{}, err
}
