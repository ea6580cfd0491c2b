package group

import (
	"sync"
	"time"
)

const (
	// overlapFrom is how long the shortest commits take if several at a time are faster than
	// one. A commit of little work that takes a millisecond waits most of that time, for a
	// sync or for the network, and the server could write another one. Where it takes less,
	// commits compete for processors: on PostgreSQL with free syncs two at a time accepted
	// 6,100 events/s and one at a time 9,800, since their groups are smaller; with syncs of a
	// millisecond 5,800 and 5,000.
	overlapFrom = time.Millisecond

	// paceWindow is for how long a commit counts at least, and half as long as it counts at
	// most. So a line follows a server whose syncs become slower or faster.
	paceWindow = 10 * time.Second
)

// A pace decides whether commits of a line may overlap. It knows the shortest commits of the
// last seconds. Under load the others say little about the server: they have many batches,
// or waited for a processor.
type pace struct {
	mu       sync.Mutex
	since    time.Time     // when the present window began
	shortest time.Duration // in the present window
	before   time.Duration // in the window before; 0 if it had no commit
	overlap  chan struct{} // closed while commits may overlap
	closed   bool
}

// newPace makes a pace that allows commits to overlap until it knows one.
func newPace() *pace {
	p := &pace{overlap: make(chan struct{}), closed: true}
	close(p.overlap)
	return p
}

// mayOverlap returns a channel that is closed as soon as commits may overlap.
func (p *pace) mayOverlap() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.overlap
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
	shortest := p.shortest
	if p.before > 0 {
		shortest = min(shortest, p.before)
	}
	switch overlap := shortest >= overlapFrom; {
	case overlap && !p.closed:
		close(p.overlap)
		p.closed = true
	case !overlap && p.closed:
		p.overlap, p.closed = make(chan struct{}), false
	}
}
