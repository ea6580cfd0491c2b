// Package storetest defines a store by its checks. Each sentence of the comments on the roles in
// core/store.go and core/transition.go has a sub-test. Further sub-tests check those sentences
// under contention, repetition, odd text, faults and load.
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
// Each call of open returns a migrated store without rows and registers its own clean-up. No
// check but [Month] sleeps, and no check assumes a kind of database: checks pass times in, and
// read the content of a store through the methods of [core.Store] alone. The store's own clock
// is the only other clock. The [core.Ledger] judges leases by it, so it must show the machine's
// time.
//
// Sub-tests are named by role, sentence and case, so the words of a sentence select its checks:
//
//	go test ./store/sqlite -run 'Store/Worklist/An_outcome_whose_lease'
//
// [Model] is the same contract as the shortest program that keeps it. The suite runs on it, and
// compares random sequences of calls on it and on the store. The environment variable
// RAPID_CHECKS sets the number of sequences.
//
// The package may import core, store, rapid and go-cmp. Only tests import it.
package storetest

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

// Options adapt a run to its driver. The zero Options suit a local database.
type Options struct {
	// Slow is for stores whose statements take milliseconds each. It runs the same checks with
	// fewer rows, rounds and random sequences.
	Slow bool
}

// options returns the last of opts.
func options(opts []Options) (o Options) {
	if n := len(opts); n > 0 {
		o = opts[n-1]
	}
	return o
}

// serial returns the options for checks that run in one goroutine.
func (o Options) serial() Options {
	o.Slow = o.Slow || raceDetector
	return o
}

// A role is a group of checks: of one role of the store, or of one aspect of all roles.
type role struct {
	name string

	// stock, if set, fills the one store that all checks of the role share and
	// only read. Without it each check has a store of its own.
	stock  func(r *rig)
	checks []check
}

// A check holds a store to one sentence.
type check struct {
	sentence string // the sentence; for a declared role, word for word that of core/store.go or core/transition.go
	variant  string // the case, if the sentence has several
	run      func(r *rig)
}

func (c check) name() string {
	if c.variant == "" {
		return c.sentence
	}
	return c.sentence + "/" + c.variant
}

func roles() []role {
	return []role{
		inbox, worklist, counter, calendar, runs, ledger, archive, chronicle, upkeep, operations, queues,
		repetition, texts, times, paging, races,
	}
}

// Run holds a store to every sentence of the roles in core/store.go and core/transition.go.
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
