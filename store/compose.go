package store

import (
	"encoding/json"
	"strconv"
	"strings"
)

// This file composes statements on rows from a dialect's fragments. In all of them, columns of
// the row source are written r.name or r#name, see replaceRowColumns.

// insertIfAbsent is an INSERT that skips each row whose key exists. key is any column of the
// table; MySQL needs one to assign to itself.
func (d Dialect) insertIfAbsent(into, columns, selection, from, where, key string) string {
	return d.insert(into, columns, selection, from, where) + " " + d.sql("{on_conflict "+into+"."+key+"}")
}

// counting is the statement of an insertIfAbsent, which tells how many rows it inserted if the database
// tells that. See Stmt.Inserts.
func (d Dialect) counting(st statement) statement {
	st.counts, st.uncounted = !d.countsSkipped, d.countsSkipped
	return st
}

// insertOnce is insertIfAbsent for rows with an id, and without another key, that no other batch has
// and that the batch has once. A row whose id exists was inserted by an earlier sending of the same
// batch. If that has not committed yet, a statement before this one has to wait for it, or this one
// is refused.
func (d Dialect) insertOnce(into, columns, selection, from, where string) string {
	if d.unlessStored == "" {
		return d.insertIfAbsent(into, columns, selection, from, where, "id")
	}
	unless := strings.ReplaceAll(d.unlessStored, "$table", into)
	return d.insert(into, columns, selection, from, strings.Join(nonEmpty(where, unless), " AND "))
}

// insert is an INSERT of the rows that selection yields from the row source, joined with the
// table from if there is one. A row whose key exists is an error.
func (d Dialect) insert(into, columns, selection, from, where string) string {
	sql := orElse(d.insertInto, "INSERT INTO ") + into + " (" + columns + ") "
	if from == "" && where == "" && d.insertValues != nil {
		sql += d.insertValues(replaceRowColumns(d.sql(selection), func(column) string { return "?" }))
	} else {
		sql += d.selectRows(selection, from, where)
	}
	if order := d.insertOrder[into]; order != "" {
		sql += " " + order
	}
	return sql
}

// selectRows is a SELECT from the row source, joined with a table if from names one. The columns of
// the row source are in the order columns, from, where.
func (d Dialect) selectRows(columns, from, where string) string {
	source := d.bindRows(&columns, &from, &where)
	tables := strings.Join(nonEmpty(source, from), orElse(d.rowJoin, ", "))
	if tables != "" {
		tables = " FROM " + tables
	}
	if where == "" {
		where = "1 = 1" // else SQLite reads ON CONFLICT as the ON of a join
	}
	return "SELECT " + columns + tables + " WHERE " + where
}

// selectKeys is a SELECT of the rows of a table whose keys are in a list. It is empty on databases
// that have no such list, see keyList.
func (d Dialect) selectKeys(columns, from, key string) string {
	if d.keyList == "" {
		return ""
	}
	return "SELECT " + columns + " FROM " + d.keyList + " CROSS JOIN " + d.sql(from) + " WHERE " + key + " = r.value"
}

// unlessKeys returns columns that selectKeys reads where it is not empty.
func (d Dialect) unlessKeys(columns string) string {
	if d.keyList != "" {
		return ""
	}
	return columns
}

// onKeys makes a Stmt of selectKeys on a list of keys.
func (st statement) onKeys(keys []string) Stmt {
	list, err := json.Marshal(keys)
	if err != nil {
		panic("store: encode keys: " + err.Error()) // strings always have a JSON form
	}
	return st.with(string(list))
}

// selectOuter is a SELECT from the row source with a left join: one row of result for each row,
// with or without a row of the table.
func (d Dialect) selectOuter(columns, table, on string) string {
	source := d.bindRows(&columns, &on)
	if source == "" {
		source = "(SELECT 1) AS r"
	}
	return "SELECT " + columns + " FROM " + source + " LEFT JOIN " + d.sql(table) + " ON " + on
}

// selectRanges is a SELECT whose columns are subqueries on ranges between columns of r.
func (d Dialect) selectRanges(columns string) string {
	if d.rangePerRow {
		d.rowSource = nil
	}
	return d.selectRows(columns, "", "")
}

// updateRows is an UPDATE of the rows of a table that match the row source.
func (d Dialect) updateRows(table, set, where string) string {
	source := d.bindRows(&set, &where)
	return strings.NewReplacer("$table", table, "$set", set, "$rows", source, "$where", where).Replace(d.updateSQL)
}

// updateAndInsert is updateRows that also inserts a row into another table for each row that it
// changed. It is empty on databases that cannot do that, see insertUpdatedSQL.
func (d Dialect) updateAndInsert(table, set, where, into, columns, values string) string {
	if d.insertUpdatedSQL == "" {
		return ""
	}
	source := d.bindRows(&set, &where, &values)
	update := strings.NewReplacer("$table", table, "$set", set, "$rows", source, "$where", where).Replace(d.updateSQL)
	return strings.NewReplacer("$update", update, "$values", values, "$table", into, "$columns", columns).Replace(d.insertUpdatedSQL)
}

// updateCounted is updateRows for callers that each need the exact number of the rows that they
// changed. Where the database returns changed rows, batches of several callers may be merged, and
// each changed row comes with the number of its caller: the last column of the row source, see
// [Store.changeCounted]. Elsewhere such a batch is not merged.
func (d Dialect) updateCounted(name, table, set, where string) statement {
	// The clause comes behind the condition, where updateSQL ends.
	st := writing(name, d.updateRows(table, set, strings.TrimSpace(where+" "+d.returns("r#caller"))))
	st.returns = d.returning != ""
	st.alone = !st.returns
	return st
}

// returningRows is a statement that also returns columns of the rows that it changed, if the database
// can do that.
func (d Dialect) returningRows(st statement, columns string) statement {
	st.sql = strings.TrimSpace(st.sql + " " + d.returns(columns))
	st.returns = d.returning != ""
	return st
}

// returns is the clause that returns columns of the changed rows, or empty.
func (d Dialect) returns(columns string) string {
	return strings.ReplaceAll(d.returning, "%s", columns)
}

// deleteRows is a DELETE of the rows that match the row source, found by the primary key.
func (d Dialect) deleteRows(table, where string) string {
	return d.deleteByIndex("PRIMARY", table, where)
}

// deleteByIndex is deleteRows by another index.
func (d Dialect) deleteByIndex(index, table, where string) string {
	return d.deleteFrom(table, index, d.bindRows(&where), where)
}

// deleteFrom fills in deleteSQL.
func (d Dialect) deleteFrom(table, index, source, where string) string {
	key, keys := keyColumns(table)
	return strings.NewReplacer("$table", table, "$keys", keys, "$key", key, "$rows", source, "$where", where, "$index", index).Replace(d.deleteSQL)
}

// updateOne is updateRows of which each row changes one row of the table at most.
func (d Dialect) updateOne(table, set, where string) string {
	if d.rowSource != nil {
		return d.updateRows(table, set, where)
	}
	d.bindRows(&set, &where)
	return "UPDATE " + table + " SET " + set + " WHERE " + keyOfOne(table, table, where)
}

// deleteOne is deleteRows of which each row deletes one row of the table at most.
func (d Dialect) deleteOne(table, where string) string {
	if d.rowSource != nil {
		return d.deleteRows(table, where)
	}
	d.bindRows(&where)
	return "DELETE FROM " + table + " WHERE " + keyOfOne(table, table, where)
}

// keyOfOne is the condition that a row of a table is the first that a subquery on tables finds. For
// any other condition with a subquery, SQLite first writes the keys of all rows that match into a
// temporary table, which takes longer than the change of one row.
func keyOfOne(table, tables, where string) string {
	key, keys := keyColumns(table)
	return key + " = (SELECT " + keys + " FROM " + tables + " WHERE " + where + ")"
}

// updateVia is an UPDATE of the rows of a table that match the row source by way of another table.
// Where there is no row source, it changes the first of them alone: see admitsOne.
func (d Dialect) updateVia(table, via, set, where string) string {
	source := d.bindRows(&set, &where)
	if source == "" {
		return "UPDATE " + table + " SET " + set + " WHERE " + keyOfOne(table, via+" CROSS JOIN "+table, where)
	}
	return strings.NewReplacer("$table", table, "$set", set, "$rows", d.via(source, via, d.targetLast()), "$where", where).Replace(d.updateSQL)
}

// admitsOne reports whether each row of an updateVia changes one row at most.
func (d Dialect) admitsOne() bool { return d.rowSource == nil }

// deleteVia is a DELETE of the rows of a table that match the row source by way of another table.
// Where there is no row source, each row deletes one row at most.
func (d Dialect) deleteVia(table, via, where string) string {
	source := d.bindRows(&where)
	if source == "" {
		return "DELETE FROM " + table + " WHERE " + keyOfOne(table, via+" CROSS JOIN "+table, where)
	}
	return d.deleteFrom(table, "PRIMARY", d.via(source, via, d.rowJoin), where)
}

// via joins a row source with a table that is found by its primary key.
func (d Dialect) via(source, table, join string) string {
	return source + orElse(join, ", ") + d.sql(table+"{use PRIMARY}")
}

// targetLast is the join of an UPDATE after whose tables the changed table is to be read. In
// UPDATE ... FROM, SQLite's CROSS JOIN would fix the order with the changed table first.
func (d Dialect) targetLast() string {
	if strings.Contains(d.updateSQL, " FROM ") {
		return ""
	}
	return d.rowJoin
}

// keyColumns are the columns by which deleteSQL finds the rows of a table: the first column of its
// primary key, or all if the rest of the condition does not suffice. keys has them as a list of
// the table's columns.
func keyColumns(table string) (key, keys string) {
	switch table {
	case "line_slots":
		return "(line, slot)", "line_slots.line, line_slots.slot"
	case "line_places":
		return "(line, place)", "line_places.line, line_places.place"
	}
	key = leadingKeyColumn(table)
	return key, table + "." + key
}

// leadingKeyColumn is the first column of a table's primary key, for the tables that deleteRows
// is used on.
func leadingKeyColumn(table string) string {
	switch table {
	case "attempts":
		return "job_id"
	case "history", "step_texts":
		return "run_id"
	case "callbacks":
		return "token_hash"
	case "gates":
		return "lane"
	}
	return "id"
}

// distinctPage is how many rows a statement of distinctValues reads on MySQL. A search takes as long
// as some ten rows more, and many lanes have one waiting job.
const distinctPage = 100

// distinctValues selects the distinct values of a column above a given one, the last parameter.
// The column leads an index, or comes after columns that where fixes. It is a loose index scan:
// a recursive query jumps from one value to the next. So it costs one index search for each
// value, however many rows have that value; SELECT DISTINCT would read all rows. MySQL would
// read all rows in the recursion as well; there the statement returns the values of the first
// distinctPage rows, and Store.distinct repeats it.
func (d Dialect) distinctValues(column, from, where string) string {
	above := " FROM " + from + " WHERE " + where + " AND " + column + " > "
	if d.rangePerRow {
		return d.sql("SELECT " + column + " AS value" + above + "? ORDER BY " + column + " LIMIT " + strconv.Itoa(distinctPage))
	}
	least := "SELECT MIN(" + column + ")" + above
	return d.sql("WITH RECURSIVE found (value) AS (" + least + "? UNION ALL SELECT (" + least + "found.value)" +
		" FROM found WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL")
}

// updatePicked updates a bounded number of rows that a SELECT picks and locks. Parameters of
// the SELECT come before those of the SET.
func (d Dialect) updatePicked(table, set, pick string) string {
	pick = strings.ReplaceAll(d.pickSQL, "$pick", d.sql(pick))
	return strings.NewReplacer("$table", table, "$set", d.sql(set), "$pick", pick).Replace(d.updatePickedSQL)
}

// nonEmpty leaves out empty texts.
func nonEmpty(texts ...string) (out []string) {
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
