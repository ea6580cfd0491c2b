package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// schemaSteps are the schema: a list of steps, forward only. Each is one statement that can be
// run twice. A released step is never edited; a change is a new step. schema_steps records
// which have run. A step whose text is empty for a database is recorded alone. So is one that makes
// an index which a later step drops.
//
// Empty text stands for "none" in optional text columns that are in no unique index, and 0 for
// "never" in gates. due_at, finished_at, lease, job_key, delivery_id and stray_since are null
// if there is none: a unique index accepts many nulls, and a partial index leaves them out.
var schemaSteps = []string{
	1: `CREATE TABLE IF NOT EXISTS events (
		id {key} NOT NULL PRIMARY KEY,
		source {key} NOT NULL,
		type {key} NOT NULL,
		payload {text} NOT NULL,
		content_type {text} NOT NULL,
		headers {text} NOT NULL,
		delivery_id {key},
		created_at {int} NOT NULL) {options events}`,
	// Finds repeats of a delivery within its source.
	2: `CREATE UNIQUE INDEX {index_if_not_exists} events_delivery ON events (source, delivery_id)
		{partial delivery_id IS NOT NULL}`,
	3: `CREATE TABLE IF NOT EXISTS jobs (
		id {key} NOT NULL PRIMARY KEY,
		event_id {key} NOT NULL,
		lane {key} NOT NULL,
		job_key {key},
		status {key} NOT NULL,
		attempt {int} NOT NULL,
		max_attempts {int} NOT NULL,
		due_at {int},
		lease {key},
		last_error {text} NOT NULL,
		created_at {int} NOT NULL,
		finished_at {int}{extra_columns jobs}) {options jobs}`,
	// Replaced by step 24.
	4: `CREATE INDEX {index_if_not_exists} jobs_due ON jobs ({waiting_lane}, due_at, id) {partial due_at IS NOT NULL}`,
	// Finds repeats of a key within its lane.
	5: `CREATE UNIQUE INDEX {index_if_not_exists} jobs_key ON jobs (lane, job_key) {partial job_key IS NOT NULL}`,
	6: `CREATE INDEX {index_if_not_exists} jobs_event ON jobs (event_id{extra_columns jobs_event})`,
	// Dead jobs by lane, for their list, Retry and Drain.
	7: `CREATE INDEX {index_if_not_exists} jobs_dead ON jobs (lane, id) {partial status = 'dead'}`,
	// The key is the lease and not the number: a job keeps an attempt of each lease, and
	// settling twice inserts one row.
	8: `CREATE TABLE IF NOT EXISTS attempts (
		job_id {key} NOT NULL,
		lease {key} NOT NULL,
		attempt {int} NOT NULL,
		status_code {int} NOT NULL,
		error {text} NOT NULL,
		response {text} NOT NULL,
		duration_ms {int} NOT NULL,
		created_at {int} NOT NULL,
		PRIMARY KEY (job_id, lease)) {options attempts}`,
	// For purges, in the order in which jobs expire.
	9: `CREATE INDEX {index_if_not_exists} jobs_finished ON jobs (finished_at, id) {partial finished_at IS NOT NULL}`,
	10: `CREATE TABLE IF NOT EXISTS cron_marks (
		source {key} NOT NULL PRIMARY KEY,
		schedule {text} NOT NULL,
		until_at {int} NOT NULL) {options cron_marks}`,
	// next_us and base_us are microseconds: starts of jobs may be less than 1 ms apart.
	11: `CREATE TABLE IF NOT EXISTS gates (
		lane {key} NOT NULL PRIMARY KEY,
		failures {int} NOT NULL,
		open_until {int} NOT NULL,
		closed_at {int} NOT NULL,
		moved_by {key} NOT NULL,
		taker {key} NOT NULL,
		base_us {int} NOT NULL,
		next_us {int} NOT NULL,
		stray_since {int}) {options gates}`,
	12: `CREATE INDEX {index_if_not_exists} jobs_last ON jobs (lane, due_at, id) {partial ` + onLastTry + `}`,
	13: `CREATE TABLE IF NOT EXISTS definitions (
		hash {key} NOT NULL PRIMARY KEY,
		body {text} NOT NULL) {options definitions}`,
	14: `CREATE TABLE IF NOT EXISTS runs (
		id {key} NOT NULL PRIMARY KEY,
		workflow {key} NOT NULL,
		event_id {key} NOT NULL,
		definition {key} NOT NULL,
		status {key} NOT NULL,
		epoch {int} NOT NULL,
		seq {int} NOT NULL,
		step {text} NOT NULL,
		output {text},
		error {text} NOT NULL,
		deadline_at {int},
		created_at {int} NOT NULL,
		started_at {int},
		finished_at {int}) {options runs}`,
	15: `CREATE INDEX {index_if_not_exists} runs_event ON runs (event_id, id)`,
	16: `CREATE INDEX {index_if_not_exists} runs_status ON runs (status, id)`,
	17: `CREATE INDEX {index_if_not_exists} runs_finished ON runs (finished_at, id) {partial finished_at IS NOT NULL}`,
	// leaf_of is the parent of a step that ended its branch, or the run; null for other steps.
	// fan is a core.Fan in a text that no statement looks into.
	18: `CREATE TABLE IF NOT EXISTS steps (
		id {key} NOT NULL PRIMARY KEY,
		run_id {key} NOT NULL,
		epoch {int} NOT NULL,
		parent_id {key},
		branch {text} NOT NULL,
		path {path} NOT NULL,
		name {text} NOT NULL,
		type {text} NOT NULL,
		status {key} NOT NULL,
		attempt {int} NOT NULL,
		state {text},
		output {text},
		error {text} NOT NULL,
		carry {text} NOT NULL,
		fan {text} NOT NULL,
		leaf_of {key},
		started_at {int},
		finished_at {int}) {options steps}`,
	19: `CREATE UNIQUE INDEX {index_if_not_exists} steps_path ON steps (run_id, epoch, path)`,
	20: `CREATE INDEX {index_if_not_exists} steps_leaf ON steps (leaf_of) {partial leaf_of IS NOT NULL}`,
	// The primary key is the lock of a run: of two transitions, one inserts the next number.
	21: `CREATE TABLE IF NOT EXISTS history (
		run_id {key} NOT NULL,
		seq {int} NOT NULL,
		mark {key} NOT NULL,
		at {int},
		epoch {int} NOT NULL,
		type {key} NOT NULL,
		path {text} NOT NULL,
		data {text} NOT NULL,
		PRIMARY KEY (run_id, seq)) {options history}`,
	22: `CREATE TABLE IF NOT EXISTS callbacks (
		token_hash {key} NOT NULL PRIMARY KEY,
		run_id {key} NOT NULL,
		step_id {key} NOT NULL,
		expires_at {int}) {options callbacks}`,
	23: `CREATE INDEX {index_if_not_exists} callbacks_step ON callbacks (run_id, step_id)`,
	// The index that serves a claim. id makes the order of jobs with one due time certain. With
	// the status, jobs are counted in the index alone; each change of the status moves due_at
	// as well, so it costs no extra write.
	24: `CREATE INDEX {index_if_not_exists} jobs_waiting ON jobs ({waiting_lane}, due_at, id, status) {partial due_at IS NOT NULL}`,
	25: `{drop_index jobs_due}`,
	// jobs_last anew, under a younger number. D1 keeps no statistics and takes the younger of
	// two indexes that seem equal; it took jobs_waiting, and then read all waiting jobs of a
	// lane.
	26: `CREATE INDEX {index_if_not_exists} jobs_lapsing ON jobs (lane, due_at, id) {partial ` + onLastTry + `}`,
	27: `{drop_index jobs_last}`,
	28: `CREATE TABLE IF NOT EXISTS turns (
		name {key} NOT NULL PRIMARY KEY,
		until_at {int} NOT NULL,
		holder {key} NOT NULL) {options turns}`,
	// For listings of rare events. SQLite takes the younger of two indexes that seem equal, so
	// the index of types comes last: types are rarer than sources.
	29: `CREATE INDEX {index_if_not_exists} events_by_source ON events (source, id)`,
	30: `CREATE INDEX {index_if_not_exists} events_by_type ON events (type, id)`,
	// events_by_type with the source, so that a listing by both reads only events that match.
	31: `CREATE INDEX {index_if_not_exists} events_by_kind ON events (type, source, id)`,
	32: `{drop_index events.events_by_type}`,
	// Completed jobs by lane and id, for listings.
	33: `{create_done jobs_done}`,
	// The large texts of steps: each once in a run, under a name made of its content. state_in
	// and output_in are the names of a step's texts; its state and output are null then. See
	// texts.go.
	34: `CREATE TABLE IF NOT EXISTS step_texts (
		run_id {key} NOT NULL,
		name {key} NOT NULL,
		body {text} NOT NULL,
		PRIMARY KEY (run_id, name)) {options step_texts}`,
	35: `ALTER TABLE steps ADD COLUMN {column_if_not_exists} state_in {key}`,
	36: `ALTER TABLE steps ADD COLUMN {column_if_not_exists} output_in {key}`,
	37: `ALTER TABLE runs ADD COLUMN {column_if_not_exists} written {int} NOT NULL DEFAULT 0`,
	38: `ALTER TABLE runs ADD COLUMN {column_if_not_exists} writers {text}`,
	// How a payload is written: '' for text, or base64. See encodePayload.
	39: `ALTER TABLE events ADD COLUMN {column_if_not_exists} encoding {key} NOT NULL DEFAULT ''`,
	40: `ALTER TABLE steps ADD COLUMN {column_if_not_exists} held_until {int}`,
	// How many attempts a job had when an operator last made it available again. attempt and
	// max_attempts count over the whole life of the job.
	41: `ALTER TABLE jobs ADD COLUMN {column_if_not_exists} earlier {int} NOT NULL DEFAULT 0`,
	// When the newest attempt was due. due_at cannot tell: it is the end of the lease, and null
	// for a finished job.
	42: `ALTER TABLE jobs ADD COLUMN {column_if_not_exists} scheduled_at {int}`,
	// The hold of a lane; 0 and null for none. held_until is core.NoEnd if it does not end by
	// itself, so that a claim compares one number.
	43: `ALTER TABLE gates ADD COLUMN {column_if_not_exists} held_since {int} NOT NULL DEFAULT 0`,
	44: `ALTER TABLE gates ADD COLUMN {column_if_not_exists} held_until {int} NOT NULL DEFAULT 0`,
	45: `ALTER TABLE gates ADD COLUMN {column_if_not_exists} hold_reason {text}`,
	// Canceled jobs by lane, for their list and counts.
	46: `{create_canceled jobs_canceled}`,
	// When the breaker last opened, and how often. Both stay when it closes, so that an alert
	// reports an opening also if the process that caused it died.
	47: `ALTER TABLE gates ADD COLUMN {column_if_not_exists} opened_at {int} NOT NULL DEFAULT 0`,
	48: `ALTER TABLE gates ADD COLUMN {column_if_not_exists} openings {int} NOT NULL DEFAULT 0`,
	// Lines: see "Lines" in doc.go. The name of a line has its lane and its key.
	49: `ALTER TABLE jobs ADD COLUMN {column_if_not_exists} line {path}`,
	50: `CREATE TABLE IF NOT EXISTS line_slots (
		line {path} NOT NULL,
		slot {int} NOT NULL,
		job_id {key} NOT NULL,
		reached {int} NOT NULL,
		stopped_at {int} NOT NULL,
		PRIMARY KEY (line, slot)) {options line_slots}`,
	51: `CREATE TABLE IF NOT EXISTS line_places (
		line {path} NOT NULL,
		place {int} NOT NULL,
		job_id {key} NOT NULL,
		PRIMARY KEY (line, place)) {options line_places}`,
	// Rows to lock, each of which many lines share.
	52: `CREATE TABLE IF NOT EXISTS line_locks (stripe {key} NOT NULL PRIMARY KEY) {options line_locks}`,
	// Finds the place of a job that is canceled or deleted.
	53: `CREATE UNIQUE INDEX {index_if_not_exists} line_places_job ON line_places (job_id)`,
	// The numbers of held sources, see "Held sources" in doc.go. lane is the lane of the source's
	// gate.
	54: `CREATE TABLE IF NOT EXISTS source_holds (
		source {key} NOT NULL PRIMARY KEY,
		number {int} NOT NULL,
		lane {key} NOT NULL,
		held_at {int} NOT NULL) {options source_holds}`,
	55: `CREATE UNIQUE INDEX {index_if_not_exists} source_holds_number ON source_holds (number)`,
	// The request of an attempt and the headers of its reply, see exchange.go, and the kept part
	// of the body that it sent; null if they were not recorded.
	56: `ALTER TABLE attempts ADD COLUMN {column_if_not_exists} exchange {text}`,
	57: `ALTER TABLE attempts ADD COLUMN {column_if_not_exists} sent_body {text}`,
	// Bulk work of operators, see "Operations" in doc.go. spec is a JSON text that no statement looks
	// into, and walked the cursor.
	58: `CREATE TABLE IF NOT EXISTS operations (
		id {key} NOT NULL PRIMARY KEY,
		spec {text} NOT NULL,
		state {key} NOT NULL,
		error {text} NOT NULL,
		seq {int} NOT NULL,
		mark {key} NOT NULL,
		walked {text} NOT NULL,
		looked {int} NOT NULL,
		acted {int} NOT NULL,
		skipped {int} NOT NULL,
		started_at {int},
		finished_at {int}) {options operations}`,
	// The matches of a slice, between the first and the last statement of its batch. No commit leaves
	// a row.
	59: `CREATE TABLE IF NOT EXISTS operation_picks (
		operation {key} NOT NULL,
		item {key} NOT NULL,
		PRIMARY KEY (operation, item)) {options operation_picks}`,
	// Changes of operators, see core.Audit. The id of an entry has its time. detail is a JSON
	// object, or empty.
	60: `CREATE TABLE IF NOT EXISTS audit (
		id {key} NOT NULL PRIMARY KEY,
		actor {key} NOT NULL,
		role {key} NOT NULL,
		address {key} NOT NULL,
		via {key} NOT NULL,
		action {key} NOT NULL,
		target {key} NOT NULL,
		detail {text} NOT NULL) {options audit}`,
	// The counts of each process in each minute, for curves. at is the beginning of the minute, lane the
	// lane of a consumer or of a source. process is '' if the events themselves were counted.
	61: `CREATE TABLE IF NOT EXISTS minutes (
		at {int} NOT NULL,
		lane {key} NOT NULL,
		process {key} NOT NULL,
		accepted {int} NOT NULL,
		completed {int} NOT NULL,
		failed {int} NOT NULL,
		dead {int} NOT NULL,
		PRIMARY KEY (at, lane, process)) {options minutes}`,
	// On MySQL, which has no partial indexes, jobs_lists replaces four indexes, each of which had a
	// generated column. Steps 3, 33 and 46 no longer make these columns there.
	62: `{create_lists jobs_lists}`,
	63: `{drop_listed_index jobs_dead}`,
	64: `{drop_listed_column dead_lane}`,
	65: `{drop_listed_index jobs_lapsing}`,
	66: `{drop_listed_column last_lane}`,
	67: `{drop_listed_index jobs_done}`,
	68: `{drop_listed_column done_lane}`,
	69: `{drop_listed_index jobs_canceled}`,
	70: `{drop_listed_column canceled_lane}`,
	// The attempt that completed the job, see success.go; null if it is a row of attempts.
	71: `ALTER TABLE jobs ADD COLUMN {column_if_not_exists} success {text}`,
	// On PostgreSQL, SQLite and D1 most jobs are found by the block of their event, see jobsof.go.
	72: `{create_later jobs_later}`,
	73: `{drop_replaced_index jobs_event}`,
}

// schemaStepsTable creates the table that records the steps. It is not a step itself.
const schemaStepsTable = `CREATE TABLE IF NOT EXISTS schema_steps (number {int} NOT NULL PRIMARY KEY, applied_at {int} NOT NULL) {options schema_steps}`

// Migrate runs the schema steps that this database has not seen. See core.Upkeep. An obstacle
// that an operator has to remove, such as a missing right, is a refusal of kind Invalid.
func (s *Store) Migrate(ctx context.Context) error {
	return unwrapInvalid(s.migrate(ctx))
}

// unwrapInvalid returns the refusal of kind Invalid behind an Unavailable, and any other error
// as it is. A sender sees that the database is unavailable; the operator must see why.
func unwrapInvalid(err error) error {
	if cause := invalidCause(err); cause != nil {
		return cause
	}
	return err
}

// migrate runs the missing steps in order. A step with a number beyond newest was made by a
// newer version. It may have changed tables that this version relies on, so migrate refuses.
func (s *Store) migrate(ctx context.Context) error {
	done, err := s.createAndReadSteps(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	newest := int64(len(schemaSteps) - 1)
	for n := range done {
		if n > newest {
			return core.Refuse(core.Invalid, "the database is at schema step %d, from a newer version of the gateway; this one knows %d: run the newer version", n, newest)
		}
	}
	for n := int64(1); n <= newest; n++ {
		if done[n] {
			continue
		}
		if err := s.runSchemaStep(ctx, n); err != nil {
			return fmt.Errorf("schema step %d: %w", n, err)
		}
	}
	return nil
}

// Pending returns the steps that Migrate would run, in their order. It changes nothing.
func (s *Store) Pending(ctx context.Context) ([]SchemaStep, error) {
	done, err := s.appliedSteps(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(SchemaSteps(), func(step SchemaStep) bool { return done[int64(step.Number)] }), nil
}

// Schema returns how many steps have run, and how many this version knows. See core.Upkeep.
func (s *Store) Schema(ctx context.Context) (have, want int, err error) {
	want = len(schemaSteps) - 1
	done, err := s.appliedSteps(ctx)
	if err != nil {
		return 0, want, err
	}
	for done[int64(have+1)] {
		have++
	}
	if have < want {
		return have, want, nil
	}
	for n := range done { // a newer version may have left a number out
		have = max(have, int(n))
	}
	return have, want, nil
}

// appliedSteps reads which steps have run. It changes nothing, and sends one statement unless
// that fails: then the table may be missing, because no step has run.
func (s *Store) appliedSteps(ctx context.Context) (map[int64]bool, error) {
	rows, err := s.read(ctx, readSchemaSteps)
	if Definite(err) {
		tables := reading("schema_tables", questionsOf[s.dialect.Name].tables)
		if there, failed := s.count(ctx, tables); failed == nil && there == 0 {
			return nil, nil
		}
	}
	if err != nil {
		return nil, unwrapInvalid(fmt.Errorf("read schema version: %w", err))
	}
	return stepNumbers(rows), nil
}

// readSchemaSteps reads the numbers of the steps that have run.
var readSchemaSteps = reading("schema_read", `SELECT number FROM schema_steps`)

// createAndReadSteps reads which steps have run, and creates the table if it cannot be read. It
// reads first, so that opening an up-to-date database writes nothing and needs no right to
// create tables.
func (s *Store) createAndReadSteps(ctx context.Context) (map[int64]bool, error) {
	res, err := s.send(ctx, readSchemaSteps.with())
	if Definite(err) {
		create := writing("schema_table", s.dialect.sql(schemaStepsTable)).with()
		if _, err := s.conn.Batch(ctx, s.withSchemaLock(create)...); err != nil {
			return nil, err
		}
		res, err = s.send(ctx, readSchemaSteps.with())
	}
	if err != nil {
		return nil, err
	}
	return stepNumbers(res[0].Rows), nil
}

// stepNumbers returns the first column of rows, as a set.
func stepNumbers(rows [][]any) map[int64]bool {
	done := map[int64]bool{}
	for _, row := range rows {
		if n, ok := row[keyColumn].(int64); ok {
			done[n] = true
		}
	}
	return done
}

// runSchemaStep runs one step and records it. Another process may run it at the same time: the
// statement can be repeated, and the record is inserted at most once. ADD COLUMN cannot be
// repeated on SQLite and D1, but there the step and its record are one transaction. So if a
// step fails and has a record, it was made: by another process, or by a batch whose answer got
// lost.
func (s *Store) runSchemaStep(ctx context.Context, n int64) error {
	record := `INSERT INTO schema_steps (number, applied_at) VALUES (?, ?) {on_conflict number}`
	stmts := []Stmt{writing("schema_record", s.dialect.sql(record)).with(n, millis(s.clock()))}
	if sql := s.dialect.sql(schemaSteps[n]); sql != "" && !s.dialect.dropsLater(n) {
		stmts = append([]Stmt{writing("schema_step", sql).with()}, stmts...)
	}
	_, err := s.conn.Batch(ctx, s.withSchemaLock(stmts...)...)
	if err == nil {
		return nil
	}
	made, failed := s.createAndReadSteps(ctx)
	// Processes that migrate at the same time may be too much for the database.
	for try := 1; try < 3 && Definite(err) && core.IsKind(failed, core.Unavailable); try++ {
		made, failed = s.createAndReadSteps(ctx)
	}
	switch {
	case failed == nil && made[n]:
		return nil
	case core.IsKind(failed, core.Unavailable) && Definite(err):
		return failed // the step may be made
	}
	return err
}

// dropsLater reports whether a step makes an index that a later step drops. Such a step is
// recorded and not run. Otherwise a slow process could make the index again after a fast one
// has dropped it, and leave it there if it dies before the later step.
func (d Dialect) dropsLater(n int64) bool {
	index, makes := strings.CutPrefix(stepBase(schemaSteps[n]), "create index ")
	return makes && slices.ContainsFunc(schemaSteps[n+1:], func(later string) bool {
		return stepBase(later) == "drop index "+index && d.sql(later) != ""
	})
}

// withSchemaLock puts the dialect's lock before statements.
func (s *Store) withSchemaLock(stmts ...Stmt) []Stmt {
	if s.dialect.schemaLockSQL == "" {
		return stmts
	}
	return append([]Stmt{reading("schema_lock", s.dialect.schemaLockSQL).with()}, stmts...)
}
