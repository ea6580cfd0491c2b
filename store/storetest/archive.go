package storetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the requests of operators: finding events by their place in a listing, reading them in
// full for a replay or an export, and listing finished jobs. Each check stores a few events with
// known times and ids, and compares whole answers. A failure means that an operator replays too
// much or too little, or that an export has gaps.

const (
	saysNth        = `Nth returns the id of the nth newest event that the filter selects, n from 1, or the id of the oldest one if there are fewer; "" if the filter selects none`
	saysNthFilter  = "Nth ignores the filter's After and Limit"
	saysRead       = "Read returns events in full, the oldest first: the selected events with the given id or a higher one, at most f.Limit of them and no more once they have MaxRead bytes, but at least one if there is any"
	saysReadMore   = "More says whether there are further events"
	saysReadAfter  = "Read ignores the filter's After"
	saysJobsOf     = "JobsOf returns the jobs of events, each event's in the order of their ids"
	saysNoJobsOf   = "Events without jobs are absent"
	saysAttemptsOf = "AttemptsOf returns the attempts of jobs, each job's the oldest first"
	saysNoAttempts = "Jobs without attempts are absent"
	saysNoReplies  = "The kept parts of replies and the exchanges are left out"
	saysFinished   = "Finished lists the jobs that finished at the given time or later, in the order of finishing, and jobs of the same time in the order of their ids"

	saysFinishedAfter = "If after is set, it leaves out the jobs of exactly the given time up to that id"

	saysNoAlerts  = "It lists no alerts"
	saysCompleted = "Completed is the number of completed jobs that are still stored"
)

// archive holds the checks of the Archive, and of the Ledger's methods for operators. A check with
// a variant shows one case of its sentence.
var archive = role{name: "Archive", checks: []check{
	{saysNth, "", nthEvents},
	{saysNth, "by source, type and time", nthSelected},
	{saysNth, "none", nthNone},
	{saysNth, "alerts only on request", nthAlerts},
	{saysNthFilter, "", nthFilter},
	{saysRead, "", readEvents},
	{saysRead, "by source, type and time", readSelected},
	{saysRead, "at most MaxRead", readLarge},
	{saysRead, "page by page", readPages},
	{saysReadMore, "", readMore},
	{saysReadAfter, "", readAfter},
	{saysReadNewest, "", newestEvents},
	{saysReadNewest, "by source, type and time", newestSelected},
	{saysReadNewest, "at most MaxRead", newestLarge},
	{saysReadNewest, "page by page", newestPages},
	{saysNewestRecord, "", newestRecord},
	{saysNewestRecord, "of jobs and runs", newestOfEach},
	{saysNoRecord, "", newestOfNone},
	{saysByDelivery, "", selectDelivery},
	{saysByDelivery, "page by page", pageDelivery},
	{saysJobsOf, "", jobsOfEvents},
	{saysJobsOf, "a lease that is over", jobsOfOver},
	{saysNoJobsOf, "", jobsOfNone},
	{saysAttemptsOf, "", attemptsOfJobs},
	{saysNoAttempts, "", attemptsOfNone},
	{saysNoReplies, "", attemptsWithoutReplies},
	{saysNoReplies, "exchanges", attemptsWithoutExchanges},
	{saysAttempts, "of completed jobs", showSuccesses},
	{saysExchanges, "", showExchanges},
	{saysExchanges, "of steps", showStepExchanges},
	{saysSentBody, "", showSentBody},
	{saysNoBody, "", showNoSentBody},
	{saysNewestBody, "", showNewestSentBody},
	{saysFailures, "long errors", cutFailures},
	{saysOlder, "among many lanes", limitFailuresOfLanes},
	{saysFinished, "", finishedJobs},
	{saysFinished, "page by page", finishedPages},
	{saysFinishedAfter, "", finishedAfter},
	{saysDeadLimit, "of finished jobs", finishedLimit},
	{saysNoAlerts, "", finishedAlerts},
	{saysCompleted, "", completedJobs},
}}

// nth returns the id of the nth newest event, or "". It ends the test on an error.
func (r *rig) nth(f core.EventFilter, n int) core.ID {
	r.Helper()
	id, err := r.store.Nth(context.Background(), f, n)
	if err != nil {
		r.Fatalf("Nth(%+v, %d) failed: %v", f, n, err)
	}
	return id
}

// read returns the events from an id on, with their payloads.
func (r *rig) read(from core.ID, f core.EventFilter) core.Page[core.Event] {
	r.Helper()
	p, err := r.store.Read(context.Background(), from, f)
	if err != nil {
		r.Fatalf("Read(%s, %+v) failed: %v", from, f, err)
	}
	return p
}

// jobsOf returns the jobs of events. Events without jobs are absent.
func (r *rig) jobsOf(events ...core.ID) map[core.ID][]core.Job {
	r.Helper()
	of, err := r.store.JobsOf(context.Background(), events)
	if err != nil {
		r.Fatalf("JobsOf(%v) failed: %v", events, err)
	}
	return of
}

// finishedSince returns the first page of jobs that finished at a time or later.
func (r *rig) finishedSince(since time.Time, limit int) core.Page[core.Job] {
	r.Helper()
	p, err := r.store.Finished(context.Background(), since, "", limit)
	if err != nil {
		r.Fatalf("Finished(%s, %d) failed: %v", core.FormatTime(since), limit, err)
	}
	return p
}

// completedJobs returns the number of completed jobs of the whole store.
func (r *rig) completedJobs() int {
	r.Helper()
	n, err := r.store.Completed(context.Background())
	if err != nil {
		r.Fatalf("Completed failed: %v", err)
	}
	return n
}

// storeEvents stores n events, one a second, and returns them, oldest first. The sources
// alternate: two events of "shop", then two of "crm". The first of each two of "crm" has the type
// "user.created". So every filter of someFilters selects some of four events and leaves out
// others.
func (r *rig) storeEvents(n int) (events []core.Event) {
	r.Helper()
	for i := range n {
		a := r.arrival()
		a.Event.Payload = fmt.Appendf(nil, `{"n": %d}`, i)
		if i%4 >= 2 {
			a.Event.Source = "crm"
		}
		if i%4 == 2 {
			a.Event.Type = "user.created"
		}
		r.accepted(a)
		events = append(events, a.Event)
		r.now = r.now.Add(time.Second)
	}
	return events
}

// An operator asks for "the newest 1,000 events" of a store that has fewer, and must get all.
func nthEvents(r *rig) {
	events := r.storeEvents(4)
	for n, want := range map[int]int{1: 3, 2: 2, 4: 0, 5: 0, 1000: 0} {
		r.equal(fmt.Sprintf("Nth(%d)", n), r.nth(core.EventFilter{}, n), events[want].ID)
	}
}

// someFilters returns filters that each select some of the events. They cover each column of an
// event listing, and the pairs for which a store has an index.
func someFilters(events []core.Event) []core.EventFilter {
	return []core.EventFilter{
		{Source: "shop"}, {Type: "user.created"}, {Type: "order.created"}, {Type: "order.created", Since: events[1].CreatedAt}, {Source: "crm", Type: "user.created"}, {Source: "crm", Type: "order.created"},
		{Since: events[2].CreatedAt}, {Until: events[4].CreatedAt}, {Since: events[1].CreatedAt, Until: events[3].CreatedAt, Source: "shop"},
	}
}

// Nth is called with each filter: for each of its events in turn, and for one event more than it
// has.
func nthSelected(r *rig) {
	events := r.storeEvents(6)
	for _, f := range someFilters(events) {
		want := ids(newest(filtered(events, func(e core.Event) bool { return selects(f, e) })))
		for n, id := range want {
			r.equal(fmt.Sprintf("Nth(%+v, %d)", f, n+1), r.nth(f, n+1), id)
		}
		if len(want) > 0 {
			r.equal(fmt.Sprintf("Nth(%+v) beyond", f), r.nth(f, len(want)+1), want[len(want)-1])
		}
	}
}

// A filter that selects nothing must return "", since any other id would make a replay begin
// there.
func nthNone(r *rig) {
	r.equal("Nth of nothing", r.nth(core.EventFilter{}, 1), core.ID(""))
	events := r.storeEvents(2)
	r.equal("Nth of another source", r.nth(core.EventFilter{Source: "nobody"}, 1), core.ID(""))
	r.equal("Nth of a future period", r.nth(core.EventFilter{Since: r.now}, 1), core.ID(""))
	r.equal("Nth", r.nth(core.EventFilter{Source: "shop"}, 2), events[0].ID)
}

// A filter without a source must not select the alerts of the gateway. A replay of such a filter
// would send old alerts again.
func nthAlerts(r *rig) {
	want := r.storeEvents(1)[0].ID
	a := r.arrival()
	a.Event.Source = core.AlertSource
	r.accepted(a)
	r.equal("Nth", r.nth(core.EventFilter{}, 1), want)
	r.equal("Nth of alerts", r.nth(core.EventFilter{Source: core.AlertSource}, 1), a.Event.ID)
	r.equal("Read", ids(r.read(want, core.EventFilter{}).Items), []core.ID{want})
	r.equal("Read of alerts", ids(r.read("", core.EventFilter{Source: core.AlertSource}).Items), []core.ID{a.Event.ID})
}

// A caller may pass the filter of a listing, with its cursor and limit. Both must have no effect
// here.
func nthFilter(r *rig) {
	events := r.storeEvents(3)
	r.equal("Nth", r.nth(core.EventFilter{After: events[1].ID, Limit: 1}, 1), events[2].ID)
	r.equal("Nth", r.nth(core.EventFilter{After: events[1].ID, Limit: 1}, 3), events[0].ID)
}

// Reading may begin at an event's id or between two ids, as after an event was purged.
func readEvents(r *rig) {
	events := r.storeEvents(4)
	for i, e := range events {
		r.equal("Read", r.read(e.ID, core.EventFilter{}).Items, events[i:])
		r.equal("Read above", r.read(e.ID+"!", core.EventFilter{}).Items, events[i+1:])
	}
	r.equal("Read from the beginning", r.read("", core.EventFilter{}).Items, events)
}

// Reads with a filter return the same events as the listing with that filter, from an id on.
func readSelected(r *rig) {
	events := r.storeEvents(6)
	for _, f := range someFilters(events) {
		want := filtered(events[1:], func(e core.Event) bool { return selects(f, e) })
		r.equal(fmt.Sprintf("Read(%+v)", f), r.read(events[1].ID, f), core.Page[core.Event]{Items: want})
	}
}

// storeLarge stores events, and returns them, oldest first. All payloads but one are a quarter of
// core.MaxRead. Databases do not take much larger ones.
func (r *rig) storeLarge() (events []core.Event) {
	r.Helper()
	for _, size := range []int{core.MaxRead / 4, core.MaxRead / 4, core.MaxRead / 4, core.MaxRead / 4, 10, core.MaxRead / 4} {
		a := r.arrival()
		a.Event.Payload = bytes.Repeat([]byte("a"), size)
		r.accepted(a)
		events = append(events, a.Event)
	}
	return events
}

// A page of large events must not fill the memory, and must not be empty either.
func readLarge(r *rig) {
	events := r.storeLarge()
	for _, want := range []struct{ from, to int }{{0, 4}, {1, 6}, {4, 6}, {5, 6}} {
		p := r.read(events[want.from].ID, core.EventFilter{})
		r.equal("Read: events", ids(p.Items), ids(events[want.from:want.to]))
		r.equal("Read: More", p.More, want.to < len(events))
		for i, e := range p.Items {
			r.equal("Read: bytes", len(e.Payload), len(events[want.from+i].Payload))
		}
	}
}

// A reader that continues after the last id of a page must get each event once, for pages that end
// before, at and after the last event.
func readPages(r *rig) {
	events := r.storeEvents(7)
	for _, limit := range []int{1, 2, 6, 7, 8} {
		var got []core.Event
		var from core.ID
		for more := true; more; {
			p := r.read(from, core.EventFilter{Limit: limit})
			if len(p.Items) == 0 || len(p.Items) > limit {
				r.Fatalf("Read(%q) with a limit of %d has %d items", from, limit, len(p.Items))
			}
			got, more = append(got, p.Items...), p.More
			from = got[len(got)-1].ID + "!"
		}
		r.equal("Read page by page", got, events)
	}
}

// If More were wrong, an export would stop early or ask for an empty page.
func readMore(r *rig) {
	events := r.storeEvents(3)
	for limit, want := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		r.equal(fmt.Sprint("Read: More with a limit of ", limit), r.read("", core.EventFilter{Limit: limit}).More, want)
	}
	r.equal("Read: More of a source", r.read("", core.EventFilter{Source: "crm", Limit: 1}).More, false)
	r.equal("Read of nothing", r.read(events[2].ID+"!", core.EventFilter{}), core.Page[core.Event]{})
}

// The cursor of a listing runs from new to old. Applied here it would cut off the newest events.
func readAfter(r *rig) {
	events := r.storeEvents(3)
	r.equal("Read", r.read("", core.EventFilter{After: events[1].ID}).Items, events)
}

// The call names the events in another order than that of their ids, and one of them twice. The
// jobs were stored in the reverse order of their ids, and the jobs of one event belong to runs.
func jobsOfEvents(r *rig) {
	two, run := r.arrival(r.lane, "queue/mail"), r.runArrival(defaultWorkflow, defaultWorkflow)
	two.Jobs[0], two.Jobs[1] = two.Jobs[1], two.Jobs[0]
	done := r.settled(core.Completed)
	r.accept(two)
	r.accept(run)
	r.put()
	want := map[core.ID][]core.Job{done.EventID: {done}}
	for _, id := range []core.ID{two.Event.ID, run.Event.ID} {
		want[id] = newest(r.jobs(core.JobFilter{EventID: id}).Items)
	}
	r.equal("JobsOf", r.jobsOf(run.Event.ID, done.EventID, two.Event.ID, done.EventID), want)
	r.equal("JobsOf: run", want[run.Event.ID][0].RunID, run.Runs[0].ID)
}

// A job whose lease is over must not be shown as running, as in all listings.
func jobsOfOver(r *rig) {
	r.now = core.SystemClock().UTC().Truncate(time.Millisecond).Add(-time.Hour)
	j := r.taken().Job
	r.equal("JobsOf: status", r.jobsOf(j.EventID)[j.EventID][0].Status, core.Retryable)
}

// Events without jobs and unknown events must not add entries. They are no error, and neither is
// a call without events.
func jobsOfNone(r *rig) {
	bare, j := r.arrival(), r.put()
	r.accepted(bare)
	r.equal("JobsOf", r.jobsOf(bare.Event.ID, j.EventID, r.ids.Next()), map[core.ID][]core.Job{j.EventID: {j}})
	r.equal("JobsOf of no events", r.jobsOf(), map[core.ID][]core.Job{})
}

// attemptsOf returns the attempts of jobs without their responses. Jobs without attempts are
// absent.
func (r *rig) attemptsOf(jobs ...core.ID) map[core.ID][]core.Attempt {
	r.Helper()
	of, err := r.store.AttemptsOf(context.Background(), jobs)
	if err != nil {
		r.Fatalf("AttemptsOf(%v) failed: %v", jobs, err)
	}
	return of
}

// Three jobs have three, two and one attempts. The call names them in mixed order. If attempts
// were listed with the wrong job, the counts would differ.
func attemptsOfJobs(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, 3)...))
	want := map[core.ID][]core.Attempt{}
	for n := range 3 { // the first job is tried three times, the next twice
		for _, j := range r.take(3 - n) {
			o := r.ended(j.Job, core.Retryable)
			o.DueAt = r.now.Add(time.Duration(len(want)) * time.Millisecond)
			r.settle(o)
		}
		r.now = r.now.Add(time.Second)
	}
	var ids []core.ID
	for _, j := range r.jobs(core.JobFilter{Lane: r.lane}).Items {
		ids = append(ids, j.ID)
		want[j.ID] = replyless(r.attempts(j.ID))
	}
	r.equal("AttemptsOf: number", len(want[ids[0]])+len(want[ids[1]])+len(want[ids[2]]), 6)
	r.equal("AttemptsOf", r.attemptsOf(ids[1], ids[2], ids[0], ids[1]), want)
	r.equal("AttemptsOf some", r.attemptsOf(ids[2]), map[core.ID][]core.Attempt{ids[2]: want[ids[2]]})
}

// replyless returns the attempts without their stored replies.
func replyless(attempts []core.Attempt) []core.Attempt {
	for i := range attempts {
		attempts[i].Response = ""
	}
	return attempts
}

// Replies may have many kilobytes each. A listing with them would not fit into memory.
func attemptsWithoutReplies(r *rig) {
	j := r.taken()
	o := r.ended(j.Job, core.Completed)
	o.Attempt.Response = "kept"
	r.settle(o)
	r.equal("Attempts: response", r.attempts(j.ID)[0].Response, "kept")
	r.equal("AttemptsOf: response", r.attemptsOf(j.ID)[j.ID][0].Response, "")
}

// Untried and unknown jobs are absent, so that a caller can tell them from jobs with attempts.
func attemptsOfNone(r *rig) {
	tried, untried := r.settled(core.Completed), r.put()
	got := r.attemptsOf(untried.ID, tried.ID, r.ids.Next())
	r.equal("AttemptsOf", got, map[core.ID][]core.Attempt{tried.ID: replyless(r.attempts(tried.ID))})
	r.equal("AttemptsOf no jobs", r.attemptsOf(), map[core.ID][]core.Attempt{})
}

// finishInOrder takes n jobs and settles them as dead and completed in turn, one a millisecond and
// the last two at the same time. They finish in another order than they were made. The result is
// in the order of finish times, then ids. So a listing in the order of ids or of insertion differs
// from the right one.
func (r *rig) finishInOrder(n int) (over []core.Job) {
	r.Helper()
	r.accepted(r.arrival(lanes(r.lane, n)...))
	for i, j := range newest(r.take(n)) {
		if i < n-1 {
			r.now = r.now.Add(time.Millisecond)
		}
		r.settle(r.ended(j.Job, []core.Status{core.Dead, core.Completed}[i%2]))
		over = append(over, r.job(j.ID))
	}
	over[n-2], over[n-1] = over[n-1], over[n-2] // by their ids
	return over
}

// Operators follow the jobs of a gateway by this listing. It must contain each job that has
// ended, and the run of a job that belongs to one. It must not contain unfinished or revived
// jobs.
func finishedJobs(r *rig) {
	over := r.finishInOrder(6)
	r.settled(core.Retryable)
	r.taken()
	r.put()
	for i, j := range over[:5] {
		r.equal("Finished", r.finishedSince(j.FinishedAt, 9), core.Page[core.Job]{Items: over[i:]})
	}
	r.equal("Finished later", r.finishedSince(r.now.Add(time.Millisecond), 9), core.Page[core.Job]{})
	r.retry(over[0].ID, "")
	r.equal("Finished after a Retry of the first job", r.finishedSince(over[0].FinishedAt, 9).Items, over[1:])
	j := r.takeNewRun()
	t := r.fullTransition(j)
	r.now = r.now.Add(time.Second)
	t.JobsEnd[0].FinishedAt = r.now
	r.mustTransit(t)
	var runs []core.ID
	for _, j := range r.finishedSince(r.now, 1).Items {
		runs = append(runs, j.RunID)
	}
	r.equal("Finished: run", runs, []core.ID{t.Run.ID})
}

// A page of two jobs begins at each finish time in turn. More must be true exactly if jobs follow
// the page.
func finishedPages(r *rig) {
	over := r.finishInOrder(5)
	for i, j := range over[:4] {
		want := core.Page[core.Job]{Items: over[i:min(i+2, 5)], More: i+2 < 5}
		r.equal("Finished, two of them", r.finishedSince(j.FinishedAt, 2), want)
	}
}

// finishedAfter settles two jobs at one time, and two older jobs a millisecond later. It lists
// them page by page, one job a page.
func finishedAfter(r *rig) {
	older := []core.Job{r.taken().Job, r.taken().Job}
	for _, j := range []core.Job{r.taken().Job, r.taken().Job} {
		r.settle(r.ended(j, core.Dead))
	}
	first := r.now
	r.now = r.now.Add(time.Millisecond)
	for _, j := range older {
		r.settle(r.ended(j, core.Completed))
	}
	over := r.finishedSince(first, 9).Items
	for i, j := range over {
		p, err := r.store.Finished(context.Background(), j.FinishedAt, j.ID, 1)
		want := core.Page[core.Job]{Items: over[i+1 : min(i+2, len(over))], More: i+2 < len(over)}
		r.equal("Finished after", []any{ids(p.Items), p.More, err}, []any{ids(want.Items), want.More, nil})
	}
	r.equal("Finished", len(over), 4)
}

// A limit of 0 means the default, and MaxPage is permitted, as in the other listings.
func finishedLimit(r *rig) {
	r.finishInOrder(core.DefaultPage + 1)
	p := r.finishedSince(time.Time{}, 0)
	r.equal("Finished with a limit of 0", []any{len(p.Items), p.More}, []any{core.DefaultPage, true})
	p = r.finishedSince(time.Time{}, core.MaxPage)
	r.equal("Finished with the largest limit", []any{len(p.Items), p.More}, []any{core.DefaultPage + 1, false})
}

// Alerts are messages of the gateway itself, and would hide the jobs of consumers. Lanes whose names
// only resemble "alert/" are listed.
func finishedAlerts(r *rig) {
	for _, l := range []core.Lane{core.AlertLane("a"), "alert", "alerts/x", "alert0"} {
		r.lane = l
		j := r.settled(core.Completed)
		r.equal("Finished of "+string(l), len(r.finishedSince(j.FinishedAt, 9).Items), map[bool]int{true: 0, false: 1}[l.Alert()])
		r.now = r.now.Add(time.Second)
	}
}

// Metrics show this number. Dead jobs and unfinished ones must not count, acked messages must.
func completedJobs(r *rig) {
	r.equal("Completed of nothing", r.completedJobs(), 0)
	r.finishInOrder(7)
	r.equal("Completed beside dead ones", r.completedJobs(), 3)
	r.settled(core.Retryable)
	r.taken()
	r.put()
	_, refs := r.putAndTake(2)
	r.ack(r.lane, refs...)
	r.equal("Completed", r.completedJobs(), 5)
	r.now = r.now.Add(time.Second)
	r.purge(4)
	r.equal("Completed after a purge", r.completedJobs(), 3)
}
