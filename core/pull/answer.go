package pull

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Nacked is the attempt's error of a message that its consumer nacked.
const Nacked = "nacked"

// nackBatch is how many messages a nack reads and settles at once, with their events.
const nackBatch = 100

// Ack completes messages by their ids or receipts, and returns how many. A ref is not counted
// if its message is not held, if its receipt has a lease that is no longer the message's, or
// if it is neither an id nor a receipt. Nack and Extend treat refs alike. More than [MaxRefs]
// refs are refused with [core.Invalid], and an unknown queue with [ErrQueue].
func (p *Puller) Ack(ctx context.Context, queue string, ids []string) (int, error) {
	l, refs, err := p.mentioned(queue, ids)
	if err != nil || len(refs) == 0 {
		return 0, err
	}
	n, err := p.ack(ctx, l, refs)
	if err != nil {
		return 0, fmt.Errorf("queue %q: %w", queue, err)
	}
	p.state(l, core.MessagesAcked, n)
	return n, nil
}

// ack completes the messages of refs that are held. In a queue with lines, the next messages of
// their lines are due then.
func (p *Puller) ack(ctx context.Context, l *line, refs []core.Ref) (int, error) {
	p.mu.Lock()
	keyed := l.keyed || l.Lines.Limit > 0
	p.mu.Unlock()
	now := p.Clock()
	if !keyed {
		return p.Worklist.Ack(ctx, now, l.lane, refs)
	}
	n, err := p.Worklist.AckLined(ctx, now, l.lane, l.Lines.Limit, refs)
	if n > 0 {
		p.passed(l, now)
	}
	return n, err
}

// passed wakes the consumers of a queue after messages gave their slots to the next messages of
// their lines.
func (p *Puller) passed(l *line, now time.Time) {
	p.awaits(l, now)
	if p.closing.Err() != nil {
		p.Bell.Ring(l.lane) // another Puller may serve the queue now
	}
}

// Nack makes messages visible again after a delay of 0 to [MaxVisibility], behind the
// messages that are visible already. Messages without attempts left become dead. It returns
// the number of both. After an error, the counted messages are settled and the others are
// not.
func (p *Puller) Nack(ctx context.Context, queue string, ids []string, delay time.Duration) (retried, dead int, err error) {
	l, refs, err := p.mentioned(queue, ids)
	if err != nil {
		return 0, 0, err
	}
	if delay < 0 || delay > MaxVisibility {
		return 0, 0, core.Refuse(core.Invalid, "delay must be a duration from 0s to 7d, not %v", delay)
	}
	for part := range slices.Chunk(refs, nackBatch) {
		r, d, err := p.nack(ctx, l, part, delay)
		retried, dead = retried+r, dead+d
		if err != nil {
			return retried, dead, fmt.Errorf("queue %q: %w", queue, err)
		}
	}
	return retried, dead, nil
}

// Extend makes messages stay invisible for the duration visibility from now, MinVisibility to
// MaxVisibility. Zero means the queue's own visibility timeout. It returns how many messages
// it extended.
func (p *Puller) Extend(ctx context.Context, queue string, ids []string, visibility time.Duration) (int, error) {
	l, refs, err := p.mentioned(queue, ids)
	if err != nil {
		return 0, err
	}
	if visibility == 0 {
		visibility = l.Visibility
	} else if visibility < MinVisibility || visibility > MaxVisibility {
		return 0, core.Refuse(core.Invalid, "visibility_timeout must be a duration from 1ms to 7d, not %v", visibility)
	}
	if len(refs) == 0 {
		return 0, nil
	}
	end := p.Clock().Add(visibility)
	n, err := p.Worklist.Extend(ctx, end, l.lane, refs)
	if err != nil {
		return 0, fmt.Errorf("queue %q: %w", queue, err)
	}
	if n > 0 {
		p.awaits(l, end)
	}
	p.state(l, core.MessagesExtended, n)
	return n, nil
}

// Receipt returns the name of this delivery of a message: "<id>:<lease>".
func Receipt(m core.TakenJob) string { return string(m.ID) + ":" + string(m.Lease) }

// mentioned returns the line of a queue and the refs of ids and receipts, or a refusal.
func (p *Puller) mentioned(queue string, ids []string) (*line, []core.Ref, error) {
	l, ok := p.lines[queue]
	if !ok {
		return nil, nil, ErrQueue
	}
	if len(ids) > MaxRefs {
		return nil, nil, core.Refuse(core.Invalid, "ids must be at most %d, not %d", MaxRefs, len(ids))
	}
	return l, refs(ids), nil
}

// refs returns the refs of ids and receipts, each once. An id makes receipts with the same id
// redundant. A repeated id must be dropped: a nack may split the ids into batches, and another
// consumer may have received the message before the later batch. That batch would nack the
// message of that consumer.
func refs(ids []string) []core.Ref {
	all, plain, known := make([]core.Ref, 0, len(ids)), map[core.ID]bool{}, map[core.Ref]bool{}
	for _, s := range ids {
		r, ok := parseRef(s)
		if !ok || known[r] {
			continue
		}
		known[r] = true
		plain[r.ID] = plain[r.ID] || r.Lease == ""
		all = append(all, r)
	}
	return slices.DeleteFunc(all, func(r core.Ref) bool { return r.Lease != "" && plain[r.ID] })
}

// parseRef parses an id or a receipt.
func parseRef(s string) (core.Ref, bool) {
	name, lease, receipt := strings.Cut(s, ":")
	id, err := core.ParseID(name)
	if err != nil || receipt && !leaseLike(lease) {
		return core.Ref{}, false
	}
	return core.Ref{ID: id, Lease: core.Lease(lease)}, true
}

// leaseLike reports whether a text may be a lease: 1 to 64 printable ASCII characters without
// spaces. Other texts match no lease, and some databases reject them with an error.
func leaseLike(s string) bool {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, odd)
}

// nack settles the messages of refs that are held, as retryable or dead.
func (p *Puller) nack(ctx context.Context, l *line, refs []core.Ref, delay time.Duration) (retried, dead int, err error) {
	held, err := p.Worklist.Held(ctx, l.lane, refs)
	if err != nil || len(held) == 0 {
		return 0, 0, err
	}
	now := p.Clock()
	outcomes := make([]core.Outcome, len(held))
	for i, m := range held {
		switch {
		case m.Spent():
			outcomes[i] = p.died(l, m, core.LeaseExpired, now)
		case m.Attempt == m.MaxAttempts:
			outcomes[i] = p.died(l, m, Nacked, now)
		default:
			outcomes[i] = ended(m, Nacked, now)
			outcomes[i].Status, outcomes[i].DueAt = core.Retryable, now.Add(delay)
			outcomes[i] = l.Lines.Apply(m.Job, outcomes[i])
		}
	}
	retried, dead, err = p.settle(ctx, l, held, outcomes)
	if retried > 0 {
		p.awaits(l, now.Add(delay))
	}
	return retried, dead, err
}

// awaits is expect for callers that do not hold p.mu.
func (p *Puller) awaits(l *line, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expect(l, due)
}

// bury ends taken messages that have no attempt left. If that fails, the messages come back
// after their lease and are buried then.
func (p *Puller) bury(l *line, spent []core.TakenJob) {
	if len(spent) == 0 {
		return
	}
	if err := p.end(context.Background(), l, spent, core.LeaseExpired); err != nil {
		p.Observe(core.Troubled{Doing: "settle", Err: err})
	}
}

// Bury makes received messages dead that no consumer could ever receive, with the error why.
// After an error the messages become visible again when their visibility timeout ends.
func (p *Puller) Bury(ctx context.Context, queue string, messages []core.TakenJob, why string) error {
	l, ok := p.lines[queue]
	if !ok {
		return ErrQueue
	}
	if err := p.end(context.WithoutCancel(ctx), l, messages, why); err != nil {
		return fmt.Errorf("queue %q: %w", queue, err)
	}
	return nil
}

// end makes messages dead.
func (p *Puller) end(ctx context.Context, l *line, messages []core.TakenJob, why string) error {
	now := p.Clock()
	outcomes := make([]core.Outcome, len(messages))
	for i, m := range messages {
		outcomes[i] = p.died(l, m, why, now)
	}
	_, _, err := p.settle(ctx, l, messages, outcomes)
	return err
}

// died returns the outcome of a message that becomes dead.
func (p *Puller) died(l *line, m core.TakenJob, why string, now time.Time) core.Outcome {
	o := ended(m, why, now)
	o.Status = core.Dead
	o = l.Lines.Apply(m.Job, o)
	if p.Obituary != nil {
		o.GivesRise = p.Obituary(m, o)
	}
	return o
}

// ended returns an outcome without a status. A spent message's last Take is no attempt of its
// own, so the outcome has the number of the attempt before.
func ended(m core.TakenJob, why string, now time.Time) core.Outcome {
	return core.Outcome{
		JobID:   m.ID,
		Lease:   m.Lease,
		Lane:    m.Lane,
		At:      now,
		Attempt: core.Attempt{Number: m.Number(), Error: why, StartedAt: now},
	}
}

// settle stores outcomes of messages and reports the stored ones. Outcomes that the store
// refused as lost count as neither.
func (p *Puller) settle(ctx context.Context, l *line, messages []core.TakenJob, outcomes []core.Outcome) (retried, dead int, err error) {
	settled, err := p.Worklist.Settle(ctx, outcomes...)
	if err != nil {
		return 0, 0, err
	}
	passed := false
	for i, o := range outcomes {
		lost := slices.Contains(settled.Lost, o.JobID)
		passed = passed || !lost && o.PassesSlot()
		switch {
		case lost:
		case o.Status == core.Retryable:
			retried++
		default:
			dead++
			p.Observe(core.Settled{Job: messages[i].Job, Event: messages[i].Event, Outcome: o})
			p.announce(o.GivesRise)
		}
	}
	if passed {
		p.passed(l, p.Clock())
	}
	p.state(l, core.MessagesRetried, retried)
	p.state(l, core.MessagesDead, dead)
	return retried, dead, nil
}

// announce rings for the lanes of an arrival that an outcome caused, and reports it as
// accepted.
func (p *Puller) announce(a *core.Arrival) {
	if a == nil {
		return
	}
	for _, j := range a.Jobs {
		p.Bell.Ring(j.Lane)
	}
	p.Observe(core.Accepted{Event: a.Event, Jobs: len(a.Jobs), Asked: a.Jobs})
}
