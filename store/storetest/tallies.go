package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the numbers of jobs by lane. A failure means that operators see a wrong backlog.

// tallies returns the counts of lanes at the rig's time.
func (r *rig) tallies(lanes ...core.Lane) map[core.Lane]core.Tally {
	r.Helper()
	tallies, err := r.store.Tallies(context.Background(), r.now, lanes)
	if err != nil {
		r.Fatalf("Tallies(%q) failed: %v", lanes, err)
	}
	return tallies
}

// countEnded returns the counts of dead and canceled jobs of lanes.
func (r *rig) countEnded(lanes ...core.Lane) map[core.Lane]core.Ended {
	r.Helper()
	ended, err := r.store.Ended(context.Background(), lanes)
	if err != nil {
		r.Fatalf("Ended(%q) failed: %v", lanes, err)
	}
	return ended
}

// One lane has jobs of each kind. Jobs whose lease ended now count as pending.
func tallyEach(r *rig) {
	r.settled(core.Completed)
	for range 2 {
		r.settled(core.Dead)
	}
	r.settled(core.Retryable) // due in a minute
	over, _ := r.putAndTake(2)
	for _, j := range over {
		r.extend(r.now, r.lane, refTo(j.Job))
	}
	late := r.arrival(r.lane)
	late.Event.CreatedAt = r.now.Add(leaseTime)
	r.accepted(late)
	want := core.Tally{Pending: 4, Retryable: 3, OldestDue: r.now}
	r.equal("Tallies", r.tallies(r.lane), map[core.Lane]core.Tally{r.lane: want})
	r.lane = "queue/other"
	r.putAndTake(5)
	r.putMany(3)
	r.equal("Tallies", r.tallies(r.lane), map[core.Lane]core.Tally{r.lane: {Pending: 3, Processing: 5, OldestDue: r.now}})
}

// Jobs of lanes that the call does not name do not count.
func tallyLanes(r *rig) {
	for i, l := range []core.Lane{"queue/a", "queue/b", "queue/c"} {
		r.lane = l
		r.putAndTake(i + 1)
		r.putMany(1)
	}
	want := map[core.Lane]core.Tally{"queue/c": {Pending: 1, Processing: 3, OldestDue: r.now}, "queue/a": {Pending: 1, Processing: 1, OldestDue: r.now}}
	r.equal("Tallies(c, a)", r.tallies("queue/c", "queue/a"), want)
	r.equal("Tallies of no lane", r.tallies(), map[core.Lane]core.Tally{})
}

// tallyTime checks that a lease is over from its end on.
func tallyTime(r *rig) {
	j := r.taken()
	for _, at := range []struct {
		now  time.Time
		want core.Tally
	}{
		{j.DueAt.Add(-time.Millisecond), core.Tally{Processing: 1}},
		{j.DueAt, core.Tally{Pending: 1, Retryable: 1, OldestDue: j.DueAt}},
		{j.DueAt.Add(time.Millisecond), core.Tally{Pending: 1, Retryable: 1, OldestDue: j.DueAt}},
	} {
		r.now = at.now
		r.equal("Tallies", r.tallies(r.lane)[r.lane], at.want)
	}
}

// tallyRetryable checks that released jobs and revived jobs do not count as tried before.
func tallyRetryable(r *rig) {
	back := r.taken()
	r.release(r.now.Add(leaseTime), back.Job)
	r.retry(r.settled(core.Dead).ID, "")
	r.take(1)
	failed := r.settled(core.Retryable)
	want := core.Tally{Pending: 2, Processing: 1, Retryable: 1}
	r.equal("Tallies", r.tallies(r.lane)[r.lane], want)
	r.equal("Available", want.Available(), 1)
	r.now = failed.DueAt
	r.equal("Tallies once they are due", r.tallies(r.lane)[r.lane], core.Tally{Pending: 3, Retryable: 2, OldestDue: r.now})
}

// The oldest due time ignores leased jobs, since their due time is the end of the lease.
func tallyOldest(r *rig) {
	first := r.now
	r.putMany(2)
	r.now = r.now.Add(leaseTime)
	r.putMany(1)
	r.equal("Tallies: OldestDue", r.tallies(r.lane)[r.lane].OldestDue, first)
	r.take(2)
	r.equal("Tallies: OldestDue of the job that is left", r.tallies(r.lane)[r.lane].OldestDue, r.now)
	r.take(1)
	r.equal("Tallies: OldestDue while all are held", r.tallies(r.lane)[r.lane].OldestDue, time.Time{})
}

// A metric of an empty lane is zero, not missing.
func tallyNone(r *rig) {
	r.put()
	r.equal("Tallies", r.tallies("queue/nobody", "queue/other"), map[core.Lane]core.Tally{"queue/nobody": {}, "queue/other": {}})
}

// Of the jobs of a lane only the dead ones count as dead, and only until they are retried.
func endedEach(r *rig) {
	r.settled(core.Completed)
	r.settled(core.Retryable)
	r.settled(core.Dead)
	dead := r.settled(core.Dead)
	r.taken()
	r.put()
	r.equal("Ended", r.countEnded(r.lane), map[core.Lane]core.Ended{r.lane: {Dead: 2}})
	if n, err := r.store.Retry(context.Background(), r.now, dead.ID, ""); n != 1 || err != nil {
		r.Fatalf("Retry = %d, %v, want 1", n, err)
	}
	r.equal("Ended after a retry", r.countEnded(r.lane), map[core.Lane]core.Ended{r.lane: {Dead: 1}})
}

// Jobs of lanes that the call does not name do not count.
func endedLanes(r *rig) {
	for i, l := range []core.Lane{"queue/a", "queue/b", "queue/c"} {
		r.lane = l
		for range i + 1 {
			r.settled(core.Dead)
		}
	}
	r.equal("Ended(c, a)", r.countEnded("queue/c", "queue/a"), map[core.Lane]core.Ended{"queue/c": {Dead: 3}, "queue/a": {Dead: 1}})
	r.equal("Ended of no lane", r.countEnded(), map[core.Lane]core.Ended{})
}

// Callers look up each lane they asked for.
func endedNone(r *rig) {
	r.put()
	r.equal("Ended", r.countEnded(r.lane, "queue/nobody"), map[core.Lane]core.Ended{r.lane: {}, "queue/nobody": {}})
}
