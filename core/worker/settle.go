package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// maxSettle is how many outcomes are written at once.
const maxSettle = 100

// A settlement is the end of an attempt that is to be stored.
type settlement struct {
	job     *core.TakenJob
	kind    settlementKind
	outcome core.Outcome // unless it is of a step

	end   *core.StepEnd // of a step; else nil
	steps Steps         // stores end

	ended func() // called after the outcome is stored, or cannot be; may be nil

	soon bool // a postponed job is due again after about putOffBusy, not putOff
}

type settlementKind int

const (
	plain     settlementKind = iota // of a handler, or of a job that is not tried
	stale                           // of a step that its run no longer needs
	stepped                         // of a step
	postponed                       // none: the job is to be given back
)

// A settler stores outcomes, and reports them once they are stored.
//
// One goroutine runs it. It stores the outcomes of handlers itself, and has the ends of steps stored
// beside it: see writeEnds.
type settler struct {
	*Worker
	hard     context.Context
	outcomes chan settlement
	window   *window
	queue    *queue
	leases   *leases
	gates    *gateView
	alarm    *alarm
	returns  *returns

	stepping sync.WaitGroup // the goroutines that store ends of steps
	turns    chan struct{}  // has one for each of them
	underway []stepBatch    // what they store

	report tally
}

// A tally is a report to which several goroutines add.
type tally struct {
	mu sync.Mutex
	r  core.Report
}

func (t *tally) add(r core.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Completed += r.Completed
	t.r.Failed += r.Failed
	t.r.Dead += r.Dead
	t.r.Released += r.Released
	t.r.Lost += r.Lost
}

func (t *tally) get() core.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.r
}

// settle writes outcomes until the channel is closed. The outcomes that arrive while one
// batch is being written are the next batch.
func (s *settler) settle() {
	defer s.stepping.Wait()
	var batch []settlement // used again
	for first := range s.outcomes {
		batch = append(batch[:0], first)
		for len(batch) < maxSettle {
			// Only outcomes that wait already join: the settler never waits for a fuller batch.
			select {
			case next, ok := <-s.outcomes:
				if ok {
					batch = append(batch, next)
					continue
				}
			default:
			}
			break
		}
		s.write(batch)
		clear(batch)
	}
}

// write stores a batch and reports it.
func (s *settler) write(batch []settlement) {
	outcomes := make([]settlement, 0, len(batch))
	var ends, back []settlement
	for _, b := range batch {
		switch b.kind {
		case stepped:
			ends = append(ends, b)
		case postponed:
			back = append(back, b)
		default:
			outcomes = append(outcomes, b)
		}
	}
	s.writeOutcomes(outcomes)
	s.writeEnds(ends)
	s.postpone(back)
	s.ended(outcomes)
	s.ended(back)
	s.alarm.nudge()
}

// ended calls the functions that wait for the end of settlements.
func (s *settler) ended(batch []settlement) {
	for _, b := range batch {
		if b.ended != nil {
			b.ended()
		}
	}
}

// writeOutcomes stores a batch, however long the database takes to recover: the outcomes are
// nowhere else, and a lost outcome means that its job is delivered twice.
func (s *settler) writeOutcomes(batch []settlement) {
	var trouble core.Backoff
	for len(batch) > 0 {
		outcomes := s.leased(batch)
		settled, err := s.Worklist.Settle(s.hard, outcomes...)
		if err == nil {
			s.gatesMoved(batch, settled.Gates)
			batch = s.conclude(batch, outcomes, settled.Lost)
			continue
		}
		if !s.again("settle", err, &trouble) {
			return
		}
	}
}

// again waits before a failed write is tried again. It returns false if the tick has no time
// for that.
func (s *settler) again(doing string, err error, trouble *core.Backoff) bool {
	s.Observe(core.Troubled{Doing: doing, Err: err})
	select {
	case <-time.After(trouble.Next()):
		return true
	case <-s.hard.Done():
		return false
	}
}

// leased returns the outcomes of a batch under the leases that the jobs have now. A job that
// its run no longer needs is closed only under the lease under which that was found: taken
// again, it may be needed.
func (s *settler) leased(batch []settlement) []core.Outcome {
	outcomes := make([]core.Outcome, len(batch))
	for i, b := range batch {
		outcomes[i] = b.outcome
		if b.kind != stale {
			outcomes[i].Lease = s.leases.of(b.job.ID)
		}
	}
	return outcomes
}

// conclude counts and reports the stored outcomes. It returns the outcomes that must be sent
// again: the store refused them because this tick had just taken the job again, under a newer
// lease.
func (s *settler) conclude(batch []settlement, sent []core.Outcome, lost []core.ID) (again []settlement) {
	isLost := make(map[core.ID]bool, len(lost))
	for _, id := range lost {
		isLost[id] = true
	}
	// The store says lost if the job has a newer lease. This tick's own claim may have given it.
	if len(isLost) > 0 {
		s.leases.awaitClaim() // it may have taken one of the lost jobs
	}
	var soonest time.Time
	for i, b := range batch {
		if sent[i].PassesSlot() && !isLost[b.job.ID] {
			s.passed(b.job.Lane)
		}
		if !s.dropLease(b, sent[i].Lease, isLost[b.job.ID]) {
			again = append(again, b)
			continue
		}
		if isLost[b.job.ID] {
			s.report.add(core.Report{Lost: 1})
			s.Observe(core.Superseded{Job: b.job.Job})
			continue
		}
		s.count(b.outcome.Status)
		// A retry may be due before the next look.
		soonest = sooner(soonest, b.outcome.DueAt)
		if b.kind == stale {
			continue // no handler was called, and the run has reported the end of the step
		}
		s.ringAfterEnd(b.job.Lane, b.outcome.DueAt)
		s.Observe(core.Settled{Job: b.job.Job, Event: b.job.Event, Outcome: b.outcome})
		s.announce(b.outcome.GivesRise)
	}
	s.alarm.expect(soonest)
	return again
}

// passed has the next job of a line taken, after a job gave its slot of the line away. It is called
// before the lease is dropped: a function ends when no lease is held and no lane is due.
func (s *settler) passed(l core.Lane) {
	if s.window.roster.has(l) { // the chore that ends a stray's jobs takes the next ones itself
		s.alarm.due(l)
		s.ringAfterEnd(l, s.Clock())
	}
}

// dropLease drops a job whose outcome was written under a lease. If this tick has taken the
// job again meanwhile, the job goes back, or dropLease returns false: then the outcome was
// lost, and is to be written under the new lease.
func (s *settler) dropLease(b settlement, lease core.Lease, lost bool) bool {
	newer, retaken := s.leases.drop(b.job.ID, lease, !lost || b.kind == stale)
	switch {
	case !retaken:
	case b.kind == stale:
		s.release(core.Job{ID: b.job.ID, Lease: newer})
		s.alarm.due(b.job.Lane)
	case lost:
		return false
	default: // its retry was due and taken before this point: it did not wait here
		s.release(core.Job{ID: b.job.ID, Lease: newer})
	}
	return true
}

// ringAfterEnd rings the bell for a job that is due at the time due, if this tick begins no more
// attempts. Another process then begins the attempt. With a zero due it does nothing.
func (s *settler) ringAfterEnd(l core.Lane, due time.Time) {
	until := s.window.until()
	if !due.IsZero() && !until.IsZero() && !s.Clock().Before(until) {
		s.Bell.RingAt(l, due)
	}
}

// announce rings for the lanes of an arrival that an outcome caused, and reports the event.
func (w *Worker) announce(a *core.Arrival) {
	if a == nil {
		return
	}
	for _, j := range a.Jobs {
		w.Bell.Ring(j.Lane)
	}
	w.Observe(core.Accepted{Event: a.Event, Jobs: len(a.Jobs), Asked: a.Jobs})
}

// gatesMoved updates the view of the gates after a batch is stored. If a breaker has opened,
// waiting jobs of its lane are given back. If a breaker has closed, its lane may have due jobs.
// A breaker that an outcome of the batch has moved is reported.
func (s *settler) gatesMoved(batch []settlement, gates map[core.Lane]core.Gate) {
	s.gates.learn(gates)
	s.gates.stored(batch)
	for l, g := range gates {
		if g.Open() {
			s.returns.add(s.queue.withdraw(l)...)
			s.alarm.nudge()
		} else {
			s.alarm.expect(s.Clock())
		}
		moved := slices.ContainsFunc(batch, func(b settlement) bool {
			return b.job.ID == g.MovedBy && b.job.Lane == l && b.outcome.Verdict != core.NoVerdict
		})
		if moved {
			s.Observe(core.BreakerMoved{Lane: l, Gate: g})
		}
	}
}

// release gives back one job. It does not repeat a failed call, since the settler has outcomes
// to store, and the lease bounds the delay.
func (s *settler) release(job core.Job) {
	if err := s.Worklist.Release(s.hard, s.Clock(), job); err != nil {
		s.Observe(core.Troubled{Doing: "release", Err: err}) // its lease ends all the same
	}
	s.alarm.nudge()
}

// count adds an outcome to the tick's report. A dead job counts as failed too.
func (s *settler) count(status core.Status) {
	switch status {
	case core.Completed:
		s.report.add(core.Report{Completed: 1})
	case core.Dead:
		s.report.add(core.Report{Dead: 1, Failed: 1})
	default:
		s.report.add(core.Report{Failed: 1})
	}
}
