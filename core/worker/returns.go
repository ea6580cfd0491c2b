package worker

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// whyHeld is why jobs are given back while a tick goes on.
const whyHeld = "the circuit breaker opened, a person holds them, or their lease would have ended"

// returns are the jobs that were taken and are not to be sent here. The feeder gives them
// back to the store between its takes, and the tick gives back the rest at its end.
//
// Jobs are collected and not released one by one, since a breaker that opens returns all jobs
// of its lane at once.
type returns struct {
	*Worker
	hard   context.Context
	leases *leases

	mu   sync.Mutex
	jobs []*core.TakenJob

	// Only the feeder uses these fields, and after its end only the tick.
	unreleased []core.Job // could not be given back yet
	released   int
}

// add has jobs given back.
func (r *returns) add(jobs ...*core.TakenJob) {
	r.mu.Lock()
	r.jobs = append(r.jobs, jobs...)
	r.mu.Unlock()
}

// giveBack releases the jobs that were added. Jobs that it cannot release are tried again by
// the next call. If no call succeeds, their leases end, and they have lost an attempt.
func (r *returns) giveBack(why string) {
	jobs := r.collect()
	if len(jobs) == 0 {
		return
	}
	if err := r.Worklist.Release(r.hard, r.Clock(), jobs...); err != nil {
		r.unreleased = jobs
		r.Observe(core.Troubled{Doing: "release", Err: err})
		return
	}
	r.released += len(jobs)
	r.Observe(core.Released{Jobs: len(jobs), Why: why})
	r.handOver(jobs)
}

// giveBackAll releases the jobs that were added, and repeats that until it succeeds or done
// is closed.
func (r *returns) giveBackAll(done <-chan struct{}) {
	const why = "stopping"
	r.giveBack(why)
	for trouble := core.Backoff(0); len(r.unreleased) > 0; {
		select {
		case <-time.After(trouble.Next()):
			r.giveBack(why)
		case <-done:
			return
		}
	}
}

// collect returns the jobs to be given back, under the leases that they have now. The tick
// holds them no longer.
func (r *returns) collect() []core.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	jobs := r.unreleased
	r.unreleased = nil
	for _, j := range r.jobs {
		j.Lease = r.leases.surrender(j.ID)
		jobs = append(jobs, j.Job)
	}
	r.jobs = nil
	return jobs
}
