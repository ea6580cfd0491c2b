package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// settleGrace is how much longer than the deliveries the settler may take to
// write their outcomes when a tick ends.
const settleGrace = 5 * time.Second

// Tick delivers what is due within the budget and returns what it did. When ctx
// is done it takes nothing new, gives back what it has not started, and waits for
// deliveries under way, at most Limits.Drain. What is still running then is left
// to its lease: it will be tried again.
func (w *Worker) Tick(ctx context.Context, b core.Budget) (core.Report, error) {
	t := w.begin(ctx)
	err := t.feed(ctx, b)
	t.drain()
	return t.report, err
}

// A tick is one Tick under way.
type tick struct {
	*Worker
	jobs     chan core.TakenJob
	outcomes chan settlement
	nudged   chan struct{} // a slot came free, or something is due sooner than thought

	// hard ends deliveries and settling; everything else stops by itself.
	hard     context.Context
	stopHard context.CancelFunc
	slots    sync.WaitGroup
	settled  sync.WaitGroup

	pace pace

	// The feeder's: lanes that are due as far as it knows, and whether it has just
	// asked and none was.
	ready []core.Lane
	dry   bool

	mu     sync.Mutex
	held   map[core.Lane]int // taken and not yet sent to its end
	busy   int               // sum of held
	lookAt time.Time         // when to ask the store which lanes are due

	// leases of the jobs that are taken and not settled, as they were taken last. A
	// lease may end while its job is still here: the database was away for longer,
	// the process was stopped, the clock was set. Whoever takes the job then, it must
	// not be this tick's own feeder that makes a known outcome worthless.
	leases map[core.ID]core.Lease

	report core.Report // the settler's, until drain has returned
}

type settlement struct {
	job     core.TakenJob
	outcome core.Outcome
}

func (w *Worker) begin(ctx context.Context) *tick {
	t := &tick{
		Worker:   w,
		jobs:     make(chan core.TakenJob, w.limits.Slots+w.limits.Batch),
		outcomes: make(chan settlement, w.limits.Slots),
		nudged:   make(chan struct{}, 1),
		held:     map[core.Lane]int{},
		leases:   map[core.ID]core.Lease{},
	}
	t.hard, t.stopHard = context.WithCancel(context.WithoutCancel(ctx))
	for range w.limits.Slots {
		t.slots.Go(t.slot)
	}
	t.settled.Go(t.settle)
	return t
}

func (t *tick) nudge() {
	select {
	case t.nudged <- struct{}{}:
	default:
	}
}

// slot sends jobs, one at a time.
func (t *tick) slot() {
	for job := range t.jobs {
		o := t.attempt(t.hard, job)
		t.pace.sent(o.Attempt.Duration)
		if o.Status == core.Completed || t.hard.Err() == nil { // else it was cut short by us; its lease will tell
			t.outcomes <- settlement{job, o}
		}
		t.letGo(job.Lane)
	}
}

func (t *tick) letGo(lane core.Lane) {
	t.mu.Lock()
	t.busy--
	if t.held[lane]--; t.held[lane] == 0 {
		delete(t.held, lane)
	}
	t.mu.Unlock()
	t.nudge()
}

// lease is what a job is held under now.
func (t *tick) lease(id core.ID) core.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leases[id]
}

// drain ends the tick: unstarted jobs go back, started ones get their time.
func (t *tick) drain() {
	t.giveBack()
	close(t.jobs)
	stop := time.AfterFunc(t.limits.Drain, t.stopHard)
	t.slots.Wait()
	stop.Stop()
	close(t.outcomes)
	stop = time.AfterFunc(settleGrace, t.stopHard)
	t.settled.Wait()
	stop.Stop()
	t.stopHard()
}

func (t *tick) giveBack() {
	var jobs []core.Job
	for {
		select {
		case j := <-t.jobs:
			j.Lease = t.lease(j.ID)
			jobs = append(jobs, j.Job)
			continue
		default:
		}
		break
	}
	if len(jobs) == 0 {
		return
	}
	if err := t.Worklist.Release(t.hard, t.Clock(), jobs...); err != nil {
		t.Observe(core.Troubled{Doing: "release", Err: err}) // their leases will do it
		return
	}
	t.report.Released += len(jobs)
	t.Observe(core.Released{Jobs: len(jobs), Why: "stopping"})
}

// A pace knows how long taking and sending take, as moving averages.
type pace struct{ take, send atomic.Int64 } // nanoseconds

func (p *pace) took(d time.Duration) { average(&p.take, d) }
func (p *pace) sent(d time.Duration) { average(&p.send, d) }

func average(a *atomic.Int64, d time.Duration) {
	old := a.Load()
	if old == 0 {
		old = int64(d)
	}
	a.Store(old + (int64(d)-old)/8) // a lost update is only a lost sample
}

// ahead is how many sends end during one take (Little's law), at most limit.
func (p *pace) ahead(slots, limit int) int {
	take, send := p.take.Load(), p.send.Load()
	if send == 0 {
		return 0
	}
	return int(min(int64(limit), int64(slots)*take/send))
}

// A backoff is the last of a growing series of waits.
type backoff time.Duration

func (b *backoff) next() time.Duration {
	*b = min(max(2*(*b), backoff(50*time.Millisecond)), backoff(2*time.Second))
	return time.Duration(*b)
}
