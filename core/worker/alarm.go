package worker

import (
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An alarm wakes the feeder. The other parts use it to say that a slot is free, that a job
// will be due, or that a lane has work.
//
// Its methods may be called from any goroutine. Expecting a job later than the next look wakes
// nothing.
type alarm struct {
	*Worker
	nudged chan struct{}

	mu        sync.Mutex
	lookAt    time.Time          // when to ask the store which lanes are due
	becameDue map[core.Lane]bool // lanes that got work from an outcome of this tick
}

// newAlarm makes an alarm with a buffer of one nudge: more nudges add nothing.
func newAlarm(w *Worker) *alarm {
	return &alarm{Worker: w, nudged: make(chan struct{}, 1), becameDue: map[core.Lane]bool{}}
}

// nudge wakes the feeder. It never blocks, and it may be called while the feeder is busy: then the
// feeder's next sleep returns at once.
func (a *alarm) nudge() {
	select {
	case a.nudged <- struct{}{}:
	default:
	}
}

// lookIn sets when the feeder looks next. It overwrites an earlier time, so the feeder calls it
// before it asks the store: a time that expect sets meanwhile then counts.
func (a *alarm) lookIn(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lookAt = a.Clock().Add(d)
}

// untilLook returns how long it is until the next look.
func (a *alarm) untilLook() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lookAt.Sub(a.Clock())
}

// expect makes the feeder look at a time, if its next look would be later. A zero time
// changes nothing.
func (a *alarm) expect(due time.Time) {
	if due.IsZero() {
		return
	}
	a.mu.Lock()
	now := a.Clock()
	due = now.Add(due.Sub(now)) // times from the store do not follow a step of the clock; this one does
	earlier := due.Before(a.lookAt)
	if earlier {
		a.lookAt = due
	}
	a.mu.Unlock()
	if earlier {
		a.nudge()
	}
}

// due makes the feeder take from a lane, as the bell does. It is for lanes that get work from
// an outcome of this tick, since no other part rings the bell for that.
func (a *alarm) due(l core.Lane) {
	a.mu.Lock()
	a.becameDue[l] = true
	a.mu.Unlock()
	a.nudge()
	if a.left.Load() {
		a.Bell.Ring(l) // another worker takes from it now
	}
}

// takeDue returns the lanes that due was called for since the last takeDue.
func (a *alarm) takeDue() (lanes []core.Lane) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.becameDue {
		lanes = append(lanes, l)
	}
	clear(a.becameDue)
	return lanes
}

// nothingDue reports whether due was not called since the last takeDue.
func (a *alarm) nothingDue() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.becameDue) == 0
}
