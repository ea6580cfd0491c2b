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

// Durations of ticks.
const (
	workFor = minuteAhead      // until the worker of the next minute is awake, this worker waits for due jobs
	fireFor = 60 * time.Second // each second is covered by at least one tick; a slot that two ticks see causes one event

	// endBefore is the time left of an invocation when its tick must be over.
	endBefore = time.Second
)

// A ticking is a function that runs a tick in each invocation.
//
// The worker and cron functions are of this kind. They serve no requests: each invocation is the
// event of a schedule, or a nudge.
type ticking struct {
	*function
	tick func(context.Context, *assembly, invocation) (any, error)
}

// An invocation is the start and the end of a function's invocation, and whether it is a
// nudge.
type invocation struct {
	began, end time.Time
	nudged     bool
}

// Invoke runs the tick until no work is left or its time is over, and answers with the report.
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
	// The assembly is made once in an environment, and used again by later invocations.
	a, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	// The environment was suspended since the last invocation, so its monotonic clock may have stood
	// still.
	a.database.times.Resume()
	began := t.clock()
	if err := t.reach(ctx, a); err != nil {
		return nil, err
	}
	a.store.ForgetFloors()
	in := newInvocation(ctx, event, a.database.times.Now().Add(-t.clock().Sub(began)))
	report, err := t.tick(ctx, a, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(report)
}

// Bounds for reaching the database before a tick fails. A nudge that fails is lost: its work
// waits until the next minute.
const (
	reachFor   = 5 * time.Second
	reachPause = 200 * time.Millisecond
)

// reach returns when the database answers. It returns an error after reachFor, so that Lambda
// sees a failed invocation instead of a tick that waits.
func (t *ticking) reach(ctx context.Context, a *assembly) error {
	// The machine's clock measures the wait: the database's clock is not known before it answers.
	until := t.clock().Add(reachFor)
	if deadline, ok := ctx.Deadline(); ok {
		until = earlier(until, t.clock().Add(time.Until(deadline)-endBefore))
	}
	for {
		err := a.Store.Ping(ctx)
		if err == nil || !t.clock().Add(reachPause).Before(until) {
			return err
		}
		select {
		case <-time.After(reachPause):
		case <-ctx.Done():
			return err
		}
	}
}

// newInvocation reads an event. Its times are database times, like those of ticks.
func newInvocation(ctx context.Context, event []byte, now time.Time) invocation {
	var e struct{ Nudge bool }
	_ = json.Unmarshal(event, &e) // any other event is the schedule's
	in := invocation{began: now, nudged: e.Nudge}
	in.end = in.began.Add(time.Hour) // without a deadline: an operator runs the function by hand
	if deadline, ok := ctx.Deadline(); ok {
		in.end = in.began.Add(time.Until(deadline) - endBefore) // the deadline is a time of this machine
	}
	return in
}

// until returns the time at which a tick stops beginning work.
func (in invocation) until(lasts time.Duration) time.Time {
	return earlier(in.began.Add(lasts), in.end)
}

// A workReport is the result of the worker's function: the attempts of one tick by their end.
type workReport struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Dead      int `json:"dead"`
	Released  int `json:"released"`
	Lost      int `json:"lost"`
}

// add adds the counts of another tick of the same invocation.
func (w *workReport) add(r core.Report) {
	w.Completed += r.Completed
	w.Failed += r.Failed
	w.Dead += r.Dead
	w.Released += r.Released
	w.Lost += r.Lost
}

// work delivers due jobs. A scheduled invocation also deletes old records, fills lines, and counts
// the events that other functions accepted.
func (f *function) work(ctx context.Context, a *assembly, in invocation) (any, error) {
	brief, err := f.brief()
	if err != nil {
		return nil, err
	}
	b := core.Budget{Until: in.until(workFor), End: in.end, Rest: a.Rest, Brief: brief}
	var report workReport
	defer f.storeMinutes(ctx, a.Minutes.WriteAll)
	if in.nudged {
		v := f.newVigil(a, in, b)
		v.begin(ctx)
		defer v.relieveAtEnd(ctx)()
		return &report, v.keep(ctx, b, &report)
	}
	// These duties are done beside the deliveries. The invocation ends only after all of them, since
	// Lambda freezes the environment then.
	var chores sync.WaitGroup
	chores.Go(func() { f.purge(ctx, a, b) })
	chores.Go(func() { f.fill(ctx, a, b) })
	chores.Go(func() { f.countEvents(ctx, a) })
	defer chores.Wait()
	v := f.newVigil(a, in, b)
	defer v.relieveAtEnd(ctx)()
	if err := work(ctx, a, v.budget(b), &report); err != nil || !brief || !v.tight() {
		return &report, err
	}
	more, err := v.more(ctx)
	if err == nil && more {
		err = v.keep(ctx, b, &report)
	}
	return &report, err
}

// brief reports whether a worker ends when no job comes due within its time. Otherwise it
// stays for jobs that other processes store.
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

// purge deletes old records in one pass. An error does not fail the tick: the next tick
// deletes the rest.
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

// fill fills lines, if that is due. An error does not fail the tick: a later tick tries it again.
func (f *function) fill(ctx context.Context, a *assembly, b core.Budget) {
	defer func() {
		if v := recover(); v != nil {
			f.log.Error("panic while filling lines", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	if err := a.Filler.Tick(ctx, core.Budget{Until: b.Until, End: b.End}); err != nil {
		f.log.Error("filling lines failed", "error", err)
	}
}

// work runs one tick of the worker and adds its counts to report.
func work(ctx context.Context, a *assembly, b core.Budget, report *workReport) error {
	r, err := a.Worker.Tick(ctx, b)
	report.add(r)
	return err
}

// earlier returns the earlier of two times, neither of which is zero.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// fire fires the due slots of cron sources, and slots that come due during the invocation. It
// checks health as well. The worker does not: the code would make its function larger, and the
// gates say which breakers opened there.
func (f *function) fire(ctx context.Context, a *assembly, in invocation) (any, error) {
	// A fired slot or an alert stores jobs, so the worker's function is nudged while the schedules run.
	nudging, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { a.nudger.run(nudging) })
	// Slots do not wait for the check of health.
	var checking sync.WaitGroup
	checking.Go(func() { f.checkHealth(ctx, a) })
	var err error
	if a.Cron != nil {
		err = a.Cron.Tick(ctx, core.Budget{Until: in.until(fireFor), End: in.end, Rest: a.Rest, Brief: true})
	}
	checking.Wait()
	stop()
	running.Wait()
	// The last nudge is sent before the invocation ends, or its jobs would wait until the next minute.
	a.nudger.flush(context.WithoutCancel(ctx))
	return struct{}{}, err
}

// healthTime bounds a check of health, since the invocation waits for its end.
const healthTime = 2 * time.Second

// checkHealth makes the alerts on health, if it is this function's turn. An error does not fail
// the tick: the next minute's check makes the same alerts.
func (f *function) checkHealth(ctx context.Context, a *assembly) {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			f.log.Error("panic while checking health", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	if err := a.Health.Tick(ctx, core.Budget{}); err != nil {
		f.log.Error("checking health failed", "error", err)
	}
}
