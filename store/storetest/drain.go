package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The checks of Drain. queues.go lists them. Drain is the one call with which an operator deletes
// work. A failure means that it deletes too much, or that a lane that it emptied still delivers.

// putEachStatus puts a job in the rig's lane for each status except completed, with attempts where
// the status allows them. The last of them is due later than now.
func (r *rig) putEachStatus() []core.Job {
	r.Helper()
	revived := r.settled(core.Dead)
	r.retry(revived.ID, "")
	r.take(1)
	jobs := []core.Job{r.job(revived.ID), r.settled(core.Retryable), r.settled(core.Dead), r.taken().Job}
	late := r.arrival(r.lane)
	late.Event.CreatedAt = r.now.Add(2 * leaseTime)
	return append(jobs, r.accepted(late)...)
}

// Drain deletes all unfinished and dead jobs with their attempts. Completed jobs and acked
// messages stay as a record of finished work. The lane can then be used like a new one.
func drainAll(r *rig) {
	done := r.settled(core.Completed)
	pulled := r.taken().Job
	r.ack(r.lane, refTo(pulled))
	acked := r.job(pulled.ID)
	jobs := r.putEachStatus()
	r.equal("Drain", r.drainOf(r.lane, r.ids.Next(), 100), len(jobs))
	for _, j := range jobs {
		r.wantNoJob(j)
	}
	r.wantJob(done)
	r.wantJob(acked)
	r.equal("Attempts of a completed job", len(r.attempts(done.ID)), 1)
	r.equal("Drain again", r.drainOf(r.lane, r.ids.Next(), 100), 0)
	r.equal("Depth", r.depth(), 0)
	r.equal("Due", r.due(r.lane), map[core.Lane]time.Time{})
	r.put()
	r.take(1)
}

// Another lane and an unknown lane stay untouched.
func drainLane(r *rig) {
	want := r.putEachStatus()
	r.lane = "queue/b"
	jobs := r.putEachStatus()
	r.equal("Drain of an unknown lane", r.drainOf("queue/nobody", r.ids.Next(), 100), 0)
	r.equal("Drain", r.drainOf(r.lane, r.ids.Next(), 100), len(jobs))
	for _, j := range want {
		r.wantJob(j)
	}
	r.equal("Attempts", len(r.attempts(want[0].ID)), 1)
}

// An operator has seen the jobs below an id. Jobs that arrived since then must stay.
func drainBelow(r *rig) {
	first := r.putEachStatus()
	second := r.putEachStatus()
	r.equal("Drain below the first", r.drainOf(r.lane, first[0].ID, 100), 0)
	r.equal("Drain below the second", r.drainOf(r.lane, second[0].ID, 100), len(first))
	for _, j := range second {
		r.wantJob(j)
	}
}

// Calls with different limits delete exactly as many jobs as they say, until none is left.
func drainLimit(r *rig) {
	jobs := append(r.putEachStatus(), r.putEachStatus()...)
	r.equal("Drain of none", r.drainOf(r.lane, r.ids.Next(), 0), 0)
	left := len(jobs)
	for _, n := range []int{1, 3, left - 4 - 1, 5, 5} {
		want := min(n, left)
		r.equal("Drain", r.drainOf(r.lane, r.ids.Next(), n), want)
		left -= want
		page := r.jobs(core.JobFilter{Lane: r.lane})
		r.equal("jobs left", len(page.Items), left)
	}
}

// A lane with more jobs than one statement deletes is drained by one call.
func drainMany(r *rig) {
	n := r.scaled(400)
	r.putAndTake(n / 2)
	r.accepted(r.arrival(lanes(r.lane, n/2)...))
	r.equal("Drain", r.drainOf(r.lane, r.ids.Next(), 10*n), n/2*2)
	r.equal("Depth", r.depth(), 0)
}

// raceDrains has two callers drain a lane while two others ack half of its jobs. Each job is
// drained or completed, and the callers' counts add up to the number of jobs.
func raceDrains(r *rig) {
	for round := range r.scaled(12) {
		r.lane = core.QueueLane(nth(round))
		_, refs := r.putAndTake(32)
		var drained, acked [4]int
		r.concurrently(4, func(i int) (err error) {
			if i < 2 {
				for more := 1; more > 0 && err == nil; drained[i] += more {
					more, err = r.store.Drain(context.Background(), r.lane, newestID, 7)
				}
				return err
			}
			for some := range slices.Chunk(refs[len(refs)/2:], 5) {
				n, err := r.store.Ack(context.Background(), r.now, r.lane, some)
				if err != nil {
					return err
				}
				acked[i] += n
			}
			return nil
		})
		r.equal("jobs that were drained or acked", drained[0]+drained[1]+acked[2]+acked[3], len(refs))
		r.equal("Tallies", r.tallies(r.lane)[r.lane], core.Tally{})
		r.equal("Ended", r.countEnded(r.lane)[r.lane], core.Ended{})
		r.equal("jobs that were acked", len(r.jobs(core.JobFilter{Lane: r.lane}).Items), acked[2]+acked[3])
	}
}

// newestID sorts after every id.
const newestID core.ID = "~"

// A worker may hold a drained job. The outcome of that worker is lost. Neither its release nor
// the end of its lease brings the job back.
func drainHeld(r *rig) {
	jobs, refs := r.putAndTake(3)
	r.drainOf(r.lane, newestID, 100)
	r.wantRefs("drained jobs", r.lane, refs)
	r.equal("Settle of a drained job: lost", r.lost(r.ended(jobs[0].Job, core.Completed)), []core.ID{jobs[0].ID})
	r.release(r.now, jobs[1].Job)
	for _, j := range jobs {
		r.wantNoJob(j.Job)
	}
	r.now = r.now.Add(leaseTime)
	r.nothingDue()
}

// The event of a drained job stays until it is purged. The key of the job is free immediately.
func drainEvents(r *rig) {
	keyed := r.keyed("k")
	j := r.accepted(keyed)[0]
	r.drainOf(r.lane, newestID, 100)
	r.equal("Event", r.storedEvent(j.EventID), keyed.Event)
	r.accepted(r.keyed("k")) // its key is free again
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge", r.purge(10), 1)
	r.wantNoEvent(j.EventID)
}
