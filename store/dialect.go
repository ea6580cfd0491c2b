package store

import (
	"fmt"
	"strings"
)

// A Dialect holds the differences between families of databases: text for the statements, and
// five fields that are no text (compareAsRow, rangePerRow, joinedChanges, countsSkipped and
// purgeRows) where the engines differ in speed or in what they can do. All fields except Name are
// private, so no other package can branch on a property of a dialect. An empty fragment means
// that the database needs no such clause.
//
// Statement texts name fragments in braces, such as {on_conflict events.id} or {use
// jobs_waiting}; [Dialect.sql] fills them in. Fields whose names end in SQL are whole
// statements, with parameters such as $table or %s. The results can be read in testdata/sql.
type Dialect struct {
	// Name is the key of the database in tests, in the questions of a Checkup and in Compare.
	Name string

	// Column types of the schema steps: {key}, {path}, {text} and {int}.
	//
	// A key is compared byte by byte and can be indexed; it has at most 255 bytes. A path is
	// a key with at most 1,024 bytes. A text is stored and never compared. An int has 64 bits.
	// PostgreSQL needs COLLATE "C" for comparison by bytes, and MySQL needs VARBINARY.
	keyType, pathType, textType, intType string

	// tableOptions ends CREATE TABLE, by table: {options jobs}. SQLite: "WITHOUT ROWID",
	// PostgreSQL: "WITH (fillfactor = 85, ...)", MySQL: engine and collation.
	tableOptions map[string]string

	// indexIfNotExists makes CREATE INDEX repeatable: "IF NOT EXISTS", as {index_if_not_exists}.
	// MySQL has no such clause. There the Conn ignores the error of an index that exists.
	indexIfNotExists string

	// columnIfNotExists makes ADD COLUMN repeatable: "IF NOT EXISTS", as {column_if_not_exists}.
	// Only PostgreSQL has it. On MySQL the Conn ignores the error of a column that exists. On
	// SQLite and D1 a schema step and its record are one transaction, see Store.runSchemaStep.
	columnIfNotExists string

	// dropIndexSQL drops $index of $table, as {drop_index table.index}. It must succeed if the
	// index is gone. MySQL has no IF EXISTS here, so its Conn ignores that error.
	dropIndexSQL string

	// partialIndex restricts an index to the rows with a condition: "WHERE %s", as
	// {partial due_at IS NOT NULL}. MySQL has no partial indexes, and leaves the clause out.
	// There the index leads with a generated column that is null in all other rows.
	partialIndex string

	// extraColumns are added to the column list of a table or index, as {extra_columns jobs}.
	// MySQL only: the generated column that leads jobs_waiting.
	extraColumns map[string]string

	// The next three groups find jobs by the five partial indexes on a lane: jobs_waiting,
	// jobs_dead, jobs_lapsing, jobs_done and jobs_canceled. They are empty except on MySQL, where
	// jobs_lists replaces the last four. A job that is in none of them costs one entry there, and not
	// four.
	//
	// waitingLane is the column that leads jobs_waiting, as {waiting_lane}. MySQL: due_lane.
	// Elsewhere: lane. A statement that names lane instead would not use the index on MySQL.
	waitingLane string

	// inWaiting and the others are the condition of the index. MySQL: "due_lane IS NOT NULL", or the
	// name of a list. Elsewhere it is the condition of the partial index, "due_at IS NOT NULL": a
	// planner uses a partial index only if the statement repeats its condition or one that implies it.
	inWaiting, inDead, inLapsing, inDone, inCanceled string

	// lapsesAt is the column that orders jobs_lapsing. MySQL: lapses_at, which is null for other jobs,
	// so a claim does not move their entries. Elsewhere: due_at.
	lapsesAt string

	// createDoneSQL creates the index of completed jobs, and createCanceledSQL that of canceled
	// jobs; %s is its name. MySQL has neither any more.
	createDoneSQL, createCanceledSQL string

	// createLaterSQL creates jobs_later; %s is its name. dropReplacedSQL drops jobs_event, in whose
	// place it stands, see jobsof.go. MySQL has no partial indexes, and keeps jobs_event.
	createLaterSQL, dropReplacedSQL string

	// createListsSQL creates jobs_lists. dropListedIndexSQL drops an index that it replaces, and
	// dropListedColumnSQL the generated column of that index; %s is the name. MySQL only.
	createListsSQL, dropListedIndexSQL, dropListedColumnSQL string

	// onConflict ends an INSERT that skips a row whose key exists, as {on_conflict events.id}.
	// SQLite and PostgreSQL: "ON CONFLICT DO NOTHING". MySQL: "ON DUPLICATE KEY UPDATE id = id".
	// INSERT IGNORE would turn other errors into warnings as well.
	onConflict string

	// countsSkipped is set where onConflict counts a row whose key exists as a changed one. MySQL only,
	// whose Conn asks for the number of the rows that a statement found.
	countsSkipped bool

	// unlessStored is the condition of an INSERT into $table that no row has the id of a new one, see
	// insertOnce. PostgreSQL only: there ON CONFLICT takes a lock for each row and looks for its keys
	// twice. The subquery has one value, so no plan can read the table in full.
	unlessStored string

	// insertInto begins an INSERT, if not with "INSERT INTO ". SQLite: "INSERT OR FAIL INTO ".
	insertInto string

	// lockRows ends a SELECT that locks the rows of table %s until the commit, as
	// {lock_rows runs}. PostgreSQL: "FOR UPDATE OF runs". MySQL: "FOR UPDATE". SQLite and D1
	// have one writer at a time, so no other batch can change rows between two statements.
	lockRows string

	// lockConflict ends the INSERT by which a batch locks lines, see Store.lockLines: a row that
	// exists is locked and stays as it is. PostgreSQL: "ON CONFLICT ... DO UPDATE ... WHERE FALSE",
	// which locks the row before it looks at the condition. MySQL: "ON DUPLICATE KEY UPDATE". It is
	// empty on SQLite and D1, which have one writer.
	lockConflict string

	// lockRuns ends the first SELECT of a Transit, which locks its runs. MySQL: " FOR UPDATE".
	// There an UPDATE takes a shared lock on each row that its condition reads. Without the
	// early lock, two transitions of a run both get a shared lock and then both wait for the
	// exclusive one: a deadlock. On PostgreSQL conditions take no locks.
	lockRuns string

	// skipLocked ends the subquery by which a claim looks for jobs that it claimed already, as
	// {skip_locked}. MySQL: " FOR UPDATE SKIP LOCKED". Without it the subquery waits for jobs
	// that other claims lock, if their due times are in the same millisecond.
	skipLocked string

	// insertOrder ends the SELECT of an INSERT, by table. PostgreSQL: "ORDER BY 2, 7, 1"; the
	// numbers are columns of the SELECT. Rows are inserted in the order of their unique keys, so
	// that two batches with the same keys wait in line instead of deadlocking. The other
	// databases insert rows in the order in which the statement lists them.
	insertOrder map[string]string

	// useIndex pins the index of a table, as jobs{use jobs_waiting}; %s is the name, or several
	// from which to choose. MySQL: " FORCE INDEX (`jobs_waiting`)". Without it, the optimizer
	// decides by statistics, and reads a small table in full: a write then waits for locked rows
	// that it does not need. The others have no such hint or no need for it. The fragment is
	// written in any case: it documents which index serves a statement.
	useIndex string

	// compareAsRow makes a range of ids a row comparison: "(source, id) >= (?, ?)" instead of
	// "source = ? AND id >= ?". PostgreSQL only: with the second form, statistics decide between
	// the index on (source, id) and the primary key, and the latter may read all events.
	compareAsRow bool

	// purgeRows is how many rows a Purge deletes in one commit, counted in attempts and history
	// entries, or in events without jobs. 0 means no bound. A sender of events waits behind at
	// most one such commit. Purge raises the number where commits are slow, and while it is late;
	// see commitSize.
	purgeRows int

	// limitParam is the parameter after LIMIT, as {limit}: "?", with a cast where the database
	// needs one to plan well.
	limitParam string

	// sum is the sum of a column %s as an int, as {sum dead}. PostgreSQL: "SUM(%s)::bigint",
	// MySQL: "CAST(SUM(%s) AS SIGNED)". Their sums are decimals. Elsewhere: "SUM(%s)".
	sum string

	// rowSource is the table expression, called r, that makes a table of a Stmt's Rows.
	// PostgreSQL: "(SELECT unnest(?::text[]) AS id_, unnest(?::bigint[]) AS seq_) AS r". MySQL and D1:
	// a derived table that the Conn repeats per row. Nil on SQLite: the Conn runs the prepared
	// statement once for each row, and the columns of r are question marks. That is the fastest way
	// there, since a statement costs no round trip.
	rowSource func(columns []column) string

	// keyList is the table expression, called r, that makes a table of a list of keys in one
	// parameter. The keys are in the column value, and the list is JSON. SQLite and D1: "json_each(?)
	// AS r". Empty elsewhere: those databases return the columns of a row with its key as fast as the
	// key alone, while SQLite reads the pages of a table again for each index range.
	keyList string

	// rangePerRow is set where a range with bounds from columns of r reads the index from its
	// first entry. A statement with such a range is run once for each row. MySQL only.
	rangePerRow bool

	// rowJoin stands between the row source and a table, if not a comma. MySQL: " STRAIGHT_JOIN
	// ", D1: " CROSS JOIN ". Both fix the order: the row source is read first, and its rows are
	// found in the table by key. Otherwise statistics could choose to read the table first.
	rowJoin string

	// joinedChanges is set where an UPDATE or a DELETE can change rows of two tables that it joins.
	// MySQL only.
	joinedChanges bool

	// insertValues is the row source of an INSERT that reads no table, given the expressions of a
	// row: "VALUES (?, ?)". Nil on PostgreSQL, which inserts SELECT ... FROM rowSource.
	insertValues func(row string) string

	// returning ends a statement that returns columns %s of the rows that it changed. PostgreSQL:
	// "RETURNING %s". Empty elsewhere: MySQL has no such clause, and the Conns of SQLite and D1 read
	// no rows of a statement that writes.
	returning string

	// updateSQL and deleteSQL change the rows of $table that match the row source $rows under
	// the condition $where; $set are the assignments. $key is the first column of the primary
	// key, or a list of all, $keys the same columns with the name of the table, and $index the index by which a DELETE finds its rows.
	updateSQL, deleteSQL string

	// insertUpdatedSQL inserts a row into $table for each row that $update changes; $values are the
	// values of its $columns. PostgreSQL only: elsewhere an UPDATE returns no rows.
	insertUpdatedSQL string

	// pickSQL selects rows to change, as a row handle, and keeps other transactions off them;
	// updatePickedSQL changes these and no others: $table, $set, $pick. Together they are a
	// claim. PostgreSQL and MySQL: FOR UPDATE SKIP LOCKED, so that two claims in a lane take
	// different jobs instead of waiting. In each dialect the question marks of the pick come
	// before those of the SET, so that callers pass arguments in one order.
	pickSQL, updatePickedSQL string

	// schemaLockSQL begins the batch of a schema step, if two processes must not run one at the
	// same time. PostgreSQL: pg_advisory_xact_lock. IF NOT EXISTS does not help there against another
	// transaction that creates the same object at the same time.
	schemaLockSQL string
}

// SQLite is the dialect of SQLite 3.38 and later. D1 is derived from it.
var SQLite = Dialect{
	Name:     "sqlite",
	keyType:  "TEXT",
	pathType: "TEXT",
	textType: "TEXT",
	intType:  "INTEGER",
	// The primary key of these tables is short. Without a rowid there is one b-tree less to
	// write. events, runs and steps keep their rowid: their large rows would spill out of an
	// index b-tree.
	tableOptions: map[string]string{"jobs": "WITHOUT ROWID", "attempts": "WITHOUT ROWID", "gates": "WITHOUT ROWID",
		"history": "WITHOUT ROWID", "callbacks": "WITHOUT ROWID",
		"line_slots": "WITHOUT ROWID", "line_places": "WITHOUT ROWID", "line_locks": "WITHOUT ROWID", "source_holds": "WITHOUT ROWID", "operation_picks": "WITHOUT ROWID", "minutes": "WITHOUT ROWID",
		"audit": "WITHOUT ROWID"},
	indexIfNotExists: "IF NOT EXISTS",
	dropIndexSQL:     "DROP INDEX IF EXISTS $index",
	partialIndex:     "WHERE %s",
	onConflict:       "ON CONFLICT DO NOTHING",
	// OR FAIL keeps no copy of each page that the statement changes. SQLite needs such copies
	// to undo one failed statement alone; here an error undoes the whole batch.
	insertInto:    "INSERT OR FAIL INTO ",
	insertValues:  func(row string) string { return "VALUES (" + row + ")" },
	createDoneSQL: createDonePartial, createCanceledSQL: createCanceledPartial,
	createLaterSQL: createLaterPartial, dropReplacedSQL: "DROP INDEX IF EXISTS %s",
	// SQLite looks at the value of a bare parameter when it plans. So it planned again each
	// time a value was bound, for 4 % of an event's CPU.
	limitParam:      "? + 0",
	sum:             "SUM(%s)",
	keyList:         "json_each(?) AS r",
	purgeRows:       6, // 0.3 ms. With 500, one event in 100 waited 12 ms
	updateSQL:       "UPDATE $table SET $set WHERE $where",
	deleteSQL:       "DELETE FROM $table WHERE $where",
	pickSQL:         "SELECT id AS handle $pick",
	updatePickedSQL: "WITH picked AS ($pick) UPDATE $table SET $set WHERE id IN (SELECT handle FROM picked)",
}

// D1 is the dialect of Cloudflare's D1: SQLite over HTTP. Each statement of a batch costs as
// much as twenty rows. So a statement acts on as many rows as its limit of parameters allows.
// The part between two [D1Row] marks is repeated for each row after the first.
var D1 = d1()

// D1Row marks the beginning and the end of the part of a statement that the D1 Conn repeats for
// each row after the first.
const D1Row = "/*row*/"

// d1 changes the dialect of SQLite where D1 differs.
func d1() Dialect {
	d := SQLite
	d.Name = "d1"
	d.purgeRows = 0 // each commit is a request, and D1 allows four a second
	d.rowSource, d.insertValues = d1Rows, d1Values
	d.rowJoin = " CROSS JOIN " // fixes the join order
	d.updateSQL = "UPDATE $table SET $set FROM $rows WHERE $where"
	d.deleteSQL = "DELETE FROM $table WHERE $key IN (SELECT $keys FROM $rows CROSS JOIN $table WHERE $where)"
	d.insertInto = ""
	return d
}

// d1Rows is the row source for D1. It is a VALUES list: D1 accepts few terms of a UNION.
func d1Rows(columns []column) string {
	var names, params []string
	for i, c := range columns {
		names, params = append(names, fmt.Sprintf("column%d AS %s", i+1, c.name)), append(params, "?")
	}
	return "(SELECT " + strings.Join(names, ", ") + " FROM (" + d1Values(strings.Join(params, ", ")) + ")) AS r"
}

// d1Values is a VALUES list whose row is repeated.
func d1Values(row string) string { return "VALUES (" + row + ")" + D1Row + ", (" + row + ")" + D1Row }

// Postgres is the dialect of PostgreSQL 14 and later. Keys are collated as bytes. A claim picks
// rows by ctid, the row address: the UPDATE has no choice of plans then, and does not depend on
// statistics that a new table lacks.
var Postgres = Dialect{
	Name:     "postgres",
	keyType:  `TEXT COLLATE "C"`,
	pathType: `TEXT COLLATE "C"`,
	textType: "TEXT",
	intType:  "BIGINT",
	tableOptions: map[string]string{
		// A job is updated twice in a short life. Free space on its page and an eager vacuum
		// keep dead rows from piling up at the head of jobs_waiting, where each claim begins.
		"jobs": `WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
			autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02)`,
		"events": "WITH (autovacuum_vacuum_insert_scale_factor = 0.05)",
		// There are few gates, and some change many times a second. With free space on the page
		// such an update does not touch the index.
		"gates": "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)",
		// A run changes with each of its steps; a step changes once or twice.
		"runs":  "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)",
		"steps": "WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)",
		// A slot changes with each job of its line, and a place is deleted soon.
		"line_slots":  "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)",
		"line_places": "WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)",
	},
	indexIfNotExists:  "IF NOT EXISTS",
	columnIfNotExists: "IF NOT EXISTS",
	dropIndexSQL:      "DROP INDEX IF EXISTS $index",
	partialIndex:      "WHERE %s",
	onConflict:        "ON CONFLICT DO NOTHING",
	unlessStored:      "(SELECT stored.id FROM $table AS stored WHERE stored.id = r.id) IS NULL",
	lockRows:          "FOR UPDATE OF %s",
	lockConflict:      "ON CONFLICT (stripe) DO UPDATE SET stripe = line_locks.stripe WHERE FALSE",
	insertOrder:       map[string]string{"events": "ORDER BY 2, 7, 1", "jobs": "ORDER BY 3, 4, 1", "line_locks": "ORDER BY 1"},
	compareAsRow:      true,
	purgeRows:         12, // storing 200 events a second: p99 1.5 times as high as without a purge. With 100, 8 times
	createDoneSQL:     createDonePartial,
	createCanceledSQL: createCanceledPartial,
	createLaterSQL:    createLaterPartial,
	dropReplacedSQL:   "DROP INDEX IF EXISTS %s",
	limitParam:        "?::bigint",
	sum:               "SUM(%s)::bigint",
	rowSource:         postgresRows,
	returning:         "RETURNING %s",
	updateSQL:         "UPDATE $table SET $set FROM $rows WHERE $where",
	deleteSQL:         "DELETE FROM $table USING $rows WHERE $where",
	insertUpdatedSQL:  "WITH updated AS ($update RETURNING $values) INSERT INTO $table ($columns) SELECT * FROM updated",
	pickSQL:           "SELECT ctid AS handle $pick FOR UPDATE SKIP LOCKED",
	updatePickedSQL:   "WITH picked AS MATERIALIZED ($pick) UPDATE $table SET $set WHERE ctid = ANY(ARRAY(SELECT handle FROM picked))",
	schemaLockSQL:     "SELECT pg_advisory_xact_lock(8888118118118)",
}

// MySQL is the dialect of MySQL 8.0 and of MariaDB 10.6 and later. The part of a statement
// between two [MySQLRow] marks is repeated for each row after the first.
var MySQL = Dialect{
	Name:     "mysql",
	keyType:  "VARBINARY(255)",
	pathType: "VARBINARY(1024)",
	textType: "LONGBLOB",
	intType:  "BIGINT",
	tableOptions: map[string]string{
		"events": mysqlTable, "jobs": mysqlTable, "attempts": mysqlTable, "schema_steps": mysqlTable, "cron_marks": mysqlTable,
		"gates": mysqlTable, "definitions": mysqlTable, "runs": mysqlTable, "steps": mysqlTable, "history": mysqlTable,
		"callbacks": mysqlTable, "turns": mysqlTable, "step_texts": mysqlTable,
		"line_slots": mysqlTable, "line_places": mysqlTable, "line_locks": mysqlTable, "source_holds": mysqlTable,
		"operations": mysqlTable, "operation_picks": mysqlTable, "minutes": mysqlTable, "audit": mysqlTable,
	},
	// Generated columns stand in place of partial indexes. They are stored, since indexes on virtual
	// columns have a history of defects in both servers.
	extraColumns: map[string]string{"jobs": `,
		due_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN due_at IS NOT NULL THEN lane END) STORED`},
	dropIndexSQL: "DROP INDEX `$index` ON $table",
	waitingLane:  "due_lane",
	inWaiting:    "due_lane IS NOT NULL",
	inDead:       "list_name = 'dead' AND lapses_at IS NULL",
	inDone:       "list_name = 'completed' AND lapses_at IS NULL",
	inCanceled:   "list_name = 'canceled' AND lapses_at IS NULL",
	inLapsing:    "list_name = 'at last try'",
	lapsesAt:     "lapses_at",
	// Of the names of lists, that of jobs_lapsing comes first: a retry of all dead jobs locks the entry
	// behind theirs, and a job on its last try has to be settled meanwhile.
	createListsSQL: "ALTER TABLE jobs" +
		" ADD COLUMN list_name VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status IN ('completed', 'dead', 'canceled') THEN status" +
		" WHEN " + onLastTry + " THEN 'at last try' END) STORED," +
		" ADD COLUMN lapses_at BIGINT GENERATED ALWAYS AS (CASE WHEN " + onLastTry + " THEN due_at END) STORED," +
		" ADD INDEX %s (list_name, lane, lapses_at, id)",
	dropListedIndexSQL:  "ALTER TABLE jobs DROP INDEX %s",
	dropListedColumnSQL: "ALTER TABLE jobs DROP COLUMN %s",

	onConflict:   "ON DUPLICATE KEY UPDATE %[1]s = %[1]s",
	lockRows:     "FOR UPDATE",
	lockConflict: "ON DUPLICATE KEY UPDATE stripe = stripe",
	lockRuns:     " FOR UPDATE",
	skipLocked:   " FOR UPDATE SKIP LOCKED",
	useIndex:     " FORCE INDEX (%s)",
	purgeRows:    12, // as on PostgreSQL
	limitParam:   "?",
	sum:          "CAST(SUM(%s) AS SIGNED)",
	rowSource:    mysqlRows,
	rangePerRow:  true,
	rowJoin:      " STRAIGHT_JOIN ",

	joinedChanges: true,
	countsSkipped: true,
	insertValues:  mysqlValues,
	// The primary key is forced: a small table seems cheaper to read in full, and then the
	// UPDATE waits for rows that other transactions lock.
	updateSQL: "UPDATE $rows STRAIGHT_JOIN $table FORCE INDEX (`PRIMARY`) SET $set WHERE $where",
	// The quotes are for the table history: after DELETE, MariaDB reads HISTORY as a keyword.
	deleteSQL:       "DELETE `$table` FROM $rows STRAIGHT_JOIN $table FORCE INDEX (`$index`) WHERE $where",
	pickSQL:         "SELECT id AS handle $pick FOR UPDATE SKIP LOCKED",
	updatePickedSQL: "UPDATE ($pick) AS picked STRAIGHT_JOIN $table FORCE INDEX (`PRIMARY`) ON $table.id = picked.handle SET $set",
}

// mysqlTable are the options of all tables. utf8mb4_bin applies to names in the table
// definition; keys and texts are binary columns.
const mysqlTable = "ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

// MySQLRow marks the beginning and the end of the part of a statement that the MySQL Conn
// repeats for each row after the first.
const MySQLRow = "/*row*/"

// A column is a column of a row source. PostgreSQL has to know its type.
type column struct {
	name    string
	integer bool
}

// postgresRows is a table of parallel arrays, one for each column: one prepared text for any
// number of rows. The functions go over their arrays in step. In FROM, the server would copy each
// array into a table of its own first. The Conn leaves them out for a single row.
func postgresRows(columns []column) string {
	var exprs []string
	for _, c := range columns {
		kind := "text"
		if c.integer {
			kind = "bigint"
		}
		exprs = append(exprs, "unnest(?::"+kind+"[]) AS "+c.name)
	}
	return "(SELECT " + strings.Join(exprs, ", ") + ") AS r"
}

// mysqlRows is a derived table, a UNION ALL of one SELECT for each row. MySQL 8.0 and MariaDB
// share no shorter form: their VALUES tables differ. The Conn leaves it out for a single row.
func mysqlRows(columns []column) string {
	var first, more []string
	for _, c := range columns {
		first, more = append(first, "? AS "+c.name), append(more, "?")
	}
	return "(SELECT " + strings.Join(first, ", ") + MySQLRow + " UNION ALL SELECT " + strings.Join(more, ", ") + MySQLRow + ") AS r"
}

// mysqlValues is a VALUES list whose row is repeated.
func mysqlValues(row string) string {
	return "VALUES (" + row + ")" + MySQLRow + ", (" + row + ")" + MySQLRow
}
