package worker

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// lapseRest is how long a worker waits between two looks for lapsed messages, give or
	// take a quarter. So a message is dead within ten seconds of the end of its lease.
	lapseRest = 5 * time.Second

	lapseBatch = 100
)

// A lapseChore ends messages of queues whose last lease is over without an answer of their
// consumer. A consumer that takes such a message ends it as well, but a queue may have no
// consumer at the time, and its dead messages are to be reported all the same.
type lapseChore struct {
	*Worker
	hard   context.Context
	window *window

	dead int // messages that it ended
}

// round ends all lapsed messages, and returns how long to pause.
func (c *lapseChore) round(ctx context.Context) (pause time.Duration) {
	for more := len(c.Queues) > 0; more && !c.window.over(ctx); {
		var err error
		if more, err = c.bury(ctx); err != nil && ctx.Err() == nil {
			c.Observe(core.Troubled{Doing: "look for lapsed messages", Err: err})
		}
	}
	return spread(lapseRest)
}

// bury ends up to lapseBatch messages and reports whether there may be more. It stores their
// outcomes itself and keeps none: after an error the next round finds the messages again.
func (c *lapseChore) bury(ctx context.Context) (more bool, err error) {
	jobs, err := c.Worklist.Lapsed(ctx, c.Clock(), c.Queues, lapseBatch)
	if err != nil || len(jobs) == 0 {
		return false, err
	}
	outcomes := make([]core.Outcome, len(jobs))
	for i, j := range jobs {
		outcomes[i] = c.expired(&j, c.QueueLines[j.Lane])
	}
	settled, err := c.Worklist.Settle(c.hard, outcomes...)
	if err != nil {
		return false, err
	}
	return c.conclude(jobs, outcomes, settled.Lost) > 0 && len(jobs) == lapseBatch, nil
}

// conclude reports the stored outcomes and returns how many messages are dead. Messages in
// lost were answered or taken by a consumer meanwhile.
func (c *lapseChore) conclude(jobs []core.TakenJob, outcomes []core.Outcome, lost []core.ID) (stored int) {
	isLost := make(map[core.ID]bool, len(lost))
	for _, id := range lost {
		isLost[id] = true
	}
	dead := map[core.Lane]int{}
	for i, j := range jobs {
		if isLost[j.ID] {
			continue
		}
		dead[j.Lane]++
		c.Observe(core.Settled{Job: j.Job, Event: j.Event, Outcome: outcomes[i]})
		c.announce(outcomes[i].GivesRise)
		if outcomes[i].PassesSlot() {
			c.Bell.Ring(j.Lane) // the next message of the line is due
		}
	}
	for lane, n := range dead {
		stored += n
		c.Observe(core.Pulled{Queue: lane.Queue(), Action: core.MessagesDead, Messages: n})
	}
	c.dead += stored
	return stored
}
