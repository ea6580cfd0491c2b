package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/golden"

	"github.com/eventgateway/gateway/core"
)

// databases are the dialects, by their folders in testdata/sql.
var databases = map[string]Dialect{"sqlite": SQLite, "postgres": Postgres, "mysql": MySQL, "hosted": D1}

// TestStatements compares the statements that each database gets with testdata/sql, in which
// each role of the store has a file. A file has the text of a statement below its name. It
// differs from the text that the Conn gets in white space alone. MySQL and D1 repeat the part
// between two /*row*/ marks for each further row. PostgreSQL gets values in place of unnest for a
// single row, except in a DELETE. Probes of atomicity are left out: the name of
// their table is random.
func TestStatements(t *testing.T) {
	for database, d := range databases {
		dir := filepath.Join("testdata", "sql", database)
		files := statementFiles(d)
		for _, name := range listings(d) {
			if !slices.ContainsFunc(files["listings"], func(st Stmt) bool { return st.Name == name || strings.HasPrefix(st.Name, name+"_by_") }) {
				t.Errorf("sendListings sends no %s", name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			compareFile(t, filepath.Join(dir, name+".sql"), files[name])
		}
		there, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range there {
			if _, ok := files[strings.TrimSuffix(filepath.Base(path), ".sql")]; ok {
				continue
			}
			if !golden.Updating() {
				t.Errorf("%s has statements of no role; -update deletes it", path)
			} else if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	}
}

func compareFile(t *testing.T, path string, stmts []Stmt) {
	t.Helper()
	var b strings.Builder
	for i, st := range stmts {
		text := formatSQL(st.SQL)
		if got, want := strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(st.SQL), " "); got != want {
			t.Errorf("%s: the layout changes %s:\n%s\nwant:\n%s", path, st.Name, got, want)
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("-- " + st.Name + "\n" + text + "\n")
	}
	if golden.Updating() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		golden.Write(t, path, []byte(b.String()))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v; -update writes it", err)
	}
	golden.Compare(t, path, string(want), b.String())
}

// statementFiles returns all statements of a dialect, by their files.
func statementFiles(d Dialect) map[string][]Stmt {
	files := fixedStatements(d)
	files["listings"] = sentBy(d, sendListings)
	files["schema"] = sentBy(d, func(ctx context.Context, s *Store) {
		_ = s.Migrate(ctx)
		s.conn.(*sender).empty = true
		_ = s.Migrate(ctx)
		_, _ = s.appliedSteps(ctx)
	})
	files["check"] = sentBy(d, func(ctx context.Context, s *Store) {
		_, _ = Check(ctx, s.conn, d, s.clock)
		_, _ = Rehearse(ctx, s.conn, true)
		_, _ = readShape(ctx, s.conn, d, []string{"events"})
	})
	files["rehearsal"] = slices.DeleteFunc(sentBy(d, func(ctx context.Context, s *Store) {
		for _, w := range []core.Work{core.Intake, core.Deliveries, core.Transitions, core.Turns} {
			_ = s.Rehearse(ctx, w)
		}
	}), func(st Stmt) bool { return !strings.HasPrefix(st.Name, "undo_") })
	return files
}

// fixedStatements returns the statements with a fixed text, by role. It leaves out the listings.
func fixedStatements(d Dialect) map[string][]Stmt {
	files := map[string][]Stmt{}
	all := reflect.ValueOf(newStatements(d))
	for i := range all.NumField() {
		role := strings.ToLower(strings.TrimSuffix(all.Type().Field(i).Name, "SQL"))
		for j := range all.Field(i).NumField() {
			v := all.Field(i).Field(j)
			if v.Type() != reflect.TypeFor[statement]() {
				continue // a listing, see sendListings
			}
			if text := v.FieldByName("sql").String(); text != "" {
				files[role] = append(files[role], Stmt{Name: v.FieldByName("name").String(), SQL: text})
			}
		}
	}
	return files
}

// listings returns the names of the statements whose text depends on a filter.
func listings(d Dialect) (names []string) {
	all := reflect.ValueOf(newStatements(d))
	for _, f := range reflect.VisibleFields(all.Type()) {
		if f.Type == reflect.TypeFor[listing]() || f.Type == reflect.TypeFor[eventListing]() {
			if name := all.FieldByIndex(f.Index).FieldByName("name").String(); name != "" { // some databases have no such listing
				names = append(names, name)
			}
		}
	}
	return names
}

// sendListings makes a store send each listing, by every index and with every condition.
func sendListings(ctx context.Context, s *Store) {
	at, id := time.UnixMilli(1), core.ID("id")
	kind := core.EventFilter{Source: "source", Type: "type"}
	for _, f := range []core.EventFilter{{}, {Since: at, Until: at}, {Source: "source"}, kind, {Source: "source", DeliveryID: "delivery"}} {
		_, _ = s.Events(ctx, f)
		_, _ = s.Nth(ctx, f, 1)
		_, _ = s.Read(ctx, id, f)
		_, _ = s.ReadNewest(ctx, f)
	}
	_, _ = s.nthOfType(ctx, []core.EventFilter{kind, kind}, 1)
	delivery := core.EventFilter{Source: "source", Type: "type", DeliveryID: "delivery"}
	_, _ = s.nthOfType(ctx, []core.EventFilter{delivery, delivery}, 1)
	for _, f := range []core.JobFilter{{}, {EventID: id}, {EventID: id, Lane: "lane", Status: core.Running}, {Lane: "lane"}} {
		_, _ = s.Jobs(ctx, f)
	}
	for _, status := range core.Statuses() {
		_, _ = s.Jobs(ctx, core.JobFilter{Status: status})
		_, _ = s.Jobs(ctx, core.JobFilter{Status: status, Lane: "lane"})
	}
	for _, f := range []core.RunFilter{{}, {Status: core.RunRunning}, {Workflow: "workflow"}, {EventID: id}, {Status: core.RunFailed, Workflow: "workflow", EventID: id}} {
		_, _ = s.Runs(ctx, f)
	}
	for _, f := range []core.AuditFilter{{}, {Since: at, Until: at, Actor: "actor", Action: core.AuditDrain, Target: "target"}} {
		_, _ = s.Audited(ctx, f)
	}
}

// A listing of dead or canceled jobs of a lane reads no others: it sends nothing that reads the newest
// jobs of all kinds.
func TestDeadJobsAreListedByTheirIndex(t *testing.T) {
	for _, d := range []Dialect{SQLite, D1, Postgres, MySQL} {
		for _, status := range []core.Status{core.Dead, core.Canceled} {
			for _, after := range []core.ID{"", core.FirstID(time.UnixMilli(1_000_000))} {
				var names []string
				for _, st := range sentBy(d, func(ctx context.Context, s *Store) {
					_, _ = s.Jobs(ctx, core.JobFilter{Status: status, Lane: "lane", After: after})
				}) {
					names = append(names, st.Name)
				}
				if want := []string{"jobs_" + string(status)}; !slices.Equal(names, want) {
					t.Errorf("%s: Jobs that are %s sends %v, want %v", d.Name, status, names, want)
				}
			}
		}
	}
}

// sentBy returns the statements that a store sends, each text once.
func sentBy(d Dialect, work func(context.Context, *Store)) (sent []Stmt) {
	at := time.UnixMilli(1_000_000)
	r := &sender{}
	work(context.Background(), New(r, d, func() time.Time { return at }))
	seen := map[[2]string]bool{}
	for _, st := range r.sent {
		if key := [2]string{st.Name, st.SQL}; !seen[key] {
			seen[key] = true
			sent = append(sent, st)
		}
	}
	return sent
}

// A sender is a connection to a database without rows. It has all tables, unless empty is set.
type sender struct {
	sent  []Stmt
	empty bool
}

func (s *sender) Close() error { return nil }

func (s *sender) Batch(_ context.Context, stmts ...Stmt) ([]Result, error) {
	s.sent = append(s.sent, stmts...)
	results := make([]Result, len(stmts))
	for i, st := range stmts {
		if st.Name == "schema_read" && s.empty {
			return nil, errors.New("no such table")
		}
		if slices.Contains([]string{"check_clock", "check_tables", "schema_tables"}, st.Name) {
			results[i].Rows = [][]any{{int64(1)}}
		}
	}
	return results, nil
}

// TestStatementsPerDialect: a store has the statements of its own dialect, for every order in which
// stores are made.
func TestStatementsPerDialect(t *testing.T) {
	for range 2 {
		for name, d := range databases {
			if got := New(nil, d, core.SystemClock).sql; got != newStatements(d) {
				t.Errorf("a store on %s has statements of another dialect", name)
			}
		}
	}
}
