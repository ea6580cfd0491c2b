package storetest

import (
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// times checks due times to the millisecond. A worker may have a job from its due time on. A
// database that rounds, converts zones or compares times as text would let a job start early, or
// twice.
var times = role{name: "Times", checks: []check{
	{"A job is due from its due time on", "", dueExactly},
	{"Times are stored in milliseconds", "", keepMillis},
	{"Fractions of a millisecond make no job due early", "", dueParts},
	{"A time is stored as an instant, in any zone", "", keepInstant},
	{"Each quota has its own hold", "", holdEach},
	{"A lease is over from its end on", "", leaseEnd},
	{"The clock may be set back", "", stepBack},
	{saysIDAhead, "", receivedAside},
	{saysIDAhead, "in listings", listedAside},
}}

// Five jobs are due a millisecond apart. At each of these times, a Take with a quota of nine
// returns exactly one job.
func dueExactly(r *rig) {
	start := r.now
	var want []core.ID
	for i := range 5 {
		a := r.arrival(r.lane)
		a.Event.CreatedAt = start.Add(time.Duration(i) * time.Millisecond)
		want = append(want, r.accepted(a)[0].ID)
	}
	for i := range want {
		r.now = start.Add(time.Duration(i) * time.Millisecond)
		r.equal("Take of all, ms "+nth(i), ids(r.takeQuotas(r.quota(9))), want[i:i+1])
	}
}

// Times from 2001 to 2199, at both ends of a second, are stored and read back in each column.
func keepMillis(r *rig) {
	start := r.now.Truncate(time.Second)
	for _, at := range []time.Time{
		start, start.Add(time.Millisecond), start.Add(999 * time.Millisecond),
		time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC), time.Date(2038, 1, 19, 3, 14, 8, 1e6, time.UTC),
		time.Date(2199, 12, 31, 23, 59, 59, 999e6, time.UTC),
	} {
		r.now, r.ids = at, core.NewIDs(func() time.Time { return at })
		a := r.arrival(r.lane)
		r.accepted(a)
		r.equal("Event", r.storedEvent(a.Event.ID), a.Event)
		r.now = at.Add(time.Millisecond)
		j := r.take(1)[0].Job
		o := r.ended(j, core.Retryable)
		o.Attempt.Duration = 1234 * time.Millisecond
		o.DueAt = r.now.Add(7 * time.Millisecond)
		r.settle(o)
		r.wantJob(after(j, o))
		r.equal("Attempts", r.attempts(j.ID), []core.Attempt{o.Attempt})
		r.now = o.DueAt
		j = r.take(1)[0].Job
		o = r.ended(j, core.Dead)
		r.settle(o)
		r.wantJob(after(j, o))
	}
}

// Callers pass times with more digits than a store keeps. A Take a nanosecond early must not get
// the job.
func dueParts(r *rig) {
	due := r.now
	r.put()
	r.now = due.Add(-time.Nanosecond)
	r.nothingDue()
	r.now = due.Add(999 * time.Microsecond)
	r.take(1)
}

// A process in another zone stores and finds the same instants.
func keepInstant(r *rig) {
	utc := r.now
	r.now = utc.In(time.FixedZone("far", 5*3600+1800))
	a := r.arrival(r.lane)
	r.accepted(a)
	j := r.take(1)[0].Job
	r.equal("Take: end of the lease", j.DueAt, utc.Add(leaseTime))
	r.equal("Event: CreatedAt", r.storedEvent(a.Event.ID).CreatedAt, utc)
	f := core.EventFilter{Since: r.now, Until: r.now.Add(time.Millisecond)}
	r.equal("Events of that time: number", len(r.events(f).Items), 1)
}

// Leases of one Take differ by lane, from a millisecond to a day.
func holdEach(r *rig) {
	holds := map[core.Lane]time.Duration{
		"handler/a": time.Millisecond, "handler/b": time.Second, "queue/c": 24 * time.Hour,
	}
	r.accepted(r.arrival("handler/a", "handler/b", "queue/c"))
	var quotas []core.Quota
	for l, d := range holds {
		quotas = append(quotas, core.Quota{Lane: l, N: 1, Hold: d})
	}
	got := r.takeQuotas(quotas...)
	r.equal("Take: number of jobs", len(got), 3)
	for _, j := range got {
		r.equal("Take("+string(j.Lane)+"): end of the lease", j.DueAt, r.now.Add(holds[j.Lane]))
		r.wantJob(j.Job)
	}
}

// For leases of several lengths, the job is free at the end and not a millisecond before.
func leaseEnd(r *rig) {
	for _, d := range []time.Duration{time.Millisecond, time.Second, 24 * time.Hour} {
		want := r.put()
		q := core.Quota{Lane: r.lane, N: 1, Hold: d}
		first := r.takeOnly(want.ID, q)
		r.now = first.DueAt.Add(-time.Millisecond)
		r.equal("Take before the end of the lease", len(r.takeQuotas(q)), 0)
		r.now = first.DueAt
		r.settle(r.ended(r.takeOnly(want.ID, q).Job, core.Completed))
	}
}

// stepBack sets the clock back between two takes. Leases last longer, and nothing else changes.
func stepBack(r *rig) {
	j := r.taken()
	r.now = r.now.Add(-time.Hour)
	r.nothingDue()
	o := r.ended(j.Job, core.Retryable)
	r.settle(o)
	r.wantJob(after(j.Job, o))
	r.now = o.DueAt
	r.take(1)
}

const saysIDAhead = "If an event's id was made more than a minute after the event was received, the event is stored as received at the time in its id"

// acceptIDAhead accepts an event whose time of receipt differs from the time in its id by that much.
func (r *rig) acceptIDAhead(by time.Duration) (core.Event, []core.Job) {
	r.Helper()
	a := r.arrival(r.lane)
	a.Event.CreatedAt = a.Event.ID.Time().Add(by)
	return a.Event, r.accepted(a)
}

// receivedAside checks that an event whose times differ by more than a minute back shows the time
// in its id. Its job shows the time of receipt, at which it is due.
func receivedAside(r *rig) {
	for by, kept := range map[time.Duration]bool{
		0: true, time.Minute: true, -time.Minute: true, -time.Minute - time.Millisecond: false, -time.Hour: false, time.Hour: true,
	} {
		e, jobs := r.acceptIDAhead(by)
		r.equal("DueAt of the job of one that is "+by.String()+" aside", r.job(jobs[0].ID).DueAt, e.CreatedAt)
		if !kept {
			e.CreatedAt = e.ID.Time()
		}
		r.equal("Event that is "+by.String()+" aside", r.storedEvent(e.ID), e)
	}
}

// listedAside checks that an event is listed under the time that it shows, however far its times
// differ.
func listedAside(r *rig) {
	for _, by := range []time.Duration{0, time.Minute, -time.Minute, -time.Hour} {
		e, _ := r.acceptIDAhead(by)
		at := r.storedEvent(e.ID).CreatedAt
		for _, f := range []core.EventFilter{{}, {Type: e.Type}, {Source: e.Source}} {
			f.Since, f.Until = at, at.Add(time.Millisecond)
			r.equal("Events("+shortened(f)+"), "+by.String()+" aside", slices.Contains(ids(r.events(f).Items), e.ID), true)
			f.Since = f.Until
			f.Until = time.Time{}
			r.equal("Events("+shortened(f)+"), "+by.String()+" aside", slices.Contains(ids(r.events(f).Items), e.ID), false)
		}
	}
}
