package worker

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eventgateway/gateway/core"
)

// A roster has the lanes that a tick takes from, and the target of each. It grows when the
// tick adopts a lane.
type roster struct {
	adoptable func(core.Lane) (Target, bool) // may be nil
	queue     *queue

	growing sync.Mutex // held while the roster grows
	current atomic.Pointer[laneTable]
}

// A laneTable is the content of a roster. It never changes, since slots read it all the time:
// an adopted lane makes a new one.
type laneTable struct {
	lanes   []core.Lane // sorted
	targets map[core.Lane]Target
}

func newRoster(w *Worker, q *queue) *roster {
	r := &roster{adoptable: w.Adopt, queue: q}
	r.current.Store(&laneTable{w.lanes, w.targets})
	return r
}

func (r *roster) table() *laneTable { return r.current.Load() }

// lanes returns the lanes that the tick takes from now.
func (r *roster) lanes() []core.Lane { return r.table().lanes }

// has reports whether the tick takes from a lane.
func (r *roster) has(l core.Lane) bool {
	_, ok := r.table().targets[l]
	return ok
}

// target returns the target of a lane.
func (r *roster) target(l core.Lane) Target { return r.table().targets[l] }

// adopt adds a lane that is not configured, if Deps.Adopt has a target for it. It reports
// whether the roster has the lane. The queue gets the lane first: once the lane is on the
// roster the feeder may take from it.
func (r *roster) adopt(l core.Lane) bool {
	r.growing.Lock()
	defer r.growing.Unlock()
	old := r.table()
	if _, known := old.targets[l]; known {
		return true
	}
	if r.adoptable == nil {
		return false
	}
	target, ok := r.adoptable(l)
	if !ok {
		return false
	}
	target.Lane = l
	at, _ := slices.BinarySearch(old.lanes, l)
	grown := &laneTable{lanes: slices.Insert(slices.Clone(old.lanes), at, l), targets: maps.Clone(old.targets)}
	grown.targets[l] = target
	r.queue.join(l)
	r.current.Store(grown)
	return true
}
