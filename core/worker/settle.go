package worker

import (
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// maxSettle is how many outcomes are written at once.
const maxSettle = 100

// settle writes outcomes until there are no more: what finished while one batch
// was being written is the next batch.
func (t *tick) settle() {
	var batch []settlement // used again
	for first := range t.outcomes {
		batch = append(batch[:0], first)
		for len(batch) < maxSettle {
			select {
			case s, ok := <-t.outcomes:
				if ok {
					batch = append(batch, s)
					continue
				}
			default:
			}
			break
		}
		t.write(batch)
		clear(batch)
	}
}

// write stores a batch and tells of it.
func (t *tick) write(batch []settlement) {
	outcomes := make([]settlement, 0, len(batch))
	var ends, back []settlement
	for _, s := range batch {
		switch s.kind {
		case stepped:
			ends = append(ends, s)
		case postponed:
			back = append(back, s)
		default:
			outcomes = append(outcomes, s)
		}
	}
	t.writeOutcomes(outcomes)
	t.writeEnds(ends)
	t.postpone(back)
	t.nudge()
}

// writeOutcomes stores a batch, however long the database takes to recover: nothing else
// knows these outcomes, and forgetting one means delivering twice.
func (t *tick) writeOutcomes(batch []settlement) {
	var trouble backoff
	for len(batch) > 0 {
		outcomes := t.leased(batch)
		settled, err := t.Worklist.Settle(t.hard, outcomes...)
		if err == nil {
			t.moved(batch, settled.Gates)
			batch = t.tell(batch, outcomes, settled.Lost)
			continue
		}
		if !t.again("settle", err, &trouble) {
			return
		}
	}
}

// again waits before something that failed is tried again; false means that it is too
// late for that.
func (t *tick) again(doing string, err error, trouble *backoff) bool {
	t.Observe(core.Troubled{Doing: doing, Err: err})
	select {
	case <-time.After(trouble.next()):
		return true
	case <-t.hard.Done():
		return false
	}
}

// leased are the outcomes of a batch under the leases of now. A job that its run does
// without is closed only under the lease with which that was found: taken again, it may
// ask for something.
func (t *tick) leased(batch []settlement) []core.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	outcomes := make([]core.Outcome, len(batch))
	for i, s := range batch {
		outcomes[i] = s.outcome
		if s.kind != stale {
			outcomes[i].Lease = t.leases[s.job.ID].lease
		}
	}
	return outcomes
}

// tell counts and states what was stored. It returns what is to be written once
// more: outcomes that came too late for the lease they were sent under, because
// this tick took the job again just then, or is about to learn that it did.
func (t *tick) tell(batch []settlement, sent []core.Outcome, lost []core.ID) (again []settlement) {
	gone := make(map[core.ID]bool, len(lost))
	for _, id := range lost {
		gone[id] = true
	}
	if len(gone) > 0 {
		t.taking.enter() // what is being taken while this is told is noted then
		t.taking.leave()
	}
	var soonest time.Time
	for i, s := range batch {
		newer, retaken := t.forget(s.job.ID, sent[i].Lease, !gone[s.job.ID] || s.kind == stale)
		if retaken && s.kind == stale {
			t.release(core.Job{ID: s.job.ID, Lease: newer})
			t.stir(s.job.Lane)
			retaken = false
		}
		switch {
		case gone[s.job.ID] && retaken:
			again = append(again, s)
			continue
		case gone[s.job.ID]:
			t.report.Lost++
			t.Observe(core.Superseded{Job: s.job.Job})
			continue
		case retaken: // its retry was due and taken before this was told: not a job that was still here
			t.release(core.Job{ID: s.job.ID, Lease: newer})
		}
		t.count(s.outcome.Status)
		if due := s.outcome.DueAt; !due.IsZero() && (soonest.IsZero() || due.Before(soonest)) {
			soonest = due
		}
		if s.kind == stale {
			continue // nobody was called, and the run has told what became of the step
		}
		t.ringAfterEnd(s.job.Lane, s.outcome.DueAt)
		t.Observe(core.Settled{Job: s.job.Job, Event: s.job.Event, Outcome: s.outcome})
		t.announce(s.outcome.GivesRise)
	}
	t.expect(soonest)
	return again
}

// ringAfterEnd rings the bell for a retry that is stored after the tick began its last
// attempt: another process is to begin the retry. A zero time is none.
func (t *tick) ringAfterEnd(l core.Lane, due time.Time) {
	until := t.until(t.budget)
	if !due.IsZero() && !until.IsZero() && !t.Clock().Before(until) {
		t.Bell.RingAt(l, due)
	}
}

// announce tells of an event that an outcome gave rise to.
func (t *tick) announce(a *core.Arrival) {
	if a == nil {
		return
	}
	for _, j := range a.Jobs {
		t.Bell.Ring(j.Lane)
	}
	t.Observe(core.Accepted{Event: a.Event, Jobs: len(a.Jobs), Asked: a.Jobs})
}

// moved acts on what a batch of outcomes made of gates. Jobs that wait here for a
// breaker that is open now go back; behind one that has closed there is work.
func (t *tick) moved(batch []settlement, gates map[core.Lane]core.Gate) {
	t.learn(gates)
	t.counted(batch)
	for l, g := range gates {
		if g.Open() {
			t.withhold(t.queue.withdraw(l)...)
			t.nudge()
		} else {
			t.expect(t.Clock())
		}
		moved := slices.ContainsFunc(batch, func(s settlement) bool {
			return s.job.ID == g.MovedBy && s.job.Lane == l && s.outcome.Verdict != core.NoVerdict
		})
		if moved {
			t.Observe(core.BreakerMoved{Lane: l, Gate: g})
		}
	}
}

// forget drops a job whose outcome was written under a lease, if it was stored or
// is lost for good. It returns the lease the job was taken under since, if any.
func (t *tick) forget(id core.ID, lease core.Lease, stored bool) (newer core.Lease, retaken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	newer = t.leases[id].lease
	retaken = newer != lease
	if stored || !retaken {
		delete(t.leases, id)
	}
	return newer, retaken
}

func (t *tick) release(job core.Job) {
	if err := t.Worklist.Release(t.hard, t.Clock(), job); err != nil {
		t.Observe(core.Troubled{Doing: "release", Err: err}) // its lease will do it
	}
	t.nudge()
}

func (t *tick) count(s core.Status) {
	switch s {
	case core.Completed:
		t.report.Completed++
	case core.Dead:
		t.report.Dead++
		t.report.Failed++
	default:
		t.report.Failed++
	}
}

// expect makes the feeder look when a retry is due, if it would look later.
func (t *tick) expect(due time.Time) {
	if due.IsZero() {
		return
	}
	t.mu.Lock()
	now := t.Clock()
	due = now.Add(due.Sub(now)) // times from the store do not follow a step of the clock; this one does
	sooner := due.Before(t.lookAt)
	if sooner {
		t.lookAt = due
	}
	t.mu.Unlock()
	if sooner {
		t.nudge()
	}
}
