package store

import (
	"math"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A floor is a time before which no job of a lane is due, as far as this process
// knows. Where rows that are gone stay in an index until somebody cleans up, as in
// PostgreSQL, they pile up just where the next look begins: after 100,000 jobs
// that were claimed and settled there, a claim of ten took ten times as long. So
// a look begins at the floor.
//
// What this process writes lowers it. Another process may write a job that is due
// before: its clock is behind, or its commit took long. Therefore a floor stays a
// little below the present, and once a second a look begins at the very bottom: so
// much later may such a job be found.
type dueFloors struct {
	mu     sync.Mutex
	byLane map[core.Lane]dueFloor
}

type dueFloor struct {
	due        int64     // Unix milliseconds
	written    int64     // the earliest that was written since the last look began
	fromBottom time.Time // when a look last began at the bottom
}

const (
	floorSlack  = 200 * time.Millisecond
	floorMaxAge = time.Second
)

// trusted is where a look at a lane may begin. bottom tells that it is the bottom.
func (f *dueFloors) lookFrom(l core.Lane, now time.Time) (due int64, bottom bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byLane == nil {
		f.byLane = map[core.Lane]dueFloor{}
	}
	known := f.byLane[l]
	known.written = math.MaxInt64
	f.byLane[l] = known
	if since := now.Sub(known.fromBottom); since < 0 || since >= floorMaxAge {
		return 0, true
	}
	return known.due, false
}

// ForgetFloors has the next look at each lane begin at the very bottom. It is for those who
// look for the last time, or for the first time after they were stopped: nobody looks
// again a second later, for what others wrote meanwhile that is due since before.
func (s *Store) ForgetFloors() {
	s.floors.mu.Lock()
	defer s.floors.mu.Unlock()
	clear(s.floors.byLane)
}

// at is where a claim in a lane may begin.
func (f *dueFloors) claimFrom(l core.Lane) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byLane[l].due
}

// found raises or lowers the floor of a lane to the first job that a look found,
// or, if it found none, to the present; not above what was written meanwhile.
func (f *dueFloors) observed(l core.Lane, first any, bottom bool, began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.byLane[l]
	known.due = min(began.Add(-floorSlack).UnixMilli(), known.written)
	if due, ok := first.(int64); ok {
		known.due = min(known.due, due)
	}
	if bottom {
		known.fromBottom = began
	}
	f.byLane[l] = known
}

// lower makes room for a job that was written, whatever its lane.
func (f *dueFloors) jobWritten(due time.Time) {
	ms := due.UnixMilli()
	f.mu.Lock()
	defer f.mu.Unlock()
	for l, known := range f.byLane {
		known.due, known.written = min(known.due, ms), min(known.written, ms)
		f.byLane[l] = known
	}
}
