package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// unansweredAgain is how long after the first try a job is given back again. Each further
	// try comes twice as long after the one before.
	unansweredAgain = time.Second

	// mostUnanswered bounds the jobs. Others wait until their leases end.
	mostUnanswered = 1000
)

// unanswered are jobs that may have been taken as they were stored, but the store did not answer. Without
// this type such a job would wait until its lease ends.
//
// The feeder gives each of them back several times, until its lease has ended: a database that was locked,
// or slow, may store the job after the first time. A job that was not taken, or that is taken under another
// lease, stays as it is.
type unanswered struct {
	*Worker
	hard context.Context

	mu   sync.Mutex
	jobs []unansweredJob
}

// An unansweredJob has a lease that ends at its DueAt, if it was stored.
type unansweredJob struct {
	core.Job
	next  time.Time // when to give it back
	pause time.Duration
}

// add adds jobs that may have been taken.
func (u *unanswered) add(jobs ...core.TakenJob) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, j := range jobs {
		if len(u.jobs) < mostUnanswered {
			u.jobs = append(u.jobs, unansweredJob{Job: j.Job, next: u.Clock(), pause: unansweredAgain})
		}
	}
}

// giveBack releases the jobs whose time has come. If that fails, they are tried again at their next
// time.
func (u *unanswered) giveBack() {
	u.release(u.timely(u.Clock()))
}

// giveBackAll releases each job once more.
func (u *unanswered) giveBackAll() {
	u.mu.Lock()
	jobs := make([]core.Job, len(u.jobs))
	for i, j := range u.jobs {
		jobs[i] = j.Job
	}
	u.jobs = nil
	u.mu.Unlock()
	u.release(jobs)
}

// timely returns the jobs whose time has come. It drops those whose leases have ended.
func (u *unanswered) timely(now time.Time) (jobs []core.Job) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.jobs = slices.DeleteFunc(u.jobs, func(j unansweredJob) bool { return !j.DueAt.After(now) })
	for i := range u.jobs {
		if j := &u.jobs[i]; !j.next.After(now) {
			jobs = append(jobs, j.Job)
			j.next, j.pause = now.Add(j.pause), 2*j.pause
		}
	}
	return jobs
}

// release releases jobs. Those that were taken are due then.
func (u *unanswered) release(jobs []core.Job) {
	if len(jobs) == 0 {
		return
	}
	if err := u.Worklist.Release(u.hard, u.Clock(), jobs...); err != nil {
		u.Observe(core.Troubled{Doing: "release", Err: err})
		return
	}
	for _, j := range jobs {
		u.Bell.Ring(j.Lane) // also for the consumers of queues
	}
}
