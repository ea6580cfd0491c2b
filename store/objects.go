package store

import (
	"maps"
	"slices"
	"strings"
)

// An Object is a table, a column or an index that the schema steps make. The conformance tests
// damage each one in turn, to prove that Compare finds the damage.
type Object struct {
	Table  string
	Column string
	Index  string

	Key  bool // the column is part of the primary key
	Used bool // the column is in an index or is computed, or another is computed from it

	Unique    bool
	Columns   []string // of an index
	Condition string   // of a partial index
}

// Objects returns all objects that the schema steps make: tables, then columns, then indexes.
func Objects(d Dialect) (all []Object) {
	want := shapeOf(d)
	var columns, indexes []Object
	for _, name := range slices.Sorted(maps.Keys(want.indexes)) {
		i := want.indexes[name]
		indexes = append(indexes, Object{Table: i.table, Index: name, Unique: i.unique, Columns: i.columns, Condition: i.condition})
	}
	for _, name := range slices.Sorted(maps.Keys(want.tables)) {
		t := want.tables[name]
		all = append(all, Object{Table: name})
		for _, c := range t.columns {
			columns = append(columns, Object{Table: name, Column: c.name, Key: slices.Contains(t.key, c.name),
				Used: c.computed != "" || t.computes(c.name) || slices.ContainsFunc(indexes, func(i Object) bool {
					return i.Table == name && slices.Contains(i.Columns, c.name)
				})})
		}
	}
	return append(append(all, columns...), indexes...)
}

// computes reports whether a column of the table is computed from another one.
func (t *tableShape) computes(from string) bool {
	return slices.ContainsFunc(t.columns, func(c columnShape) bool { return strings.Contains(c.computed, from) })
}
