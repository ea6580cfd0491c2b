package server

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FilledSpan is the time over which the events of a filled database seem to have come in.
const FilledSpan = 60 * time.Hour

// FilledLanes is how many handlers a filled database has.
const FilledLanes = 20

// Fill inserts events into a database with the gateway's tables, as if they had come in
// over the last FilledSpan. Nine in ten are of source app, the others of shop, and one in
// 2000 is of seldom. The events of shop have the type item.sold. Of the others one in 500
// has the type order.refunded, and the rest order.created.
//
// Each has a job of a handler, h0 to h19; the events of seldom have a job of the handler
// seldom. One job in a hundred is dead, one in a hundred is to be tried again in some
// hours, and the others are completed. One event in 50 has a message of queue q as well, a
// tenth of which waits, and one in 50 has a completed run of workflow w.
func (d *Database) Fill(ctx context.Context, events int) error {
	return d.fill(ctx, events, fillings, "events, jobs, attempts, runs, steps, history")
}

// SteadySpan is the time over which the events of FillHour came in, and SteadyBody about the size of their
// bodies.
const (
	SteadySpan = time.Hour
	SteadyBody = 230
)

// FillHour is Fill with all events of the last SteadySpan and without jobs that are to be tried again or
// wait. A purge keeps the events of such jobs, and one event in 80 has one after Fill.
func (d *Database) FillHour(ctx context.Context, events int) error {
	texts := make([]string, len(fillings))
	for i, text := range fillings {
		texts[i] = strings.NewReplacer("{retried}", "-1", "{waiting}", "-1").Replace(text)
	}
	return d.fillSpan(ctx, events, SteadySpan, texts, "events, jobs, attempts, runs, steps, history")
}

// Pile inserts jobs into a database with the gateway's tables: messages of queue q that
// wait, as if no consumer had come over the last FilledSpan. Three in a thousand are other
// jobs: a completed job of a handler, a dead one, and one that is to be tried again in some
// hours. Their events do not exist.
func (d *Database) Pile(ctx context.Context, jobs int) error {
	return d.fill(ctx, jobs, pilings, "jobs")
}

// PileUndue inserts jobs into a database with the gateway's tables, of each kind as many: scheduled
// jobs of the handler sink, jobs of the handler held, which it holds, and jobs of the handler sink
// that wait in one line. Their events do not exist.
func (d *Database) PileUndue(ctx context.Context, jobs int) error {
	return d.fill(ctx, jobs, undue, "jobs, line_slots, line_places")
}

// fill is fillSpan over FilledSpan.
func (d *Database) fill(ctx context.Context, rows int, texts []string, tables string) error {
	return d.fillSpan(ctx, rows, FilledSpan, texts, tables)
}

// fillSpan runs statements that insert rows into tables, which are separated by commas.
//
// The statements insert all rows at once in SQL, since a million events through the API would
// take many minutes. They name the columns of the gateway's schema: a column without a default
// that is added there has to be added here.
func (d *Database) fillSpan(ctx context.Context, rows int, span time.Duration, texts []string, tables string) error {
	now := time.Now()
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = fillText(text, rows, now, span)
	}
	if d.Driver == Hosted {
		return d.fillHosted(ctx, filled)
	}
	return d.within(func(db *sql.DB) error {
		if err := d.insert(ctx, db, filled); err != nil {
			return err
		}
		if d.Driver != Postgres {
			return nil
		}
		// Autovacuum has looked at a database of this size. Pages that are not written yet would
		// be written during the run. Only tables with rows are analysed: PostgreSQL would plan for an
		// empty table that it has looked at as if it stayed empty.
		for _, text := range []string{"VACUUM ANALYZE " + tables, "CHECKPOINT"} {
			if _, err := db.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// fillHosted runs statements that fill a database of D1.
func (d *Database) fillHosted(ctx context.Context, texts []string) error {
	for _, text := range texts {
		if _, err := d.askHosted(ctx, text, 10*time.Minute); err != nil {
			return fmt.Errorf("fill: %w in %.60q", err, text)
		}
	}
	return nil
}

// insert runs statements that fill a database, in a session that takes them as all others do.
func (d *Database) insert(ctx context.Context, db *sql.DB, texts []string) error {
	// One connection, because the settings of unbounded hold for a session.
	db.SetMaxOpenConns(1)
	dialect := strings.NewReplacer()
	if d.Driver == MySQL {
		// The texts are SQL of SQLite and PostgreSQL. MySQL has other names in CAST, and
		// divides integers to fractions.
		dialect = strings.NewReplacer("AS text", "AS char", "AS bigint", "AS signed", "AS integer", "AS signed", " / ", " DIV ")
		if err := unbounded(ctx, db); err != nil {
			return err
		}
	}
	for _, text := range texts {
		if _, err := db.ExecContext(ctx, dialect.Replace(text)); err != nil {
			return fmt.Errorf("fill: %w in %.60q", err, text)
		}
	}
	return nil
}

// unbounded sets two things for a session of MySQL: || joins text, and a recursion may be
// as deep as there are events. MariaDB's bound has another name.
func unbounded(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "SET SESSION sql_mode = 'ANSI', max_recursive_iterations = 100000000")
	if err != nil {
		_, err = db.ExecContext(ctx, "SET SESSION sql_mode = 'ANSI', cte_max_recursion_depth = 100000000")
	}
	return err
}

// EndTurns makes a purge possible at once, for any process.
func (d *Database) EndTurns() error { return d.exec("UPDATE turns SET until_at = 0") }

// fillText replaces {n}, the numbers of the events; {at}, when number i came in; {id k}, an
// id of that time for the kth row of it; and {now}.
func fillText(text string, events int, now time.Time, over time.Duration) string {
	// The newest event is 10 s old, so that none lies in the future of a server's clock.
	span := over.Milliseconds()
	pairs := []string{
		"{n}", fmt.Sprintf("(WITH RECURSIVE n (i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, %d + i * %d / %d AS at FROM n) AS n",
			events, now.UnixMilli()-span-10_000, span, events),
		"{now}", fmt.Sprint(now.UnixMilli()), "{lanes}", strconv.Itoa(FilledLanes),
		"{retried}", "2", "{waiting}", "3", // of a hundred and of 500 events
	}
	for k := range 5 {
		pairs = append(pairs, fmt.Sprintf("{id %d}", k), fillID(k))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// FilledID is the lowest id of a time.
func FilledID(at time.Time) string {
	// The first ten digits of a ULID are its time in milliseconds, 5 bits a digit.
	id := make([]byte, 0, 26)
	for shift := 45; shift >= 0; shift -= 5 {
		id = append(id, ulidDigits[at.UnixMilli()>>shift&31])
	}
	return string(id) + strings.Repeat("0", 16)
}

const ulidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// fillID is a ULID in SQL.
func fillID(k int) string {
	var digits []string
	for shift := 45; shift >= 0; shift -= 5 {
		digits = append(digits, fmt.Sprintf("substr('%s', CAST(((at >> %d) & 31) + 1 AS integer), 1)", ulidDigits, shift))
	}
	return strings.Join(digits, " || ") + fmt.Sprintf(" || substr(CAST(10000000000000000 + i * 10 + %d AS text), 2)", k)
}

const jobColumns = `INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, finished_at) `

// pilings has the statement by which Pile inserts jobs. Each job has another due time, as in a
// queue that filled up over days.
var pilings = []string{
	jobColumns + `SELECT {id 0}, {id 1}, CASE WHEN i % 1000 < 3 THEN 'handler/h' || CAST(i / 1000 % {lanes} AS text) ELSE 'queue/q' END,
		CASE i % 1000 WHEN 0 THEN 'completed' WHEN 1 THEN 'dead' WHEN 2 THEN 'retryable' ELSE 'available' END,
		CASE WHEN i % 1000 < 3 THEN 1 ELSE 0 END, 2147483647, CASE i % 1000 WHEN 0 THEN NULL WHEN 1 THEN NULL WHEN 2 THEN {now} + 7200000 + i ELSE at END,
		'', at, CASE WHEN i % 1000 < 2 THEN at + 20 END FROM {n}`,
}

// undue are the statements of PileUndue. The job with the slot of the line is scheduled.
var undue = []string{
	jobColumns + `SELECT {id 0}, {id 1}, 'handler/sink', 'scheduled', 0, 5, {now} + 7200000 + i, '', at, NULL FROM {n}`,
	jobColumns + `SELECT {id 2}, {id 1}, 'handler/held', 'available', 0, 5, at, '', at, NULL FROM {n}`,
	`INSERT INTO gates (lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, held_since, held_until)
	VALUES ('handler/held', 0, 0, 0, '', '', 0, 0, {now}, {now} + 86400000)`,
	`INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, line)
	SELECT {id 4}, {id 1}, 'handler/sink', 'scheduled', 0, 5, {now} + 7200000, '', at, 'handler/sink#piled' FROM {n} WHERE i = 1`,
	`INSERT INTO line_slots (line, slot, job_id, reached, stopped_at) SELECT 'handler/sink#piled', 1, {id 4}, 0, 0 FROM {n} WHERE i = 1`,
	`INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, line)
	SELECT {id 3}, {id 1}, 'handler/sink', 'waiting', 0, 5, NULL, '', at, 'handler/sink#piled' FROM {n}`,
	`INSERT INTO line_places (line, place, job_id) SELECT 'handler/sink#piled', i, {id 3} FROM {n}`,
}

// fillings are the statements of Fill: events, jobs of handlers, messages, jobs of runs,
// failed attempts, and the runs with their steps and history. The numbers i select the rare rows.
var fillings = []string{
	`INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
	SELECT {id 0}, CASE WHEN i % 2000 = 7 THEN 'seldom' WHEN i % 10 = 0 THEN 'shop' ELSE 'app' END,
		CASE WHEN i % 500 = 8 THEN 'order.refunded' WHEN i % 10 = 0 THEN 'item.sold' ELSE 'order.created' END,
		'{"order": ' || CAST(i AS text) || ', "currency": "EUR", "lines": [{"sku": "A-1001", "quantity": 2, "price": 1999}, {"sku": "B-77", "quantity": 1, "price": 540}], "customer": {"name": "Ada Lovelace", "email": "ada@example.com", "country": "GB"}}',
		'application/json', '', 'd-' || CAST(i AS text), at FROM {n}`,
	`INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, finished_at, success)
	SELECT {id 1}, {id 0}, CASE WHEN i % 2000 = 7 THEN 'handler/seldom' ELSE 'handler/h' || CAST(i / 100 % {lanes} AS text) END,
		CASE i % 100 WHEN 1 THEN 'dead' WHEN {retried} THEN 'retryable' ELSE 'completed' END, 1, CASE i % 100 WHEN 1 THEN 1 ELSE 5 END,
		CASE i % 100 WHEN {retried} THEN {now} + 7200000 + i END, CASE WHEN i % 100 < 3 AND i % 100 > 0 THEN 'status 500' ELSE '' END,
		at, CASE i % 100 WHEN {retried} THEN NULL ELSE at + 20 END,
		CASE WHEN i % 100 < 3 AND i % 100 > 0 THEN NULL ELSE '1 200 12 ' || CAST(at AS text) || ' ok' END FROM {n}`,
	jobColumns + `SELECT {id 2}, {id 0}, 'queue/q', CASE i % 500 WHEN {waiting} THEN 'available' ELSE 'completed' END,
		CASE i % 500 WHEN {waiting} THEN 0 ELSE 1 END, 2147483647, CASE i % 500 WHEN {waiting} THEN at END, '',
		at, CASE i % 500 WHEN {waiting} THEN NULL ELSE at + 30 END FROM {n} WHERE i % 50 = 3`,
	jobColumns + `SELECT {id 3}, {id 0}, 'workflow/w', 'completed', 1, 2147483647, NULL, '', at, at + 40 FROM {n} WHERE i % 50 = 4`,
	`INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
	SELECT {id 1}, {id 4}, 1, 500, 'status 500', 'no', 12, at + 20 FROM {n} WHERE i % 100 < 3 AND i % 100 > 0`,
	`INSERT INTO runs (id, workflow, event_id, definition, status, epoch, seq, step, error, created_at, started_at, finished_at)
	SELECT {id 4}, 'w', {id 0}, '', 'completed', 1, 2, '', '', at, at, at + 40 FROM {n} WHERE i % 50 = 4`,
	`INSERT INTO steps (id, run_id, epoch, branch, path, name, type, status, attempt, error, carry, fan, started_at, finished_at)
	SELECT {id 3}, {id 4}, 1, '', 'one', 'one', 'http', 'completed', 1, '', '', '', at, at + 40 FROM {n} WHERE i % 50 = 4`,
	`INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
	SELECT {id 4}, 1, {id 3}, at, 1, 'started', '', '' FROM {n} WHERE i % 50 = 4`,
	`INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
	SELECT {id 4}, 2, {id 3}, at + 40, 1, 'completed', '', '' FROM {n} WHERE i % 50 = 4`,
}
