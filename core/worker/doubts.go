package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// doubtsAgain is how long after the first try a doubtful job is given back again. Each further
	// try comes twice as long after the one before.
	doubtsAgain = time.Second

	// mostDoubts bounds the doubtful jobs. Others wait until their leases end.
	mostDoubts = 1000
)

// doubts are jobs that may have been taken as they were stored, but no answer of the store came. Without
// this type such a job would wait until its lease ends.
//
// The feeder gives each of them back several times, until its lease has ended: a database that was
// locked, or slow, may store the job after the first time. It does no harm to a job that was not taken,
// or that is taken under another lease.
type doubts struct {
	*Worker
	hard context.Context

	mu   sync.Mutex
	jobs []doubtful
}

// A doubtful job has a lease that ends at its DueAt, if it was stored.
type doubtful struct {
	core.Job
	next  time.Time // when to give it back
	pause time.Duration
}

// add adds jobs that may have been taken.
func (d *doubts) add(jobs ...core.TakenJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range jobs {
		if len(d.jobs) < mostDoubts {
			d.jobs = append(d.jobs, doubtful{Job: j.Job, next: d.Clock(), pause: doubtsAgain})
		}
	}
}

// giveBack releases the jobs whose time has come. If that fails, they are tried again at their next
// time.
func (d *doubts) giveBack() {
	d.release(d.timely(d.Clock()))
}

// giveBackAll releases each job once more.
func (d *doubts) giveBackAll() {
	d.mu.Lock()
	jobs := make([]core.Job, len(d.jobs))
	for i, j := range d.jobs {
		jobs[i] = j.Job
	}
	d.jobs = nil
	d.mu.Unlock()
	d.release(jobs)
}

// timely returns the jobs whose time has come. It drops those whose leases have ended.
func (d *doubts) timely(now time.Time) (jobs []core.Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs = slices.DeleteFunc(d.jobs, func(j doubtful) bool { return !j.DueAt.After(now) })
	for i := range d.jobs {
		if j := &d.jobs[i]; !j.next.After(now) {
			jobs = append(jobs, j.Job)
			j.next, j.pause = now.Add(j.pause), 2*j.pause
		}
	}
	return jobs
}

// release releases jobs. Those that were taken are due then.
func (d *doubts) release(jobs []core.Job) {
	if len(jobs) == 0 {
		return
	}
	if err := d.Worklist.Release(d.hard, d.Clock(), jobs...); err != nil {
		d.Observe(core.Troubled{Doing: "release", Err: err})
		return
	}
	for _, j := range jobs {
		d.Bell.Ring(j.Lane) // also for the consumers of queues
	}
}
