package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	saysTimeCome     = "A scheduled job whose time has come is shown as available"
	saysLeaseOver    = "A running job whose lease is over at the time of the query is shown as retryable, since any worker may take it"
	saysNotFound     = "Errors: a [Refusal] of kind [Unavailable] means that the database could not be reached or could not write and that the same call may succeed later; of kind [NotFound] that the named row does not exist"
	saysEvent        = "Event returns one event with its payload"
	saysEvents       = "Events lists events newest first, without their payloads and headers"
	saysAlerts       = "The events of [AlertSource] are listed only if the filter asks for them"
	saysJob          = "Job returns one job"
	saysJobs         = "Jobs lists jobs newest first, paged like Events"
	saysAttempts     = "Attempts lists the attempts of a job, oldest first; an unknown job has none"
	saysSomeAttempts = "It leaves out the first skip of them, and returns at most limit, 1 to MaxPage"
	saysSources      = "SourcesOf returns the sources of events"
	saysNoSource     = "Events that are not stored are absent"
	saysFailures     = "Failures lists the jobs that are dead or shown as retryable, newest first, with the first MaxFailureText bytes of their errors"
	saysOlder        = "More says whether there are older ones"
	saysDepth        = "Depth is the number of jobs that are not finished"
	saysAll          = "Zero fields select everything"
	saysMore         = "More is whether there are older ones"
)

// All checks read one store with a fixed content, which is faster and shows that they only read.
var ledger = role{name: "Ledger", stock: fill, checks: []check{
	{saysEvent, "", showEvent},
	{saysNotFound, "event", showNoEvent},
	{saysNotFound, "job", showNoJob},
	{saysEvents, "", listEvents},
	{saysEvents, "one by one", pageEvents},
	{saysEvents, "by source and type", filterEvents},
	{saysEvents, "by time", filterTimes},
	{saysAlerts, "", listAlerts},
	{saysAlerts, "one by one", pageAlerts},
	{saysJob, "", showJob},
	{saysJobs, "", listJobs},
	{saysJobs, "one by one", pageJobs},
	{saysJobs, "by one field", filterJobs},
	{saysJobs, "by all fields", filterJobsCombined},
	{saysAll, "", filterNothing},
	{saysMore, "", moreExact},
	{saysLeaseOver, "alone", showOver},
	{saysLeaseOver, "in a list", listOver},
	{saysLeaseOver, "filtered by status", filterOver},
	{saysTimeCome, "alone", showCame},
	{saysTimeCome, "filtered by status", filterCame},
	{saysAttempts, "", showAttempts},
	{saysAttempts, "unknown", showNoAttempts},
	{saysSomeAttempts, "", showSomeAttempts},
	{saysSources, "", showSources},
	{saysNoSource, "", showNoSource},
	{saysFailures, "", listFailures},
	{saysFailures, "of a lane", filterFailures},
	{saysFailures, "of a period", filterFailureTimes},
	{saysOlder, "", limitFailures},
	{saysDepth, "", showDepth},
}}

// A stock is the content of the store that the read-only checks share. The checks compare answers
// with these values, so they must not change them.
type stock struct {
	events []core.Event // oldest first, without the gateway's own events
	alerts []core.Event // the gateway's own events, oldest first
	jobs   []core.Job   // oldest first, as the Ledger must show them
	by     map[string]core.Job

	attempts []core.Attempt // of by["tried"], oldest first
}

// fill stores a job in every status. Its times are 2 h in the past, so that one lease is over by
// the store's own clock. It makes one job of each kind that a listing shows in a special way, with
// names under which checks find them.
func fill(r *rig) {
	r.now = core.SystemClock().UTC().Truncate(time.Millisecond).Add(-2 * time.Hour)
	start := r.now
	r.ids = core.NewIDs(func() time.Time { return start }) // queries find events also by the times in their ids
	r.stock = &stock{by: map[string]core.Job{}}
	r.addToStock("completed", r.settled(core.Completed))
	r.addToStock("dead", r.settled(core.Dead))
	r.addToStock("overdue", r.overdue())
	r.now = r.now.Add(time.Minute)
	r.addToStock("running", r.leased(r.arrival(r.lane), 100*time.Hour))
	r.addToStock("retryable", r.settled(core.Retryable))
	r.addToStock("tried", r.tried(3))
	r.addToStock("available", r.put())
	scheduled, _ := r.scheduledRun(start.Add(100 * time.Hour))
	r.addToStock("scheduled", scheduled)
	came, _ := r.scheduledRun(r.now.Add(time.Minute))
	came.Status = core.Available
	r.addToStock("came", came)

	other := r.arrival("queue/mail", "handler/audit")
	other.Event.Source, other.Event.Type, other.Event.CreatedAt = "crm", "user.created", start.Add(time.Minute)
	r.addToStock("", r.accepted(other)[0])
	r.stock.jobs = append(r.stock.jobs, r.job(other.Jobs[1].ID))
	alone := r.arrival()
	alone.Event.Source, alone.Event.CreatedAt = "crm", start.Add(time.Minute-time.Millisecond)
	r.accepted(alone)
	r.stock.events = append(r.stock.events, alone.Event)
	r.storeAlerts()
}

// storeAlerts stores events of the gateway itself whose ids sort before all others, among them and
// after them. Their ids are made from the ids of other events, so that a listing by id would mix
// them.
func (r *rig) storeAlerts() {
	now := r.now
	first, last := r.stock.events[0], r.stock.events[len(r.stock.events)-1]
	for _, id := range []core.ID{first.ID[:25] + "!", first.ID + "!", last.ID + "!"} {
		a := r.arrival()
		a.Event.ID, a.Event.Source, a.Event.CreatedAt = id, core.AlertSource, now
		r.accepted(a)
		r.stock.alerts = append(r.stock.alerts, a.Event)
	}
}

// addToStock adds a job and its event to the stock. A job may have no name.
func (r *rig) addToStock(name string, j core.Job) {
	r.stock.jobs = append(r.stock.jobs, j)
	r.stock.events = append(r.stock.events, r.storedEvent(j.EventID))
	r.stock.by[name] = j
}

// leased accepts an arrival with one job, takes that job under a lease of d, and returns it.
func (r *rig) leased(a core.Arrival, d time.Duration) core.Job {
	r.accepted(a)
	return r.takeOnly(a.Jobs[0].ID, core.Quota{Lane: a.Jobs[0].Lane, N: 1, Hold: d}).Job
}

// overdue returns a running job whose lease is over by the store's clock, as the Ledger shows it.
func (r *rig) overdue() core.Job {
	j := r.leased(r.arrival("handler/slow"), time.Second)
	j.Status = core.Retryable
	return j
}

// tried returns a job with n failed attempts, and adds those to the stock.
func (r *rig) tried(n int) core.Job {
	a := r.arrival("handler/tried")
	a.Jobs[0].MaxAttempts = n + 1
	r.accepted(a)
	for i := range n {
		j := r.takeOnly(a.Jobs[0].ID, core.Quota{Lane: "handler/tried", N: 1, Hold: leaseTime})
		o := r.ended(j.Job, core.Retryable)
		o.Attempt.Response, o.DueAt = nth(i), r.now.Add(time.Second)
		r.settle(o)
		r.stock.attempts = append(r.stock.attempts, o.Attempt)
		r.now = o.DueAt
	}
	return r.job(a.Jobs[0].ID)
}

// summary returns an event as listings show it, without payload and headers.
func summary(e core.Event) core.Event {
	e.Payload, e.Headers = nil, nil
	return e
}

// newest returns the items in reverse order.
func newest[T any](oldest []T) []T {
	out := slices.Clone(oldest)
	slices.Reverse(out)
	return out
}

// filtered returns the items that match, in their order.
func filtered[T any](items []T, match func(T) bool) []T {
	var out []T
	for _, it := range items {
		if match(it) {
			out = append(out, it)
		}
	}
	return out
}

// Each event is returned with its payload and headers.
func showEvent(r *rig) {
	for _, want := range r.stock.events {
		r.equal("Event", r.storedEvent(want.ID), want)
	}
}

// Unknown, empty and odd ids, and the id of a job, are not found. A pattern such as "%" matches
// none.
func showNoEvent(r *rig) {
	for _, id := range []core.ID{r.ids.Next(), "", "%", r.stock.jobs[0].ID} {
		if _, err := r.store.Event(context.Background(), id); !core.IsKind(err, core.NotFound) {
			r.Errorf("Event(%q) = %v, want a refusal of kind NotFound", id, err)
		}
	}
}

// Unknown, empty and odd ids, and the id of an event, are not found as jobs.
func showNoJob(r *rig) {
	for _, id := range []core.ID{r.ids.Next(), "", "%", r.stock.events[0].ID} {
		if _, err := r.store.Job(context.Background(), id); !core.IsKind(err, core.NotFound) {
			r.Errorf("Job(%q) = %v, want a refusal of kind NotFound", id, err)
		}
	}
}

// wantEvents fails unless a listing has exactly these events, without payloads and headers, and no
// further page.
func (r *rig) wantEvents(f core.EventFilter, want []core.Event) {
	r.Helper()
	list := make([]core.Event, len(want))
	for i := range want {
		list[i] = summary(want[i])
	}
	r.equal("Events("+shortened(f)+")", r.events(f), core.Page[core.Event]{Items: list})
}

// A listing without conditions has all events but alerts, newest first.
func listEvents(r *rig) { r.wantEvents(core.EventFilter{}, newest(r.stock.events)) }

// Source and type select by equality. A type that is only the beginning of another selects
// nothing.
func filterEvents(r *rig) {
	for _, f := range []core.EventFilter{
		{Source: "shop"}, {Source: "crm"}, {Source: "nobody"},
		{Type: "order.created"}, {Type: "user.created"}, {Type: "order"},
		{Source: "crm", Type: "order.created"}, {Source: "shop", Type: "user.created"},
	} {
		r.wantEvents(f, filtered(newest(r.stock.events), func(e core.Event) bool {
			return (f.Source == "" || e.Source == f.Source) && (f.Type == "" || e.Type == f.Type)
		}))
	}
}

// Since includes its time and Until excludes it, to the millisecond, so that periods join without
// gaps.
func filterTimes(r *rig) {
	all := newest(r.stock.events)
	last, ms := all[0].CreatedAt, time.Millisecond
	for _, f := range []core.EventFilter{
		{Since: last}, {Since: last.Add(ms)}, {Since: last.Add(-ms)},
		{Until: last}, {Until: last.Add(ms)}, {Until: last.Add(-ms)},
		{Since: last.Add(-ms), Until: last}, {Since: last, Until: last},
		{Since: last.Add(-ms), Until: last.Add(ms), Source: "crm", Type: "user.created"},
	} {
		r.wantEvents(f, filtered(all, func(e core.Event) bool {
			return !e.CreatedAt.Before(f.Since) && (f.Until.IsZero() || e.CreatedAt.Before(f.Until)) &&
				(f.Source == "" || e.Source == f.Source) && (f.Type == "" || e.Type == f.Type)
		}))
	}
}

// Pages of one lead through all events, and More is false on the last page only.
func pageEvents(r *rig) {
	var got []core.ID
	f := core.EventFilter{Limit: 1}
	for range r.stock.events {
		p := r.events(f)
		if len(p.Items) != 1 {
			r.Fatalf("Events(%+v) has %d items, want 1", f, len(p.Items))
		}
		f.After = p.Items[0].ID
		got = append(got, f.After)
		r.equal("Events one by one: More", p.More, len(got) < len(r.stock.events))
	}
	r.equal("Events one by one", got, ids(newest(r.stock.events)))
	r.wantEvents(f, nil)
}

// Alerts appear only if the filter names their source. A filter with their type alone does not
// select them.
func listAlerts(r *rig) {
	alerts := core.EventFilter{Source: core.AlertSource}
	r.wantEvents(alerts, newest(r.stock.alerts))
	r.wantEvents(core.EventFilter{}, newest(r.stock.events))
	r.wantEvents(core.EventFilter{Type: r.stock.alerts[0].Type}, filtered(newest(r.stock.events), func(e core.Event) bool {
		return e.Type == r.stock.alerts[0].Type
	}))
	alerts.Type = "user.created"
	r.wantEvents(alerts, nil)
	for _, want := range r.stock.alerts {
		r.equal("Event", r.storedEvent(want.ID), want)
	}
}

// Alerts are paged like other events.
func pageAlerts(r *rig) {
	f := core.EventFilter{Source: core.AlertSource, Limit: 2}
	p := r.events(f)
	r.equal("Events of the gateway itself", ids(p.Items), ids(newest(r.stock.alerts)[:2]))
	r.equal("Events of the gateway itself: More", p.More, true)
	f.After = p.Items[1].ID
	r.equal("Events of the gateway itself, next page", r.events(f), core.Page[core.Event]{Items: []core.Event{summary(r.stock.alerts[0])}})
}

// Each job is shown with all fields.
func showJob(r *rig) {
	for _, want := range r.stock.jobs {
		got := r.job(want.ID)
		r.equal("Job("+string(want.Lane)+")", shown(got), shown(want))
	}
}

// shown removes the lease from a retryable job. The contract leaves open whether a job whose
// lease is over still shows that lease.
func shown(j core.Job) core.Job {
	if j.Status == core.Retryable {
		j.Lease = ""
	}
	return j
}

// wantJobs fails unless a listing has exactly these jobs and no further page. It ignores leases of
// retryable jobs.
func (r *rig) wantJobs(f core.JobFilter, want []core.Job) {
	r.Helper()
	got := r.jobs(f)
	for i := range got.Items {
		got.Items[i] = shown(got.Items[i])
	}
	list := make([]core.Job, len(want))
	for i := range want {
		list[i] = shown(want[i])
	}
	r.equal("Jobs("+shortened(f)+")", got, core.Page[core.Job]{Items: list})
}

// A listing without conditions has all jobs, newest first.
func listJobs(r *rig) { r.wantJobs(core.JobFilter{}, newest(r.stock.jobs)) }

// Pages of one lead through all jobs.
func pageJobs(r *rig) {
	var got []core.ID
	f := core.JobFilter{Limit: 1}
	for range r.stock.jobs {
		p := r.jobs(f)
		if len(p.Items) != 1 {
			r.Fatalf("Jobs(%+v) has %d items, want 1", f, len(p.Items))
		}
		f.After = p.Items[0].ID
		got = append(got, f.After)
		r.equal("Jobs one by one: More", p.More, len(got) < len(r.stock.jobs))
	}
	r.equal("Jobs one by one", got, ids(newest(r.stock.jobs)))
	r.wantJobs(f, nil)
}

// Each condition alone: lanes, events, cursors and statuses, with values that exist and do not.
func filterJobs(r *rig) {
	filters := []core.JobFilter{
		{Lane: r.lane}, {Lane: "handler/nobody"}, {Lane: "handler"},
		{EventID: r.stock.jobs[0].EventID}, {EventID: r.stock.by[""].EventID}, {EventID: r.ids.Next()},
		{After: r.stock.jobs[2].ID}, {After: r.stock.events[2].ID},
	}
	for _, s := range core.Statuses() {
		filters = append(filters, core.JobFilter{Status: s})
	}
	for _, f := range filters {
		r.wantJobs(f, r.stock.matching(f))
	}
}

// A filter with several conditions finds each job: a store may use another index for each
// combination.
func filterJobsCombined(r *rig) {
	for _, j := range r.stock.jobs {
		f := core.JobFilter{Status: j.Status, Lane: j.Lane, EventID: j.EventID, After: r.ids.Next()}
		r.wantJobs(f, r.stock.matching(f))
		f.After = j.ID
		r.wantJobs(f, r.stock.matching(f))
		f = core.JobFilter{Status: j.Status, Lane: r.lane}
		r.wantJobs(f, r.stock.matching(f))
		f = core.JobFilter{Status: core.Available, EventID: j.EventID}
		r.wantJobs(f, r.stock.matching(f))
	}
}

// matching returns the jobs of the stock that a filter selects, newest first.
func (s *stock) matching(f core.JobFilter) []core.Job {
	return filtered(newest(s.jobs), func(j core.Job) bool {
		return (f.Status == "" || j.Status == f.Status) && (f.Lane == "" || j.Lane == f.Lane) &&
			(f.EventID == "" || j.EventID == f.EventID) && (f.After == "" || j.ID < f.After)
	})
}

// Zero filters leave nothing out.
func filterNothing(r *rig) {
	r.equal("Events: number", len(r.events(core.EventFilter{}).Items), len(r.stock.events))
	r.equal("Jobs: number", len(r.jobs(core.JobFilter{}).Items), len(r.stock.jobs))
}

// A page that ends with the last item has no further page.
func moreExact(r *rig) {
	n := len(r.stock.events)
	r.equal("Events: More below the number", r.events(core.EventFilter{Limit: n - 1}).More, true)
	r.equal("Events: More at the number", r.events(core.EventFilter{Limit: n}).More, false)
	n = len(r.stock.jobs)
	r.equal("Jobs: More below the number", r.jobs(core.JobFilter{Limit: n - 1}).More, true)
	r.equal("Jobs: More at the number", r.jobs(core.JobFilter{Limit: n}).More, false)
	crm := core.EventFilter{Source: "crm", Limit: 2}
	r.equal("Events of a source: More at the number", r.events(crm).More, false)
}

// If the worker of a job vanished, operators must not see the job as running after its lease.
func showOver(r *rig) {
	r.equal("Job with its lease over: status", r.job(r.stock.by["overdue"].ID).Status, core.Retryable)
	r.equal("Job with its lease: status", r.job(r.stock.by["running"].ID).Status, core.Running)
}

// Listings by lane and by event also show a job with an expired lease as retryable.
func listOver(r *rig) {
	over := r.stock.by["overdue"]
	for _, f := range []core.JobFilter{{Lane: over.Lane}, {EventID: over.EventID}} {
		for _, j := range r.jobs(f).Items {
			r.equal("Jobs: status", j.Status, core.Retryable)
		}
	}
}

// A filter for running jobs leaves such a job out, and one for retryable jobs selects it. So the
// filter applies to the status as shown.
func filterOver(r *rig) {
	over := r.stock.by["overdue"]
	r.wantJobs(core.JobFilter{Status: core.Running, Lane: over.Lane}, nil)
	r.wantJobs(core.JobFilter{Status: core.Retryable, Lane: over.Lane}, []core.Job{over})
}

// All attempts of a job are returned with their errors and responses.
func showAttempts(r *rig) {
	r.equal("Attempts", r.attempts(r.stock.by["tried"].ID), r.stock.attempts)
	r.equal("Attempts of an untried job: number", len(r.attempts(r.stock.by["available"].ID)), 0)
}

// someAttempts returns a part of the attempts of a job.
func (r *rig) someAttempts(id core.ID, skip, limit int) []core.Attempt {
	r.Helper()
	got, err := r.store.Attempts(context.Background(), id, skip, limit)
	if err != nil {
		r.Fatalf("Attempts(%s, %d, %d) failed: %v", id, skip, limit, err)
	}
	return append([]core.Attempt{}, got...)
}

// An unknown job has no attempts, which is no error.
func showNoAttempts(r *rig) {
	r.equal("Attempts of an unknown job: number", len(r.attempts(r.ids.Next())), 0)
}

// Every part of the list is that part of the whole list. A part behind its end is empty.
func showSomeAttempts(r *rig) {
	id, all := r.stock.by["tried"].ID, r.stock.attempts
	for skip := range len(all) + 2 {
		for limit := 1; limit <= len(all)+1; limit++ {
			from := min(skip, len(all))
			r.equal(fmt.Sprintf("Attempts, %d behind %d", limit, skip), r.someAttempts(id, skip, limit), append([]core.Attempt{}, all[from:min(from+limit, len(all))]...))
		}
	}
}

// One call returns the sources of all events, those of the gateway itself too. An event that the
// call names twice has one source.
func showSources(r *rig) {
	all := slices.Concat(r.stock.events, r.stock.alerts, r.stock.events[:1])
	want := map[core.ID]string{}
	for _, e := range all {
		want[e.ID] = e.Source
	}
	r.equal("SourcesOf", r.sourcesOf(ids(all)...), want)
}

// Unknown, empty and odd ids, and the id of a job, have no source, also beside known ids in the
// same call.
func showNoSource(r *rig) {
	known := r.stock.events[0]
	got := r.sourcesOf(r.ids.Next(), known.ID, "", "%", r.stock.jobs[0].ID)
	r.equal("SourcesOf", got, map[core.ID]string{known.ID: known.Source})
	r.equal("SourcesOf no event: number", len(r.sourcesOf()), 0)
}

// Depth counts running, waiting and retryable jobs, and no finished ones.
func showDepth(r *rig) {
	open := filtered(r.stock.jobs, func(j core.Job) bool { return !j.Status.Finished() })
	r.equal("Depth", r.depth(), len(open))
}
