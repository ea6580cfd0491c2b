package cron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// grace is how old a slot may be and still be fired. It is also how far a mark may be
// ahead of the clock before the clock that set it is taken to have been wrong.
const grace = 5 * time.Minute

// Bounds of a round: how many sources fire at the same time, so that their events
// share a commit, and how many slots of each, so that one that catches up does not
// keep the others waiting.
const (
	maxSources = 16
	maxSlots   = 30
)

// A Source is a cron source.
type Source struct {
	Name string

	// Text is the schedule and its zone as they are configured. When it changes, the
	// source begins anew.
	Text     string
	Schedule Schedule
}

// Deps is what a ticker works with.
type Deps struct {
	Calendar core.Calendar
	Clock    core.Clock
	Observe  core.Observer

	// Fire stores the event of a slot. Fired again, by whatever process and however
	// much later, the slot must bring no second event. It is called for several sources
	// at the same time, for one source in the order of its slots.
	Fire func(ctx context.Context, source string, slot time.Time) error
}

// A Ticker fires the slots of its sources. It keeps no state between ticks, and ticks
// may overlap, in one process or in many.
type Ticker struct {
	Deps
	sources []Source
}

// New makes a ticker.
func New(d Deps, sources []Source) *Ticker { return &Ticker{Deps: d, sources: sources} }

// Tick fires every slot that has become due since its source's mark and is not older
// than five minutes, oldest first, and then moves the marks. Slots that are older are
// stated as core.Skipped. A source without a mark begins at now.
//
// With a zero Rest it returns once nothing is due that was due when it began, with
// the errors it met. Else it waits for the slots to come, until ctx is done or the
// budget is over, and reads no mark again; it states errors as core.Troubled and tries
// again after 1 to 30 seconds what failed. Rest is the longest it goes without a look
// at the clock, which somebody may set.
//
// A brief tick with a Rest returns once there is no slot before Until and nothing is to be
// tried again, and if its time is over before that, with the errors of its last round. If
// the budget has an End, nothing is fired in the last two seconds before it.
func (t *Ticker) Tick(ctx context.Context, b core.Budget) error {
	k := &tick{Ticker: t, budget: b, now: t.Clock}
	if b.Rest == 0 {
		return k.once(ctx)
	}
	var failed []core.Troubled
	for !k.over(ctx) {
		failed = k.round(ctx)
		for _, f := range failed {
			t.Observe(f)
		}
		if b.Brief && k.through() {
			return nil
		}
		k.sleep(ctx)
	}
	if b.Brief && ctx.Err() == nil {
		return joined(failed)
	}
	return nil
}

// joined are failures as one error, nil if there are none.
func joined(failed []core.Troubled) error {
	var all []error
	for _, f := range failed {
		all = append(all, fmt.Errorf("%s: %w", f.Doing, f.Err))
	}
	return errors.Join(all...)
}

// A tick is one Tick under way.
type tick struct {
	*Ticker
	budget  core.Budget
	now     func() time.Time // stands still in a tick that does not wait
	begun   bool             // the marks have been read
	courses []*course
	trouble backoff // with the calendar
}

// A course is how far a source has come.
type course struct {
	Source
	done    time.Time // slots up to here are dealt with
	next    time.Time // the first slot after done; zero if there is none
	unsaved bool      // the calendar does not know yet
	back    bool      // done is to take the place of a later mark
	skipped Span      // not stated yet
	trouble backoff
}

// once fires what is due now.
func (k *tick) once(ctx context.Context) error {
	began := k.Clock()
	k.now = func() time.Time { return began }
	var failed []core.Troubled
	for more := true; more && !k.over(ctx); more = len(k.due()) > 0 {
		failed = append(failed, k.round(ctx)...)
	}
	return joined(failed)
}

func (k *tick) over(ctx context.Context) bool {
	until := k.until()
	return ctx.Err() != nil || !until.IsZero() && !k.Clock().Before(until)
}

// endGrace is how long before the end of the process the last slot is fired, at the latest.
const endGrace = 2 * time.Second

// until is when to fire no more; zero if that is never.
func (k *tick) until() time.Time {
	last := k.budget.End.Add(-endGrace)
	if k.budget.End.IsZero() || !k.budget.Until.IsZero() && k.budget.Until.Before(last) {
		return k.budget.Until
	}
	return last
}

// through tells whether a brief tick has nothing to wait for: no slot comes before its
// time is over, and nothing is to be tried again.
func (k *tick) through() bool {
	until := k.until()
	for _, c := range k.courses {
		if c.unsaved || !c.next.IsZero() && c.next.Before(until) {
			return false
		}
	}
	return k.begun
}

// round fires what is due, or a part of it, and writes the marks of all sources that
// got on. A context that ends stops the firing; what was fired is marked.
func (k *tick) round(ctx context.Context) (failed []core.Troubled) {
	if !k.begun {
		if failed = k.tryTo("read marks", func() error { return k.begin(ctx) }); !k.begun {
			if ctx.Err() != nil {
				return nil // it was cut short by whoever ends the tick
			}
			return failed
		}
		// Sources that begin now get their marks before anything is fired, so that from
		// here on no slot goes unnoticed.
		failed = k.tryTo("mark", func() error { return k.save(ctx) })
	}
	for _, c := range k.courses {
		c.follow(k.now())
	}
	failed = append(failed, k.fire(ctx, k.due())...)
	return append(failed, k.tryTo("mark", func() error { return k.save(ctx) })...)
}

// tryTo does something with the calendar, unless it is to be left alone for a while.
func (k *tick) tryTo(do string, try func() error) []core.Troubled {
	if !k.trouble.over(k.now()) {
		return nil
	}
	if err := try(); err != nil {
		k.trouble.fail(k.now())
		return []core.Troubled{{Doing: do, Err: err}}
	}
	k.trouble = backoff{}
	return nil
}

// begin reads the marks.
func (k *tick) begin(ctx context.Context) error {
	names := make([]string, len(k.sources))
	for i, s := range k.sources {
		names[i] = s.Name
	}
	marks, err := k.Calendar.Marks(ctx, names)
	if err != nil {
		return err
	}
	now := k.now()
	for _, s := range k.sources {
		c := &course{Source: s}
		m, known := marks[s.Name]
		if known = known && m.Schedule == s.Text; !known {
			m.Until = now
		}
		c.move(m.Until)
		c.unsaved = !known
		k.courses = append(k.courses, c)
	}
	k.begun = true
	return nil
}

// follow keeps a course within reach of the clock. A mark far ahead was set by a clock
// that was wrong, and slots on the way to it were skipped; they are fired when their
// time comes, and those that were fired before bring no second event.
func (c *course) follow(now time.Time) {
	if c.done.Sub(now) > grace {
		c.move(now.Add(-grace))
		c.back = true
	}
}

// move moves a course on to a slot that has been dealt with.
func (c *course) move(to time.Time) {
	c.done, c.next, c.unsaved = to, c.Schedule.Next(to), true
}

func (c *course) due(now time.Time) bool {
	return !c.next.IsZero() && !c.next.After(now) && c.trouble.over(now)
}

// due are the courses with a slot to be fired.
func (k *tick) due() (due []*course) {
	now := k.now()
	for _, c := range k.courses {
		if c.due(now) {
			due = append(due, c)
		}
	}
	return due
}

// fire fires slots of several sources at the same time.
func (k *tick) fire(ctx context.Context, due []*course) (failed []core.Troubled) {
	var mu sync.Mutex
	var running sync.WaitGroup
	wait := make(chan *course, len(due))
	for _, c := range due {
		wait <- c
	}
	close(wait)
	for range min(len(due), maxSources) {
		running.Go(func() {
			for c := range wait {
				if err := k.catchUp(ctx, c); err != nil && ctx.Err() == nil {
					mu.Lock()
					failed = append(failed, core.Troubled{Doing: "fire", Err: err})
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	return failed
}

// catchUp fires the slots of a source up to now, oldest first, until one fails.
func (k *tick) catchUp(ctx context.Context, c *course) error {
	now := k.now()
	c.skip(now.Add(-grace))
	for n := 0; n < maxSlots && c.due(now) && !k.over(ctx); n++ {
		if err := core.Contain(func() error { return k.Fire(ctx, c.Name, c.next) }); err != nil {
			c.trouble.fail(k.now())
			return fmt.Errorf("source %q, slot %s: %w", c.Name, core.FormatTime(c.next), err)
		}
		c.trouble = backoff{}
		c.move(c.next)
	}
	return nil
}

// skip leaves out the slots before a time.
func (c *course) skip(before time.Time) {
	if !c.next.Before(before) {
		return
	}
	s := c.Schedule.Span(c.done, before.Add(-1))
	c.move(s.Last)
	if c.skipped.Slots > 0 {
		s.First = c.skipped.First
	}
	s.Slots += c.skipped.Slots
	c.skipped = s
}

// save writes the marks of the sources that got on, in one write, and states what
// they skipped. It does so too when ctx is done.
func (k *tick) save(ctx context.Context) error {
	var moved []*course
	var marks, away []core.Mark
	for _, c := range k.courses {
		if !c.unsaved {
			continue
		}
		moved, marks = append(moved, c), append(marks, core.Mark{Source: c.Name, Schedule: c.Text, Until: c.done})
		if c.back {
			// A mark goes back only by way of another schedule.
			away = append(away, core.Mark{Source: c.Name, Until: c.done})
		}
	}
	for _, m := range [][]core.Mark{away, marks} {
		if len(m) == 0 {
			continue
		}
		if err := k.Calendar.Mark(context.WithoutCancel(ctx), m...); err != nil {
			return err
		}
	}
	for _, c := range moved {
		if c.skipped.Slots > 0 {
			k.Observe(core.Skipped{Source: c.Name, Slots: c.skipped.Slots, First: c.skipped.First, Last: c.skipped.Last})
		}
		c.unsaved, c.back, c.skipped = false, false, Span{}
	}
	return nil
}

// sleep waits until there is something to do: a slot, or another try.
func (k *tick) sleep(ctx context.Context) {
	now := k.now()
	d := k.budget.Rest
	if until := k.until(); !until.IsZero() {
		d = min(d, until.Sub(now))
	}
	again := !k.begun
	for _, c := range k.courses {
		again = again || c.unsaved
		if !c.next.IsZero() {
			d = min(d, max(c.next.Sub(now), c.trouble.left(now)))
		}
	}
	if again {
		d = min(d, k.trouble.left(now))
	}
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A backoff is the wait after a failure; it doubles from one to the next.
type backoff struct {
	wait  time.Duration
	until time.Time
}

const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

func (b *backoff) fail(now time.Time) {
	b.wait = min(max(2*b.wait, firstWait), longestWait)
	b.until = now.Add(b.wait)
}

// left is how long to wait. More than the whole wait is left if the clock was set
// back meanwhile: that is not waited for.
func (b *backoff) left(now time.Time) time.Duration {
	if left := b.until.Sub(now); left > 0 && left <= b.wait {
		return left
	}
	return 0
}

func (b *backoff) over(now time.Time) bool { return b.left(now) == 0 }
