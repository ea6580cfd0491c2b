package store

import "context"

// A Conn runs statements against one database.
type Conn interface {
	// Batch runs the statements in order and returns one result for each. Either
	// all take effect or none does; when it returns without error they are on
	// stable storage. A batch whose statements all only read sees one state of
	// the database. An empty batch does nothing. Batches of several callers may be
	// written in one commit, as long as a bad one fails alone.
	//
	// Conflicts with other writers that left no trace are retried inside. Errors
	// are classified inside as well: a core.Refusal of kind Unavailable if the
	// database cannot be reached or cannot write now, in which case the batch may
	// or may not have taken effect and the caller may send it again; any other
	// error means it did not take effect and will not.
	Batch(ctx context.Context, stmts ...Stmt) ([]Result, error)
	Close() error
}

// A Stmt is a statement with its arguments, which hold string, int64 or nil and
// nothing else.
type Stmt struct {
	Name  string // for errors, metrics and injected faults
	SQL   string
	Args  []any
	Reads bool // it returns rows and changes nothing
}

// A Result is what a statement returned: its rows, if it reads, else how many
// rows it changed. Values are string, int64 or nil.
type Result struct {
	Rows    [][]any
	Changed int64
}
