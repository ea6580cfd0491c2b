package store

import (
	"math"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// dueFloors keep a floor for each lane: a time before which no job of the lane is due, as far
// as this process knows. Claims and looks read jobs_waiting from the floor on.
//
// Without a floor they would begin at the head of the lane's index entries. PostgreSQL leaves
// entries of deleted and updated rows in the index until a vacuum, and they pile up exactly
// there: after 100,000 jobs that were claimed and settled, a claim of ten jobs took ten times
// as long.
//
// Each job that this process writes lowers the floor. Another process may write a job that is
// due below the floor, since its clock is behind or its commit took long. Two measures bound
// the delay of such a job: the floor stays floorSlack below the present, and once in
// floorMaxAge a look reads from the very beginning of the lane.
type dueFloors struct {
	mu     sync.Mutex // guards byLane
	byLane map[core.Lane]dueFloor
}

// A dueFloor is the floor of one lane.
type dueFloor struct {
	due        int64     // the floor, in Unix milliseconds
	written    int64     // the earliest due time written since the last look began
	fromBottom time.Time // when a look last began at the beginning of the lane
}

// floorSlack covers the differences between the clocks of processes, and slow commits.
// floorMaxAge is the longest delay of a job that another process wrote below the floor.
const (
	floorSlack  = 200 * time.Millisecond
	floorMaxAge = time.Second
)

// lookFrom returns the due time at which a look at a lane may begin. bottom reports that the
// look reads the whole lane, which is so once in floorMaxAge. A clock that was set back counts
// as an old floor.
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

// ForgetFloors makes the next look at each lane begin at its first job. Functions call it
// before their last look, and when they were frozen and run again. Such a process does not look
// again a second later, so it would leave a job below the floor waiting.
func (s *Store) ForgetFloors() {
	s.floors.mu.Lock()
	defer s.floors.mu.Unlock()
	clear(s.floors.byLane)
}

// claimFrom returns the due time at which a claim in a lane may begin; 0 for a lane that was
// never looked at.
func (f *dueFloors) claimFrom(l core.Lane) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byLane[l].due
}

// observed sets the floor of a lane to the first due time that a look found, or to the present
// if it found none. The floor stays below jobs that were written after the look began: the look
// may have missed them.
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

// jobWritten lowers the floors for a job that this process wrote. It lowers those of all lanes:
// that is a few words of memory, while a batch may write jobs in many lanes.
func (f *dueFloors) jobWritten(due time.Time) {
	ms := due.UnixMilli()
	f.mu.Lock()
	defer f.mu.Unlock()
	for l, known := range f.byLane {
		known.due, known.written = min(known.due, ms), min(known.written, ms)
		f.byLane[l] = known
	}
}
