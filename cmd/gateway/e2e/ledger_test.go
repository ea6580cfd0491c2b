//go:build linux

package e2e

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	ledgers "github.com/eventgateway/gateway/infra/test/ledger"
)

// A ledger is the database of a gateway, for queries of the tests.
type ledger struct {
	t   testing.TB
	db  *sql.DB // for SQLite, PostgreSQL and MySQL
	ask ledgers.Ask

	intact  string // the statement that checks the file; "" if there is no file
	integer string // the type of integers in a CAST
	settle  string // the statement that brings statistics up to date after many inserts; "" if there are none
}

// openLedger opens a database file. Its statements wait for the gateway's writes.
func openLedger(t testing.TB, path string) *ledger {
	t.Helper()
	l := openSQL(t, "sqlite", path+"?_pragma=busy_timeout(10000)")
	l.intact = `PRAGMA integrity_check`
	return l
}

// openSQL opens a database that has a driver for database/sql.
func openSQL(t testing.TB, driver, address string) *ledger {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l := &ledger{t: t, db: db, ask: ledgers.SQL(db), integer: "INT"}
	switch driver {
	case "pgx":
		l.settle = `VACUUM ANALYZE`
	case "mysql":
		l.integer, l.settle = "SIGNED", `ANALYZE TABLE events, jobs, attempts, minutes`
	}
	return l
}

// close closes the database, where a gateway would notice it.
func (l *ledger) close() {
	if l.db != nil {
		l.db.Close()
	}
}

// exec runs a statement that returns no rows.
func (l *ledger) exec(statement string) {
	l.t.Helper()
	if err := l.try(statement); err != nil {
		l.t.Fatal(err)
	}
}

// try is exec that returns an error.
func (l *ledger) try(statement string) (err error) {
	if l.db != nil {
		_, err = l.db.Exec(statement)
	} else {
		_, err = l.ask(statement)
	}
	if err != nil {
		return fmt.Errorf("%.200s: %w", statement, err)
	}
	return nil
}

// vacuum does what the database's own upkeep does some time after many inserts.
func (l *ledger) vacuum() {
	l.t.Helper()
	if l.settle != "" {
		l.exec(l.settle)
	}
}

// count returns the number that a query asks for.
func (l *ledger) count(query string) int {
	l.t.Helper()
	var n int
	all := l.column(query)
	if len(all) == 1 {
		var err error
		if n, err = strconv.Atoi(all[0]); err == nil {
			return n
		}
	}
	l.t.Fatalf("%s: %q, want one number", query, all)
	return 0
}

// column returns the values of a query with one column.
func (l *ledger) column(query string) []string {
	l.t.Helper()
	all, err := l.ask(query)
	if err != nil {
		l.t.Fatalf("%s: %v", query, err)
	}
	return all
}

// check checks the invariants, and the number of jobs of each event that did not come from an
// operation.
func (l *ledger) check(jobsPerEvent int) {
	l.t.Helper()
	l.sound()
	counts := l.column(`SELECT DISTINCT (SELECT COUNT(*) FROM jobs WHERE event_id = events.id) FROM events WHERE type NOT LIKE 'operation.%'`)
	for _, c := range counts {
		if want := strconv.Itoa(jobsPerEvent); c != want {
			l.t.Errorf("there are events with %s jobs, want %s", c, want)
		}
	}
}

// sound checks the invariants only.
func (l *ledger) sound() {
	l.t.Helper()
	if l.intact != "" {
		if got := strings.Join(l.column(l.intact), "\n"); got != "ok" {
			l.t.Errorf("%s = %q, want ok", l.intact, got)
		}
	}
	for _, i := range ledgers.Invariants() {
		if n := l.count(i.SQL); n != 0 {
			l.t.Errorf("%s: %d, want 0", i.Name, n)
		}
	}
}

// holds fails the test if an id is not the id of a stored event.
func (l *ledger) holds(events []string) {
	l.t.Helper()
	stored := map[string]bool{}
	for _, id := range l.column(`SELECT id FROM events`) {
		stored[id] = true
	}
	missing := 0
	for _, id := range events {
		if !stored[id] {
			missing++
		}
	}
	if missing > 0 {
		l.t.Errorf("accepted events that are not stored: %d of %d, want 0", missing, len(events))
	}
}
