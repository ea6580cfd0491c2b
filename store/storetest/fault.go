package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// The fault injection. A [Faulty] connection stands between a store and its database, counts
// statements and batches, and makes one of them fail, answers none, sends batches twice, hides
// rows, or runs other calls at a chosen moment. It fails above the driver, so one injection serves
// all databases. Drivers test failures of their connections themselves.

// A Fault decides which statement or batch of a [Faulty] connection fails, and how. The zero
// Fault lets everything through. [RunFaults] sets the rest.
type Fault struct {
	mu     sync.Mutex
	how    faultKind
	left   int // statements or batches until it strikes, counted down
	struck bool
	writes int // statements so far that may change rows

	changed map[string]int64 // rows changed so far, by the statement's name

	// twice sends each batch a second time before its answer is returned. between, if set, runs
	// once between the two sendings.
	twice   bool
	between func()

	// blindBatches is the number of batches whose reads return no rows, from the next batch with a
	// write on. So behaves a database that shows other commits a moment late.
	blindBatches int
	blindBegun   bool // whether the first of the blind batches has come

	// meanwhile runs once, just before a statement with the name before is sent.
	before    string
	meanwhile func()
}

// A faultKind is a way to fail.
type faultKind int

const (
	// The kinds differ in the state of the database afterwards: nothing happened, everything
	// happened, or the call did not reach it.
	noFault     faultKind = iota
	refuseStmt            // the database refuses a statement, so its batch must change nothing
	loseAnswer            // a batch takes effect, but its answer is lost
	unreachable           // the database cannot be reached at all
)

// Faulty returns a connection that fails as the fault says.
func Faulty(conn store.Conn, f *Fault) store.Conn { return &faulty{Conn: conn, fault: f} }

// A faulty connection wraps the connection of a store.
type faulty struct {
	store.Conn
	fault *Fault
}

// refused fails on every database, and only when it runs: the table exists and the statement is
// valid, but each key exists already. So a database that has run the statements before it must
// undo them.
var refused = store.Stmt{
	Name: "refused",
	SQL:  `INSERT INTO schema_steps (number, applied_at) SELECT number, applied_at FROM schema_steps`,
}

// errAnswerLost is the refusal of a call whose batch took effect. The caller cannot tell it from
// one that did not, and sends the call again.
var errAnswerLost = core.Refuse(core.Unavailable, "the answer was lost")

// asked are statements that no method of the store asks for the number of changed rows, but tests do.
var asked = []string{"insert_definitions", "succeed"}

func (c *faulty) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	c.fault.interrupt(stmts)
	how, at := c.fault.next(stmts)
	stmts = slices.Clone(stmts)
	for i := range stmts {
		if slices.Contains(asked, stmts[i].Name) {
			stmts[i].Uncounted = false
		}
	}
	switch how {
	case unreachable:
		return nil, core.Untouched(core.Refuse(core.Unavailable, "the database cannot be reached"))
	case refuseStmt:
		bad := refused
		bad.Reads = stmts[at].Reads // a connection sends it where it would send the replaced statement
		stmts[at] = bad
	}
	results, err := c.Conn.Batch(ctx, stmts...)
	c.fault.count(stmts, results)
	if err == nil && c.fault.again() && !slices.ContainsFunc(stmts, func(s store.Stmt) bool { return s.Once }) {
		results, err = c.Conn.Batch(ctx, stmts...)
	}
	switch {
	case err != nil || how == noFault:
		c.fault.hide(stmts, results)
		return results, err
	case how == refuseStmt:
		return nil, errors.New("storetest: a statement that breaks a key went through")
	default:
		return nil, errAnswerLost
	}
}

// hide removes the rows that the batch's reads returned, while the fault is blind.
func (f *Fault) hide(stmts []store.Stmt, results []store.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blindBatches == 0 || !f.blindBegun && !slices.ContainsFunc(stmts, func(s store.Stmt) bool { return !s.Reads }) {
		return
	}
	f.blindBatches--
	f.blindBegun = f.blindBatches > 0
	for i := range results {
		results[i].Rows = nil
	}
}

// count adds up the rows that each statement of a batch changed.
func (f *Fault) count(stmts []store.Stmt, results []store.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = map[string]int64{}
	}
	for i, r := range results {
		f.changed[stmts[i].Name] += r.Changed
	}
}

// changes returns the number of rows that statements of that name have changed so far.
func (f *Fault) changes(name string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed[name]
}

// again reports whether to send a batch once more, now. The batches of between, which runs here,
// are sent once.
func (f *Fault) again() bool {
	if !f.twice || f.between == nil {
		return f.twice
	}
	do := f.between
	f.twice, f.between = false, nil
	do()
	f.twice = true
	return true
}

// interrupt runs meanwhile if one of the statements has the name before.
func (f *Fault) interrupt(stmts []store.Stmt) {
	f.mu.Lock()
	var do func()
	if slices.ContainsFunc(stmts, func(s store.Stmt) bool { return s.Name == f.before }) {
		do, f.before, f.meanwhile = f.meanwhile, "", nil
	}
	f.mu.Unlock()
	if do != nil {
		do()
	}
}

// blindFor makes the reads of that many batches return no rows, from the next batch that writes
// on.
func (f *Fault) blindFor(batches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blindBatches, f.blindBegun = batches, false
}

// justBefore runs do once, just before the next statement of that name is sent.
func (f *Fault) justBefore(statement string, do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.meanwhile = statement, do
}

// next returns how a batch fails, if it does, and the index of the failing statement.
func (f *Fault) next(stmts []store.Stmt) (faultKind, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range stmts {
		if !s.Reads {
			f.writes++
		}
	}
	if f.how == unreachable {
		return unreachable, 0
	}
	size := 1
	if f.how == refuseStmt {
		size = len(stmts)
	}
	at := f.left - 1
	f.left -= size
	if f.how == noFault || at >= size || at < 0 {
		return noFault, 0
	}
	how := f.how
	f.how, f.struck = noFault, true
	return how, at
}

// arm makes the n-th statement or batch from now fail.
func (f *Fault) arm(how faultKind, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.how, f.left, f.struck = how, n, false
}

// disarm lets every statement through from now on.
func (f *Fault) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.how = noFault
}

// hasStruck reports whether the fault has struck since it was armed.
func (f *Fault) hasStruck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

func (f *Fault) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}
