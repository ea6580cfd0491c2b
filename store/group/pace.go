package group

import (
	"sync"
	"time"
)

const (
	// overlapFrom is how long the shortest commits take where several at a time are faster
	// than one. A commit of little work that takes a millisecond waits most of that time, for
	// a sync or for the network, and the server could write another one meanwhile. Where it
	// takes less, commits compete for processors. With 32 callers on PostgreSQL, two at a time
	// accepted 5,000 events/s and one at a time 7,900 where syncs are free; 5,800 and 5,000
	// where a sync takes a millisecond.
	overlapFrom = time.Millisecond

	// paceWindow is for how long a commit counts at least; it counts at most twice as long.
	// So a line follows a server whose syncs become slower or faster.
	paceWindow = 10 * time.Second

	// stalledAfter is how long a commit may take before others go past it. A commit that waits
	// for a lock must not keep all others.
	stalledAfter = 50 * time.Millisecond
)

// A pace decides whether commits of a line may overlap. It knows the shortest commits of the
// last seconds. Under load the others say little about the server: they have many batches, or
// waited for a processor.
type pace struct {
	mu       sync.Mutex
	since    time.Time     // when the present window began
	shortest time.Duration // in the present window
	before   time.Duration // in the window before; 0 if it had no commit
	stalled  int           // commits that have been under way for stalledAfter
	overlap  chan struct{} // closed while commits may overlap
	closed   bool
}

// newPace makes a pace that lets commits overlap until it knows one.
func newPace() *pace {
	p := &pace{shortest: overlapFrom, overlap: make(chan struct{})}
	p.decide()
	return p
}

// mayOverlap returns a channel that is closed as soon as commits may overlap.
func (p *pace) mayOverlap() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.overlap
}

// begin notes that a commit begins. The caller calls end when it has ended, and says whether it
// succeeded. A failure tells nothing about commits: a lost connection fails at once.
func (p *pace) begin() (end func(ok bool)) {
	began := time.Now()
	timer := time.AfterFunc(stalledAfter, func() { p.stall(1) })
	return func(ok bool) {
		if !timer.Stop() {
			p.stall(-1)
		}
		if ok {
			now := time.Now()
			p.note(now.Sub(began), now)
		}
	}
}

// stall adds to the number of commits that have been under way for long.
func (p *pace) stall(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled += n
	p.decide()
}

// note adds a commit that ended now.
func (p *pace) note(took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch since := now.Sub(p.since); {
	case since < paceWindow && since >= 0:
		p.shortest = min(p.shortest, took)
	case since < 2*paceWindow && since >= 0:
		p.since, p.before, p.shortest = now, p.shortest, took
	default:
		p.since, p.before, p.shortest = now, 0, took
	}
	p.decide()
}

// decide opens or closes the way for further committers. The caller holds mu.
func (p *pace) decide() {
	shortest := p.shortest
	if p.before > 0 {
		shortest = min(shortest, p.before)
	}
	switch overlap := p.stalled > 0 || shortest >= overlapFrom; {
	case overlap && !p.closed:
		close(p.overlap)
		p.closed = true
	case !overlap && p.closed:
		p.overlap, p.closed = make(chan struct{}), false
	}
}
