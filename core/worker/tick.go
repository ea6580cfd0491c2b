package worker

import (
	"context"
	"math/rand/v2"
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

	mu      sync.Mutex
	held    map[core.Lane]int // taken and not yet sent to its end
	busy    int               // sum of held
	soonest time.Time         // earliest retry written by the settler; zero if none
	failing error             // why settling does not get through now

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
	}
	t.hard, t.stopHard = context.WithCancel(context.WithoutCancel(ctx))
	for range w.limits.Slots {
		t.slots.Go(t.slot)
	}
	t.settled.Go(t.settle)
	return t
}

// feed takes jobs for free slots until the budget or the context ends.
func (t *tick) feed(ctx context.Context, b core.Budget) error {
	var trouble backoff
	for !t.over(ctx, b) {
		n := t.room()
		if n == 0 {
			t.wait(ctx, b, time.Time{})
			continue
		}
		next, err := t.fill(ctx, n)
		if err != nil {
			if b.Rest == 0 {
				return err
			}
			t.Observe(core.Troubled{Doing: "take", Err: err})
			t.sleep(ctx, trouble.next())
			continue
		}
		trouble = 0
		if next.After(t.Clock()) || next.IsZero() {
			if b.Rest == 0 && t.idle() {
				return nil
			}
			t.wait(ctx, b, next)
		}
	}
	return nil
}

func (t *tick) over(ctx context.Context, b core.Budget) bool {
	return ctx.Err() != nil || !b.Until.IsZero() && !t.Clock().Before(b.Until)
}

// room is how many jobs to take now. One more than there are slots would wait,
// so it takes ahead only as many as will finish while a take is under way, and
// not before half of those are gone: fast handlers are fed in batches, slow ones
// never have jobs waiting here that another process could be delivering.
func (t *tick) room() int {
	ahead := t.pace.ahead(t.limits.Slots, t.limits.Batch)
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := max(0, t.busy-t.limits.Slots)
	if waiting > ahead/2 {
		return 0
	}
	return min(t.limits.Slots+ahead-t.busy, t.limits.Batch)
}

// fill takes up to n jobs and hands them to the slots. It returns when to look
// again: now, if it took any.
func (t *tick) fill(ctx context.Context, n int) (time.Time, error) {
	t.mu.Lock()
	held := make(map[core.Lane]int, len(t.held))
	for lane, n := range t.held {
		held[lane] = n
	}
	t.soonest = time.Time{}
	t.mu.Unlock()

	began := t.Clock()
	jobs, next, err := t.take(ctx, n, held)
	if err != nil {
		return time.Time{}, err
	}
	if len(jobs) > 0 {
		t.pace.took(t.Clock().Sub(began))
	}
	t.mu.Lock()
	for _, j := range jobs {
		t.held[j.Lane]++
		t.busy++
	}
	t.mu.Unlock()
	for _, j := range jobs {
		t.jobs <- j // never blocks: as long as all that is held
	}
	return next, nil
}

func (t *tick) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy == 0
}

// wait sleeps until there may be something to do: a slot came free, a lane was
// rung, the next job is due, or the rest is over.
func (t *tick) wait(ctx context.Context, b core.Budget, next time.Time) {
	rest := b.Rest
	if rest == 0 {
		rest = time.Second
	}
	rest = time.Duration(float64(rest) * (0.75 + 0.5*rand.Float64())) // processes that started together look apart
	t.mu.Lock()
	if !t.soonest.IsZero() && (next.IsZero() || t.soonest.Before(next)) {
		next = t.soonest
	}
	t.mu.Unlock()
	if !next.IsZero() {
		rest = min(rest, next.Sub(t.Clock()))
	}
	if !b.Until.IsZero() {
		rest = min(rest, b.Until.Sub(t.Clock()))
	}
	t.sleep(ctx, rest)
}

func (t *tick) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.nudged:
	case <-t.rung:
	case <-ctx.Done():
	}
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
		if t.hard.Err() == nil { // else it was cut short by us; its lease will tell
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
