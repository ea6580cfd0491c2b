package worker

import (
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// A roster is the lanes that a tick takes from. It never changes: a lane that is adopted
// makes a new one, since slots read it all the time.
type roster struct {
	lanes   []core.Lane
	targets map[core.Lane]Target
}

// lanes are those that the tick takes from now.
func (t *tick) lanes() []core.Lane { return t.roster.Load().lanes }

// target is who works for a lane.
func (t *tick) target(l core.Lane) Target { return t.roster.Load().targets[l] }

// adopt takes a lane on that nobody configured, if somebody can work for it, and tells
// whether somebody does. The queue hears of the lane first: once it is on the roster the
// feeder may take from it.
func (t *tick) adopt(l core.Lane) bool {
	t.adopting.Lock()
	defer t.adopting.Unlock()
	old := t.roster.Load()
	if _, known := old.targets[l]; known {
		return true
	}
	if t.Adopt == nil {
		return false
	}
	target, ok := t.Adopt(l)
	if !ok {
		return false
	}
	target.Lane = l
	grown := &roster{lanes: append(slices.Clone(old.lanes), l), targets: maps.Clone(old.targets)}
	grown.targets[l] = target
	t.queue.join(l)
	t.roster.Store(grown)
	return true
}

// stir has the feeder look at a lane that has work now, as the bell does. It is for what
// follows from the tick's own doings, in lanes for which no bell may ring.
func (t *tick) stir(l core.Lane) {
	t.mu.Lock()
	t.stirred[l] = true
	t.mu.Unlock()
	t.nudge()
	if t.gone.Load() {
		t.Bell.Ring(l) // it is somebody else's now
	}
}

// roused are the lanes that were rung or stirred since it was last asked. One that is
// rung and nobody's is adopted, or it is not for here.
func (t *tick) roused() []core.Lane {
	lanes := slices.DeleteFunc(t.heard.Rung(), func(l core.Lane) bool { return !t.adopt(l) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.stirred {
		if !slices.Contains(lanes, l) {
			lanes = append(lanes, l)
		}
	}
	clear(t.stirred)
	return lanes
}

// foretold has the feeder look at the times at which lanes have work, as the bell told them.
func (t *tick) foretold() {
	for l, at := range t.heard.Coming() {
		if t.adopt(l) {
			t.dry = false // a tick that ends by itself learns the time from a look
			t.expect(at)
		}
	}
}

// quiet tells whether everything that was taken is settled and nothing came of it that
// is to be looked at.
func (t *tick) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.leases) == 0 && len(t.stirred) == 0
}
