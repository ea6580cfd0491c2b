package store

import (
	"fmt"
	"regexp"
	"strings"
)

// A Dialect is what one family of databases spells differently. It is text and
// nothing else: callers never ask a dialect what it supports.
type Dialect struct {
	Name string

	// key is text that is compared as bytes and indexed, at most 255 of them, path one of
	// at most 1,024; text is only stored; integer has 64 bits.
	key, path, text, integer string

	// table ends the CREATE TABLE of each table.
	table map[string]string

	// again makes CREATE INDEX repeatable. Without it the Conn takes an index that is
	// there for made.
	again string

	// column makes ADD COLUMN repeatable. Without it the Conn ignores the error of an
	// existing column, or the step and its record are one transaction: see Store.runStep.
	column string

	// unindex drops an index, $index, of a table, $table, which may be gone already. Without
	// IF EXISTS the Conn takes one that is not there for dropped.
	unindex string

	// only makes an index partial: %s is its condition. Empty where there are none;
	// generated columns of a table stand in for that then, named in also.
	only string
	also map[string]string

	// dueLane is the lane of a job that has a due time, as jobs_waiting has it, and
	// deadLane that of a dead one, as jobs_dead has it, and lastLane that of one that
	// runs and has no attempt left, as jobs_lapsing has it; waiting, dead and last are the
	// conditions under which a job is in these indexes. Empty where the indexes are
	// partial.
	dueLane, deadLane, lastLane, waiting, dead, last string

	// makeDone makes the index of completed jobs by lane and id, %s, doneLane is the lane as
	// it has it, and done the condition under which a job is in it. Where there are no partial
	// indexes the generated column is made with it.
	makeDone, doneLane, done string

	// fresh ends an INSERT that is to do nothing when a key is taken: %s is a
	// column of the table.
	fresh string

	// into begins an INSERT, if not INSERT INTO.
	into string

	// hold ends a SELECT of rows of a table, %s, that stay as they are until the end of
	// the batch, where another transaction could change them between two statements.
	hold string

	// alone ends a SELECT of runs that nobody else changes until the end of the batch.
	// It is empty where the guards of a transition lock nothing. Elsewhere they share a
	// lock on the run, and who loses would wait, as who wins does, to have it alone.
	alone string

	// past ends the SELECT by which a claim looks for what it took, where it would else
	// wait for rows of the same millisecond that others are at.
	past string

	// order ends the SELECT of an INSERT into a table. Rows go in by their unique
	// keys, so that inserts that meet wait in line and not in a circle; the numbers
	// are those of the columns.
	order map[string]string

	// use pins the index of a table, where the choice would depend on statistics: %s
	// is its name, or those from which to choose.
	use string

	// ranged is set where statistics would decide between an index on a column and the id
	// and one on the id alone, unless both columns are compared as a row.
	ranged bool

	// bite is how many parts of jobs or runs, or events without any, a Purge deletes in
	// one commit if that is quick, where who stores events waits for it; zero for no bound.
	bite int

	// limit is a parameter after LIMIT.
	limit string

	// rows is the row source of a Stmt's Rows, called r, or nothing where the
	// statement is run once for each of them with its values in the place of r's
	// columns.
	rows func(columns []column) string

	// apart is set where a range whose bounds are columns of r would be read from the
	// first row of the index. What looks for such a range is run once for each row.
	apart bool

	// join is what is written between the row source and a table, if not a comma.
	join string

	// values is a row source that an INSERT without a table consists of, if there is a
	// better one than rows, given a row's expressions.
	values func(row string) string

	// update and remove change rows that are joined with the row source: $table,
	// $set, $rows, $where, the column that leads the table's key, $key, and the index by
	// which rows that go are found, $index.
	update, remove string

	// pick selects rows and keeps other takers off them, by a handle; picked changes
	// these and no others. The pick's parameters come first: $table, $set, $pick.
	pick, picked string

	// lock begins the batch of a schema step where two processes must not run one at
	// the same time.
	lock string
}

// SQLite is the dialect of SQLite 3.38 and later, also behind HTTP.
var SQLite = Dialect{
	Name:    "sqlite",
	key:     "TEXT",
	path:    "TEXT",
	text:    "TEXT",
	integer: "INTEGER",
	table: map[string]string{"jobs": "WITHOUT ROWID", "attempts": "WITHOUT ROWID", "gates": "WITHOUT ROWID",
		"history": "WITHOUT ROWID", "callbacks": "WITHOUT ROWID"},
	again:   "IF NOT EXISTS",
	unindex: "DROP INDEX IF EXISTS $index",
	only:    "WHERE %s",
	fresh:   "ON CONFLICT DO NOTHING",
	// Whether by a SELECT or by VALUES, rows are inserted without keeping a copy of each
	// page that the statement changes, to undo it alone: what fails undoes its batch.
	into:     "INSERT OR FAIL INTO ",
	values:   func(row string) string { return "VALUES (" + row + ")" },
	makeDone: partDone,
	// Of a bare parameter SQLite looks up the value when it plans, and so it plans
	// again each time one is bound: 4 % of an event's CPU.
	limit:  "? + 0",
	bite:   6, // a third of a millisecond; with 500, one event in a hundred waited for 12
	update: "UPDATE $table SET $set WHERE $where",
	remove: "DELETE FROM $table WHERE $where",
	pick:   "SELECT id AS handle $pick",
	picked: "WITH picked AS ($pick) UPDATE $table SET $set WHERE id IN (SELECT handle FROM picked)",
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
	d.bite = 0 // each commit is a request, of which four a second are allowed
	d.rows, d.values = d1Rows, d1Values
	d.join = " CROSS JOIN " // in this order, whatever statistics say
	d.update = "UPDATE $table SET $set FROM $rows WHERE $where"
	d.remove = "DELETE FROM $table WHERE $key IN (SELECT $table.$key FROM $rows CROSS JOIN $table WHERE $where)"
	d.into = ""
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
	Name:    "postgres",
	key:     `TEXT COLLATE "C"`,
	path:    `TEXT COLLATE "C"`,
	text:    "TEXT",
	integer: "BIGINT",
	table: map[string]string{
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
	again:   "IF NOT EXISTS",
	column:  "IF NOT EXISTS",
	unindex: "DROP INDEX IF EXISTS $index",
	only:    "WHERE %s",
	// Elsewhere an index has the primary key at its end anyway. Without it, listing
	// an event's jobs would seem cheaper by the primary key, through all jobs.
	also:     map[string]string{"jobs_event": ", id"},
	fresh:    "ON CONFLICT DO NOTHING",
	hold:     "FOR UPDATE OF %s",
	order:    map[string]string{"events": "ORDER BY 2, 7, 1", "jobs": "ORDER BY 3, 4, 1"},
	ranged:   true,
	bite:     100, // with 500, one event in a hundred waited for two and a half times as long as else
	makeDone: partDone,
	limit:    "?::bigint",
	rows:     postgresRows,
	update:   "UPDATE $table SET $set FROM $rows WHERE $where",
	remove:   "DELETE FROM $table USING $rows WHERE $where",
	pick:     "SELECT ctid AS handle $pick FOR UPDATE SKIP LOCKED",
	picked:   "WITH picked AS MATERIALIZED ($pick) UPDATE $table SET $set WHERE ctid = ANY(ARRAY(SELECT handle FROM picked))",
	lock:     "SELECT pg_advisory_xact_lock(8888118118118)",
}

// MySQL is the dialect of MySQL 8.0 and MariaDB 10.6 and later. A row source is
// written between two marks, [MySQLRow], and what is between them once more for
// each further row.
var MySQL = Dialect{
	Name:    "mysql",
	key:     "VARBINARY(255)",
	path:    "VARBINARY(1024)",
	text:    "LONGBLOB",
	integer: "BIGINT",
	table: map[string]string{
		"events": mysqlTable, "jobs": mysqlTable, "attempts": mysqlTable, "schema_steps": mysqlTable, "cron_marks": mysqlTable,
		"gates": mysqlTable, "definitions": mysqlTable, "runs": mysqlTable, "steps": mysqlTable, "history": mysqlTable,
		"callbacks": mysqlTable, "turns": mysqlTable, "step_texts": mysqlTable,
	},
	// In place of partial indexes. Stored, since indexes on columns that are not have
	// a history of defects in both servers.
	also: map[string]string{"jobs": `,
		due_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN due_at IS NOT NULL THEN lane END) STORED,
		dead_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status = 'dead' THEN lane END) STORED,
		last_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status = 'running' AND attempt >= max_attempts THEN lane END) STORED`},
	unindex:  "DROP INDEX `$index` ON $table",
	dueLane:  "due_lane",
	deadLane: "dead_lane",
	lastLane: "last_lane",
	doneLane: "done_lane",
	done:     "done_lane IS NOT NULL",
	makeDone: `ALTER TABLE jobs ADD COLUMN done_lane VARBINARY(255) GENERATED ALWAYS AS
		(CASE WHEN status = 'completed' THEN lane END) STORED, ADD INDEX %s (done_lane, id)`,
	waiting: "due_lane IS NOT NULL",
	dead:    "dead_lane IS NOT NULL",
	last:    "last_lane IS NOT NULL",

	fresh:  "ON DUPLICATE KEY UPDATE %[1]s = %[1]s",
	hold:   "FOR UPDATE",
	alone:  " FOR UPDATE",
	past:   " FOR UPDATE SKIP LOCKED",
	use:    " FORCE INDEX (%s)",
	bite:   100, // as on PostgreSQL; there is one committer
	limit:  "?",
	rows:   mysqlRows,
	apart:  true,
	join:   " STRAIGHT_JOIN ",
	values: mysqlValues,
	// By the primary key even where a table is so small that reading all of it seems
	// cheaper: that would wait for rows which others hold.
	update: "UPDATE $rows STRAIGHT_JOIN $table FORCE INDEX (`PRIMARY`) SET $set WHERE $where",
	// After DELETE, history is a word of MariaDB's own.
	remove: "DELETE `$table` FROM $rows STRAIGHT_JOIN $table FORCE INDEX (`$index`) WHERE $where",
	pick:   "SELECT id AS handle $pick FOR UPDATE SKIP LOCKED",
	picked: "UPDATE ($pick) AS picked STRAIGHT_JOIN $table FORCE INDEX (`PRIMARY`) ON $table.id = picked.handle SET $set",
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
	text = strings.NewReplacer("{key}", d.key, "{path}", d.path, "{text}", d.text, "{int}", d.integer,
		"{limit}", d.limit, "{again}", d.again, "{column}", d.column, "{past}", d.past,
		"{due_lane}", orElse(d.dueLane, "lane"), "{dead_lane}", orElse(d.deadLane, "lane"),
		"{last_lane}", orElse(d.lastLane, "lane"), "{done_lane}", orElse(d.doneLane, "lane"), "{waiting}", orElse(d.waiting, "due_at IS NOT NULL"),
		"{dead}", orElse(d.dead, "status = 'dead'"), "{last}", orElse(d.last, lastTry), "{done}", orElse(d.done, "status = 'completed'")).Replace(strings.TrimSpace(text))
	return fragment.ReplaceAllStringFunc(text, func(f string) string {
		kind, rest, _ := strings.Cut(f[1:len(f)-1], " ")
		switch kind {
		case "table":
			return d.table[rest]
		case "also":
			return d.also[rest]
		case "only":
			return filled(d.only, rest)
		case "fresh":
			return filled(d.fresh, rest)
		case "unindex":
			table, index := tableOf(rest)
			return strings.NewReplacer("$table", table, "$index", index).Replace(d.unindex)
		case "done":
			return filled(d.makeDone, rest)
		case "hold":
			return filled(d.hold, rest)
		case "from":
			return d.half(rest, ">=")
		case "below":
			return d.half(rest, "<")
		case "use":
			return filled(d.use, "`"+strings.ReplaceAll(rest, ", ", "`, `")+"`")
		}
		panic("store: unknown fragment " + f)
	})
}

// half is one end of a range of ids, among rows with one value of each of some columns.
func (d Dialect) half(columns, operator string) string {
	some := strings.Split(columns, ", ")
	last := len(some) - 1
	if d.ranged { // a row of three would be compared until the first changes
		some[last] = "(" + some[last] + ", id) " + operator + " (?, ?)"
		return strings.Join(some, " = ? AND ")
	}
	return strings.Join(some, " = ? AND ") + " = ? AND id " + operator + " ?"
}

// tableOf is the table that an index is said to be of, jobs unless told.
func tableOf(index string) (table, name string) {
	if table, name, told := strings.Cut(index, "."); told {
		return table, name
	}
	return "jobs", index
}

const partDone = "CREATE INDEX IF NOT EXISTS %s ON jobs (lane, id) WHERE status = 'completed'"

// lastTry is the condition of jobs_lapsing.
const lastTry = "status = 'running' AND attempt >= max_attempts"

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// fragment is one with an argument.
var fragment = regexp.MustCompile(`\{[a-z]+ [^}]*\}`)

func filled(format, arg string) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, arg)
}

// Statements on Rows name the columns of the row source as r.name, integers as
// r#name, each once and in the order of the row's values.
var ofRow = regexp.MustCompile(`\br([.#])([a-z_]+)`)

// onRows completes parts of a statement on Rows: columns of r, and the row source
// itself where there is one.
func (d Dialect) onRows(parts ...*string) (source string) {
	var columns []column
	for _, p := range parts {
		*p = ofRow.ReplaceAllStringFunc(d.sql(*p), func(ref string) string {
			m := ofRow.FindStringSubmatch(ref)
			c := column{name: m[2] + "_", integer: m[1] == "#"} // unlike any column of a table
			columns = append(columns, c)
			if d.rows == nil {
				return "?"
			}
			return "r." + c.name
		})
	}
	if d.rows == nil {
		return ""
	}
	return d.rows(columns)
}
