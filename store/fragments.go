package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sql replaces the fragments of a statement text. It runs once for each statement, in [New].
func (d Dialect) sql(text string) string {
	text = replaceFragments(strings.TrimSpace(text), '}', d.plain)
	return replaceFragments(text, ' ', func(f string) string {
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
		case "create_lists":
			return fillIn(d.createListsSQL, rest)
		case "create_later":
			return fillIn(d.createLaterSQL, rest)
		case "drop_replaced_index":
			return fillIn(d.dropReplacedSQL, rest)
		case "drop_listed_index":
			return fillIn(d.dropListedIndexSQL, rest)
		case "drop_listed_column":
			return fillIn(d.dropListedColumnSQL, rest)
		case "sum":
			return fillIn(d.sum, rest)
		case "lock_rows":
			return fillIn(d.lockRows, rest)
		case "from":
			return d.idBound(rest, ">=")
		case "below":
			return d.idBound(rest, "<")
		case "use":
			return fillIn(d.useIndex, "`"+strings.ReplaceAll(d.servedBy(rest), ", ", "`, `")+"`")
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
	case "{lapses_at}":
		return orElse(d.lapsesAt, "due_at")
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

// servedBy returns the index that does the work of a partial one, or the index itself.
func (d Dialect) servedBy(index string) string {
	if d.createListsSQL != "" && slices.Contains(listed, index) {
		return "jobs_lists"
	}
	return index
}

// listed are the indexes in whose place jobs_lists stands, see [Dialect].
var listed = []string{"jobs_dead", "jobs_done", "jobs_canceled", "jobs_lapsing"}

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

// createLaterPartial creates jobs_later, see laterJob. PostgreSQL's indexes do not end with the primary
// key, and without the id the planner would list an event's jobs by the primary key, through all jobs.
const createLaterPartial = "CREATE INDEX IF NOT EXISTS %s ON jobs (event_id, id) WHERE " + laterJob

// onLastTry is the condition of jobs_lapsing: a running job that is dead once its lease ends.
const onLastTry = "status = 'running' AND attempt >= max_attempts"

// orElse is text, or otherwise if text is empty.
func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// replaceFragments replaces the fragments whose name, of lower-case letters and underscores, is followed by
// a sign: a brace if they have no argument, such as {limit}, or a space, such as {use jobs_waiting}. It is
// no regular expression, since it runs for all statements when a process starts.
func replaceFragments(text string, after byte, with func(fragment string) string) string {
	var replaced strings.Builder
	for {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			break
		}
		name := at + 1
		for name < len(text) && isName(text[name]) {
			name++
		}
		end := strings.IndexByte(text[name:], '}')
		if name == at+1 || end < 0 || text[name] != after {
			replaced.WriteString(text[:at+1])
			text = text[at+1:]
			continue
		}
		end += name + 1
		replaced.WriteString(text[:at])
		replaced.WriteString(with(text[at:end]))
		text = text[end:]
	}
	replaced.WriteString(text)
	return replaced.String()
}

// fillIn puts an argument into a format. A format without a verb, such as an empty one, stays
// as it is.
func fillIn(format, arg string) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, arg)
}

// replaceRowColumns replaces the references to columns of the row source: r.name for a text and r#name for
// an integer. Their order in a statement is that of the values in Stmt.Rows.
func replaceRowColumns(text string, with func(c column) string) string {
	var replaced strings.Builder
	done := 0 // the text before it is in replaced
	for at := 0; at+2 < len(text); at++ {
		if text[at] != 'r' || text[at+1] != '.' && text[at+1] != '#' || at > 0 && isWord(text[at-1]) {
			continue
		}
		end := at + 2
		for end < len(text) && isName(text[end]) {
			end++
		}
		if end > at+2 {
			replaced.WriteString(text[done:at])
			replaced.WriteString(with(column{name: text[at+2:end] + "_", integer: text[at+1] == '#'})) // unlike any column of a table
			at, done = end-1, end
		}
	}
	replaced.WriteString(text[done:])
	return replaced.String()
}

// isName reports whether a byte may be in the name of a fragment or of a column.
func isName(b byte) bool { return b == '_' || 'a' <= b && b <= 'z' }

// isWord reports whether a byte may be in a word of SQL.
func isWord(b byte) bool { return isName(b) || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' }

// bindRows replaces the row columns in parts of a statement, and returns the row source. The
// order of the parts is the order of the values in a row; further references to a column take no
// further value. Without row sources, a reference is a question mark, with the number of the
// value if an earlier one has it, and the source is empty.
func (d Dialect) bindRows(parts ...*string) (source string) {
	var columns []column
	for _, p := range parts {
		*p = replaceRowColumns(d.sql(*p), func(c column) string {
			at := slices.Index(columns, c)
			if at < 0 {
				columns = append(columns, c)
			}
			switch {
			case d.rowSource != nil:
				return "r." + c.name
			case at < 0:
				return "?"
			}
			return "?" + strconv.Itoa(at+1) // the parameter that the column has already
		})
	}
	if d.rowSource == nil {
		return ""
	}
	return d.rowSource(columns)
}
