package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// A Difference is a difference between the tables of a database and the tables that the schema
// steps make.
type Difference struct {
	// The table, column or index, and how it differs.
	What string

	// Repair is the SQL that removes the difference; empty if only a backup helps. Lossy says
	// that rows or values are gone, and that Repair does not bring them back.
	Repair string
	Lossy  bool

	// Harmful says that a gateway on these tables would lose events, store duplicates or fail.
	// Other differences cost time or space.
	Harmful bool
}

// String returns the difference with its remedy.
func (d Difference) String() string { return d.What + ": " + d.Remedy() }

// Remedy returns the instruction that removes the difference.
func (d Difference) Remedy() string {
	switch {
	case d.Repair == "":
		return "restore a backup"
	case d.Lossy:
		return "restore a backup, or go on without what was in it: " + d.Repair
	}
	return d.Repair
}

// Compare compares the tables of a database with the schema steps and lists the differences,
// the harmful ones first. All steps of this version must have run. It sends one batch and
// changes nothing.
func Compare(ctx context.Context, c Conn, d Dialect) ([]Difference, error) {
	want := shapeOf(d)
	have, err := readShape(ctx, c, d, slices.Sorted(maps.Keys(want.tables)))
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", unwrapInvalid(err))
	}
	found := comparison{dialect: d, want: want, have: have}
	found.compare()
	order.Stable(found.all, func(a, b Difference) int {
		switch {
		case a.Harmful == b.Harmful:
			return 0
		case a.Harmful:
			return -1
		}
		return 1
	})
	return found.all, nil
}

// Inspect is [Compare] on the store's database.
func (s *Store) Inspect(ctx context.Context) ([]Difference, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return Compare(ctx, s.conn, s.dialect)
}

// maxShownDifferences is how many differences a refusal lists.
const maxShownDifferences = 3

// RefuseHarmful returns a refusal to work on tables with harmful differences, or nil if there
// are none.
func RefuseHarmful(found []Difference) error {
	var harmful []string
	for _, d := range found {
		if d.Harmful {
			harmful = append(harmful, d.String())
		}
	}
	if len(harmful) == 0 {
		return nil
	}
	more := ""
	if n := len(harmful) - maxShownDifferences; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return core.Refuse(core.Invalid, `the tables are not as the gateway made them: %s%s; "gateway doctor" lists all differences`,
		strings.Join(harmful[:min(maxShownDifferences, len(harmful))], "; "), more)
}

// A comparison collects the differences between two shapes.
type comparison struct {
	dialect    Dialect
	want, have *shape
	all        []Difference
}

// add adds a difference. The format describes it.
func (c *comparison) add(harmful bool, repair, what string, args ...any) {
	c.all = append(c.all, Difference{What: fmt.Sprintf(what, args...), Repair: repair, Harmful: harmful})
}

// lost adds the harmful difference that an object is missing, together with its rows or values.
func (c *comparison) lost(repair, what string) {
	c.all = append(c.all, Difference{What: what + " is missing", Repair: repair, Lossy: true, Harmful: true})
}

// compare compares tables and their columns first, then indexes. The indexes of a missing table
// are part of its repair.
func (c *comparison) compare() {
	for _, name := range slices.Sorted(maps.Keys(c.want.tables)) {
		if have := c.have.tables[name]; have == nil {
			c.lost(c.makeTable(name), "table "+name)
		} else {
			c.columns(name, c.want.tables[name], have)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.want.indexes)) {
		if want := c.want.indexes[name]; c.have.tables[want.table] != nil {
			c.index(name, want, c.have.indexes[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.have.indexes)) {
		if have := c.have.indexes[name]; c.want.indexes[name] == nil {
			kind := "index"
			if have.unique {
				kind = "unique index"
			}
			c.add(false, c.dropIndex(name, have.table), "%s %s on %s is not part of the gateway's schema, and slows down each write to the table", kind, name, have.table)
		}
	}
}

// columns compares the columns and the primary key of a table. An extra column is harmful if an
// INSERT that does not name it fails.
func (c *comparison) columns(table string, want, have *tableShape) {
	for _, w := range want.columns {
		h := have.column(w.name)
		switch {
		case h == nil:
			c.lost(c.addColumn(table, w), "column "+table+"."+w.name)
		case h.kind != w.kind:
			c.add(true, c.setColumn(table, w), "column %s.%s is of type %s, not %s", table, w.name, h.kind, w.kind)
		case h.notNull && !w.notNull:
			c.add(true, c.setColumn(table, w), "column %s.%s does not accept null, and must", table, w.name)
		case !h.notNull && w.notNull && !slices.Contains(want.key, w.name):
			c.add(false, c.setColumn(table, w), "column %s.%s accepts null, and need not", table, w.name)
		case h.computed != w.computed:
			c.add(false, "", "column %s.%s is computed as %s, not as %s", table, w.name, cmp.Or(h.computed, "nothing"), cmp.Or(w.computed, "nothing"))
		}
	}
	for _, h := range have.columns {
		if want.column(h.name) == nil {
			c.add(h.notNull && !h.filled && h.computed == "", "ALTER TABLE "+table+" DROP COLUMN "+h.name, "column %s.%s is not part of the gateway's schema", table, h.name)
		}
	}
	if !slices.Equal(have.key, want.key) {
		c.add(true, c.setKey(table, have, want), "the primary key of %s is (%s), not (%s)", table, strings.Join(have.key, ", "), strings.Join(want.key, ", "))
	}
}

// index compares an index. A difference of a unique index is harmful, since it stores
// duplicates or refuses rows. Any other index costs time only.
func (c *comparison) index(name string, want, have *indexShape) {
	kind := "index"
	if want.unique {
		kind = "unique index"
	}
	remake := c.dropIndex(name, want.table) + "; " + want.create(name)
	switch {
	case have == nil:
		c.add(want.unique, want.create(name), "%s %s on %s is missing", kind, name, want.table)
	case have.table != want.table:
		c.add(want.unique, remake, "%s %s is on %s, not on %s", kind, name, have.table, want.table)
	case have.invalid:
		c.add(want.unique, remake, "%s %s on %s is not valid, so the database does not use it", kind, name, want.table)
	case !have.unique && want.unique:
		c.add(true, remake, "%s %s on %s is not unique", kind, name, want.table)
	case have.unique != want.unique:
		c.add(true, remake, "%s %s on %s is unique, and refuses rows that it must not refuse", kind, name, want.table)
	case !slices.Equal(have.columns, want.columns):
		c.add(want.unique, remake, "%s %s on %s is on (%s), not on (%s)", kind, name, want.table, strings.Join(have.columns, ", "), strings.Join(want.columns, ", "))
	case have.where != want.where:
		c.add(want.unique, remake, "%s %s on %s covers the rows with %s, not with %s", kind, name, want.table,
			cmp.Or(have.where, "no condition"), cmp.Or(want.where, "no condition"))
	}
}
