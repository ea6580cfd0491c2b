package worker

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// lapseRest is how long after one look for messages that ran out comes the next,
	// give or take a quarter: a message is dead within ten seconds of its lease's end.
	lapseRest = 5 * time.Second

	lapseBatch = 100
)

// sweep ends messages of queues whose last lease is over, and returns when to do so
// again. Who takes such a message ends it as well, but nobody may: a queue's consumers
// come and go, and its dead are to be told of all the same.
func (t *tick) sweep(ctx context.Context, b core.Budget) (pause time.Duration) {
	for more := len(t.Queues) > 0; more && !t.over(ctx, b); {
		var err error
		if more, err = t.buryLapsed(ctx); err != nil && ctx.Err() == nil {
			t.Observe(core.Troubled{Doing: "look for messages that ran out", Err: err})
		}
	}
	return rest(core.Budget{Rest: lapseRest})
}

// buryLapsed ends some such messages and tells whether there may be more. It settles by
// itself: what fails is found again, so there is nothing to remember, and these jobs are
// none of the tick's own.
func (t *tick) buryLapsed(ctx context.Context) (more bool, err error) {
	jobs, err := t.Worklist.Lapsed(ctx, t.Clock(), t.Queues, lapseBatch)
	if err != nil || len(jobs) == 0 {
		return false, err
	}
	outcomes := make([]core.Outcome, len(jobs))
	for i, j := range jobs {
		outcomes[i] = t.buried(&j)
	}
	settled, err := t.Worklist.Settle(t.hard, outcomes...)
	if err != nil {
		return false, err
	}
	return t.lapsed(jobs, outcomes, settled.Lost) > 0 && len(jobs) == lapseBatch, nil
}

// lapsed states what was stored, and returns how many. Lost are messages for which
// their consumer answered at last, or which somebody took.
func (t *tick) lapsed(jobs []core.TakenJob, outcomes []core.Outcome, lost []core.ID) (stored int) {
	gone := make(map[core.ID]bool, len(lost))
	for _, id := range lost {
		gone[id] = true
	}
	dead := map[core.Lane]int{}
	for i, j := range jobs {
		if gone[j.ID] {
			continue
		}
		dead[j.Lane]++
		t.Observe(core.Settled{Job: j.Job, Event: j.Event, Outcome: outcomes[i]})
		t.announce(outcomes[i].GivesRise)
	}
	for lane, n := range dead {
		stored += n
		t.Observe(core.Pulled{Queue: lane.Queue(), Action: core.MessagesDead, Messages: n})
	}
	t.swept += stored
	return stored
}
