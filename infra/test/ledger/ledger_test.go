package ledger

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// soundRows are rows of a gateway that stopped: a completed job, a dead one that waits in no line, a
// line with a job that has the slot and one that waits, a line that a dead job stopped, and a run
// that is finished beside one that is not.
const soundRows = `
INSERT INTO events (id, source, type, payload, content_type, headers, created_at) VALUES ('e1', 'app', 't', '', '', '', 1);
INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, finished_at, line) VALUES
	('done', 'e1', 'handler/a', 'completed', 1, 3, NULL, '', 1, 2, NULL),
	('kept', 'e1', 'handler/f', 'completed', 2, 3, NULL, '', 1, 2, NULL),
	('dead', 'e1', 'handler/b', 'dead', 3, 3, NULL, '', 1, 2, NULL),
	('first', 'e1', 'handler/c', 'retryable', 1, 3, 9, '', 1, NULL, 'handler/c#k'),
	('second', 'e1', 'handler/d', 'waiting', 0, 3, NULL, '', 1, NULL, 'handler/c#k'),
	('stopper', 'e1', 'handler/e', 'dead', 3, 3, NULL, '', 1, 2, 'handler/e#k'),
	('open', 'e1', 'workflow/w', 'available', 0, 3, 9, '', 1, NULL, NULL);
INSERT INTO line_slots (line, slot, job_id, reached, stopped_at) VALUES ('handler/c#k', 1, 'first', 0, 0), ('handler/e#k', 1, 'stopper', 0, 2);
INSERT INTO line_places (line, place, job_id) VALUES ('handler/c#k', 1, 'second');
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) VALUES ('done', 'l', 1, 200, '', '', 1, 1),
	('kept', 'l', 1, 500, 'x', '', 1, 1);
UPDATE jobs SET success = '2 200 1 1 ok' WHERE id = 'kept';
INSERT INTO runs (id, workflow, event_id, definition, status, epoch, seq, step, error, created_at) VALUES
	('r1', 'w', 'e1', '', 'running', 1, 1, '', '', 1), ('r2', 'v', 'e1', '', 'completed', 1, 1, '', '', 1);
INSERT INTO steps (id, run_id, epoch, branch, path, name, type, status, attempt, error, carry, fan) VALUES
	('open', 'r1', 1, '', 'p', '', '', 'ready', 0, '', '', ''), ('over', 'r2', 1, '', 'p', '', '', 'completed', 0, '', '', '');
INSERT INTO history (run_id, seq, mark, epoch, type, path, data) VALUES
	('r1', 1, 'm', 1, 'run_started', '', ''), ('r2', 1, 'm', 1, 'step_succeeded', 'p', '');
`

// breaks has, for each invariant, a change that breaks it. It may break others as well.
var breaks = map[string]string{
	"jobs still running":                                 `UPDATE jobs SET status = 'running' WHERE id = 'first'`,
	"jobs with a lease nobody holds":                     `UPDATE jobs SET lease = 'l' WHERE id = 'first'`,
	"jobs of an unknown status":                          `UPDATE jobs SET status = 'entering' WHERE id = 'first'`,
	"jobs without their event":                           `DELETE FROM events`,
	"attempts without their job":                         `DELETE FROM jobs WHERE id = 'done'`,
	"successful attempts of jobs that are not completed": `UPDATE jobs SET status = 'dead' WHERE id = 'done'`,
	"jobs without a due time that are not finished and do not wait in a line, or the reverse": `UPDATE jobs SET due_at = 9 WHERE id = 'second'`,
	"finished jobs without the time at which they finished, or the reverse":                   `UPDATE jobs SET finished_at = NULL WHERE id = 'dead'`,
	"jobs that wait in a line and have no place in it":                                        `UPDATE line_places SET line = 'handler/e#k'`,
	"places of jobs that do not wait":                                                         `UPDATE line_places SET job_id = 'first'`,
	"places in lines in which no job has a slot":                                              `DELETE FROM line_slots`,
	"slots of jobs that wait":                                                                 `UPDATE line_slots SET job_id = 'second' WHERE job_id = 'first'`,
	"slots of jobs that are gone or finished":                                                 `UPDATE line_slots SET stopped_at = 0`,
	"jobs with two slots":                                                                     `INSERT INTO line_slots (line, slot, job_id, reached, stopped_at) VALUES ('handler/c#k', 2, 'first', 0, 0)`,
	"completed jobs without a successful attempt as their newest":                             `UPDATE attempts SET attempt = 2`,
	"jobs with a success that are not completed":                                              `UPDATE jobs SET status = 'dead' WHERE id = 'kept'`,
	"attempts with the number of the success":                                                 `UPDATE attempts SET attempt = 2 WHERE job_id = 'kept'`,
	"jobs that succeeded more than once":                                                      `INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT job_id, 'l2', 2, 200, '', '', 1, 1 FROM attempts`,
	"attempts of a job with the same number":                                                  `INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT job_id, 'l2', 1, 500, 'x', '', 1, 1 FROM attempts`,
	"dead jobs with attempts left":                                                            `UPDATE jobs SET attempt = 2 WHERE id = 'dead'`,
	"jobs with attempts never made":                                                           `UPDATE jobs SET attempt = 0 WHERE id = 'done'`,
	"jobs of the same event and consumer":                                                     `UPDATE jobs SET lane = 'handler/a' WHERE id = 'dead'`,
	"runs of the same event and workflow":                                                     `UPDATE runs SET workflow = 'w'`,
	"runs whose history has gaps, or another end":                                             `UPDATE history SET seq = 2 WHERE run_id = 'r1'`,
	"open steps of runs that are finished, or of an earlier epoch":                            `UPDATE steps SET status = 'waiting' WHERE id = 'over'`,
	"jobs that wait for steps that are over":                                                  `UPDATE steps SET status = 'completed' WHERE id = 'open'`,
	"runs under way without a job":                                                            `DELETE FROM jobs WHERE id = 'open'`,
	"joins that were made twice":                                                              `INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data) SELECT run_id, 2, mark, at, epoch, type, path, data FROM history WHERE run_id = 'r2'`,
	"tokens of steps that are over":                                                           `INSERT INTO callbacks (token_hash, run_id, step_id) VALUES ('h', 'r2', 'over')`,
}

// TestInvariants: each invariant holds in a sound database, and a change that breaks it is found.
func TestInvariants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	conn, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // so that SAVEPOINT and the queries are in one session
	exec := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec(soundRows)
	if broken := brokenIn(t, SQL(db)); len(broken) > 0 {
		t.Fatalf("broken in a sound database: %s", strings.Join(broken, "; "))
	}
	known := map[string]bool{}
	for _, i := range Invariants() {
		known[i.Name] = true
		change, ok := breaks[i.Name]
		if !ok {
			t.Errorf("%s: breaks has no change that breaks it", i.Name)
			continue
		}
		exec("SAVEPOINT sound")
		exec(change)
		if broken := brokenIn(t, SQL(db)); !slices.Contains(broken, i.Name) {
			t.Errorf("%s: not found after %s; found: %s", i.Name, change, strings.Join(broken, "; "))
		}
		exec("ROLLBACK TO sound")
	}
	for name := range breaks {
		if !known[name] {
			t.Errorf("breaks has %q, which is no invariant", name)
		}
	}
}

// brokenIn returns the names of the invariants that do not hold.
func brokenIn(t *testing.T, ask Ask) (names []string) {
	t.Helper()
	for _, i := range Invariants() {
		n, err := ask(i.SQL)
		if err != nil {
			t.Fatalf("%s: %v", i.Name, err)
		}
		if len(n) != 1 || n[0] != "0" {
			names = append(names, i.Name)
		}
	}
	return names
}
