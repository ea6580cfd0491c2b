package store

import "sync"

// A statement is a text of one dialect with a name. The name identifies it in errors, metrics,
// injected faults and testdata/sql. Each role has its statements beside its methods, in a
// struct whose name ends in SQL.
//
// In the text, fragments in braces are filled in by [Dialect.sql], and r is the row source of a
// statement on Rows. All columns of a result have different names: D1 returns each row as a
// JSON object.
type statement struct {
	name, sql string
	reads     bool
	walks     bool
	returns   bool // see Stmt.Returns
	alone     bool // its batches are not merged, see Stmt.NoMerge
	counts    bool // see Stmt.Inserts
	uncounted bool // see Stmt.Uncounted
}

// reading is a statement that returns rows and changes nothing.
func reading(name, sql string) statement { return statement{name: name, sql: sql, reads: true} }

// walking is a statement that reads and may look at many rows. See Stmt.Walks.
func walking(name, sql string) statement {
	return statement{name: name, sql: sql, reads: true, walks: true}
}

// writing is a statement that changes rows.
func writing(name, sql string) statement { return statement{name: name, sql: sql} }

// uncounted is a writing of which no method needs to know how many rows it changed. See Stmt.Uncounted.
func uncounted(name, sql string) statement {
	return statement{name: name, sql: sql, uncounted: true}
}

// with makes a Stmt with one value for each question mark.
func (st statement) with(args ...any) Stmt {
	return Stmt{Name: st.name, SQL: st.sql, Args: args, Reads: st.reads, Walks: st.walks, Uncounted: st.uncounted}
}

// on makes a Stmt on rows.
func (st statement) on(rows ...[]any) Stmt {
	return Stmt{Name: st.name, SQL: st.sql, Rows: rows, Reads: st.reads, Walks: st.walks, Returns: st.returns, NoMerge: st.alone, Inserts: st.counts, Uncounted: st.uncounted}
}

// sortedBy says that the rows are sorted by the column at a position, from 0. See
// Stmt.SortedBy.
func (s Stmt) sortedBy(place int) Stmt {
	s.SortedBy = place + 1
	return s
}

// upTo bounds the bytes of the result. See Stmt.MaxBytes.
func (s Stmt) upTo(bytes int) Stmt {
	s.MaxBytes = bytes
	return s
}

// noMerge keeps the batch from being merged. See Stmt.NoMerge.
func (s Stmt) noMerge() Stmt {
	s.NoMerge = true
	return s
}

// once says that the statement must not be repeated. See Stmt.Once.
func (s Stmt) once() Stmt {
	s.Once = true
	return s
}

// statements are the statements of all roles. The structs are embedded, so that a method names
// a statement without its role: s.sql.claim. TestStatements writes one file for each struct.
type statements struct {
	inboxSQL
	expressSQL
	takeSQL
	worklistSQL
	gatesSQL
	holdsSQL
	parkedSQL
	linesSQL
	lineListSQL
	pullSQL
	upkeepSQL
	cancelSQL
	replaySQL
	operationsSQL
	minutesSQL
	turnsSQL
	purgeSQL
	sweepSQL
	ledgerSQL
	archiveSQL
	calendarSQL
	runsSQL
	transitSQL
	chronicleSQL
	auditSQL
}

// composed holds the statements of the dialects that a store was made for, by name, each as a
// func() statements. They never change, and composing them takes 2 ms, or 10 under the race
// detector: longer than most tests need for the rest.
var composed sync.Map

// statementsOf returns the statements of a dialect. Only the first call for it composes them.
func statementsOf(d Dialect) statements {
	known, _ := composed.LoadOrStore(d.Name, sync.OnceValue(func() statements { return newStatements(d) }))
	return known.(func() statements)()
}

// Compose composes the statements of the dialect, unless that was done before. New does it as well: a
// program that calls Compose while it connects starts earlier. Compose may be called at any time.
func (d Dialect) Compose() { statementsOf(d) }

// newStatements composes all statements of a dialect, about 250 texts.
func newStatements(d Dialect) statements {
	return statements{
		inboxSQL:      newInboxSQL(d),
		expressSQL:    newExpressSQL(d),
		takeSQL:       newTakeSQL(d),
		worklistSQL:   newWorklistSQL(d),
		gatesSQL:      newGatesSQL(d),
		holdsSQL:      newHoldsSQL(d),
		parkedSQL:     newParkedSQL(d),
		linesSQL:      newLinesSQL(d),
		lineListSQL:   newLineListSQL(d),
		pullSQL:       newPullSQL(d),
		upkeepSQL:     newUpkeepSQL(d),
		cancelSQL:     newCancelSQL(d),
		replaySQL:     newReplaySQL(d),
		operationsSQL: newOperationsSQL(d),
		minutesSQL:    newMinutesSQL(d),
		turnsSQL:      newTurnsSQL(d),
		purgeSQL:      newPurgeSQL(d),
		sweepSQL:      newSweepSQL(d),
		ledgerSQL:     newLedgerSQL(d),
		archiveSQL:    newArchiveSQL(d),
		calendarSQL:   newCalendarSQL(d),
		runsSQL:       newRunsSQL(d),
		transitSQL:    newTransitSQL(d),
		chronicleSQL:  newChronicleSQL(d),
		auditSQL:      newAuditSQL(d),
	}
}
