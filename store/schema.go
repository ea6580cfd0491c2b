package store

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// The schema is a list of steps, forward only, one statement each, each safe to
// run twice. A step that was released is never edited; a change is a new step.
// schema_steps records what has run. Empty text stands for "none" in optional
// text columns that no index needs to tell apart; due_at, finished_at, lease,
// job_key and delivery_id are null when there is none.
var steps = []string{
	1: `CREATE TABLE IF NOT EXISTS events (
		id {key} PRIMARY KEY,
		source {key},
		type {key},
		payload {text},
		content_type {text},
		headers {text},
		delivery_id TEXT,
		created_at {int} NOT NULL)`,
	2: `CREATE UNIQUE INDEX IF NOT EXISTS events_delivery ON events (source, delivery_id)
		WHERE delivery_id IS NOT NULL`,
	3: `CREATE TABLE IF NOT EXISTS jobs (
		id {key} PRIMARY KEY,
		event_id {key},
		lane {key},
		job_key TEXT,
		status {key},
		attempt {int} NOT NULL,
		max_attempts {int} NOT NULL,
		due_at {int},
		lease TEXT,
		last_error {text},
		created_at {int} NOT NULL,
		finished_at {int}) {clustered}`,
	4: `CREATE INDEX IF NOT EXISTS jobs_due ON jobs (lane, due_at, id) WHERE due_at IS NOT NULL`,
	5: `CREATE UNIQUE INDEX IF NOT EXISTS jobs_key ON jobs (lane, job_key) WHERE job_key IS NOT NULL`,
	6: `CREATE INDEX IF NOT EXISTS jobs_event ON jobs (event_id)`,
	7: `CREATE INDEX IF NOT EXISTS jobs_dead ON jobs (lane, id) WHERE status = 'dead'`,
	8: `CREATE TABLE IF NOT EXISTS attempts (
		job_id {key},
		lease {key},
		attempt {int} NOT NULL,
		status_code {int} NOT NULL,
		error {text},
		response {text},
		duration_ms {int} NOT NULL,
		created_at {int} NOT NULL,
		PRIMARY KEY (job_id, lease)) {clustered}`,
}

const stepsTable = `CREATE TABLE IF NOT EXISTS schema_steps (number {int} PRIMARY KEY, applied_at {int} NOT NULL)`

// Migrate runs the steps that this database has not seen. See core.Upkeep.
func (s *Store) Migrate(ctx context.Context) error {
	done, err := s.stepsDone(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	newest := int64(len(steps) - 1)
	for n := range done {
		if n > newest {
			return core.Refuse(core.Invalid, "the database is at schema step %d, from a newer version of the gateway; this one knows %d: run the newer version", n, newest)
		}
	}
	for n := int64(1); n <= newest; n++ {
		if done[n] {
			continue
		}
		if err := s.runStep(ctx, n); err != nil {
			return fmt.Errorf("schema step %d: %w", n, err)
		}
	}
	return nil
}

// stepsDone reads which steps have run. It looks before it creates, so that
// opening an up-to-date database writes nothing.
func (s *Store) stepsDone(ctx context.Context) (map[int64]bool, error) {
	read := Stmt{Name: "schema_read", SQL: `SELECT number FROM schema_steps`, Reads: true}
	res, err := s.conn.Batch(ctx, read)
	if err != nil && !core.IsKind(err, core.Unavailable) {
		create := Stmt{Name: "schema_table", SQL: s.dialect.text(stepsTable)}
		if _, err := s.conn.Batch(ctx, create); err != nil {
			return nil, err
		}
		res, err = s.conn.Batch(ctx, read)
	}
	if err != nil {
		return nil, err
	}
	done := map[int64]bool{}
	for _, row := range res[0].Rows {
		done[row[0].(int64)] = true
	}
	return done, nil
}

// runStep runs one step and records it. Another process may be doing the same:
// the statement is repeatable and the record is inserted at most once.
func (s *Store) runStep(ctx context.Context, n int64) error {
	record := `INSERT INTO schema_steps (number, applied_at) VALUES (?, ?) {fresh}`
	_, err := s.conn.Batch(ctx,
		Stmt{Name: "schema_step", SQL: s.dialect.text(steps[n])},
		Stmt{Name: "schema_record", SQL: s.dialect.text(record), Args: []any{n, millis(s.clock())}})
	return err
}
