package pull

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// This file gives new messages to consumers without a claim. Package worker calls it, which takes the
// jobs of new events in the commit that stores them.

// Reserve begins a claim of one message that is about to be stored, if consumers of the queue wait and no
// older message is known to be due. hold is the visibility timeout. After ok the caller calls Arrive in
// any case. Queues with lines are left out, since a new message may have to wait in its line.
func (p *Puller) Reserve(lane core.Lane) (hold time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.lines[lane.Queue()], p.Clock()
	if l == nil || p.closed || l.keyed || l.Lines.Limit > 0 || !l.idle(now) || l.plan().n == 0 {
		return 0, false
	}
	l.claiming, l.reserved = true, now
	return l.Visibility, true
}

// idle reports whether consumers wait, no claim is under way, and none would get a message.
func (l *line) idle(now time.Time) bool {
	due := !l.next.IsZero() && !l.next.After(now)
	return len(l.waiting) > 0 && !l.claiming && !l.blocked && !l.promising && !due && l.err == nil && !l.gate.Held(now)
}

// Arrive ends a claim that Reserve began. A consumer gets the message, if there is one.
func (p *Puller) Arrive(lane core.Lane, message *core.TakenJob) {
	l := p.lines[lane.Queue()]
	var taken []core.TakenJob
	if message != nil {
		taken = append(taken, *message)
	}
	// On another goroutine, since the message is given back if its consumer has left.
	p.work.Go(func() {
		p.share(l, taken, len(taken)+1, l.reserved)
		p.claim(l) // for consumers that came meanwhile, and if the bell rang
	})
}
