// Package storetest is the definition of what a store is: one sub-test for each
// sentence of the comments on roles in core/store.go and core/transition.go, and then
// what those sentences mean under contention, repetition, odd text, faults and load.
//
// A driver is right when this passes in its own tests:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) core.Store { return openEmpty(t) })
//	}
//
//	func TestFaults(t *testing.T) {
//		storetest.RunFaults(t, func(t *testing.T, f *storetest.Fault) core.Store {
//			return store.New(storetest.Faulty(openEmptyConn(t), f), dialect, core.SystemClock)
//		})
//	}
//
//	func BenchmarkStore(b *testing.B) {
//		storetest.Bench(b, func(b *testing.B) core.Store { return openEmpty(b) })
//	}
//
// Each call of open returns a migrated store without rows and registers its own
// clean-up. Nothing here sleeps, and nothing assumes a database: times are passed
// in, and what a store holds is read through [core.Ledger] alone. The one clock
// that is not passed in is the store's own, by which the Ledger judges leases; it
// has to show the machine's time.
//
// Sub-tests are named by role, sentence and case, so a sentence is found by its
// words:
//
//	go test ./store/sqlite -run 'Store/Worklist/An_outcome_whose_lease'
//
// [Model] is the same contract once more, as the shortest program that keeps it:
// the suite runs on it, and random sequences of calls are compared with it.
// RAPID_CHECKS says how many.
//
// It may import core, store, rapid and go-cmp; only tests import it.
package storetest

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

// Options adapt a run to its driver. The zero Options suit a local database.
type Options struct {
	// Slow is for stores that a statement costs milliseconds: the same sentences
	// with fewer rows, rounds and random sequences.
	Slow bool
}

// options are the last of opts.
func options(opts []Options) (o Options) {
	if n := len(opts); n > 0 {
		o = opts[n-1]
	}
	return o
}

// serial are the options of what runs in one goroutine.
func (o Options) serial() Options {
	o.Slow = o.Slow || raceDetector
	return o
}

// A role is a group of checks: one role of the store, or one view on all of them.
type role struct {
	name string

	// stock, if set, fills the one store that all checks of the role share and
	// only read. Without it each check has a store of its own.
	stock  func(r *rig)
	checks []check
}

// A check holds a store to one sentence.
type check struct {
	says string // of core/store.go or core/transition.go, word for word, for the roles declared there
	in   string // which case of it, if it has several
	run  func(r *rig)
}

func (c check) name() string {
	if c.in == "" {
		return c.says
	}
	return c.says + "/" + c.in
}

func roles() []role {
	return []role{
		inbox, worklist, counter, calendar, runs, ledger, archive, chronicle, upkeep, operations, queues,
		repetition, odd, times, paging, races,
	}
}

// Run holds a store to every sentence of core/store.go and core/transition.go.
func Run(t *testing.T, open func(t *testing.T) core.Store, opts ...Options) {
	o := options(opts)
	for _, role := range roles() {
		t.Run(role.name, func(t *testing.T) {
			t.Parallel()
			role.run(t, open, o)
		})
	}
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		runModel(t, open(t), o.serial())
	})
}

func (g role) run(t *testing.T, open func(t *testing.T) core.Store, o Options) {
	var shared *rig
	if g.stock != nil {
		shared = newRig(t, open(t), o)
		g.stock(shared)
	}
	for _, c := range g.checks {
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			if shared == nil {
				c.run(newRig(t, open(t), o))
				return
			}
			c.run(shared.with(t))
		})
	}
}
