package store

import "context"

// A Conn runs statements against one database. Each driver package implements it; package
// storetest tests it.
type Conn interface {
	// Batch runs the statements in order and returns one result for each. Either all of them
	// take effect or none. When it returns without an error they are on stable storage, unless
	// each statement that writes is Lazy. A batch of reads alone sees one state of the
	// database. An empty batch does nothing. A Conn may write batches of several callers in one
	// commit, if an error of one batch does not affect the others.
	//
	// Batch itself repeats a batch that was rolled back by a conflict with other writers, such
	// as a deadlock. It also classifies errors. A core.Refusal of kind Unavailable means that
	// the database cannot be reached or cannot write now; the batch may or may not have taken
	// effect, and the caller may send it again. Any other error means that the batch took no
	// effect and would fail again. A batch that names a table or column that does not exist is
	// refused with a [SchemaMismatch].
	Batch(ctx context.Context, stmts ...Stmt) ([]Result, error)
	// Close closes the connections. Batches that are under way may fail.
	Close() error
}

// A Stmt is a statement with its values, each a string, an int64 or nil. It has either Args or
// Rows.
type Stmt struct {
	Name string // for errors, metrics and injected faults
	SQL  string

	// Args are the values of the question marks in the text.
	Args []any

	// Rows are the rows of the statement's row source. The statement acts on each of them, in
	// any order. With SQLite's dialect, the Conn runs the text once for each row, and the row's
	// values are the arguments. With the others it runs the text once: the arguments are one
	// array for each column (PostgreSQL), or all values in a row (MySQL, D1).
	//
	// A Conn may merge batches whose statements all have Rows and the same texts, see
	// store/group. The result of such a statement may then contain rows for other callers. Each
	// caller picks its own by a key.
	Rows [][]any

	Reads bool // it returns rows and changes nothing

	// Returns says that the statement changes rows and returns one row for each. Only statements for
	// PostgreSQL do. Its Changed is exact for a batch that was not merged, as that of any statement.
	Returns bool

	// Inserts says that the statement is an INSERT that skips rows whose key exists, and that its Changed
	// does not count these. It is not set on MySQL, which counts them.
	Inserts bool

	// Uncounted says that the statement writes, and that its caller does not look at Changed, which may then
	// be 0. It saves MySQL a statement that asks for the number.
	Uncounted bool

	// Walks says that the statement reads and may look at a hundred thousand rows. A Conn whose
	// database is in this process runs few of these at a time, since they take processor time that
	// everything else in the process needs.
	Walks bool

	// MaxBytes bounds the memory for the result of a statement that reads and has Args. When
	// the texts of its rows exceed MaxBytes bytes together, all further rows are cut: their
	// texts of more than 128 bytes are nil. The first row is always whole. 0 means no bound.
	// See [ByteLimit].
	MaxBytes int

	// SortedBy is the position in a row, from 1, of the key by which Rows are sorted. The
	// statement locks rows of a table in this order. A Conn that merges the rows of several
	// batches sorts them again, so that two merged batches cannot deadlock. 0 means that the
	// order does not matter.
	SortedBy int

	// NoMerge keeps the whole batch from being merged with others. It is set if the order of
	// the batch's statements is a lock order that merging would break, or if the caller needs
	// the exact Changed of its own rows.
	NoMerge bool

	// Lazy says that the statement's effect may be lost in a power failure after Batch
	// returned: the caller will do it again. Nothing that a later batch which is not lazy has
	// read is lost.
	Lazy bool

	// Once says that the statement would change more if it ran a second time, as Retry's would.
	// A Conn does not repeat such a batch when the answer is lost. All other batches may be
	// repeated.
	Once bool
}

// A Result is the outcome of a statement: the rows if it reads, else how many rows it changed, or both
// if it Returns. Values are string, int64 or nil.
//
// If a statement with Rows was merged with others, Changed is len(Rows) if each of its rows
// changed something, and less if one of them may not have.
type Result struct {
	Rows    [][]any
	Changed int64

	Cut int // how many of the last rows are cut, see Stmt.MaxBytes
}

// Whole returns the rows before the cut ones.
func (r Result) Whole() [][]any { return r.Rows[:len(r.Rows)-r.Cut] }

// cut returns the cut rows.
func (r Result) cut() [][]any { return r.Rows[len(r.Rows)-r.Cut:] }
