package store

import (
	"maps"
	"slices"
	"strings"
)

// Statements that repair differences. They are made of the text of the schema steps.

// makeTable makes a table, with the columns and indexes of later steps.
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

// create makes an index.
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

func (c *comparison) dropIndex(name, table string) string {
	return strings.NewReplacer("$table", table, "$index", name).Replace(c.dialect.dropIndexSQL)
}

// addColumn makes a column. In rows that are there, one that takes no null is empty.
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

// written is the definition of a column, without the key.
func (c columnShape) written() string {
	return compactSpaces.Replace(strings.ReplaceAll(c.definition, " PRIMARY KEY", ""))
}

// setColumn gives a column its type. SQLite cannot.
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

// setKey gives a table its primary key. SQLite cannot.
func (c *comparison) setKey(table string, have, want *tableShape) string {
	if c.dialect.Name != MySQL.Name && c.dialect.Name != Postgres.Name || len(have.key) > 0 {
		return ""
	}
	return "ALTER TABLE " + table + " ADD PRIMARY KEY (" + strings.Join(want.key, ", ") + ")"
}
