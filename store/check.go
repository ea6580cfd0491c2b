package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Checkup is the information that a database gives about itself, for doctor.
type Checkup struct {
	// Server is the product with its version. User is the account that the gateway uses. Each
	// is empty if the database does not report it or has no accounts.
	Server, User string

	// Step is the number of the last schema step that has run, 0 if none has. Newest is the
	// last step that this version knows. Missing is how many of its steps have not run.
	Step, Newest int64
	Missing      int

	// ClockAhead is how far the database's clock is ahead of this machine's. The measurement
	// may be wrong by ClockError either way.
	ClockAhead, ClockError time.Duration

	// Warnings are settings of the server with which it may lose confirmed events, and Growth are
	// those with which the database grows although rows are deleted.
	Warnings, Growth []Warning
}

// A Warning is a risky setting: the possible damage, and how to change the setting.
type Warning struct{ Detail, Remedy string }

// checkQuestions are the queries of a Checkup, each a statement with one value. An empty text
// is not sent: the database has no answer.
type checkQuestions struct {
	server, user string
	clock        string    // Unix milliseconds
	tables       string    // how many tables are called schema_steps: 1 or 0
	settings     []setting // with which confirmed events may get lost
	growth       []setting // with which the database grows although rows are deleted
}

// A setting is a query that returns null if the setting is safe, and its value if not. harm and
// remedy complete the warning.
type setting struct{ name, sql, harm, remedy string }

// questionsOf has the queries of each dialect, by its name.
var questionsOf = map[string]checkQuestions{
	SQLite.Name: {
		server: `SELECT 'SQLite ' || sqlite_version()`,
		clock:  `SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`,
		tables: `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_steps'`,
	},
	// D1 does not report the version of SQLite.
	D1.Name: {
		clock:  `SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now`,
		tables: `SELECT count(*) AS tables FROM sqlite_master WHERE type = 'table' AND name = 'schema_steps'`,
	},
	Postgres.Name: {
		server: `SELECT 'PostgreSQL ' || current_setting('server_version')`,
		user:   `SELECT current_user::text`,
		clock:  `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`,
		tables: `SELECT count(to_regclass('schema_steps'))`,
		settings: []setting{
			{"fsync", `SELECT nullif(current_setting('fsync'), 'on')`,
				"a crash of the machine can destroy the database", "set fsync = on in postgresql.conf"},
			{"full_page_writes", `SELECT nullif(current_setting('full_page_writes'), 'on')`,
				"a crash of the machine can leave pages half written", "set full_page_writes = on, unless the storage never tears a page"},
			// The Conn itself turns "off" to "on". This query shows if that ever fails.
			{"synchronous_commit", `SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN 'off' END`,
				"a crash can lose the last events that were confirmed", "set synchronous_commit = on"},
		},
		growth: []setting{
			{"autovacuum", `SELECT nullif(current_setting('autovacuum'), 'on')`,
				"deleted rows keep their space, so the database grows and gets slower", "set autovacuum = on in postgresql.conf"},
			{"track_counts", `SELECT nullif(current_setting('track_counts'), 'on')`,
				"autovacuum does not run without it, so the database grows and gets slower", "set track_counts = on in postgresql.conf"},
		},
	},
	MySQL.Name: {
		server: `SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), SUBSTRING_INDEX(VERSION(), '-', 1))`,
		user:   `SELECT CURRENT_USER()`,
		// In UTC: in a local time zone, one hour of the year occurs twice.
		clock:  `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000`,
		tables: `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'schema_steps'`,
		settings: []setting{
			{"innodb_flush_log_at_trx_commit", `SELECT NULLIF(@@innodb_flush_log_at_trx_commit, 1)`,
				"a crash can lose the last events that were confirmed", "set innodb_flush_log_at_trx_commit = 1"},
			{"sync_binlog", `SELECT IF(@@log_bin, NULLIF(@@sync_binlog, 1), NULL)`,
				"a crash of the machine can undo the last events that were confirmed", "set sync_binlog = 1"},
		},
	},
}

// Check asks a database about itself. It reads only, and needs no table of the gateway.
func Check(ctx context.Context, c Conn, d Dialect, clock core.Clock) (Checkup, error) {
	v := questionsOf[d.Name]
	questions := []Stmt{question("server", v.server), question("user", v.user)}
	for _, s := range slices.Concat(v.settings, v.growth) {
		questions = append(questions, question(s.name, s.sql))
	}
	answers, err := askEach(ctx, c, questions)
	if err != nil {
		return Checkup{}, err
	}
	k := Checkup{Server: textOfAnswer(answers[0]), User: textOfAnswer(answers[1])}
	answers = answers[2:]
	k.Warnings, k.Growth = warningsOf(v.settings, answers), warningsOf(v.growth, answers[len(v.settings):])
	return k, k.readClockAndSchema(ctx, c, v, clock)
}

// warningsOf returns warnings of the settings that are not safe by their answers.
func warningsOf(settings []setting, answers []any) (found []Warning) {
	for i, s := range settings {
		if value := answers[i]; value != nil {
			found = append(found, Warning{fmt.Sprintf("%s is %s: %s", s.name, textOfAnswer(value), s.harm), s.remedy})
		}
	}
	return found
}

// question is a query of a Checkup.
func question(name, sql string) Stmt { return Stmt{Name: "check_" + name, SQL: sql, Reads: true} }

// readClockAndSchema reads the clock and the schema steps. It runs after the other queries:
// making a connection takes several round trips, and would make the measured time inexact.
func (k *Checkup) readClockAndSchema(ctx context.Context, c Conn, v checkQuestions, clock core.Clock) error {
	asked := clock()
	res, err := c.Batch(ctx, question("clock", v.clock), question("tables", v.tables))
	if err != nil {
		return err
	}
	half := clock().Sub(asked) / 2 // the database read its clock in the middle of the round trip, give or take half of it
	now, ok := value(res[0]).(int64)
	if !ok {
		return fmt.Errorf("check_clock: the database returned %v as its time", value(res[0]))
	}
	k.ClockAhead, k.ClockError = time.UnixMilli(now).Sub(asked.Add(half)), half+time.Millisecond
	var steps [][]any
	if value(res[1]) != int64(0) {
		if res, err = c.Batch(ctx, question("schema", `SELECT number FROM schema_steps`)); err != nil {
			return err
		}
		steps = res[0].Rows
	}
	k.countSteps(steps)
	return nil
}

// countSteps counts the schema steps that have run. Steps of a newer version count for Step
// only.
func (k *Checkup) countSteps(rows [][]any) {
	k.Newest = int64(len(schemaSteps) - 1)
	k.Missing = len(schemaSteps) - 1
	for _, row := range rows {
		n, _ := row[keyColumn].(int64)
		k.Step = max(k.Step, n)
		if n <= k.Newest {
			k.Missing--
		}
	}
}

// askEach returns the answers to questions. An answer is nil if the database refuses the
// question. All questions are sent in one batch. If that fails for good, they are sent one by
// one, since one refused statement fails its batch.
func askEach(ctx context.Context, c Conn, questions []Stmt) ([]any, error) {
	answers := make([]any, len(questions))
	var asked []Stmt
	var at []int
	for i, q := range questions {
		if q.SQL != "" {
			asked, at = append(asked, q), append(at, i)
		}
	}
	res, err := c.Batch(ctx, asked...)
	for i := 0; err == nil && i < len(res); i++ {
		answers[at[i]] = value(res[i])
	}
	if err == nil || !Definite(err) {
		return answers, err
	}
	for i, q := range asked { // one of them is refused, and all with it
		res, err := c.Batch(ctx, q)
		switch {
		case err != nil && !Definite(err):
			return nil, err
		case err == nil:
			answers[at[i]] = value(res[0])
		}
	}
	return answers, nil
}

// value returns the only value of a result, or nil.
func value(r Result) any {
	if len(r.Rows) == 0 || len(r.Rows[0]) == 0 {
		return nil
	}
	return r.Rows[0][0]
}

// textOfAnswer returns an answer as text, "" for none.
func textOfAnswer(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Rehearse proves that the gateway can work on a database. writes is the reason why it cannot
// be written to. atomic is the reason why its batches are not atomic; that is unknown if writes
// is set. Nothing remains in the database.
//
// With tables that are up to date it writes to those, in the ways in which the gateway writes,
// and needs no other rights. Otherwise it needs the right to create tables, as the gateway
// will. See [ProveAtomic].
func Rehearse(ctx context.Context, c Conn, upToDate bool) (writes, atomic error) {
	if !upToDate {
		err := ProveAtomic(ctx, c)
		if errors.Is(err, errNotAtomic) {
			return nil, err
		}
		return err, nil
	}
	id := "gateway_check_" + strings.ToLower(rand.Text()) // no ULID, so it collides with no id of the gateway
	if _, err := c.Batch(ctx, rehearsalStmts(id)...); err != nil {
		return err, nil
	}
	return nil, proveOnTables(ctx, c, id)
}

// rehearsedEvent inserts an event with an id alone.
const rehearsedEvent = `INSERT INTO events (id, source, type, payload, content_type, headers, created_at) VALUES (?, '', '', '', '', '', 0)`

// rehearsalStmts insert, update and delete a row of each table, so that each right is needed
// once. The last statements delete the rows again.
func rehearsalStmts(id string) []Stmt {
	write := func(name, sql string) Stmt { return Stmt{Name: "check_" + name, SQL: sql, Args: []any{id}} }
	return []Stmt{
		write("insert_event", rehearsedEvent),
		write("insert_job", `INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, last_error, created_at)
			VALUES (?, '', '', 'completed', 0, 0, '', 0)`),
		write("update_job", `UPDATE jobs SET attempt = 1 WHERE id = ?`),
		write("insert_attempt", `INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
			VALUES (?, '', 0, 0, '', '', 0, 0)`),
		// Rows of the next tables are never deleted, so these statements are run without a row:
		// the database checks the right in any case.
		write("insert_mark", `INSERT INTO cron_marks (source, schedule, until_at) SELECT source, schedule, until_at FROM cron_marks WHERE source = ? AND 1 = 0`),
		write("update_mark", `UPDATE cron_marks SET until_at = 0 WHERE source = ? AND 1 = 0`),
		write("insert_gate", `INSERT INTO gates (`+gateColumns+`) SELECT `+gateColumns+` FROM gates WHERE lane = ? AND 1 = 0`),
		write("update_gate", `UPDATE gates SET failures = 0 WHERE lane = ? AND 1 = 0`),
		write("insert_definition", `INSERT INTO definitions (hash, body) SELECT hash, body FROM definitions WHERE hash = ? AND 1 = 0`),
		write("insert_run", `INSERT INTO runs (id, workflow, event_id, definition, status, epoch, seq, step, error, created_at)
			VALUES (?, '', '', '', 'completed', 1, 0, '', '', 0)`),
		write("update_run", `UPDATE runs SET seq = 1 WHERE id = ?`),
		write("insert_step", `INSERT INTO steps (id, run_id, epoch, branch, path, name, type, status, attempt, error, carry, fan)
			VALUES (?, '', 1, '', '', '', '', 'succeeded', 0, '', '', '')`),
		write("update_step", `UPDATE steps SET attempt = 1 WHERE id = ?`),
		write("insert_history", `INSERT INTO history (run_id, seq, mark, epoch, type, path, data) VALUES (?, 1, '', 1, '', '', '')`),
		write("insert_callback", `INSERT INTO callbacks (token_hash, run_id, step_id) VALUES (?, '', '')`),
		write("delete_callback", `DELETE FROM callbacks WHERE token_hash = ?`),
		write("delete_history", `DELETE FROM history WHERE run_id = ?`),
		write("delete_step", `DELETE FROM steps WHERE id = ?`),
		write("delete_run", `DELETE FROM runs WHERE id = ?`),
		write("delete_attempt", `DELETE FROM attempts WHERE job_id = ?`),
		write("delete_job", `DELETE FROM jobs WHERE id = ?`),
		write("delete_event", `DELETE FROM events WHERE id = ?`),
	}
}

// proveOnTables is ProveAtomic on the gateway's own tables. These may be of another kind than a
// new table: on MySQL, the storage engine decides whether a batch is atomic.
func proveOnTables(ctx context.Context, c Conn, id string) error {
	twice := Stmt{Name: "check_twice", SQL: rehearsedEvent, Args: []any{id}}
	if err := (probeTable{conn: c}).mustFail(ctx, twice, twice); err != nil {
		return err
	}
	left, err := c.Batch(ctx, Stmt{Name: "check_left", SQL: `SELECT id FROM events WHERE id = ?`, Args: []any{id}, Reads: true})
	if err != nil || len(left[0].Rows) == 0 {
		return err
	}
	drop := Stmt{Name: "check_delete_event", SQL: `DELETE FROM events WHERE id = ?`, Args: []any{id}}
	if _, err := c.Batch(context.WithoutCancel(ctx), drop); err != nil {
		return err
	}
	return errNotAtomic
}
