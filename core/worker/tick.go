package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// settleGrace is how much longer than the deliveries the settler may take to
// write their outcomes when a tick ends, once there is a hurry; see Deps.Hurry.
const settleGrace = 5 * time.Second

// Tick delivers what is due within the budget and returns what it did. When ctx
// is done it takes nothing new, gives back what it has not started, and waits for
// deliveries under way, at most Limits.Drain. What is still running then is left
// to its lease: it will be tried again.
//
// If the budget has an End, it takes from no lane of which an attempt might not be over
// two seconds before that, leases nothing for longer than it must, and waits for what is
// under way up to a second before. Of handlers that never have the time it tells once.
func (w *Worker) Tick(ctx context.Context, b core.Budget) (core.Report, error) {
	t := w.begin(ctx, b)
	feeding, fed := context.WithCancel(ctx)
	if !endsItself(b) {
		t.adoptStrays(feeding)
	}
	t.beside(feeding, b, t.bury)
	t.beside(feeding, b, t.sweep)
	err := t.feed(ctx, b)
	fed()
	t.drain()
	return t.report, err
}

// A tick is one Tick under way.
type tick struct {
	*Worker

	queue    *queue
	roster   atomic.Pointer[roster]
	adopting sync.Mutex // held while the roster grows
	outcomes chan settlement
	nudged   chan struct{} // a slot came free, or something is due sooner than thought

	// hard ends deliveries and settling; everything else stops by itself.
	hard     context.Context
	stopHard context.CancelFunc
	slots    sync.WaitGroup
	settled  sync.WaitGroup
	burying  sync.WaitGroup
	chores   atomic.Int32 // that have not been done once

	budget core.Budget
	end    time.Time // of the process; zero if it goes on

	pace  pace
	grain time.Duration

	// The feeder's: lanes that are due as far as it knows and whose gate may let
	// something through, when it asked last and whether none was, when the gates open
	// that it waits for, and when the next job may start that must not yet.
	ready []core.Lane
	last  core.Look
	dry   bool
	calm  bool      // nothing was held or to be expected of the tick itself when it asked last
	found time.Time // when something was taken last, or due at the beginning
	paced map[core.Lane]time.Time
	ripe  time.Time

	idleSince time.Time // when the slots ran out of work in a tick that ends by itself; zero while they have some

	// promised are lanes of which the last look said that they are due, and of which
	// nothing was taken since. If one gives nothing, somebody else is at its jobs: it is
	// barren, and no look takes it for ready before that time.
	promised map[core.Lane]bool
	barren   map[core.Lane]time.Time

	// unreleased are jobs that could not be given back yet.
	unreleased []core.Job

	mu       sync.Mutex
	lookAt   time.Time // when to ask the store which lanes are due
	gates    map[core.Lane]core.Gate
	lessons  int               // how often learn was called
	learned  map[core.Lane]int // the number of the lesson that told of a gate last; 0 if none did
	failing  map[core.Lane]int // deliveries in a row that failed and are not stored
	returned []*core.TakenJob  // not to be sent: to be given back

	// leases of the jobs that are taken and not settled, as they were taken last. A
	// lease may end while its job is still here: the database was away for longer,
	// the process was stopped, the clock was set. Whoever takes the job then, it must
	// not be this tick's own feeder that makes a known outcome worthless.
	leases map[core.ID]holding

	taking door // entered from before jobs are taken until they are noted in leases

	stirred map[core.Lane]bool // have work since a step ended

	report core.Report // the settler's, but for Released, until drain has returned
	swept  int         // messages that ran out and are dead; the sweeper's
	buryAt time.Time   // when to bury strays; the burier's

	postponed int // jobs that the settler gave back
}

// A holding is a lease and when it ends.
type holding struct {
	lease core.Lease
	until time.Time
}

// A door lets one through at a time. It is no mutex so that whoever waits before it is
// seen to wait by testing/synctest.
type door chan struct{}

func (d door) enter() { d <- struct{}{} }
func (d door) leave() { <-d }

// A settlement is the end of an attempt that is to be stored.
type settlement struct {
	job     *core.TakenJob
	kind    settlementKind
	outcome core.Outcome // unless it is of a step

	end   *core.StepEnd // of a step, and who stores it; else nil
	steps Steps

	soon bool // a postponed one is due again before long
}

type settlementKind int

const (
	plain     settlementKind = iota // of a handler, or of a job that is not tried
	stale                           // of a step that its run does without
	stepped                         // of a step
	postponed                       // none: the job is to be given back
)

func (w *Worker) begin(ctx context.Context, b core.Budget) *tick {
	t := &tick{
		Worker:   w,
		queue:    newQueue(w.limits.Slots, w.lanes),
		outcomes: make(chan settlement, w.limits.Slots),
		nudged:   make(chan struct{}, 1),
		grain:    grainOf(b),
		budget:   b,
		end:      b.End,
		paced:    map[core.Lane]time.Time{},
		promised: map[core.Lane]bool{},
		barren:   map[core.Lane]time.Time{},
		gates:    map[core.Lane]core.Gate{},
		learned:  map[core.Lane]int{},
		failing:  map[core.Lane]int{},
		leases:   map[core.ID]holding{},
		taking:   make(door, 1),
		stirred:  map[core.Lane]bool{},
	}
	t.roster.Store(&roster{w.lanes, w.targets})
	t.tellTooSlow()
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
	for {
		job, ok := t.queue.next()
		if !ok {
			return
		}
		if t.suspended(job.Lane) && !job.Probe || t.fleeting(job) {
			t.withhold(job)
		} else {
			t.send(job)
		}
		t.queue.done(job.Lane)
		t.nudge()
	}
}

func (t *tick) send(job *core.TakenJob) {
	t.sending.Add(1)
	defer t.sending.Add(-1)
	to := t.target(job.Lane)
	if to.Steps != nil {
		t.step(to, job)
		return
	}
	o := t.attempt(t.hard, to, job)
	t.pace.sent(o.Attempt.Duration)
	t.tally(o)
	if o.Status == core.Completed || t.hard.Err() == nil { // else it was cut short by us; its lease will tell
		t.outcomes <- settlement{job: job, outcome: o}
	}
}

// fleeting reports whether the lease of a job that had to wait here may end before
// its delivery does: then somebody else is to make it.
func (t *tick) fleeting(job *core.TakenJob) bool {
	to := t.target(job.Lane)
	need := to.Timeout
	if !t.end.IsZero() {
		need += lateGrace // the lease may end with the process
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return to.Hold > to.Timeout && t.leases[job.ID].until.Sub(t.Clock()) < need
}

// withhold has jobs given back.
func (t *tick) withhold(jobs ...*core.TakenJob) {
	t.mu.Lock()
	t.returned = append(t.returned, jobs...)
	t.mu.Unlock()
}

// drain ends the tick: unstarted jobs go back, started ones get their time.
func (t *tick) drain() {
	t.withhold(t.queue.end()...)
	sent := t.cutAfter(t.left(t.limits.Drain, cutGrace))
	idle := make(chan struct{})
	go func() {
		t.slots.Wait()
		close(idle)
	}()
	t.giveAllBack(idle)
	<-idle
	sent()
	stored := t.cutAfter(t.left(settleGrace, 0))
	t.burying.Wait()
	t.giveBack(heldUp)
	t.giveAllBack(t.hard.Done())
	close(t.outcomes)
	t.settled.Wait()
	stored()
	t.stopHard()
	t.report.Dead += t.swept
	t.report.Failed += t.swept
	t.report.Released += t.postponed
}

// giveAllBack releases jobs that are not to be sent, and tries again with those that it
// cannot release, until done.
func (t *tick) giveAllBack(done <-chan struct{}) {
	t.giveBack("stopping")
	for trouble := backoff(0); len(t.unreleased) > 0; {
		select {
		case <-time.After(trouble.next()):
			t.giveBack("stopping")
		case <-done:
			return
		}
	}
}

// giveBack releases jobs that are not to be sent. Those that it cannot release are
// tried again with the next; if that never succeeds, their leases will do it, and
// they have lost an attempt.
func (t *tick) giveBack(why string) {
	jobs := t.withheld()
	if len(jobs) == 0 {
		return
	}
	if err := t.Worklist.Release(t.hard, t.Clock(), jobs...); err != nil {
		t.unreleased = jobs
		t.Observe(core.Troubled{Doing: "release", Err: err})
		return
	}
	t.report.Released += len(jobs)
	t.Observe(core.Released{Jobs: len(jobs), Why: why})
	t.handOver(jobs)
}

// withheld are the jobs to be given back, under the leases of now. They are not this
// tick's any more.
func (t *tick) withheld() []core.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := t.unreleased
	t.unreleased = nil
	for _, j := range t.returned {
		j.Lease = t.leases[j.ID].lease
		delete(t.leases, j.ID)
		jobs = append(jobs, j.Job)
	}
	t.returned = nil
	return jobs
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
	a.Store(old + (int64(max(0, d))-old)/8) // a lost update is only a lost sample
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
