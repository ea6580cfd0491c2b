package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A Fault decides which statement of a [Faulty] connection goes wrong, and how.
// The zero Fault lets everything through; [RunFaults] does the rest.
type Fault struct {
	mu     sync.Mutex
	how    fault
	left   int // statements or batches until it strikes
	struck bool
	writes int // statements so far that may change something

	changed map[string]int64 // rows so far, by the statement's name

	// twice sends each batch again before its answer is given, between is done once in
	// the middle of that.
	twice   bool
	between func()

	// blind is how many batches from the next one with a write on have reads that find
	// nothing, as on a database that shows what others committed a moment later.
	blind   int
	blinded bool // it has begun

	// meanwhile is done once, just before a statement of this name is sent.
	before    string
	meanwhile func()
}

type fault int

const (
	noFault     fault = iota
	refuseStmt        // a statement is refused by the database, so its batch must leave no trace
	loseAnswer        // a batch takes effect, but its answer is lost
	unreachable       // the database cannot be reached at all
)

// Faulty is a connection that goes wrong where the fault says.
func Faulty(conn store.Conn, f *Fault) store.Conn { return &faulty{Conn: conn, fault: f} }

type faulty struct {
	store.Conn
	fault *Fault
}

// refused fails on every database while it runs, not before: the table is there
// and the statement sound, but each key exists already. So a database that has
// run the statements before it has to undo them.
var refused = store.Stmt{
	Name: "refused",
	SQL:  `INSERT INTO schema_steps (number, applied_at) SELECT number, applied_at FROM schema_steps`,
}

var errAnswerLost = core.Refuse(core.Unavailable, "the answer was lost")

func (c *faulty) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	c.fault.interrupt(stmts)
	how, at := c.fault.next(stmts)
	switch how {
	case unreachable:
		return nil, core.Refuse(core.Unavailable, "the database cannot be reached")
	case refuseStmt:
		stmts = slices.Clone(stmts)
		bad := refused
		bad.Reads = stmts[at].Reads // it goes where the other would have gone
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

// hide takes out what the batch's reads found, if they are blind.
func (f *Fault) hide(stmts []store.Stmt, results []store.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blind == 0 || !f.blinded && !slices.ContainsFunc(stmts, func(s store.Stmt) bool { return !s.Reads }) {
		return
	}
	f.blind--
	f.blinded = f.blind > 0
	for i := range results {
		results[i].Rows = nil
	}
}

// count counts what a batch changed.
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

// changes is how many rows statements of a name have changed so far.
func (f *Fault) changes(name string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed[name]
}

// again tells whether a batch is to be sent once more, now. What is done in between
// is sent once.
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

// interrupt does what is to be done before one of the statements.
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

// blindFor has the reads of so many batches find nothing, from the next one on that
// writes.
func (f *Fault) blindFor(batches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind, f.blinded = batches, false
}

// justBefore has something done once, just before a statement is sent.
func (f *Fault) justBefore(statement string, do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.meanwhile = statement, do
}

// next tells what is to happen to a batch, and to which of its statements.
func (f *Fault) next(stmts []store.Stmt) (fault, int) {
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

// arm makes the n-th statement or batch from now go wrong.
func (f *Fault) arm(how fault, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.how, f.left, f.struck = how, n, false
}

// disarm lets everything through from now on.
func (f *Fault) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.how = noFault
}

// strikes tells whether the fault has struck since it was armed.
func (f *Fault) strikes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

func (f *Fault) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}
