package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/once"
)

// sql replaces the fragments of a statement text. It runs once for each statement, in [New].
func (d Dialect) sql(text string) string {
	// Fragments without an argument come first: arguments of the others may contain them, such
	// as {from {dead_lane}}.
	text = plainFragment().ReplaceAllStringFunc(strings.TrimSpace(text), d.plain)
	return fragment().ReplaceAllStringFunc(text, func(f string) string {
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
		case "create_canceled":
			return fillIn(d.createCanceledSQL, rest)
		case "sum":
			return fillIn(d.sum, rest)
		case "lock_rows":
			return fillIn(d.lockRows, rest)
		case "from":
			return d.idBound(rest, ">=")
		case "below":
			return d.idBound(rest, "<")
		case "use":
			return fillIn(d.useIndex, "`"+strings.ReplaceAll(rest, ", ", "`, `")+"`")
		}
		panic("store: a statement has the unknown fragment " + f)
	})
}

// plain returns the text of a fragment without an argument.
func (d Dialect) plain(f string) string {
	switch f {
	case "{key}":
		return d.keyType
	case "{path}":
		return d.pathType
	case "{text}":
		return d.textType
	case "{int}":
		return d.intType
	case "{limit}":
		return d.limitParam
	case "{index_if_not_exists}":
		return d.indexIfNotExists
	case "{column_if_not_exists}":
		return d.columnIfNotExists
	case "{skip_locked}":
		return d.skipLocked
	case "{waiting_lane}":
		return orElse(d.waitingLane, "lane")
	case "{dead_lane}":
		return orElse(d.deadLane, "lane")
	case "{lapsing_lane}":
		return orElse(d.lapsingLane, "lane")
	case "{done_lane}":
		return orElse(d.doneLane, "lane")
	case "{canceled_lane}":
		return orElse(d.canceledLane, "lane")
	case "{in_waiting}":
		return orElse(d.inWaiting, "due_at IS NOT NULL")
	case "{in_dead}":
		return orElse(d.inDead, "status = 'dead'")
	case "{in_lapsing}":
		return orElse(d.inLapsing, onLastTry)
	case "{in_done}":
		return orElse(d.inDone, "status = 'completed'")
	case "{in_canceled}":
		return orElse(d.inCanceled, "status = 'canceled'")
	}
	panic("store: a statement has the unknown fragment " + f)
}

// idBound is one end of a range of ids among the rows with one value in each of some columns:
// "source = ? AND id >= ?". Both ends of a range repeat the columns, since PostgreSQL uses each
// row comparison as an index condition of its own.
func (d Dialect) idBound(columns, operator string) string {
	some := strings.Split(columns, ", ")
	last := len(some) - 1
	if d.compareAsRow { // only the last column: a longer row would also match other values of the first
		some[last] = "(" + some[last] + ", id) " + operator + " (?, ?)"
		return strings.Join(some, " = ? AND ")
	}
	return strings.Join(some, " = ? AND ") + " = ? AND id " + operator + " ?"
}

// splitIndexName splits "table.index". An index without a table is of jobs.
func splitIndexName(index string) (table, name string) {
	if table, name, told := strings.Cut(index, "."); told {
		return table, name
	}
	return "jobs", index
}

// createDonePartial creates the partial index of completed jobs.
const createDonePartial = "CREATE INDEX IF NOT EXISTS %s ON jobs (lane, id) WHERE status = 'completed'"

// createCanceledPartial creates the partial index of canceled jobs.
const createCanceledPartial = "CREATE INDEX IF NOT EXISTS %s ON jobs (lane, id) WHERE status = 'canceled'"

// onLastTry is the condition of jobs_lapsing: a running job that is dead once its lease ends.
const onLastTry = "status = 'running' AND attempt >= max_attempts"

// orElse is text, or otherwise if text is empty.
func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// plainFragment is a fragment without an argument, such as {limit}.
var plainFragment = once.Regexp(`\{[a-z_]+\}`)

// fragment is a fragment with an argument, such as {use jobs_waiting}.
var fragment = once.Regexp(`\{[a-z_]+ [^}]*\}`)

// fillIn puts an argument into a format. A format without a verb, such as an empty one, stays
// as it is.
func fillIn(format, arg string) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, arg)
}

// rowColumn is a reference to a column of the row source: r.name for a text and r#name for an
// integer. A statement names each column once, in the order of the values in Stmt.Rows.
var rowColumn = once.Regexp(`\br([.#])([a-z_]+)`)

// bindRows replaces the row columns in parts of a statement, and returns the row source. The
// order of the parts is the order of the values in a row. Without row sources, each reference
// is a question mark and the source is empty. With them, further references to a column take no
// further value.
func (d Dialect) bindRows(parts ...*string) (source string) {
	var columns []column
	for _, p := range parts {
		*p = rowColumn().ReplaceAllStringFunc(d.sql(*p), func(ref string) string {
			m := rowColumn().FindStringSubmatch(ref)
			c := column{name: m[2] + "_", integer: m[1] == "#"} // unlike any column of a table
			if d.rowSource == nil {
				columns = append(columns, c)
				return "?"
			}
			if !slices.Contains(columns, c) {
				columns = append(columns, c)
			}
			return "r." + c.name
		})
	}
	if d.rowSource == nil {
		return ""
	}
	return d.rowSource(columns)
}
