package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// scenarioQueues is the part of the [scenario] in which consumers ack and extend the messages that
// they took, and a lane is drained. The contract leaves open how many messages a repeated call
// counts. So the step does not check that number.
func scenarioQueues(p *play) {
	p.accept("pulled", "", "d:", "d:", "d:k1", "d:", "d:", "d:")
	p.take("d", "pulled/0", "pulled/1", "pulled/2", "pulled/3", "pulled/4", "pulled/5")
	p.extendBy(2*leaseTime, "pulled/0", "pulled/1")
	p.extendBy(-time.Second, "pulled/5")
	p.ackRefs("by lease", p.refs("pulled/0")...)
	p.ackRefs("again", p.refs("pulled/0")...)
	p.ackRefs("by id and lease", byID(p.heldJobs["pulled/1"].ID), p.refs("pulled/1")[0])
	p.settle(core.Dead, "pulled/3")
	p.advance(leaseTime)
	stale := p.refs("pulled/2", "pulled/4", "pulled/5")
	p.take("d", "pulled/2", "pulled/4", "pulled/5")
	p.ackRefs("late", stale...)
	p.settle(core.Retryable, "pulled/4")
	p.ackRefs("one of two", append(stale, p.refs("pulled/5")...)...)
	p.drainBelow("d", "pulled/5")
	p.accept("pulled again", "", "d:k1")
	p.take("d", "pulled again/0")
	p.ackRefs("the last", p.refs("pulled again/0")...)
	p.drainBelow("d", "pulled/5")
}

// refs returns refs to jobs, by the leases under which the play took them last.
func (p *play) refs(names ...string) (refs []core.Ref) {
	for _, name := range names {
		refs = append(refs, refTo(p.heldJobs[name]))
	}
	return refs
}

// ackRefs acks refs, and notes their jobs as ended without an attempt.
func (p *play) ackRefs(how string, refs ...core.Ref) {
	p.Helper()
	for _, ref := range refs {
		p.unrecorded[ref.ID] = true
	}
	p.step("ack "+how, func() error {
		_, err := p.store.Ack(context.Background(), p.now, p.lanes["d"], refs)
		return err
	})
}

// extendBy moves the leases of jobs to a time after the play's time, and checks their number.
func (p *play) extendBy(by time.Duration, names ...string) {
	p.Helper()
	end := p.now.Add(by)
	p.step(fmt.Sprintf("extend %v", names), func() error {
		n, err := p.store.Extend(context.Background(), end, p.lanes["d"], p.refs(names...))
		if err == nil && n != len(names) {
			p.Errorf("%s: %d extended, want %d", p.name, n, len(names))
		}
		return err
	})
}

// drainBelow drains a lane of all jobs older than a named one.
func (p *play) drainBelow(lane, name string) {
	p.Helper()
	p.step("drain "+lane, func() error {
		_, err := p.store.Drain(context.Background(), p.lanes[lane], p.heldJobs[name].ID, core.MaxPage)
		return err
	})
}
