package worker

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// maxSettle is how many outcomes are written at once.
const maxSettle = 100

// settle writes outcomes until there are no more: what finished while one batch
// was being written is the next batch.
func (t *tick) settle() {
	for first := range t.outcomes {
		batch := []settlement{first}
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
	}
}

// write stores a batch, however long the database takes to recover: nothing else
// knows these outcomes, and forgetting one means delivering twice.
func (t *tick) write(batch []settlement) {
	outcomes := make([]core.Outcome, len(batch))
	for i, s := range batch {
		outcomes[i] = s.outcome
	}
	var trouble backoff
	for {
		lost, err := t.Worklist.Settle(t.hard, outcomes...)
		if err == nil {
			t.tell(batch, lost)
			return
		}
		t.Observe(core.Troubled{Doing: "settle", Err: err})
		select {
		case <-time.After(trouble.next()):
		case <-t.hard.Done():
			return
		}
	}
}

// tell counts and states what was stored.
func (t *tick) tell(batch []settlement, lost []core.ID) {
	gone := make(map[core.ID]bool, len(lost))
	for _, id := range lost {
		gone[id] = true
	}
	var soonest time.Time
	for _, s := range batch {
		if gone[s.job.ID] {
			t.report.Lost++
			t.Observe(core.Superseded{Job: s.job.Job})
			continue
		}
		t.count(s.outcome.Status)
		if due := s.outcome.DueAt; !due.IsZero() && (soonest.IsZero() || due.Before(soonest)) {
			soonest = due
		}
		t.Observe(core.Settled{Job: s.job.Job, Event: s.job.Event, Outcome: s.outcome})
	}
	t.expect(soonest)
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
