//go:build linux

package e2e

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// invariants are what must hold in every database once its gateway has stopped,
// each as a question whose answer is the number of rows that break it. All of the
// databases understand them.
var invariants = []struct{ name, sql string }{
	{"jobs still running", `SELECT COUNT(*) FROM jobs WHERE status = 'running'`},
	{"jobs with a lease nobody holds", `SELECT COUNT(*) FROM jobs WHERE lease IS NOT NULL AND status <> 'running'`},
	{"jobs of an unknown status", `SELECT COUNT(*) FROM jobs
		WHERE status NOT IN ('available', 'running', 'completed', 'retryable', 'dead')`},
	{"jobs without their event", `SELECT COUNT(*) FROM jobs WHERE event_id NOT IN (SELECT id FROM events)`},
	{"attempts without their job", `SELECT COUNT(*) FROM attempts WHERE job_id NOT IN (SELECT id FROM jobs)`},
	{"finished jobs that are still due, or the reverse", `SELECT COUNT(*) FROM jobs
		WHERE (status IN ('completed', 'dead')) <> (due_at IS NULL)
		   OR (status IN ('completed', 'dead')) <> (finished_at IS NOT NULL)`},
	// An ack leaves no attempt: how the work went is its consumer's business. Nor does a
	// wait, and a step counts its attempts itself.
	{"completed jobs without a successful attempt as their newest", `SELECT COUNT(*) FROM jobs
		WHERE status = 'completed' AND lane NOT LIKE 'queue/%' AND lane NOT LIKE 'workflow/%' AND NOT EXISTS (SELECT 1 FROM attempts
			WHERE job_id = jobs.id AND attempts.attempt = jobs.attempt AND error = '' AND status_code BETWEEN 200 AND 299)`},
	{"successful attempts of jobs that are not completed", `SELECT COUNT(*) FROM attempts JOIN jobs ON jobs.id = job_id
		WHERE error = '' AND status <> 'completed'`},
	{"jobs that succeeded more than once", `SELECT COUNT(*) FROM (SELECT 1 FROM attempts
		WHERE error = '' GROUP BY job_id HAVING COUNT(*) > 1) AS again`},
	{"dead jobs with attempts left", `SELECT COUNT(*) FROM jobs WHERE status = 'dead' AND attempt < max_attempts AND lane NOT LIKE 'workflow/%'`},
	{"jobs with attempts never made", `SELECT COUNT(*) FROM jobs WHERE status IN ('completed', 'dead') AND attempt < 1`},
	{"jobs of the same event and consumer", `SELECT COUNT(*) FROM (SELECT 1 FROM jobs
		WHERE lane NOT LIKE 'workflow/%' GROUP BY event_id, lane HAVING COUNT(*) > 1) AS again`},
	{"runs of the same event and workflow", `SELECT COUNT(*) FROM (SELECT 1 FROM runs GROUP BY event_id, workflow HAVING COUNT(*) > 1) AS again`},
	{"runs whose history has gaps, or another end", `SELECT COUNT(*) FROM runs
		WHERE seq <> (SELECT COUNT(*) FROM history WHERE run_id = runs.id)
		   OR seq <> COALESCE((SELECT MAX(seq) FROM history WHERE run_id = runs.id), 0)`},
	{"open steps of runs that are finished, or of an earlier epoch", `SELECT COUNT(*) FROM steps JOIN runs ON runs.id = run_id
		WHERE steps.status IN ('ready', 'running', 'waiting')
		  AND (runs.status IN ('completed', 'failed') OR steps.epoch <> runs.epoch)`},
	{"jobs that wait for steps that are over", `SELECT COUNT(*) FROM jobs JOIN steps ON steps.id = jobs.id
		WHERE jobs.due_at IS NOT NULL AND steps.status NOT IN ('ready', 'running', 'waiting')`},
	{"runs under way without a job", `SELECT COUNT(*) FROM runs WHERE status IN ('pending', 'running') AND NOT EXISTS
		(SELECT 1 FROM jobs JOIN steps ON steps.id = jobs.id WHERE steps.run_id = runs.id AND jobs.due_at IS NOT NULL)`},
	{"joins that were made twice", `SELECT COUNT(*) FROM (SELECT 1 FROM history
		WHERE type = 'step_succeeded' GROUP BY run_id, epoch, path HAVING COUNT(*) > 1) AS again`},
	{"tokens of steps that are over", `SELECT COUNT(*) FROM callbacks JOIN steps ON steps.id = step_id
		WHERE steps.status NOT IN ('ready', 'running', 'waiting')`},
}

// A ledger is the database of a gateway, for the tests to look into.
type ledger struct {
	t   testing.TB
	db  *sql.DB // of SQLite, PostgreSQL and MySQL
	ask func(query string) ([]string, error)

	intact string // what asks the database whether its file is, if it has such a thing
}

// openLedger opens a database file.
func openLedger(t testing.TB, path string) *ledger {
	t.Helper()
	l := openSQL(t, "sqlite", path)
	l.intact = `PRAGMA integrity_check`
	return l
}

// openSQL opens a database that Go's sql package has a driver for.
func openSQL(t testing.TB, driver, address string) *ledger {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &ledger{t: t, db: db, ask: func(query string) ([]string, error) { return askSQL(db, query) }}
}

func askSQL(db *sql.DB, query string) (all []string, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// close closes the database, where that makes a difference to a gateway.
func (l *ledger) close() {
	if l.db != nil {
		l.db.Close()
	}
}

// count returns the one number a query asks for.
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

// column returns the one column a query asks for.
func (l *ledger) column(query string) []string {
	l.t.Helper()
	all, err := l.ask(query)
	if err != nil {
		l.t.Fatalf("%s: %v", query, err)
	}
	return all
}

// check holds the database against the invariants, and every event against the
// number of jobs it should have.
func (l *ledger) check(jobsPerEvent int) {
	l.t.Helper()
	l.sound()
	counts := l.column(`SELECT DISTINCT (SELECT COUNT(*) FROM jobs WHERE event_id = events.id) FROM events`)
	for _, c := range counts {
		if want := strconv.Itoa(jobsPerEvent); c != want {
			l.t.Errorf("there are events with %s jobs, want %s", c, want)
		}
	}
}

// sound holds the database against the invariants alone.
func (l *ledger) sound() {
	l.t.Helper()
	if l.intact != "" {
		if got := strings.Join(l.column(l.intact), "\n"); got != "ok" {
			l.t.Errorf("%s = %q, want ok", l.intact, got)
		}
	}
	for _, i := range invariants {
		if n := l.count(i.sql); n != 0 {
			l.t.Errorf("%s: %d, want 0", i.name, n)
		}
	}
}

// holds fails the test for each of the ids that is not a stored event.
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
