package pull

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Reserve begins a claim for a message that is about to be stored: it may be taken in the same commit.
// It does so if consumers of the queue wait, and no older message is known to wait. hold is the
// visibility timeout. The caller calls Arrive in any case.
//
// Queues with lines are left out, since a new message may have to wait in its line.
func (p *Puller) Reserve(lane core.Lane) (hold time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.lines[lane.Queue()], p.Clock()
	if l == nil || p.closed || l.claiming || l.promising || l.blocked || len(l.waiting) == 0 || l.err != nil || l.Lines.Limit > 0 || l.keyed ||
		!l.next.IsZero() && !l.next.After(now) || l.gate.Held(now) || l.plan().n == 0 {
		return 0, false
	}
	l.claiming, l.reserved = true, now
	return l.Visibility, true
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
