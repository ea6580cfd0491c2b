// Package storetest defines a store by its checks. It is the conformance suite of all databases:
// each driver's tests run it on empty databases of their own.
//
// # How a sentence becomes a test
//
// The comments on the interfaces of core/store.go and core/transition.go are the contract of a
// store. Each of their sentences is the name of one or more checks here, word for word. A check is
// a function that calls the store through a [rig] and compares the answers. A test of this package
// reads the comments and requires a check for each sentence, and a sentence for each check. So a
// change of the contract begins with a sentence in core, which fails that test until a check has
// its words.
//
// Further groups of checks hold all methods to one aspect: repeated calls, odd texts, times,
// paging and races. Sub-tests are named by role, sentence and case, so the words of a sentence
// select its checks:
//
//	go test ./store/sqlite -run 'Store/Worklist/An_outcome_whose_lease'
//
// No check but [Month] sleeps, and no check assumes a kind of database: checks pass times in, and
// read the content of a store through the methods of [core.Store] alone. The store's own clock
// is the only other clock. The [core.Ledger] judges leases by it, so it must show the machine's
// time.
//
// # Further proofs
//
//   - The model-based test (machine.go): [Model] is the same contract as the shortest program that
//     keeps it. Random sequences of calls are made on it and on the store, and both must show the
//     same after each call. The environment variable RAPID_CHECKS sets the number of sequences.
//   - The fault injection (faults.go, fault.go): a scenario of about a hundred calls is played again
//     and again, until each statement of each call has failed once and each answer was lost once. So
//     each call is atomic and may be sent twice.
//   - The races (race.go, raceruns.go, and functions whose names begin with race): goroutines call
//     the store at the same moment. Exactly one of them may succeed, or each exactly once. RunLocks
//     makes stores of several processes lock the same rows in opposite orders.
//   - The mutation of guards (guards.go): each condition that fences a statement against other
//     callers is removed in turn, and the suite must fail. It takes half an hour for all databases:
//     make verify.
//   - The whole suites (whole.go): on SQLite make test runs everything. On the other databases it
//     leaves out most repetitions of the same code (Options); make verify runs them.
//   - The broken stores (broken_test.go and its neighbours): models with one defect each, on which
//     the named checks must fail.
//   - The columns (columns_test.go): for each column of the schema, a database that forgets the
//     column, on which a named check must fail.
//   - The month (month.go): no table grows for ever.
//   - Migrations and damaged schemas (migrations.go, shapes.go).
//
// # How a driver runs the suite
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
// Each call of open returns a migrated store without rows and registers its own clean-up. It opens
// the store over [Weakened], so that [Guards] can remove guards. If making tables is slow, a [Shelf]
// keeps emptied databases for later checks. [RunMigrations], [RunSeveral], [RunLocks], [Shapes] and
// [Guards] need more of a driver, such as a second connection to the same database. store/sqlite
// has the shortest tests of a driver to copy from.
//
// The package may import core, store, rapid and go-cmp. Only tests import it.
package storetest

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Options adapt a run to its driver. The zero Options suit a local database.
type Options struct {
	// Slow is for stores whose statements take milliseconds each. It runs the same checks with
	// fewer rows, rounds and random sequences.
	Slow bool

	// Sampled is for databases with servers. The statements are composed by the code that the run on
	// SQLite tests with every fault, so one statement in five fails in turn, and fewer random
	// sequences run. With [Whole] it has no effect.
	Sampled bool

	// SecondFace is for a second protocol to a database: the whole suite runs over the first one. A
	// protocol carries statements, values, results and errors. So each statement is sent, and the
	// roles with the most kinds of values and errors run, without the random sequences. With
	// [Whole] it has no effect.
	SecondFace bool
}

// secondFace are the names of the roles that run over a second protocol.
var secondFace = []string{"Inbox", "Worklist", "Queues", "Text", "Times", "Paging", "Races"}

// options returns the last of opts. So the drivers may leave the options out.
func options(opts []Options) (o Options) {
	if n := len(opts); n > 0 {
		o = opts[n-1]
	}
	if Whole() {
		o.Sampled, o.SecondFace = false, false
	}
	return o
}

// serial returns the options for checks that run in one goroutine. Under the race detector such
// checks take ten times as long and can find no race, so they run as for a slow store.
func (o Options) serial() Options {
	o.Slow = o.Slow || raceDetector
	return o
}

// A role is a group of checks: of one role of the store, or of one aspect of all roles. Its name
// is the first part of the names of its sub-tests.
type role struct {
	name string

	// stock, if set, fills the one store that all checks of the role share and
	// only read. Without it each check has a store of its own.
	stock  func(r *rig)
	checks []check
}

// A check holds a store to one sentence. Its run function calls the store through a rig, and fails
// the rig's test if an answer differs from the sentence.
type check struct {
	sentence string // the sentence; for a declared role, word for word that of core/store.go or core/transition.go
	variant  string // the case, if the sentence has several
	run      func(r *rig)
}

// name returns the name of the check's sub-test below that of its role. It is unique in the role.
func (c check) name() string {
	if c.variant == "" {
		return c.sentence
	}
	return c.sentence + "/" + c.variant
}

// concurrent reports whether the check has concurrent callers, which is in its name.
func (c check) concurrent() bool { return sayConcurrent.MatchString(c.name()) }

var sayConcurrent = regexp.MustCompile(`(?i)concurrent|simultaneous|same time|several processes|while|exactly one`)

// roles returns all groups in the order in which they run. TestEachSentenceHasACheck compares them
// with the sentences of the interfaces.
func roles() []role {
	return []role{
		inbox, expresses, worklist, counter, calendar, runs, ledger, archive, chronicle, upkeep, operations, operationLog, minutes, cancels, holds, audits, lineChecks, queues,
		repetition, texts, times, paging, races,
	}
}

// besideHold returns the checks of a role, with a source held to which none of their events
// belongs. Then a store may send other claims.
func besideHold(g role) role {
	g.name, g.checks = g.name+" beside a held source", slices.Clone(g.checks)
	for i, c := range g.checks {
		g.checks[i].run = func(r *rig) {
			r.holdLane("source/elsewhere", time.Time{}, "")
			c.run(r)
		}
	}
	return g
}

// Run holds a store to every sentence of the roles in core/store.go and core/transition.go. Roles
// and checks run in parallel. Each check opens a store of its own, unless the checks of the role
// share a stock.
func Run(t *testing.T, open func(t *testing.T) core.Store, opts ...Options) {
	o := options(opts)
	all := roles()
	if !o.Sampled && !raceDetector { // other statements, in the same goroutines
		all = append(all, besideHold(worklist))
	}
	for _, role := range all {
		if o.SecondFace && !slices.Contains(secondFace, role.name) {
			continue
		}
		t.Run(role.name, func(t *testing.T) {
			t.Parallel()
			role.run(t, open, o)
		})
	}
	if o.SecondFace {
		t.Run("Each statement", func(t *testing.T) {
			t.Parallel()
			eachCall(newRig(t, open(t), o))
		})
		return
	}
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		runModel(t, open(t), o.serial())
	})
}

// run runs the checks of a role as sub-tests. The shared store is opened under the test of the
// role, so it is closed after the last of the checks, which run in parallel.
func (g role) run(t *testing.T, open func(t *testing.T) core.Store, o Options) {
	var shared *rig
	if g.stock != nil {
		shared = newRig(t, open(t), o)
		g.stock(shared)
	}
	for _, c := range g.checks {
		if raceDetector && o.Sampled && !c.concurrent() {
			continue
		}
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			r := shared
			if r == nil {
				r = newRig(t, open(t), o)
			} else {
				r = r.with(t)
			}
			r.oneCaller = !c.concurrent()
			c.run(r)
		})
	}
}
