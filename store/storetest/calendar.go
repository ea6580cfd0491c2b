package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the marks of cron sources. A mark says up to which time the slots of a source are
// dealt with. If it moved back, a schedule would fire twice. If it moved too far, slots would be
// lost.

const (
	saysMarks         = "Marks returns the marks of the given sources; a source without a mark is absent"
	saysMark          = "Mark sets marks, whole or not at all"
	saysForward       = "A mark only moves forward: a mark that is not later than the stored mark for the same schedule changes nothing"
	saysOtherSchedule = "A mark with another schedule replaces the stored mark, also if it is earlier"
)

// The races are listed with the sentence that they test.
var calendar = role{name: "Calendar", checks: []check{
	{saysMarks, "", marksKnown},
	{saysMarks, "none", marksNone},
	{saysDueReads, "", marksNoWrite},
	{saysMark, "new ones and known ones", markSets},
	{saysMark, "none", markNone},
	{saysMark, "many", markMany},
	{saysMark, "one source twice", markTwiceInOne},
	{saysMark, "with a canceled context", markGone},
	{saysForward, "earlier", markEarlier},
	{saysForward, "the same", markSame},
	{saysForward, "a millisecond later", markLater},
	{saysForward, "concurrent callers, one mark", raceMarks},
	{saysForward, "concurrent callers, many marks", raceManyMarks},
	{saysForward, "concurrently with another schedule", raceSchedules},
	{saysOtherSchedule, "later", markOtherLater},
	{saysOtherSchedule, "earlier", markOtherEarlier},
	{saysOtherSchedule, "alternating", markBack},
}}

// mark is a mark of the rig's schedule, until the given duration after the rig's time.
func (r *rig) mark(source string, after time.Duration) core.Mark {
	return core.Mark{Source: source, Schedule: "*/5 * * * * UTC", Until: r.now.Add(after)}
}

// marked stores marks.
func (r *rig) marked(marks ...core.Mark) {
	r.Helper()
	if err := r.store.Mark(context.Background(), marks...); err != nil {
		r.Fatalf("Mark(%v) failed: %v", marks, err)
	}
}

// marks returns the stored marks of sources.
func (r *rig) marks(sources ...string) map[string]core.Mark {
	r.Helper()
	got, err := r.store.Marks(context.Background(), sources)
	if err != nil {
		r.Fatalf("Marks(%q) failed: %v", sources, err)
	}
	return got
}

// wantMarks fails unless Marks of the named sources returns exactly these marks.
func (r *rig) wantMarks(want ...core.Mark) {
	r.Helper()
	var sources []string
	all := map[string]core.Mark{}
	for _, m := range want {
		sources, all[m.Source] = append(sources, m.Source), m
	}
	r.equal(fmt.Sprintf("Marks(%q)", sources), r.marks(sources...), all)
}

// Marks is called with several sources, with one source, with an unknown one, and with one source
// twice.
func marksKnown(r *rig) {
	a, b := r.mark("a", 0), r.mark("b", time.Hour)
	b.Schedule = "0 9 * * * +09:00"
	r.marked(a, b)
	r.wantMarks(a, b)
	r.wantMarks(b)
	r.equal("Marks of a and an unknown source", r.marks("a", "nobody"), map[string]core.Mark{"a": a})
	r.equal("Marks of a, asked for twice", r.marks("a", "a"), map[string]core.Mark{"a": a})
}

// An unknown source is absent. A zero mark in its place would make every past slot fire.
func marksNone(r *rig) {
	none := map[string]core.Mark{}
	r.equal("Marks of an unknown source", r.marks("nobody"), none)
	r.marked(r.mark("a", 0))
	r.equal("Marks of an unknown source", r.marks("nobody"), none)
	r.equal("Marks of no source", r.marks(), none)
}

// A call of Marks must not create marks: the state of the store stays the same. RunFaults sees
// statements, and checks in addition that none of them writes.
func marksNoWrite(r *rig) {
	m := r.mark("a", 0)
	r.marked(m)
	want := r.state()
	r.marks("a", "nobody")
	r.equal("state after Marks", r.state(), want)
	r.wantMarks(m)
}

// One call sets new marks and moves a known one.
func markSets(r *rig) {
	a, b, c := r.mark("a", 0), r.mark("b", time.Minute), r.mark("c", time.Hour)
	r.marked(b)
	r.wantMarks(b)
	b = r.mark("b", time.Hour)
	r.marked(c, b, a)
	r.wantMarks(a, b, c)
}

// A call without marks is a call that changes nothing, before and after marks exist.
func markNone(r *rig) {
	r.marked()
	m := r.mark("a", 0)
	r.marked(m)
	r.marked()
	r.wantMarks(m)
}

// One call sets the marks of 200 sources, and one moves those of 300. D1 needs several statements
// for each.
func markMany(r *rig) {
	var all []core.Mark
	for i := range 300 {
		all = append(all, r.mark(nth(i), time.Duration(i)*time.Second))
	}
	r.marked(all[100:]...)
	r.wantMarks(all[100:]...)
	for i := range all {
		all[i].Until = all[i].Until.Add(time.Minute)
	}
	r.marked(all...)
	r.wantMarks(all...)
}

// If one call has several marks of a source, the mark with the latest time is stored, in any
// order of the marks.
func markTwiceInOne(r *rig) {
	last := r.mark("a", time.Hour)
	r.marked(r.mark("a", time.Minute), last, r.mark("a", 0))
	r.wantMarks(last)
	last = r.mark("a", 2*time.Hour)
	r.marked(last, r.mark("a", 90*time.Minute))
	r.wantMarks(last)
}

// A store may choose whether a call takes effect after its context was canceled. It must set both
// marks or none.
func markGone(r *rig) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	a, b := r.mark("a", 0), r.mark("b", 0)
	_ = r.store.Mark(gone, a, b)
	if n := len(r.marks("a", "b")); n == 1 {
		r.Errorf("Mark by a caller that went away set 1 of 2 marks, want both or none")
	}
	r.marked(a, b)
	r.wantMarks(a, b)
}

// A process with a slow clock, or one that was paused, must not move a mark back. The other mark
// of the same call moves nonetheless.
func markEarlier(r *rig) {
	m := r.mark("a", 0)
	r.marked(m)
	for _, by := range []time.Duration{time.Millisecond, time.Minute, 365 * 24 * time.Hour} {
		r.marked(r.mark("a", -by))
		r.wantMarks(m)
	}
	other := r.mark("b", time.Hour)
	r.marked(r.mark("a", -time.Second), other)
	r.wantMarks(m, other)
}

// Setting the same mark again changes nothing.
func markSame(r *rig) {
	m := r.mark("a", 0)
	r.marked(m)
	r.marked(m)
	r.wantMarks(m)
}

// The smallest step that a store can keep moves the mark.
func markLater(r *rig) {
	r.marked(r.mark("a", 0))
	m := r.mark("a", time.Millisecond)
	r.marked(m)
	r.wantMarks(m)
}

// A changed schedule begins anew from its own mark, here a later one.
func markOtherLater(r *rig) { r.replaceMark(time.Hour) }

// A changed schedule begins anew from its own mark, also an earlier one or one at the same time.
func markOtherEarlier(r *rig) {
	r.replaceMark(-time.Hour)
	r.replaceMark(0)
}

// replaceMark replaces the mark of source "a" by a mark of another schedule, that far from the
// rig's time.
func (r *rig) replaceMark(after time.Duration) {
	r.Helper()
	r.marked(r.mark("a", 0), r.mark("b", 0))
	m := r.mark("a", after)
	m.Schedule = fmt.Sprint("0 * * * * UTC ", after)
	r.marked(m)
	r.wantMarks(m, r.mark("b", 0))
	m.Until = m.Until.Add(-time.Second)
	r.marked(m)
	m.Until = m.Until.Add(time.Second)
	r.wantMarks(m)
}

// Two processes with different configurations set the mark in turns. The store has the mark of
// the process that wrote last.
func markBack(r *rig) {
	one := r.mark("a", 0)
	other := one
	other.Schedule, other.Until = "0 0 1 1 * UTC", one.Until.Add(-time.Hour)
	for _, m := range []core.Mark{one, other, one, other} {
		r.marked(m)
		r.wantMarks(m)
	}
}

// raceMarks has several callers move one mark. No caller sees it go back, and it ends at the
// furthest time that a caller gave.
func raceMarks(r *rig) {
	rounds := r.scaled(24)
	r.concurrently(callers, func(i int) error {
		var before time.Time
		for n := range rounds {
			m := r.mark("a", time.Duration(n*callers+i)*time.Second)
			if err := r.store.Mark(context.Background(), m); err != nil {
				return err
			}
			got, err := r.store.Marks(context.Background(), []string{"a"})
			if err != nil {
				return err
			}
			if until := got["a"].Until; until.Before(m.Until) || until.Before(before) {
				return fmt.Errorf("Marks = %s after Mark(%s) and Marks = %s", until, m.Until, before)
			}
			before = got["a"].Until
		}
		return nil
	})
	r.wantMarks(r.mark("a", time.Duration(rounds*callers-1)*time.Second))
}

// raceManyMarks has several callers move the same marks, each in one call and in another order.
func raceManyMarks(r *rig) {
	sources := r.scaled(40)
	for round := range r.scaled(12) {
		r.concurrently(callers, func(i int) error {
			var marks []core.Mark
			for n := range sources {
				at := (n*7 + i*11) % sources
				marks = append(marks, r.mark(nth(at), time.Duration(round*callers+i)*time.Second))
			}
			return r.store.Mark(context.Background(), marks...)
		})
		var want []core.Mark
		for n := range sources {
			want = append(want, r.mark(nth(n), time.Duration(round*callers+callers-1)*time.Second))
		}
		r.wantMarks(want...)
	}
}

// raceSchedules has two callers set the mark of one source, each with its own schedule.
// Afterwards one of the two marks is stored.
func raceSchedules(r *rig) {
	for round := range r.scaled(30) {
		source := nth(round)
		both := [2]core.Mark{r.mark(source, time.Second), r.mark(source, time.Minute)}
		both[1].Schedule = "0 * * * * +01:00"
		r.concurrently(2, func(i int) error { return r.store.Mark(context.Background(), both[i]) })
		if got := r.marks(source)[source]; !equalValues(got, both[0]) && !equalValues(got, both[1]) {
			r.Errorf("Marks = %v, want %v or %v", got, both[0], both[1])
		}
	}
}
