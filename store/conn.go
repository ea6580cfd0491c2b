package store

import "context"

// A Conn runs statements against one database.
type Conn interface {
	// Batch runs the statements in order and returns one result for each. Either
	// all take effect or none does; when it returns without error they are on
	// stable storage, unless all that write are Lazy. A batch whose statements all only read sees one state of
	// the database. An empty batch does nothing. Batches of several callers may be
	// written in one commit, as long as a bad one fails alone.
	//
	// Conflicts with other writers that left no trace are retried inside. Errors
	// are classified inside as well: a core.Refusal of kind Unavailable if the
	// database cannot be reached or cannot write now, in which case the batch may
	// or may not have taken effect and the caller may send it again. Any other
	// error means it did not take effect and will not. A batch that names a table or
	// column which is not there is refused with a [SchemaMismatch].
	Batch(ctx context.Context, stmts ...Stmt) ([]Result, error)
	Close() error
}

// A Stmt is a statement with its arguments, which hold string, int64 or nil and
// nothing else. It has either Args or Rows.
type Stmt struct {
	Name string // for errors, metrics and injected faults
	SQL  string

	// Args are the values of the question marks in the text.
	Args []any

	// Rows are the rows of the text's row source: the statement acts on each of
	// them, in any order, as the text of the dialect has it. One row at a time:
	// its values are those of the question marks. All at once: the columns are, as
	// arrays.
	//
	// A batch of nothing but statements with Rows may be run as one with others of
	// the same texts, so what such a statement returns may be about their rows too.
	Rows [][]any

	Reads bool // it returns rows and changes nothing

	// MaxBytes bounds the memory for the result of a statement that reads and has Args. When
	// its rows have more than so many bytes of text together, further rows come cut: without
	// their texts of more than 128 bytes. The first row comes whole. Zero means no bound.
	MaxBytes int

	// SortedBy is the place in a row, from 1, of the key in whose order Rows are. It is
	// the order in which what they name is locked, and stays theirs when rows of
	// several batches are put together. Zero says that the order makes no difference.
	SortedBy int

	// NoMerge says that the batch is not to be put together with others: its statements
	// are in the order in which what they name is to be locked, or the number of rows
	// that it changed itself is asked for.
	NoMerge bool

	// Lazy says that what the statement does may be lost with the power, after it was
	// answered: it is done again. What a later batch that is not lazy finds is not lost.
	Lazy bool

	// Once says that the statement would do more if it were sent again. All others
	// may be, as a whole batch, when an answer is lost.
	Once bool
}

// A Result is what a statement returned: its rows, if it reads, else how many
// rows it changed. Values are string, int64 or nil.
//
// Of a statement with Rows that was run together with others', Changed is the
// number of its rows if each changed something, or less if one of them may not
// have.
type Result struct {
	Rows    [][]any
	Changed int64

	Cut int // how many rows are cut for Stmt.MaxBytes; the last ones
}

// Whole returns the rows that are not cut.
func (r Result) Whole() [][]any { return r.Rows[:len(r.Rows)-r.Cut] }

func (r Result) cut() [][]any { return r.Rows[len(r.Rows)-r.Cut:] }
