package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the counts of minutes. A failure means that a curve shows more or less than happened.

const (
	saysCount       = "CountMinutes stores the counts of a process: one row for each minute and lane"
	saysCountHigher = "Counts of a row that the process has stored before take the place of the earlier ones, unless their sum is lower"
	saysCountAgain  = "So storing the same counts again changes nothing"
	saysSum         = "SumMinutes returns the sums over all processes of the minutes from one time until before another, for each lane and each step of time in which something was counted"
	saysSumSorted   = "The rows are sorted by lane and time"
	saysSumSteps    = "Steps are multiples of their length since 1970"
	saysSumWhole    = `Counts of the process "" are complete: their Accepted is not added to that of other processes, and the higher one of a step counts`
	saysReceived    = "Received counts the stored events of sources with ids from one time until before another"
	saysReceivedNot = "A source without such events is absent"
	saysPurgeMin    = "PurgeMinutes deletes the counts of minutes before the given time"
	saysPurgeSome   = "One call deletes at most MinutesPurged minutes, from the oldest on"
)

// minutes are the checks of core.Minutes.
var minutes = role{name: "Minutes", checks: []check{
	{saysCount, "", countMinutes},
	{saysCount, "many", countMany},
	{saysCount, "concurrently", raceMinutes},
	{saysCountHigher, "", countHigher},
	{saysCountAgain, "", countAgain},
	{saysSum, "", sumMinutes},
	{saysSum, "none", sumNone},
	{saysSumSorted, "", sumSorted},
	{saysSumSteps, "", sumSteps},
	{saysSumWhole, "", sumWhole},
	{saysReceived, "", received},
	{saysReceived, "of many sources", receivedMany},
	{saysReceivedNot, "", receivedNone},
	{saysPurgeMin, "", purgeMinutes},
	{saysPurgeSome, "", purgeSome},
}}

// first is a minute at which a step of any length in these checks begins.
var first = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// counted are the counts of a lane in a minute after first.
func counted(minute int, lane core.Lane, c core.Counts) core.LaneCounts {
	return core.LaneCounts{At: first.Add(time.Duration(minute) * time.Minute), Lane: lane, Counts: c}
}

// count stores counts of a process.
func (r *rig) count(process core.ID, counts ...core.LaneCounts) {
	r.Helper()
	if err := r.store.CountMinutes(context.Background(), process, counts); err != nil {
		r.Fatalf("CountMinutes(%s) failed: %v", process, err)
	}
}

// wantSums compares the sums of minutes, from one minute after first until before another.
func (r *rig) wantSums(what string, from, until int, step time.Duration, want ...core.LaneCounts) {
	r.Helper()
	got, err := r.store.SumMinutes(context.Background(), first.Add(time.Duration(from)*time.Minute), first.Add(time.Duration(until)*time.Minute), step)
	if err != nil {
		r.Fatalf("SumMinutes failed: %v", err)
	}
	r.equal(what, got, want)
}

func countMinutes(r *rig) {
	a := counted(0, "handler/a", core.Counts{Completed: 1, Failed: 2, Dead: 3})
	b := counted(0, "source/shop", core.Counts{Accepted: 1 << 40})
	c := counted(1, "handler/a", core.Counts{Failed: 5})
	r.count("P", a, b, c)
	r.count("P")
	r.wantSums("sums", 0, 2, time.Minute, a, c, b)
}

func countMany(r *rig) {
	var all []core.LaneCounts
	for minute := range 60 {
		for _, lane := range []core.Lane{"handler/a", "handler/b", "queue/c", "source/d"} {
			all = append(all, counted(minute, lane, core.Counts{Completed: minute + 1}))
		}
	}
	r.count("P", all...)
	r.wantSums("sums", 0, 60, time.Hour,
		counted(0, "handler/a", core.Counts{Completed: 1830}), counted(0, "handler/b", core.Counts{Completed: 1830}),
		counted(0, "queue/c", core.Counts{Completed: 1830}), counted(0, "source/d", core.Counts{Completed: 1830}))
}

func raceMinutes(r *rig) {
	processes := []core.ID{"P", "Q", "R", "S"}
	r.concurrently(len(processes), func(i int) error {
		for n := range 10 {
			if err := r.store.CountMinutes(context.Background(), processes[i], []core.LaneCounts{
				counted(n%2, "handler/a", core.Counts{Completed: n + 1}), counted(n%2, "source/shop", core.Counts{Accepted: n + 1})}); err != nil {
				return err
			}
		}
		return nil
	})
	r.wantSums("sums", 0, 2, time.Minute,
		counted(0, "handler/a", core.Counts{Completed: 36}), counted(1, "handler/a", core.Counts{Completed: 40}),
		counted(0, "source/shop", core.Counts{Accepted: 36}), counted(1, "source/shop", core.Counts{Accepted: 40}))
}

func countHigher(r *rig) {
	r.count("P", counted(0, "handler/a", core.Counts{Completed: 1, Failed: 1}))
	more := counted(0, "handler/a", core.Counts{Completed: 4, Failed: 1, Dead: 1})
	r.count("P", more, counted(0, "handler/b", core.Counts{Dead: 1}))
	r.count("P", counted(0, "handler/a", core.Counts{Completed: 2, Failed: 1})) // late
	r.wantSums("sums", 0, 1, time.Minute, more, counted(0, "handler/b", core.Counts{Dead: 1}))
}

func countAgain(r *rig) {
	a, b := counted(0, "handler/a", core.Counts{Completed: 7}), counted(1, "handler/a", core.Counts{Completed: 2})
	r.count("P", a, b)
	r.count("P", b, a)
	r.wantSums("sums", 0, 2, time.Minute, a, b)
}

func sumMinutes(r *rig) {
	r.count("P", counted(0, "handler/a", core.Counts{Completed: 1}), counted(1, "handler/a", core.Counts{Completed: 10, Failed: 1}),
		counted(2, "handler/a", core.Counts{Completed: 100}), counted(3, "handler/a", core.Counts{Completed: 1000}))
	r.count("Q", counted(1, "handler/a", core.Counts{Completed: 20, Dead: 1}), counted(1, "source/shop", core.Counts{Accepted: 3}))
	r.count("R", counted(1, "source/shop", core.Counts{Accepted: 4}))
	r.wantSums("sums", 1, 3, time.Minute,
		counted(1, "handler/a", core.Counts{Completed: 30, Failed: 1, Dead: 1}), counted(2, "handler/a", core.Counts{Completed: 100}),
		counted(1, "source/shop", core.Counts{Accepted: 7}))
}

func sumNone(r *rig) { r.wantSums("sums of no rows", 0, 60, time.Minute) }

func sumSorted(r *rig) {
	var all []core.LaneCounts
	for _, lane := range []core.Lane{"handler/a", "handler/b", "source/a"} {
		for minute := range 3 {
			all = append(all, counted(minute, lane, core.Counts{Accepted: 1}))
		}
	}
	backward := slices.Clone(all)
	slices.Reverse(backward)
	r.count("P", backward...)
	r.wantSums("sums", 0, 3, time.Minute, all...)
}

func sumSteps(r *rig) {
	for minute := range 25 {
		r.count("P", counted(minute, "handler/a", core.Counts{Completed: 1}))
	}
	r.wantSums("sums of 12 minutes", 6, 25, 12*time.Minute,
		counted(0, "handler/a", core.Counts{Completed: 6}), counted(12, "handler/a", core.Counts{Completed: 12}), counted(24, "handler/a", core.Counts{Completed: 1}))
}

func sumWhole(r *rig) {
	shop := func(minute, n int) core.LaneCounts { return counted(minute, "source/shop", core.Counts{Accepted: n}) }
	r.count("P", shop(0, 3), shop(1, 5), shop(2, 1), counted(0, "handler/a", core.Counts{Completed: 1}))
	r.count("Q", shop(0, 4))
	r.count("", shop(0, 9), shop(1, 2), counted(0, "handler/a", core.Counts{Completed: 1}))
	r.wantSums("sums of a minute", 0, 3, time.Minute, counted(0, "handler/a", core.Counts{Completed: 2}), shop(0, 9), shop(1, 5), shop(2, 1))
	r.wantSums("sums of 3 minutes", 0, 3, 3*time.Minute, counted(0, "handler/a", core.Counts{Completed: 2}), shop(0, 13))
}

// received returns how many events sources got in a minute from the rig's time on.
func (r *rig) received(from time.Duration, sources ...string) map[string]int {
	r.Helper()
	got, err := r.store.Received(context.Background(), r.now.Add(from), r.now.Add(from+time.Minute), sources)
	if err != nil {
		r.Fatalf("Received(%q) failed: %v", sources, err)
	}
	return got
}

// arriveAt accepts an event of a source that is received after the rig's time.
func (r *rig) arriveAt(source string, after time.Duration) {
	r.Helper()
	of := *r
	at := r.now.Add(after)
	of.now, of.ids = at, core.NewIDs(func() time.Time { return at })
	a := of.arrival(of.lane)
	a.Event.Source = source
	r.accepted(a)
}

func received(r *rig) {
	for _, after := range []time.Duration{-time.Millisecond, 0, 30 * time.Second, time.Minute - time.Millisecond, time.Minute} {
		r.arriveAt("shop", after)
	}
	r.arriveAt("other", time.Second)
	r.equal("Received", r.received(0, "shop", "other"), map[string]int{"shop": 3, "other": 1})
	r.equal("Received of the next minute", r.received(time.Minute, "shop", "other"), map[string]int{"shop": 1})
}

func receivedMany(r *rig) {
	want := map[string]int{}
	var sources []string
	for i := range 30 {
		name := "s" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		sources = append(sources, name)
		if i%3 == 0 {
			r.arriveAt(name, time.Second)
			want[name] = 1
		}
	}
	r.equal("Received", r.received(0, sources...), want)
}

func receivedNone(r *rig) {
	r.arriveAt("shop", 0)
	r.equal("Received", r.received(0, "other", "shop"), map[string]int{"shop": 1})
	r.equal("number of Received without sources", len(r.received(0)), 0)
}

// purgeAt deletes the minutes before one after first.
func (r *rig) purgeAt(minute int) {
	r.Helper()
	if err := r.store.PurgeMinutes(context.Background(), first.Add(time.Duration(minute)*time.Minute)); err != nil {
		r.Fatalf("PurgeMinutes failed: %v", err)
	}
}

func purgeMinutes(r *rig) {
	r.purgeAt(5) // nothing to delete
	a, b := counted(4, "handler/a", core.Counts{Completed: 1}), counted(5, "handler/a", core.Counts{Completed: 1})
	r.count("P", a, b)
	r.count("Q", a)
	r.purgeAt(4)
	r.wantSums("sums after a purge that finds nothing", 0, 10, time.Minute, counted(4, "handler/a", core.Counts{Completed: 2}), b)
	r.purgeAt(5)
	r.wantSums("sums after the purge", 0, 10, time.Minute, b)
}

func purgeSome(r *rig) {
	for minute := range 15 {
		r.count("P", counted(minute, "handler/a", core.Counts{Completed: 1}))
	}
	r.purgeAt(14)
	r.wantSums("sums after a purge", 0, 15, 15*time.Minute, counted(0, "handler/a", core.Counts{Completed: 5}))
	r.purgeAt(14)
	r.wantSums("sums after another purge", 0, 15, time.Minute, counted(14, "handler/a", core.Counts{Completed: 1}))
}
