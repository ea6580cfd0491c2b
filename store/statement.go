package store

// A statement is a text of the dialect with its name, which is the statement's name in errors,
// metrics and injected faults. Each role has its statements beside its methods, in a struct
// whose name ends in SQL.
//
// Fragments of a text in braces are filled in by the dialect; r is the row source of a statement
// on Rows. The columns of a result have names, all different: SQL over HTTP returns objects.
type statement struct {
	name, sql string
	reads     bool
}

func reading(name, sql string) statement { return statement{name: name, sql: sql, reads: true} }
func writing(name, sql string) statement { return statement{name: name, sql: sql} }

// with is the statement with the values of its question marks.
func (st statement) with(args ...any) Stmt {
	return Stmt{Name: st.name, SQL: st.sql, Args: args, Reads: st.reads}
}

// on is the statement on rows.
func (st statement) on(rows ...[]any) Stmt {
	return Stmt{Name: st.name, SQL: st.sql, Rows: rows, Reads: st.reads}
}

// sortedBy says that the rows are in the order of a column: see Stmt.SortedBy.
func (s Stmt) sortedBy(place int) Stmt {
	s.SortedBy = place + 1
	return s
}

func (s Stmt) upTo(bytes int) Stmt {
	s.MaxBytes = bytes
	return s
}

func (s Stmt) noMerge() Stmt {
	s.NoMerge = true
	return s
}

func (s Stmt) once() Stmt {
	s.Once = true
	return s
}

// statements are the statements of all roles.
type statements struct {
	inboxSQL
	takeSQL
	worklistSQL
	gatesSQL
	pullSQL
	upkeepSQL
	replaySQL
	turnsSQL
	purgeSQL
	sweepSQL
	ledgerSQL
	archiveSQL
	calendarSQL
	runsSQL
	transitSQL
	chronicleSQL
}

func newStatements(d Dialect) statements {
	return statements{
		inboxSQL:     newInboxSQL(d),
		takeSQL:      newTakeSQL(d),
		worklistSQL:  newWorklistSQL(d),
		gatesSQL:     newGatesSQL(d),
		pullSQL:      newPullSQL(d),
		upkeepSQL:    newUpkeepSQL(d),
		replaySQL:    newReplaySQL(d),
		turnsSQL:     newTurnsSQL(d),
		purgeSQL:     newPurgeSQL(d),
		sweepSQL:     newSweepSQL(d),
		ledgerSQL:    newLedgerSQL(d),
		archiveSQL:   newArchiveSQL(d),
		calendarSQL:  newCalendarSQL(d),
		runsSQL:      newRunsSQL(d),
		transitSQL:   newTransitSQL(d),
		chronicleSQL: newChronicleSQL(d),
	}
}
