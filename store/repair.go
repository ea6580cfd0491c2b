package store

import (
	"maps"
	"slices"
	"strings"
)

// The statements of Difference.Repair are made of the text of the schema steps, so that a
// repaired table equals a table of the steps.

// makeTable creates a table, with the columns and indexes that later steps added.
func (c *comparison) makeTable(name string) string {
	t := c.want.tables[name]
	all := []string{t.create}
	for _, column := range t.columns {
		if column.added {
			all = append(all, c.addColumn(name, column))
		}
	}
	for _, index := range slices.Sorted(maps.Keys(c.want.indexes)) {
		if i := c.want.indexes[index]; i.table == name {
			all = append(all, i.create(index))
		}
	}
	return strings.Join(all, "; ")
}

// create creates an index.
func (i *indexShape) create(name string) string {
	kind, where := "INDEX", ""
	if i.unique {
		kind = "UNIQUE INDEX"
	}
	if i.condition != "" {
		where = " WHERE " + i.condition
	}
	return "CREATE " + kind + " " + name + " ON " + i.table + " (" + strings.Join(i.columns, ", ") + ")" + where
}

// dropIndex drops an index.
func (c *comparison) dropIndex(name, table string) string {
	return strings.NewReplacer("$table", table, "$index", name).Replace(c.dialect.dropIndexSQL)
}

// addColumn adds a column. A column that is NOT NULL gets a default value for the rows that
// exist: 0 or empty text. MySQL takes a default of a text only as an expression.
func (c *comparison) addColumn(table string, column columnShape) string {
	value := ""
	if column.notNull && !column.filled {
		value = " DEFAULT ''"
		if column.kind == strings.ToLower(c.dialect.intType) {
			value = " DEFAULT 0"
		} else if c.dialect.Name == MySQL.Name && column.kind == strings.ToLower(c.dialect.textType) {
			value = " DEFAULT ('')"
		}
	}
	definition := column.written()
	return "ALTER TABLE " + table + " ADD COLUMN " + column.name + " " + definition + value
}

// written returns the definition of a column without PRIMARY KEY, which ALTER TABLE rejects.
func (c columnShape) written() string {
	return compactSpaces.Replace(strings.ReplaceAll(c.definition, " PRIMARY KEY", ""))
}

// setColumn changes the type of a column; "" on SQLite, which has no statement for it.
func (c *comparison) setColumn(table string, column columnShape) string {
	definition := column.written()
	switch c.dialect.Name {
	case MySQL.Name:
		return "ALTER TABLE " + table + " MODIFY COLUMN " + column.name + " " + definition
	case Postgres.Name:
		kind, null := strings.TrimSuffix(definition, " NOT NULL"), " DROP NOT NULL"
		if column.notNull {
			null = " SET NOT NULL"
		}
		base, _, _ := strings.Cut(kind, " ")
		return "ALTER TABLE " + table + " ALTER COLUMN " + column.name + " TYPE " + kind + " USING " + column.name + "::" + base +
			", ALTER COLUMN " + column.name + null
	}
	return ""
}

// setKey adds a missing primary key. It returns "" if the table has another one, and on SQLite,
// which has no statement for it.
func (c *comparison) setKey(table string, have, want *tableShape) string {
	if c.dialect.Name != MySQL.Name && c.dialect.Name != Postgres.Name || len(have.key) > 0 {
		return ""
	}
	return "ALTER TABLE " + table + " ADD PRIMARY KEY (" + strings.Join(want.key, ", ") + ")"
}
