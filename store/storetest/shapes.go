package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Checks of Compare, with which doctor finds tables that differ from the schema. Operators restore
// backups, run scripts and drop columns. A difference that Compare misses shows itself later as
// failing statements, and a wrong repair would do damage.

// Shapes breaks the tables of a store, in each way in turn. It requires that Compare names the
// difference, and that the statement given with the difference repairs it. open makes an empty
// database.
func Shapes(t *testing.T, d store.Dialect, open func(t *testing.T) store.Conn) {
	conn := open(t)
	if err := store.New(conn, d, core.SystemClock).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := shapes{T: t, conn: conn, dialect: d}
	s.same("as the schema steps made them")
	for _, o := range s.objects() {
		s.damage(o)
	}
}

// shapes is a database with the schema, which each damage breaks and repairs.
type shapes struct {
	*testing.T
	conn    store.Conn
	dialect store.Dialect
}

// exec runs statements that "; " separates. It returns the first error.
func (s shapes) exec(sql string) error {
	for statement := range strings.SplitSeq(sql, "; ") {
		if _, err := s.conn.Batch(context.Background(), store.Stmt{Name: "damage", SQL: statement}); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// compare returns the differences between the database and the schema.
func (s shapes) compare() []store.Difference {
	s.Helper()
	found, err := store.Compare(context.Background(), s.conn, s.dialect)
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// same ends the test if there is a difference.
func (s shapes) same(when string) {
	s.Helper()
	if found := s.compare(); len(found) > 0 {
		s.Fatalf("%s: %d differences, such as %v, want none", when, len(found), found[0])
	}
}

// damage is one way to break tables: the statements, and the beginning of the difference that
// Compare must report.
type damage struct {
	sql     string
	says    string // the beginning of the text of the difference
	harmful bool   // the store does not work, or loses a guarantee, with the difference
}

// damage breaks the tables, compares them, and repairs them by the reported statements.
func (s shapes) damage(d damage) {
	s.Helper()
	if err := s.exec(d.sql); err != nil {
		s.Fatalf("%v", err)
	}
	found := s.compare()
	i := slices.IndexFunc(found, func(f store.Difference) bool { return strings.HasPrefix(f.What, d.says) })
	if i < 0 {
		s.Fatalf("after %q: %v, want a difference that begins with %q", d.sql, found, d.says)
	}
	if found[i].Harmful != d.harmful {
		s.Errorf("after %q: harmful = %v, want %v", d.sql, found[i].Harmful, d.harmful)
	}
	if refused := store.RefuseHarmful(found); (refused != nil) != d.harmful {
		s.Errorf("after %q: RefuseHarmful = %v, want a refusal: %v", d.sql, refused, d.harmful)
	}
	for _, f := range found {
		if f.Repair == "" {
			s.Fatalf("after %q: %q has no repair", d.sql, f.What)
		}
		if err := s.exec(f.Repair); err != nil {
			s.Fatalf("repair after %q: %v", d.sql, err)
		}
	}
	s.same("after " + d.sql + " and its repair")
}

// objects returns damages of each index, column and table.
func (s shapes) objects() (all []damage) {
	for _, o := range store.Objects(s.dialect) {
		switch {
		case o.Index != "":
			all = append(all, s.indexDamages(o)...)
		case o.Column != "":
			all = append(all, s.columnDamages(o)...)
		default:
			all = append(all, damage{"DROP TABLE " + o.Table, "table " + o.Table + " is missing", true})
		}
	}
	return all
}

// dropIndex returns the statement that drops an index in the dialect.
func (s shapes) dropIndex(o store.Object) string {
	if s.dialect.Name == store.MySQL.Name {
		return "DROP INDEX " + o.Index + " ON " + o.Table
	}
	return "DROP INDEX " + o.Index
}

// indexDamages returns the ways to break an index: it is missing, foreign, on fewer columns, in
// another order, with another uniqueness or with another condition.
func (s shapes) indexDamages(o store.Object) []damage {
	kind, create := "index ", "CREATE INDEX "
	if o.Unique {
		kind, create = "unique index ", "CREATE UNIQUE INDEX "
	}
	named := kind + o.Index + " on " + o.Table
	first := o.Columns[0]
	all := []damage{
		{s.dropIndex(o), named + " is missing", o.Unique},
		{"CREATE INDEX foreign_index ON " + o.Table + " (" + first + ")", "index foreign_index on " + o.Table + " is not part of the gateway's schema", false},
	}
	if len(o.Columns) > 1 {
		all = append(all, damage{s.dropIndex(o) + "; " + create + o.Index + " ON " + o.Table + " (" + first + ")", named + " is on (" + first + ")", o.Unique})
	}
	if o.Unique {
		all = append(all, damage{s.dropIndex(o) + "; CREATE INDEX " + o.Index + " ON " + o.Table + " (" + strings.Join(o.Columns, ", ") + ")", named + " is not unique", true})
	}
	if !o.Unique {
		all = append(all, damage{s.dropIndex(o) + "; CREATE UNIQUE INDEX " + o.Index + " ON " + o.Table + " (" + strings.Join(o.Columns, ", ") + ")", named + " is unique, and refuses", true})
	}
	if len(o.Columns) > 1 && !o.Unique {
		turned := slices.Clone(o.Columns)
		slices.Reverse(turned)
		all = append(all, damage{s.dropIndex(o) + "; " + create + o.Index + " ON " + o.Table + " (" + strings.Join(turned, ", ") + ")", named + " is on (", false})
	}
	if o.Condition != "" {
		all = append(all, damage{s.dropIndex(o) + "; " + create + o.Index + " ON " + o.Table + " (" + strings.Join(o.Columns, ", ") + ") WHERE " + first + " IS NULL",
			named + " covers the rows with " + first + "isnull", o.Unique})
	}
	return all
}

// columnDamages drops a column. SQLite refuses to drop a column that is in an index or key: the
// indexes are dropped first, and columns of keys are left out.
func (s shapes) columnDamages(o store.Object) []damage {
	says := "column " + o.Table + "." + o.Column + " is missing"
	drop := "ALTER TABLE " + o.Table + " DROP COLUMN " + o.Column
	if o.Key || s.dialect.Name == store.MySQL.Name && o.Used {
		return []damage{}
	}
	if s.dialect.Name != store.Postgres.Name {
		for _, i := range store.Objects(s.dialect) {
			if i.Index != "" && i.Table == o.Table && (slices.Contains(i.Columns, o.Column) || strings.Contains(i.Condition, o.Column)) {
				drop = s.dropIndex(i) + "; " + drop
			}
		}
	}
	return []damage{{drop, says, true}}
}
