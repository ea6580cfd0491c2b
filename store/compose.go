package store

import "strings"

// How statements are put together, each of parts that a dialect spells in its way.

// insert is an insertNew that leaves out rows whose key is taken.
func (d Dialect) insertIfAbsent(into, columns, selection, from, where, key string) string {
	return d.insert(into, columns, selection, from, where) + " " + d.sql("{on_conflict "+into+"."+key+"}")
}

// insertNew is an INSERT of what a selection finds in the row source, and in a table
// if from names one.
func (d Dialect) insert(into, columns, selection, from, where string) string {
	sql := orElse(d.insertInto, "INSERT INTO ") + into + " (" + columns + ") "
	if from == "" && d.insertValues != nil {
		sql += d.insertValues(rowColumn.ReplaceAllString(d.sql(selection), "?"))
	} else {
		sql += d.selectRows(selection, from, where)
	}
	if order := d.insertOrder[into]; order != "" {
		sql += " " + order
	}
	return sql
}

// selection reads from the row source and a table.
func (d Dialect) selectRows(columns, from, where string) string {
	source := d.bindRows(&columns, &where)
	tables := strings.Join(nonEmpty(source, d.sql(from)), orElse(d.rowJoin, ", "))
	if tables != "" {
		tables = " FROM " + tables
	}
	if where == "" {
		where = "1 = 1" // SQLite would take ON CONFLICT for a condition of a join
	}
	return "SELECT " + columns + tables + " WHERE " + where
}

// outer reads from the row source, and beside it from a table if that has a row.
func (d Dialect) selectOuter(columns, table, on string) string {
	source := d.bindRows(&columns, &on)
	if source == "" {
		source = "(SELECT 1) AS r"
	}
	return "SELECT " + columns + " FROM " + source + " LEFT JOIN " + d.sql(table) + " ON " + on
}

// ranges is a selection from the row source that looks for ranges of a table.
func (d Dialect) selectRanges(columns string) string {
	if d.rangePerRow {
		d.rowSource = nil
	}
	return d.selectRows(columns, "", "")
}

func (d Dialect) updateRows(table, set, where string) string {
	source := d.bindRows(&set, &where)
	return strings.NewReplacer("$table", table, "$set", set, "$rows", source, "$where", where).Replace(d.updateSQL)
}

func (d Dialect) deleteRows(table, where string) string {
	return d.deleteByIndex("PRIMARY", table, where)
}

// deleteBy deletes rows that an index finds.
func (d Dialect) deleteByIndex(index, table, where string) string {
	source := d.bindRows(&where)
	return strings.NewReplacer("$table", table, "$key", leadingKeyColumn(table), "$rows", source, "$where", where, "$index", index).Replace(d.deleteSQL)
}

// firstOfKey is the column that leads the primary key of a table.
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

// distinct selects the values above one, its last parameter, of a column that leads an
// index, or stands in it behind what a condition fixes: all of them, or, where that would
// go through all rows, the first. It costs a look for each, however many rows have it.
func (d Dialect) distinctValues(column, from, where string) string {
	above := " FROM " + from + " WHERE " + where + " AND " + column + " > "
	if d.rangePerRow {
		return d.sql("SELECT " + column + " AS value" + above + "? ORDER BY " + column + " LIMIT 1")
	}
	least := "SELECT MIN(" + column + ")" + above
	return d.sql("WITH RECURSIVE found (value) AS (" + least + "? UNION ALL SELECT (" + least + "found.value)" +
		" FROM found WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL")
}

// updatePicked changes a bounded number of rows: those the pick selects. Its
// parameters come first.
func (d Dialect) updatePicked(table, set, pick string) string {
	pick = strings.ReplaceAll(d.pickSQL, "$pick", d.sql(pick))
	return strings.NewReplacer("$table", table, "$set", d.sql(set), "$pick", pick).Replace(d.updatePickedSQL)
}

func nonEmpty(texts ...string) (out []string) {
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
