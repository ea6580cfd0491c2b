package store

import (
	"cmp"
	"math"
	"slices"
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
	mu     sync.Mutex // guards the fields below
	byLane map[core.Lane]dueFloor
	writes recentWrites
}

// A dueFloor is the floor of one lane: due, or the earliest due time that was written since, if that
// is less.
type dueFloor struct {
	due        int64     // in Unix milliseconds
	since      int64     // how many writes there were when the last look began
	fromBottom time.Time // when a look last began at the beginning of the lane
}

// at returns the floor.
func (f dueFloor) at(w *recentWrites) int64 { return min(f.due, w.least(f.since)) }

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
	known.due, known.since = known.at(&f.writes), f.writes.n
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
	return f.byLane[l].at(&f.writes)
}

// observed sets the floor of a lane to the first due time that a look found, or to the present
// if it found none. The floor stays below jobs that were written after the look began: the look
// may have missed them.
func (f *dueFloors) observed(l core.Lane, first any, bottom bool, began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.byLane[l]
	known.due = began.Add(-floorSlack).UnixMilli()
	if due, ok := first.(int64); ok {
		known.due = min(known.due, due)
	}
	if bottom {
		known.fromBottom = began
	}
	f.byLane[l] = known
}

// jobWritten lowers the floors for a job that this process wrote. It lowers those of all lanes,
// since a batch may write jobs in many lanes.
func (f *dueFloors) jobWritten(due time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes.add(due.UnixMilli())
}

// recentWrites has the due times that this process wrote, and answers which is the earliest since a
// moment. A write and a question take a few steps, however many lanes there are.
//
// A write replaces each earlier write with a later due time, since it is the answer to every question
// that the earlier write would answer. So the writes that are left are sorted by due time as well as
// by number, and the first write after the moment has the earliest due time.
type recentWrites struct {
	n    int64 // number of writes
	left []recentWrite
}

// A recentWrite is the n-th write.
type recentWrite struct{ n, due int64 }

const (
	// writeGrain is a power of two, in milliseconds, to which due times are rounded down, so that
	// the writes of one moment are one. A floor that is lower than it must be delays no job.
	writeGrain = 64

	// mostWrites is how many writes are kept: those of eight seconds, if a job is written in each
	// moment. If there are more, the older half becomes one write, with the last number and the
	// earliest due time of that half.
	mostWrites = 128
)

// add notes a write.
func (w *recentWrites) add(due int64) {
	due = max(0, due&^(writeGrain-1)) // parked jobs have negative due times
	w.n++
	for len(w.left) > 0 && w.left[len(w.left)-1].due >= due {
		w.left = w.left[:len(w.left)-1]
	}
	if w.left = append(w.left, recentWrite{w.n, due}); len(w.left) > mostWrites {
		const half = mostWrites / 2
		w.left[half-1].due = w.left[0].due
		w.left = slices.Delete(w.left, 0, half-1)
	}
}

// least returns the earliest due time written since there were n writes, or math.MaxInt64.
func (w *recentWrites) least(n int64) int64 {
	at, _ := slices.BinarySearchFunc(w.left, n+1, func(r recentWrite, n int64) int { return cmp.Compare(r.n, n) })
	if at == len(w.left) {
		return math.MaxInt64
	}
	return w.left[at].due
}
