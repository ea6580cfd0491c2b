package worker

import (
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// leases has the newest lease of each job that this tick has taken and not settled.
//
// A lease may end while its job is still here: the database was away for longer, the process
// was stopped, or the clock was set. The tick's own feeder may then take the job again. The
// outcome of the first attempt is stored under the new lease, so it is not lost.
type leases struct {
	mu   sync.Mutex
	held map[core.ID]holding

	// claiming lets one claim in at a time, and lets awaitClaim wait for it. It is taken before
	// mu, and never while mu is held.
	claiming door
}

// A holding is a lease and the time at which it ends.
type holding struct {
	lease core.Lease
	until time.Time
}

// A door lets one caller through at a time. It is a channel and not a mutex, so that
// testing/synctest sees its callers wait.
type door chan struct{}

func (d door) enter() { d <- struct{}{} }
func (d door) leave() { <-d }

func newLeases() *leases {
	return &leases{held: map[core.ID]holding{}, claiming: make(door, 1)}
}

// claim takes jobs and notes their leases. It returns the jobs that are new here, and how
// many were taken: a job that is still here when it is taken again goes on under its new
// lease. Each job is copied, so that a slow one does not keep the payloads of the others
// in memory.
func (l *leases) claim(take func() ([]core.TakenJob, error)) (fresh []*core.TakenJob, taken int, err error) {
	l.claiming.enter()
	defer l.claiming.leave()
	// The claim is made without mu: it is a call of the store, and slots ask for leases meanwhile.
	jobs, err := take()
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh = make([]*core.TakenJob, 0, len(jobs))
	for _, j := range jobs {
		_, here := l.held[j.ID]
		l.held[j.ID] = holding{j.Lease, j.DueAt}
		// A job that is here already keeps its attempt, and gets the newer lease only.
		if !here {
			fresh = append(fresh, &j)
		}
	}
	return fresh, len(jobs), err
}

// note notes the lease of a job that was taken without a claim. It returns false if a claim of this tick
// has the job already: then its first lease ended before the answer came.
func (l *leases) note(j *core.TakenJob) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.held[j.ID]; here {
		return false
	}
	l.held[j.ID] = holding{j.Lease, j.DueAt}
	return true
}

// awaitClaim waits until the jobs of a claim under way are noted.
func (l *leases) awaitClaim() {
	l.claiming.enter()
	l.claiming.leave()
}

// of returns the lease that a job has now; "" if it is not held.
func (l *leases) of(id core.ID) core.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id].lease
}

// left returns how much of a job's lease is left.
func (l *leases) left(id core.ID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id].until.Sub(now)
}

// surrender drops a job that is given back, and returns its lease.
func (l *leases) surrender(id core.ID) core.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease := l.held[id].lease
	delete(l.held, id)
	return lease
}

// drop drops a job whose outcome was written under a lease, if it was stored or is lost for
// good. It returns the lease the job was taken under since, if any.
func (l *leases) drop(id core.ID, lease core.Lease, stored bool) (newer core.Lease, retaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newer = l.held[id].lease
	retaken = newer != lease
	if stored || !retaken {
		delete(l.held, id)
	}
	return newer, retaken
}

// none reports whether everything that was taken is settled or given back.
func (l *leases) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held) == 0
}
