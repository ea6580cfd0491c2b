package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// grace is the largest age at which a slot is still fired. It is also how far a mark may be
// ahead of the clock. A mark that is farther ahead was set by a wrong clock.
const grace = 5 * time.Minute

// Bounds of a round: how many sources fire at the same time, so that their events share a
// commit, and how many slots of each. So a source that catches up does not delay the
// others.
const (
	maxSources = 16
	maxSlots   = 30
)

// A Source is a cron source.
type Source struct {
	Name string

	// Text is the schedule and its zone as they are configured. When it changes, the source
	// begins at now.
	Text     string
	Schedule Schedule
}

// Deps are the dependencies of a ticker.
type Deps struct {
	Calendar core.Calendar

	// Holding returns the holds that have not ended. Nil means that no source is held.
	Holding func(ctx context.Context, now time.Time) ([]core.Hold, error)

	Clock   core.Clock
	Observe core.Observer

	// Fire stores the event of a slot. Firing a slot again must store no second event, in
	// any process and at any later time. It is called for several sources at the same time,
	// and for one source in the order of its slots.
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
// The slots of a source that is held are not fired, also not after its release. They are stated
// as core.Skipped too. Each process states the slots that it skipped. The holds are read while
// slots are due, once for all sources. If they cannot be read, no slot is fired, and the due
// slots are tried again like slots whose firing failed.
//
// With a zero Rest it returns once all slots that were due at its beginning are fired, with
// the errors that occurred. Otherwise it waits for further slots, until ctx is done or the
// budget is over. It does not read the marks again. It states errors as core.Troubled, and
// repeats a failed operation after 1 to 30 seconds. Rest is the longest time between two
// readings of the clock, which an operator may set.
//
// A brief tick with a Rest returns once no slot comes before Until and nothing is to be
// repeated. If its time is over before that, it returns the errors of its last round. If
// the budget has an End, no slot is fired in the last two seconds before it.
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

// joined returns failures as one error, nil if there are none.
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

// A course is the position of a source.
type course struct {
	Source
	done    time.Time // slots up to here are dealt with
	next    time.Time // the first slot after done; zero if there is none
	unsaved bool      // the calendar does not have it yet
	back    bool      // done replaces a later mark
	unseen  Span      // slots that were too old, not stated yet
	held    Span      // slots that a hold skipped, not stated yet
	trouble backoff
}

// once fires the slots that are due now.
func (k *tick) once(ctx context.Context) error {
	began := k.Clock()
	k.now = func() time.Time { return began }
	var failed []core.Troubled
	for more := true; more && !k.over(ctx); more = len(k.due()) > 0 {
		failed = append(failed, k.round(ctx)...)
	}
	return joined(failed)
}

// over reports whether the tick must end: its context is done, or its time is over.
func (k *tick) over(ctx context.Context) bool {
	until := k.until()
	return ctx.Err() != nil || !until.IsZero() && !k.Clock().Before(until)
}

// endGrace is the time before the end of the process in which no slot is fired.
const endGrace = 2 * time.Second

// until returns when to stop firing; zero means never.
func (k *tick) until() time.Time {
	last := k.budget.End.Add(-endGrace)
	if k.budget.End.IsZero() || !k.budget.Until.IsZero() && k.budget.Until.Before(last) {
		return k.budget.Until
	}
	return last
}

// through reports whether a brief tick can return: no slot comes before its time is over,
// and nothing is to be repeated.
func (k *tick) through() bool {
	until := k.until()
	for _, c := range k.courses {
		if c.unsaved || !c.next.IsZero() && c.next.Before(until) {
			return false
		}
	}
	return k.begun
}

// round fires the due slots, or a part of them, and writes the marks of all sources that
// moved. If ctx ends, the firing stops, and the fired slots are marked.
func (k *tick) round(ctx context.Context) (failed []core.Troubled) {
	if !k.begun {
		if failed = k.tryTo("read marks", func() error { return k.begin(ctx) }); !k.begun {
			if ctx.Err() != nil {
				return nil // the end of ctx interrupted it
			}
			return failed
		}
		// Sources that begin now get their marks before any slot is fired, so that from
		// here on no slot is overlooked.
		failed = k.tryTo("mark", func() error { return k.save(ctx) })
	}
	for _, c := range k.courses {
		c.follow(k.now())
	}
	due, unread := k.skipHeld(ctx, k.due())
	failed = append(append(failed, unread...), k.fire(ctx, due)...)
	return append(failed, k.tryTo("mark", func() error { return k.save(ctx) })...)
}

// tryTo does an operation with the calendar, unless its backoff is running.
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
	// One read for all sources.
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

// follow keeps a course close to the clock. A mark far ahead was set by a wrong clock, and
// slots before it were skipped. They are fired when their time comes. Slots that were fired
// before store no second event.
func (c *course) follow(now time.Time) {
	if c.done.Sub(now) > grace {
		c.move(now.Add(-grace))
		c.back = true
	}
}

// move moves a course to a slot that is dealt with.
func (c *course) move(to time.Time) {
	c.done, c.next, c.unsaved = to, c.Schedule.Next(to), true
}

// due reports whether the next slot has come and the source's backoff is over.
func (c *course) due(now time.Time) bool {
	return !c.next.IsZero() && !c.next.After(now) && c.trouble.over(now)
}

// due returns the courses with a due slot.
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
	// The slots of a source are fired in their order: a failure stops the source, and not the
	// others.
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
	// The skipped slots are counted without firing them, and stated once the mark is stored.
	s := c.Schedule.Span(c.done, before.Add(-1))
	c.move(s.Last)
	c.unseen = c.unseen.and(s)
}

// skipHeld leaves out the due slots of sources that are held, and returns the courses of the other
// sources.
func (k *tick) skipHeld(ctx context.Context, due []*course) ([]*course, []core.Troubled) {
	if len(due) == 0 || k.Holding == nil {
		return due, nil
	}
	now := k.now()
	holds, err := k.Holding(ctx, now)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil // the end of ctx interrupted it
	case err != nil:
		for _, c := range due {
			c.trouble.fail(now)
		}
		return nil, []core.Troubled{{Doing: "read holds", Err: err}}
	}
	since := make(map[core.Lane]time.Time, len(holds))
	for _, h := range holds {
		since[h.Lane] = h.Since
	}
	return slices.DeleteFunc(due, func(c *course) bool {
		began, held := since[core.SourceLane(c.Name)]
		if held {
			c.skipDue(now, began)
		}
		return held
	}), nil
}

// skipDue leaves out the slots up to now of a source that is held since a time. Slots that were too
// old already when the hold began passed unseen.
func (c *course) skipDue(now, since time.Time) {
	if old := now.Add(-grace); old.Before(since) {
		since = old
	}
	c.skip(since)
	c.trouble = backoff{}
	if s := c.Schedule.Span(c.done, now); s.Slots > 0 {
		c.move(s.Last)
		c.held = c.held.and(s)
	}
}

// save writes the marks of the sources that moved, in one write, and states the slots that
// they skipped. It also does so when ctx is done.
func (k *tick) save(ctx context.Context) error {
	var moved []*course
	var marks, away []core.Mark
	for _, c := range k.courses {
		if !c.unsaved {
			continue
		}
		moved, marks = append(moved, c), append(marks, core.Mark{Source: c.Name, Schedule: c.Text, Until: c.done})
		if c.back {
			// A mark only moves back by way of another schedule.
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
		k.state(c.Name, c.unseen, false)
		k.state(c.Name, c.held, true)
		c.unsaved, c.back, c.unseen, c.held = false, false, Span{}, Span{}
	}
	return nil
}

// state states slots that were skipped, if there are any.
func (k *tick) state(source string, s Span, held bool) {
	if s.Slots > 0 {
		k.Observe(core.Skipped{Source: source, Slots: s.Slots, First: s.First, Last: s.Last, Held: held})
	}
}

// sleep waits until the next slot or the next retry.
func (k *tick) sleep(ctx context.Context) {
	now := k.now()
	// The clock is read again after Rest at the latest, since an operator may set it.
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

// fail doubles the wait, from 1 s up to 30 s.
func (b *backoff) fail(now time.Time) {
	b.wait = min(max(2*b.wait, firstWait), longestWait)
	b.until = now.Add(b.wait)
}

// left returns how long to wait. If the clock was set back, more than the whole wait is
// left; then it returns 0.
func (b *backoff) left(now time.Time) time.Duration {
	if left := b.until.Sub(now); left > 0 && left <= b.wait {
		return left
	}
	return 0
}

// over reports whether the next try may begin.
func (b *backoff) over(now time.Time) bool { return b.left(now) == 0 }
