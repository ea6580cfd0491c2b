package store

import (
	"fmt"
	"regexp"
	"strings"
)

// A Dialect holds the differences between families of databases: text for the statements, and
// three fields that are no text (compareAsRow, rangePerRow and purgeRows) where the engines
// differ in speed. Its fields are private but for the name, so other packages cannot ask a
// dialect what it supports.
type Dialect struct {
	Name string

	// key is text that is compared as bytes and indexed, at most 255 of them, path one of
	// at most 1,024; text is only stored; integer has 64 bits.
	keyType, pathType, textType, intType string

	// table ends the CREATE TABLE of each table.
	tableOptions map[string]string

	// again makes CREATE INDEX repeatable. Without it the Conn takes an index that is
	// there for made.
	indexIfNotExists string

	// column makes ADD COLUMN repeatable. Without it the Conn ignores the error of an
	// existing column, or the step and its record are one transaction: see Store.runStep.
	columnIfNotExists string

	// unindex drops an index, $index, of a table, $table, which may be gone already. Without
	// IF EXISTS the Conn takes one that is not there for dropped.
	dropIndexSQL string

	// only makes an index partial: %s is its condition. Empty where there are none;
	// generated columns of a table stand in for that then, named in also.
	partialIndex string
	extraColumns map[string]string

	// dueLane is the lane of a job that has a due time, as jobs_waiting has it, and
	// deadLane that of a dead one, as jobs_dead has it, and lastLane that of one that
	// runs and has no attempt left, as jobs_lapsing has it; waiting, dead and last are the
	// conditions under which a job is in these indexes. Empty where the indexes are
	// partial.
	waitingLane, deadLane, lapsingLane, inWaiting, inDead, inLapsing string

	// makeDone makes the index of completed jobs by lane and id, %s, doneLane is the lane as
	// it has it, and done the condition under which a job is in it. Where there are no partial
	// indexes the generated column is made with it.
	createDoneSQL, doneLane, inDone string

	// fresh ends an INSERT that is to do nothing when a key is taken: %s is a
	// column of the table.
	onConflict string

	// into begins an INSERT, if not INSERT INTO.
	insertInto string

	// hold ends a SELECT of rows of a table, %s, that stay as they are until the end of
	// the batch, where another transaction could change them between two statements.
	lockRows string

	// alone ends a SELECT of runs that nobody else changes until the end of the batch.
	// It is empty where the guards of a transition lock nothing. Elsewhere they share a
	// lock on the run, and who loses would wait, as who wins does, to have it alone.
	lockRuns string

	// past ends the SELECT by which a claim looks for what it took, where it would else
	// wait for rows of the same millisecond that others are at.
	skipLocked string

	// order ends the SELECT of an INSERT into a table. Rows go in by their unique
	// keys, so that inserts that meet wait in line and not in a circle; the numbers
	// are those of the columns.
	insertOrder map[string]string

	// use pins the index of a table, where the choice would depend on statistics: %s
	// is its name, or those from which to choose.
	useIndex string

	// ranged is set where statistics would decide between an index on a column and the id
	// and one on the id alone, unless both columns are compared as a row.
	compareAsRow bool

	// bite is how many parts of jobs or runs, or events without any, a Purge deletes in
	// one commit if that is quick, where who stores events waits for it; zero for no bound.
	purgeRows int

	// limit is a parameter after LIMIT.
	limitParam string

	// rows is the row source of a Stmt's Rows, called r, or nothing where the
	// statement is run once for each of them with its values in the place of r's
	// columns.
	rowSource func(columns []column) string

	// apart is set where a range whose bounds are columns of r would be read from the
	// first row of the index. What looks for such a range is run once for each row.
	rangePerRow bool

	// join is what is written between the row source and a table, if not a comma.
	rowJoin string

	// values is a row source that an INSERT without a table consists of, if there is a
	// better one than rows, given a row's expressions.
	insertValues func(row string) string

	// update and remove change rows that are joined with the row source: $table,
	// $set, $rows, $where, the column that leads the table's key, $key, and the index by
	// which rows that go are found, $index.
	updateSQL, deleteSQL string

	// pick selects rows and keeps other takers off them, by a handle; picked changes
	// these and no others. The pick's parameters come first: $table, $set, $pick.
	pickSQL, updatePickedSQL string

	// lock begins the batch of a schema step where two processes must not run one at
	// the same time.
	schemaLockSQL string
}

// SQLite is the dialect of SQLite 3.38 and later, also behind HTTP.
var SQLite = Dialect{
	Name:     "sqlite",
	keyType:  "TEXT",
	pathType: "TEXT",
	textType: "TEXT",
	intType:  "INTEGER",
	tableOptions: map[string]string{"jobs": "WITHOUT ROWID", "attempts": "WITHOUT ROWID", "gates": "WITHOUT ROWID",
		"history": "WITHOUT ROWID", "callbacks": "WITHOUT ROWID"},
	indexIfNotExists: "IF NOT EXISTS",
	dropIndexSQL:     "DROP INDEX IF EXISTS $index",
	partialIndex:     "WHERE %s",
	onConflict:       "ON CONFLICT DO NOTHING",
	// Whether by a SELECT or by VALUES, rows are inserted without keeping a copy of each
	// page that the statement changes, to undo it alone: what fails undoes its batch.
	insertInto:    "INSERT OR FAIL INTO ",
	insertValues:  func(row string) string { return "VALUES (" + row + ")" },
	createDoneSQL: createDonePartial,
	// Of a bare parameter SQLite looks up the value when it plans, and so it plans
	// again each time one is bound: 4 % of an event's CPU.
	limitParam:      "? + 0",
	purgeRows:       6, // a third of a millisecond; with 500, one event in a hundred waited for 12
	updateSQL:       "UPDATE $table SET $set WHERE $where",
	deleteSQL:       "DELETE FROM $table WHERE $where",
	pickSQL:         "SELECT id AS handle $pick",
	updatePickedSQL: "WITH picked AS ($pick) UPDATE $table SET $set WHERE id IN (SELECT handle FROM picked)",
}

// D1 is the dialect of Cloudflare's D1: SQLite, with as many rows in a statement
// as may have parameters, since each statement of a batch costs as much as twenty
// rows. A row source is written between two marks, [D1Row], as MySQL's is.
var D1 = d1()

// D1Row marks the beginning and the end of what a statement of the D1 dialect
// repeats for each row after the first.
const D1Row = "/*row*/"

func d1() Dialect {
	d := SQLite
	d.Name = "d1"
	d.purgeRows = 0 // each commit is a request, of which four a second are allowed
	d.rowSource, d.insertValues = d1Rows, d1Values
	d.rowJoin = " CROSS JOIN " // in this order, whatever statistics say
	d.updateSQL = "UPDATE $table SET $set FROM $rows WHERE $where"
	d.deleteSQL = "DELETE FROM $table WHERE $key IN (SELECT $table.$key FROM $rows CROSS JOIN $table WHERE $where)"
	d.insertInto = ""
	return d
}

// d1Rows is not a UNION, of which D1 takes few terms.
func d1Rows(columns []column) string {
	var names, params []string
	for i, c := range columns {
		names, params = append(names, fmt.Sprintf("column%d AS %s", i+1, c.name)), append(params, "?")
	}
	return "(SELECT " + strings.Join(names, ", ") + " FROM (" + d1Values(strings.Join(params, ", ")) + ")) AS r"
}

func d1Values(row string) string { return "VALUES (" + row + ")" + D1Row + ", (" + row + ")" + D1Row }

// Postgres is the dialect of PostgreSQL 14 and later. Keys are collated as bytes.
// The claim's plan is pinned by row address, so that it does not depend on
// statistics the table may not have yet.
var Postgres = Dialect{
	Name:     "postgres",
	keyType:  `TEXT COLLATE "C"`,
	pathType: `TEXT COLLATE "C"`,
	textType: "TEXT",
	intType:  "BIGINT",
	tableOptions: map[string]string{
		// Jobs are updated twice in a short life. Without room on the page and an eager
		// vacuum, dead rows pile up where the next claim begins.
		"jobs": `WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
			autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02)`,
		"events": "WITH (autovacuum_vacuum_insert_scale_factor = 0.05)",
		// Few rows, some of which change many times a second: on a page with room they
		// do so without the index.
		"gates": "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)",
		// A run changes with each of its steps, a step once or twice.
		"runs":  "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)",
		"steps": "WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)",
	},
	indexIfNotExists:  "IF NOT EXISTS",
	columnIfNotExists: "IF NOT EXISTS",
	dropIndexSQL:      "DROP INDEX IF EXISTS $index",
	partialIndex:      "WHERE %s",
	// Elsewhere an index has the primary key at its end anyway. Without it, listing
	// an event's jobs would seem cheaper by the primary key, through all jobs.
	extraColumns:    map[string]string{"jobs_event": ", id"},
	onConflict:      "ON CONFLICT DO NOTHING",
	lockRows:        "FOR UPDATE OF %s",
	insertOrder:     map[string]string{"events": "ORDER BY 2, 7, 1", "jobs": "ORDER BY 3, 4, 1"},
	compareAsRow:    true,
	purgeRows:       100, // with 500, one event in a hundred waited for two and a half times as long as else
	createDoneSQL:   createDonePartial,
	limitParam:      "?::bigint",
	rowSource:       postgresRows,
	updateSQL:       "UPDATE $table SET $set FROM $rows WHERE $where",
	deleteSQL:       "DELETE FROM $table USING $rows WHERE $where",
	pickSQL:         "SELECT ctid AS handle $pick FOR UPDATE SKIP LOCKED",
	updatePickedSQL: "WITH picked AS MATERIALIZED ($pick) UPDATE $table SET $set WHERE ctid = ANY(ARRAY(SELECT handle FROM picked))",
	schemaLockSQL:   "SELECT pg_advisory_xact_lock(8888118118118)",
}

// MySQL is the dialect of MySQL 8.0 and MariaDB 10.6 and later. A row source is
// written between two marks, [MySQLRow], and what is between them once more for
// each further row.
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
	},
	// In place of partial indexes. Stored, since indexes on columns that are not have
	// a history of defects in both servers.
	extraColumns: map[string]string{"jobs": `,
		due_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN due_at IS NOT NULL THEN lane END) STORED,
		dead_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status = 'dead' THEN lane END) STORED,
		last_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status = 'running' AND attempt >= max_attempts THEN lane END) STORED`},
	dropIndexSQL: "DROP INDEX `$index` ON $table",
	waitingLane:  "due_lane",
	deadLane:     "dead_lane",
	lapsingLane:  "last_lane",
	doneLane:     "done_lane",
	inDone:       "done_lane IS NOT NULL",
	createDoneSQL: `ALTER TABLE jobs ADD COLUMN done_lane VARBINARY(255) GENERATED ALWAYS AS
		(CASE WHEN status = 'completed' THEN lane END) STORED, ADD INDEX %s (done_lane, id)`,
	inWaiting: "due_lane IS NOT NULL",
	inDead:    "dead_lane IS NOT NULL",
	inLapsing: "last_lane IS NOT NULL",

	onConflict:   "ON DUPLICATE KEY UPDATE %[1]s = %[1]s",
	lockRows:     "FOR UPDATE",
	lockRuns:     " FOR UPDATE",
	skipLocked:   " FOR UPDATE SKIP LOCKED",
	useIndex:     " FORCE INDEX (%s)",
	purgeRows:    100, // as on PostgreSQL; there is one committer
	limitParam:   "?",
	rowSource:    mysqlRows,
	rangePerRow:  true,
	rowJoin:      " STRAIGHT_JOIN ",
	insertValues: mysqlValues,
	// By the primary key even where a table is so small that reading all of it seems
	// cheaper: that would wait for rows which others hold.
	updateSQL: "UPDATE $rows STRAIGHT_JOIN $table FORCE INDEX (`PRIMARY`) SET $set WHERE $where",
	// After DELETE, history is a word of MariaDB's own.
	deleteSQL:       "DELETE `$table` FROM $rows STRAIGHT_JOIN $table FORCE INDEX (`$index`) WHERE $where",
	pickSQL:         "SELECT id AS handle $pick FOR UPDATE SKIP LOCKED",
	updatePickedSQL: "UPDATE ($pick) AS picked STRAIGHT_JOIN $table FORCE INDEX (`PRIMARY`) ON $table.id = picked.handle SET $set",
}

const mysqlTable = "ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

// MySQLRow marks the beginning and the end of what a statement of the MySQL
// dialect repeats for each row after the first.
const MySQLRow = "/*row*/"

// A column is one of a row source: its name, and whether it is an integer.
type column struct {
	name    string
	integer bool
}

func postgresRows(columns []column) string {
	var types, names []string
	for _, c := range columns {
		kind := "text"
		if c.integer {
			kind = "bigint"
		}
		types, names = append(types, "?::"+kind+"[]"), append(names, c.name)
	}
	return "unnest(" + strings.Join(types, ", ") + ") AS r(" + strings.Join(names, ", ") + ")"
}

func mysqlRows(columns []column) string {
	var first, more []string
	for _, c := range columns {
		first, more = append(first, "? AS "+c.name), append(more, "?")
	}
	return "(SELECT " + strings.Join(first, ", ") + MySQLRow + " UNION ALL SELECT " + strings.Join(more, ", ") + MySQLRow + ") AS r"
}

func mysqlValues(row string) string {
	return "VALUES (" + row + ")" + MySQLRow + ", (" + row + ")" + MySQLRow
}

// sql fills a statement's fragments in.
func (d Dialect) sql(text string) string {
	text = strings.NewReplacer("{key}", d.keyType, "{path}", d.pathType, "{text}", d.textType, "{int}", d.intType,
		"{limit}", d.limitParam, "{index_if_not_exists}", d.indexIfNotExists, "{column_if_not_exists}", d.columnIfNotExists, "{skip_locked}", d.skipLocked,
		"{waiting_lane}", orElse(d.waitingLane, "lane"), "{dead_lane}", orElse(d.deadLane, "lane"),
		"{lapsing_lane}", orElse(d.lapsingLane, "lane"), "{done_lane}", orElse(d.doneLane, "lane"), "{in_waiting}", orElse(d.inWaiting, "due_at IS NOT NULL"),
		"{in_dead}", orElse(d.inDead, "status = 'dead'"), "{in_lapsing}", orElse(d.inLapsing, onLastTry), "{in_done}", orElse(d.inDone, "status = 'completed'")).Replace(strings.TrimSpace(text))
	return fragment.ReplaceAllStringFunc(text, func(f string) string {
		kind, rest, _ := strings.Cut(f[1:len(f)-1], " ")
		switch kind {
		case "options":
			return d.tableOptions[rest]
		case "extra_columns":
			return d.extraColumns[rest]
		case "partial":
			return fillIn(d.partialIndex, rest)
		case "on_conflict":
			return fillIn(d.onConflict, rest)
		case "drop_index":
			table, index := splitIndexName(rest)
			return strings.NewReplacer("$table", table, "$index", index).Replace(d.dropIndexSQL)
		case "create_done":
			return fillIn(d.createDoneSQL, rest)
		case "lock_rows":
			return fillIn(d.lockRows, rest)
		case "from":
			return d.idBound(rest, ">=")
		case "below":
			return d.idBound(rest, "<")
		case "use":
			return fillIn(d.useIndex, "`"+strings.ReplaceAll(rest, ", ", "`, `")+"`")
		}
		panic("store: unknown fragment " + f)
	})
}

// half is one end of a range of ids, among rows with one value of each of some columns.
func (d Dialect) idBound(columns, operator string) string {
	some := strings.Split(columns, ", ")
	last := len(some) - 1
	if d.compareAsRow { // a row of three would be compared until the first changes
		some[last] = "(" + some[last] + ", id) " + operator + " (?, ?)"
		return strings.Join(some, " = ? AND ")
	}
	return strings.Join(some, " = ? AND ") + " = ? AND id " + operator + " ?"
}

// tableOf is the table that an index is said to be of, jobs unless told.
func splitIndexName(index string) (table, name string) {
	if table, name, told := strings.Cut(index, "."); told {
		return table, name
	}
	return "jobs", index
}

const createDonePartial = "CREATE INDEX IF NOT EXISTS %s ON jobs (lane, id) WHERE status = 'completed'"

// lastTry is the condition of jobs_lapsing.
const onLastTry = "status = 'running' AND attempt >= max_attempts"

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// fragment is one with an argument.
var fragment = regexp.MustCompile(`\{[a-z_]+ [^}]*\}`)

func fillIn(format, arg string) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, arg)
}

// Statements on Rows name the columns of the row source as r.name, integers as
// r#name, each once and in the order of the row's values.
var rowColumn = regexp.MustCompile(`\br([.#])([a-z_]+)`)

// onRows completes parts of a statement on Rows: columns of r, and the row source
// itself where there is one.
func (d Dialect) bindRows(parts ...*string) (source string) {
	var columns []column
	for _, p := range parts {
		*p = rowColumn.ReplaceAllStringFunc(d.sql(*p), func(ref string) string {
			m := rowColumn.FindStringSubmatch(ref)
			c := column{name: m[2] + "_", integer: m[1] == "#"} // unlike any column of a table
			columns = append(columns, c)
			if d.rowSource == nil {
				return "?"
			}
			return "r." + c.name
		})
	}
	if d.rowSource == nil {
		return ""
	}
	return d.rowSource(columns)
}
