package pull

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/eventgateway/gateway/core"
)

// park makes the watcher wake a line. If the newest look did not include the line, the next
// look is at most a quarter of Rest after the newest one.
func (p *Puller) park(l *line) {
	if p.closed {
		return
	}
	if soon := p.looked.Add(p.Rest / 4); !l.seen && soon.Before(p.lookAt) {
		p.lookAt = soon
	}
	if p.watching {
		p.nudge()
		return
	}
	p.watching = true
	p.work.Go(p.watch)
}

// nudge makes the watcher run, if there is one: a message becomes due sooner than the watcher
// knows, or no consumer may be left.
func (p *Puller) nudge() {
	select {
	case p.nudged <- struct{}{}:
	default:
	}
}

// watch wakes lines that may have due messages, while any consumer is parked.
func (p *Puller) watch() {
	for {
		d, freed, ok := p.tend()
		if !ok {
			return
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-p.nudged:
		case <-freed:
			p.unblock()
		case <-p.heard.C:
			p.hear()
		case <-p.closing.Done():
		}
		timer.Stop()
	}
}

// hear wakes the lines whose lanes were rung.
func (p *Puller) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lane := range p.heard.Rung() {
		p.wake(p.lines[lane.Queue()])
	}
}

// tend wakes the lines whose next due time has come, and starts a look if one is due. It
// returns the time until the next wake-up or look, and a channel that is closed when blocked
// lines can be woken sooner. It returns false if no consumer waits.
func (p *Puller) tend() (wait time.Duration, freed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock()
	var parked []*line // lines that a look can help
	var next time.Time
	p.watching = false
	for _, l := range p.lines {
		if l.pass(now) {
			p.wake(l)
		}
		if l.claiming || len(l.waiting) == 0 {
			continue
		}
		p.watching = !p.closed
		next = sooner(next, l.next)
		if l.err == nil && !l.blocked {
			parked = append(parked, l)
		}
	}
	if !p.watching {
		return 0, nil, false
	}
	if len(parked) > 0 && !p.looking {
		if !p.lookAt.After(now) {
			p.look(now, parked)
		}
		next = sooner(next, p.lookAt)
	}
	if next.IsZero() {
		return MaxWait, p.freed, true // the look that is under way ends with a nudge
	}
	return max(0, next.Sub(now)), p.freed, true
}

// pass reports whether the line's next due time has come. It then clears the time, since the
// due time after it is unknown.
func (l *line) pass(now time.Time) bool {
	if l.next.IsZero() || l.next.After(now) {
		return false
	}
	l.next, l.seen = time.Time{}, false
	return true
}

// sooner returns the earlier of two times. The zero time means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// look asks the store for the due times of lines. It runs on its own goroutine, so that the
// watcher keeps hearing the bell.
func (p *Puller) look(now time.Time, parked []*line) {
	p.looking, p.looked, p.lookAt = true, now, now.Add(spread(p.Rest))
	for _, l := range p.lines {
		l.seen = false
	}
	lanes := make([]core.Lane, len(parked))
	for i, l := range parked {
		l.seen = true
		lanes[i] = l.lane
	}
	p.work.Go(func() {
		outlooks, err := p.Worklist.Due(p.closing, lanes)
		p.mu.Lock()
		p.looking = false
		for _, l := range parked {
			p.expect(l, dueIn(outlooks[l.lane]))
			if err == nil {
				l.saw(outlooks[l.lane].Gate, now)
			}
		}
		p.nudge()
		p.mu.Unlock()
		if err != nil && p.closing.Err() == nil {
			p.Observe(core.Troubled{Doing: "look for due messages", Err: err})
		}
	})
}

// saw notes the gate of a line, as a look found it that began at a time.
func (l *line) saw(g core.Gate, at time.Time) {
	if !at.Before(l.gateAt) {
		l.gate, l.gateAt = g, at
	}
}

// lookAtGate asks the store for the outlook of one line, to learn its gate.
func (p *Puller) lookAtGate(ctx context.Context, l *line) error {
	now := p.Clock()
	outlooks, err := p.Worklist.Due(ctx, []core.Lane{l.lane})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.saw(outlooks[l.lane].Gate, now)
	return nil
}

// OnHold reports whether a person holds a queue, so that a consumer can tell that from an empty
// queue. The answer is at most a second old. OnHold reports false if the store cannot say.
func (p *Puller) OnHold(ctx context.Context, queue string) bool {
	l, ok := p.lines[queue]
	if !ok {
		return false
	}
	// A consumer that waited was part of looks, and other requests cause one in a second.
	if g, fresh := p.gateOf(l); fresh {
		return g.Held(p.Clock())
	}
	if p.lookAtGate(ctx, l) != nil {
		return false
	}
	g, _ := p.gateOf(l)
	return g.Held(p.Clock())
}

// gateOf returns the known gate of a line, and whether it is from the last second.
func (p *Puller) gateOf(l *line) (core.Gate, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.gate, p.Clock().Sub(l.gateAt) < keepEvery
}

// spread returns a random duration of d ± 25 %, so that processes that start together do not
// look together.
func spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + 0.5*rand.Float64()))
}

// expect notes that a message of a line becomes due. It ignores a due time after the next
// look: that look will find the message, unless it is acked meanwhile.
func (p *Puller) expect(l *line, due time.Time) {
	if due.IsZero() {
		return
	}
	now := p.Clock()
	due = now.Add(due.Sub(now)) // times from the store do not follow a step of the clock; this one does
	if due.After(now) && due.After(p.lookAt) {
		return
	}
	if l.next = sooner(l.next, due); l.next.Equal(due) {
		p.nudge()
	}
}

// dueIn returns when a message of a lane can be taken; zero if none waits, or until a person ends
// the hold of its queue.
func dueIn(o core.Outlook) time.Time {
	if o.DueAt.IsZero() || o.Gate.Stopped() {
		return time.Time{}
	}
	if o.Gate.HeldUntil.After(o.DueAt) {
		return o.Gate.HeldUntil
	}
	return o.DueAt
}
