package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// linesOf returns the lines of a lane.
func (r *rig) linesOf(l core.Lane) core.Page[core.LineState] {
	r.Helper()
	page, err := r.store.Lines(context.Background(), l, "", core.MaxPage)
	if err != nil {
		r.Fatalf("Lines(%q) failed: %v", l, err)
	}
	return page
}

// ackLined acks jobs of a lane with lines.
func (r *rig) ackLined(l core.Lane, limit int, refs ...core.Ref) int {
	r.Helper()
	n, err := r.store.AckLined(context.Background(), r.now, l, limit, refs)
	if err != nil {
		r.Fatalf("AckLined(%q, %v) failed: %v", l, refs, err)
	}
	return n
}

// fill fills all lines of a lane.
func (r *rig) fill(l core.Lane, limit int) {
	r.Helper()
	for after := ""; ; {
		next, err := r.store.Fill(context.Background(), r.now, l, limit, after)
		if err != nil {
			r.Fatalf("Fill(%q) failed: %v", l, err)
		}
		if after = next; next == "" {
			return
		}
	}
}

// Checks of lines. The jobs of a line are processed in their order, at most limit at a time. A
// failure means that a receiver sees the events of a customer in a wrong order or two at once,
// that a job is lost, or that a line stands still for ever.

const (
	saysAdmitted     = "A job of a line is admitted if its line has a free slot and no job waits in it"
	saysWaits        = "Any other job of a line is stored with status Waiting at the end of its line, and no Take gets it before it is admitted"
	saysLineOrder    = "The jobs of a line are in the order of their commits"
	saysReenters     = "With Quota.Lines a job that gave its slot away is taken only if its line has a free slot for it"
	saysFront        = "Else it waits at the front of its line, and its attempt does not count"
	saysNext         = "A job that ends gives its slot to the next job of its line, which is due at once or when its delay is over"
	saysRetryKeeps   = "A job that is to be retried keeps its slot if the limit of its line is 1, and gives it away otherwise"
	saysStopsLine    = "A dead job keeps its slot if the outcome says that it stops its line"
	saysRetryInLine  = "A dead job that stops its line goes on with its slot, and any other job of a line enters the line at its end"
	saysDrainLines   = "The slots of deleted jobs go to the jobs of their lines that are left"
	saysPurgeStopped = "A dead job that stops its line stays too"
	saysLines        = "Lines lists the lines of a lane in which jobs have slots, by key; if after is set, only the lines with greater keys"
	saysLinedLanes   = "LinedLanes returns the lanes in whose lines jobs have slots, in the order of their names"
	saysLinesLimit   = "Limit is as in a JobFilter"
	saysAckLined     = "AckLined acks jobs as [Counter.Ack] does, and gives their slots to the next jobs of their lines"
	saysSkip         = "Skip gives the slot of a dead job that stops its line to the next job of the line, and returns true"
	saysSkipDead     = "The job stays dead"
	saysSkipOther    = "For any other job it returns false"
	saysFill         = "Fill gives the free slots of a lane's lines to jobs that wait, after the limit was raised"
	saysFillEnded    = "The slots of jobs that are finished and stop no line become free"
	saysFillSome     = "Fill looks at some lines with keys greater than after"
	saysFillNext     = "It returns the last of these keys, or \"\" if there are no further lines"
)

// lineChecks are the checks of the role Lines, and of lines in other roles.
var lineChecks = role{name: "Lines", checks: []check{
	{saysAdmitted, "", lineAdmits},
	{saysAdmitted, "a limit of 2", lineAdmitsTwo},
	{saysAdmitted, "in other lines", lineAlone},
	{saysAdmitted, "several of one event", lineOfOneEvent},
	{saysWaits, "", lineWaits},
	{saysWaits, "a duplicate takes no place", func(r *rig) { lineDuplicate(r, 1) }},
	{saysWaits, "a duplicate takes no slot of two", func(r *rig) { lineDuplicate(r, 2) }},
	{saysWaits, "not before the jobs that wait", lineNotBefore},
	{saysWaits, "a delayed job", lineDelayed},
	{saysLineOrder, "", lineInOrder},
	{saysLineOrder, "ids that run backwards", lineByCommit},
	{saysLineOrder, "AcceptAll", lineOfMany},
	{saysLineOrder, "concurrent callers", raceLines},
	{saysReenters, "", lineReenters},
	{saysReenters, "a free slot", lineReentersFree},
	{saysFront, "", lineFront},
	{saysNext, "", lineNext},
	{saysNext, "settled twice", lineSettledTwice},
	{saysNext, "a lost outcome", lineLostOutcome},
	{saysNext, "a lost outcome of the last job", lineLostAlone},
	{saysNext, "several at once", lineNextTwo},
	{saysRetryKeeps, "limit 1", lineRetryKeeps},
	{saysRetryKeeps, "limit 2", lineRetryLeaves},
	{saysStopsLine, "", lineStops},
	{saysStopsLine, "not", lineGoesOn},
	{saysRetryInLine, "with its slot", lineRetriesStopped},
	{saysRetryInLine, "one of two that stop it", lineRetriesOneOfTwo},
	{saysRetryInLine, "at the end", lineRetriesAtEnd},
	{saysRetryInLine, "all of a lane", lineRetriesAll},
	{saysDrainLines, "", lineDrains},
	{saysPurgeStopped, "", linePurges},
	{saysLines, "", linesListed},
	{saysLinesLimit, "", linesPaged},
	{saysLinedLanes, "", lanesWithLines},
	{saysLinesOf, "", linesRead},
	{saysLinesOfNone, "", linesReadEmpty},
	{saysLinesOfCount, "", linesRead},
	{saysAckLined, "", lineAcks},
	{saysSkip, "", lineSkips},
	{saysSkipDead, "", lineSkips},
	{saysSkipOther, "", lineSkipsOthers},
	{saysFill, "", lineFills},
	{saysFill, "a lower limit", lineLimitLowered},
	{saysFill, "concurrent callers", raceFills},
	{saysFillEnded, "", lineFillsEnded},
	{saysFillSome, "", lineFillsAll},
	{saysFillNext, "", lineFillsAll},
}}

// lined returns an arrival with a job in a line of the rig's lane.
func (r *rig) lined(key string, limit int) core.Arrival {
	a := r.arrival(r.lane)
	a.Jobs[0].Line = core.Line{Key: key, Limit: limit}
	return a
}

// putLined stores n events with a job each in one line, and returns the jobs' ids.
func (r *rig) putLined(key string, limit, n int) (ids []core.ID) {
	r.Helper()
	for range n {
		a := r.lined(key, limit)
		r.accept(a)
		ids = append(ids, a.Jobs[0].ID)
	}
	return ids
}

// takeLined takes the due jobs of the rig's lane, which must be the wanted ones.
func (r *rig) takeLined(limit int, want ...core.ID) []core.TakenJob {
	r.Helper()
	q := r.quota(100)
	q.Lines = limit
	got := r.takeQuotas(q)
	if len(got) != len(want) {
		r.Fatalf("taken = %v, want %v", ids(got), want)
	}
	r.equal("taken", ids(got), append([]core.ID{}, want...))
	return got
}

// endLined settles a job of a line with a limit. A dead job stops the line, and a retry is due
// after a second.
func (r *rig) endLined(j core.TakenJob, s core.Status, limit int) core.Outcome {
	r.Helper()
	o := r.ended(j.Job, s)
	o.Lane, o.Line, o.StopsLine = j.Lane, core.Line{Key: j.Line, Limit: limit}, true
	if s == core.Retryable {
		o.DueAt = r.now.Add(time.Second)
	}
	r.settle(o)
	return o
}

// wantStatus fails unless jobs have a status.
func (r *rig) wantStatus(s core.Status, ids ...core.ID) {
	r.Helper()
	for _, id := range ids {
		r.equal("status of "+string(id), r.job(id).Status, s)
	}
}

func lineAdmits(r *rig) {
	a := r.lined("x", 1)
	r.accept(a)
	want := stored(a.Event.ID, a.Event.CreatedAt, a.Jobs[0])
	want.Line = "x"
	r.wantJob(want)
	r.putLined("x", 1, 1)
	r.takeLined(1, a.Jobs[0].ID)
}

func lineAdmitsTwo(r *rig) {
	some := r.putLined("x", 2, 4)
	r.takeLined(2, some[0], some[1])
	r.wantStatus(core.Waiting, some[2:]...)
}

// Lines of other keys and of other lanes do not wait, nor do jobs without a line.
func lineAlone(r *rig) {
	x, y := r.putLined("x", 1, 2), r.putLined("y", 1, 2)
	plain := r.put()
	r.takeLined(1, x[0], y[0], plain.ID)
	r.lane += "-other"
	r.takeLined(1, r.putLined("x", 1, 1)...)
}

// One event may have jobs in several lanes, and each lane has its own line.
func lineOfOneEvent(r *rig) {
	a := r.arrival(r.lane, r.lane+"-b")
	for i := range a.Jobs {
		a.Jobs[i].Line = core.Line{Key: "x", Limit: 1}
	}
	r.accept(a)
	r.takeLined(1, a.Jobs[0].ID)
	r.lane += "-b"
	r.takeLined(1, a.Jobs[1].ID)
}

func lineWaits(r *rig) {
	some := r.putLined("x", 1, 2)
	j := r.job(some[1])
	r.equal("status", j.Status, core.Waiting)
	r.equal("due", j.DueAt, time.Time{})
	r.equal("line", j.Line, "x")
	r.equal("depth", r.depth(), 2)
	r.equal("tally", r.tallies(r.lane)[r.lane], core.Tally{Pending: 2, Waiting: 1, OldestDue: r.now})
	page := r.jobs(core.JobFilter{Status: core.Waiting})
	r.equal("waiting", len(page.Items), 1)
	r.takeLined(1, some[0])
	r.now = r.now.Add(time.Hour)
	r.equal("retry of a job that waits", r.retry(some[1], ""), 0)
	r.takeLined(1, some[0]) // its lease is over
}

// Neither a repeat of an arrival nor one of a key or delivery id takes a place, while the first
// job waits and also after it ended.
func lineDuplicate(r *rig, limit int) {
	first := r.lined("x", limit)
	first.Event.DeliveryID, first.Jobs[0].Key = "d", "k"
	for range 2 {
		r.accept(first)
	}
	byID, byKey := r.lined("x", limit), r.lined("x", limit)
	byID.Event.DeliveryID, byKey.Jobs[0].Key = "d", "k"
	for _, a := range []core.Arrival{byID, byKey} {
		if got := r.accept(a); !got.Duplicate {
			r.Errorf("Accept = %+v, want a duplicate", got)
		}
	}
	last := r.putLined("x", limit, limit)
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: limit, Waiting: 1}})
	for _, j := range r.takeLined(limit, append([]core.ID{first.Jobs[0].ID}, last[:limit-1]...)...) {
		r.endLined(j, core.Completed, limit)
	}
	r.accept(first) // while another job has a slot
	r.endLined(r.takeLined(limit, last[limit-1:]...)[0], core.Completed, limit)
	r.accept(first) // into an empty line
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
	r.takeLined(limit, r.putLined("x", limit, 1)...)
}

// With a free slot, a job still waits if others wait: the limit was raised, and no Fill came yet.
func lineNotBefore(r *rig) {
	some := r.putLined("x", 1, 2)
	late := r.putLined("x", 2, 1)
	r.takeLined(2, some[0])
	r.wantStatus(core.Waiting, some[1], late[0])
	r.fill(r.lane, 2)
	r.takeLined(2, some[1])
}

// A delayed job keeps its place: the jobs behind it wait for its time too.
func lineDelayed(r *rig) {
	late, behind := r.lined("x", 1), r.lined("x", 1)
	late.Jobs[0].DueAt = r.now.Add(time.Minute)
	r.accept(late)
	r.accept(behind)
	r.takeLined(1)
	r.wantStatus(core.Scheduled, late.Jobs[0].ID)
	r.wantStatus(core.Waiting, behind.Jobs[0].ID)
	r.now = r.now.Add(time.Minute)
	r.endLined(r.takeLined(1, late.Jobs[0].ID)[0], core.Completed, 1)
	r.takeLined(1, behind.Jobs[0].ID)
}

func lineInOrder(r *rig) {
	for _, id := range r.putLined("x", 1, 7) {
		r.endLined(r.takeLined(1, id)[0], core.Completed, 1)
	}
	r.takeLined(1)
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
}

// Ids do not decide: a process whose clock is behind makes smaller ids.
func lineByCommit(r *rig) {
	var all []core.Arrival
	for range 5 {
		all = append(all, r.lined("x", 1))
	}
	slices.Reverse(all)
	for _, a := range all {
		r.accept(a)
	}
	for _, a := range all {
		r.endLined(r.takeLined(1, a.Jobs[0].ID)[0], core.Completed, 1)
	}
}

// The arrivals of one call are in their order, in each of several lines.
func lineOfMany(r *rig) {
	var all []core.Arrival
	want := map[string][]core.ID{}
	for i := range 12 {
		key := []string{"x", "y", "z"}[i%3]
		a := r.lined(key, 1)
		all, want[key] = append(all, a), append(want[key], a.Jobs[0].ID)
	}
	if _, err := r.store.AcceptAll(context.Background(), all); err != nil {
		r.Fatalf("AcceptAll failed: %v", err)
	}
	for i := range 4 {
		for _, j := range r.takeLined(1, want["x"][i], want["y"][i], want["z"][i]) {
			r.endLined(j, core.Completed, 1)
		}
	}
}

// A job in backoff has no slot. When it is due and the slots are taken, it waits.
func lineReenters(r *rig) {
	some := r.putLined("x", 2, 3)
	taken := r.takeLined(2, some[0], some[1])
	r.endLined(taken[0], core.Retryable, 2)
	r.takeLined(2, some[2])
	due := r.job(some[0]).DueAt
	r.now = due
	r.takeLined(2)
	r.wantStatus(core.Waiting, some[0])
	r.endLined(taken[1], core.Completed, 2)
	again := r.takeLined(2, some[0])[0]
	r.equal("attempt", again.Attempt, 2)
}

// A job that finds a free slot takes no place as well.
func lineReentersFree(r *rig) {
	some := r.putLined("x", 2, 2)
	taken := r.takeLined(2, some...)
	r.endLined(taken[0], core.Retryable, 2)
	r.now = r.job(some[0]).DueAt
	again := r.takeLined(2, some[0])[0]
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 2}})
	r.endLined(again, core.Completed, 2)
	r.endLined(taken[1], core.Completed, 2)
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
}

func lineFront(r *rig) {
	some := r.putLined("x", 2, 5)
	taken := r.takeLined(2, some[0], some[1])
	r.endLined(taken[0], core.Retryable, 2)
	third := r.takeLined(2, some[2])
	r.now = r.job(some[0]).DueAt
	r.takeLined(2)
	r.equal("attempt", r.job(some[0]).Attempt, 1)
	r.endLined(third[0], core.Completed, 2)
	r.takeLined(2, some[0])
	r.wantStatus(core.Waiting, some[3], some[4])
}

// The delay of a job that waits in its line counts from its arrival.
func lineNext(r *rig) {
	first, late := r.lined("x", 1), r.lined("x", 1)
	late.Jobs[0].DueAt = r.now.Add(time.Minute)
	r.accept(first)
	r.accept(late)
	taken := r.takeLined(1, first.Jobs[0].ID)
	r.now = r.now.Add(time.Second)
	r.endLined(taken[0], core.Completed, 1)
	r.wantStatus(core.Scheduled, late.Jobs[0].ID)
	r.equal("due", r.job(late.Jobs[0].ID).DueAt, late.Jobs[0].DueAt)
	last := r.putLined("x", 1, 1)
	r.now = r.now.Add(time.Hour)
	r.endLined(r.takeLined(1, late.Jobs[0].ID)[0], core.Completed, 1)
	r.equal("due", r.job(last[0]).DueAt, r.now)
	r.takeLined(1, last...)
}

func lineSettledTwice(r *rig) {
	some := r.putLined("x", 1, 3)
	o := r.endLined(r.takeLined(1, some[0])[0], core.Completed, 1)
	r.settle(o)
	r.takeLined(1, some[1])
	r.settle(o)
	r.takeLined(1)
}

// The outcome of a worker whose lease was taken over passes nothing on.
func lineLostOutcome(r *rig) {
	some := r.putLined("x", 1, 2)
	stale := r.takeLined(1, some[0])[0]
	r.now = r.now.Add(leaseTime)
	r.takeLined(1, some[0])
	o := r.ended(stale.Job, core.Completed)
	o.Lane, o.Line = stale.Lane, core.Line{Key: "x", Limit: 1}
	r.equal("lost", r.lost(o), []core.ID{some[0]})
	r.takeLined(1)
	r.wantStatus(core.Waiting, some[1])
}

// Nor does such an outcome take the slot away or stop the line.
func lineLostAlone(r *rig) {
	for _, status := range []core.Status{core.Completed, core.Dead} {
		some := r.putLined("x", 1, 1)
		stale := r.takeLined(1, some[0])[0]
		r.now = r.now.Add(leaseTime)
		again := r.takeLined(1, some[0])[0]
		o := r.ended(stale.Job, status)
		o.Lane, o.Line, o.StopsLine = stale.Lane, core.Line{Key: "x", Limit: 1}, true
		r.equal("lost", r.lost(o), []core.ID{some[0]})
		r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 1}})
		behind := r.putLined("x", 1, 1)
		r.takeLined(1)
		r.endLined(again, core.Completed, 1)
		r.endLined(r.takeLined(1, behind...)[0], core.Completed, 1)
	}
}

// Several jobs of a line that end in one batch give their slots to as many others.
func lineNextTwo(r *rig) {
	some := r.putLined("x", 3, 8)
	var outcomes []core.Outcome
	for _, j := range r.takeLined(3, some[:3]...) {
		o := r.ended(j.Job, core.Completed)
		o.Lane, o.Line = j.Lane, core.Line{Key: "x", Limit: 3}
		outcomes = append(outcomes, o)
	}
	r.settle(outcomes...)
	r.takeLined(3, some[3:6]...)
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 3, Waiting: 2}})
}

func lineRetryKeeps(r *rig) {
	some := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, some[0])[0], core.Retryable, 1)
	r.takeLined(1)
	r.now = r.job(some[0]).DueAt
	r.endLined(r.takeLined(1, some[0])[0], core.Completed, 1)
	r.takeLined(1, some[1])
}

func lineRetryLeaves(r *rig) {
	some := r.putLined("x", 2, 3)
	r.endLined(r.takeLined(2, some[0], some[1])[0], core.Retryable, 2)
	r.takeLined(2, some[2])
}

func lineStops(r *rig) {
	some, other := r.putLined("x", 1, 2), r.putLined("y", 1, 2)
	taken := r.takeLined(1, some[0], other[0])
	r.endLined(taken[0], core.Dead, 1)
	r.endLined(taken[1], core.Completed, 1)
	r.takeLined(1, other[1])
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{
		{Key: "x", Admitted: 1, Waiting: 1, StoppedAt: r.now, StoppedBy: some[0]}, {Key: "y", Admitted: 1}})
	r.equal("stopped", r.tallies(r.lane)[r.lane].Stopped, 1)
	more := r.putLined("x", 1, 1)
	r.wantStatus(core.Waiting, some[1], more[0])
}

func lineGoesOn(r *rig) {
	some := r.putLined("x", 1, 2)
	j := r.takeLined(1, some[0])[0]
	o := r.ended(j.Job, core.Dead)
	o.Lane, o.Line = j.Lane, core.Line{Key: "x", Limit: 1}
	r.settle(o)
	r.takeLined(1, some[1])
}
