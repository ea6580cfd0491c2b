package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// The schema is a list of steps, forward only, one statement each, each safe to
// run twice. A step that was released is never edited; a change is a new step.
// schema_steps records what has run. Empty text stands for "none" in optional
// text columns that no index needs to tell apart, and zero for "never" in gates;
// due_at, finished_at, lease, job_key, delivery_id and stray_since are null when
// there is none.
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
	4: `CREATE INDEX {index_if_not_exists} jobs_due ON jobs ({waiting_lane}, due_at, id) {partial due_at IS NOT NULL}`,
	5: `CREATE UNIQUE INDEX {index_if_not_exists} jobs_key ON jobs (lane, job_key) {partial job_key IS NOT NULL}`,
	6: `CREATE INDEX {index_if_not_exists} jobs_event ON jobs (event_id{extra_columns jobs_event})`,
	7: `CREATE INDEX {index_if_not_exists} jobs_dead ON jobs ({dead_lane}, id) {partial status = 'dead'}`,
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
	9: `CREATE INDEX {index_if_not_exists} jobs_finished ON jobs (finished_at, id) {partial finished_at IS NOT NULL}`,
	10: `CREATE TABLE IF NOT EXISTS cron_marks (
		source {key} NOT NULL PRIMARY KEY,
		schedule {text} NOT NULL,
		until_at {int} NOT NULL) {options cron_marks}`,
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
	12: `CREATE INDEX {index_if_not_exists} jobs_last ON jobs ({lapsing_lane}, due_at, id) {partial ` + onLastTry + `}`,
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
	// leaf_of is the parent of a step that ended its branch, or the run. fan is a core.Fan, which no
	// statement looks into.
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
	// With the status, so that jobs are counted in the index alone. It moves with due_at in
	// any case.
	24: `CREATE INDEX {index_if_not_exists} jobs_waiting ON jobs ({waiting_lane}, due_at, id, status) {partial due_at IS NOT NULL}`,
	25: `{drop_index jobs_due}`,
	// jobs_last anew: D1, which knows nothing of the tables, takes the younger one of two
	// indexes that seem equal, and what waits in a lane is much.
	26: `CREATE INDEX {index_if_not_exists} jobs_lapsing ON jobs ({lapsing_lane}, due_at, id) {partial ` + onLastTry + `}`,
	27: `{drop_index jobs_last}`,
	28: `CREATE TABLE IF NOT EXISTS turns (
		name {key} NOT NULL PRIMARY KEY,
		until_at {int} NOT NULL,
		holder {key} NOT NULL) {options turns}`,
	// For listings of what is rare. SQLite takes the younger one of two indexes that seem
	// equal, and types are rarer than sources.
	29: `CREATE INDEX {index_if_not_exists} events_by_source ON events (source, id)`,
	30: `CREATE INDEX {index_if_not_exists} events_by_type ON events (type, id)`,
	// events_by_type anew, so that it has all that listings are asked for.
	31: `CREATE INDEX {index_if_not_exists} events_by_kind ON events (type, source, id)`,
	32: `{drop_index events.events_by_type}`,
	33: `{create_done jobs_done}`,
	// The large texts that steps received and passed on: each once in a run, under a name
	// made of its content. state_in and output_in are the names of a step's texts. Its state
	// and output are then null.
	34: `CREATE TABLE IF NOT EXISTS step_texts (
		run_id {key} NOT NULL,
		name {key} NOT NULL,
		body {text} NOT NULL,
		PRIMARY KEY (run_id, name)) {options step_texts}`,
	35: `ALTER TABLE steps ADD COLUMN {column_if_not_exists} state_in {key}`,
	36: `ALTER TABLE steps ADD COLUMN {column_if_not_exists} output_in {key}`,
	37: `ALTER TABLE runs ADD COLUMN {column_if_not_exists} written {int} NOT NULL DEFAULT 0`,
	38: `ALTER TABLE runs ADD COLUMN {column_if_not_exists} writers {text}`,
	// How a payload is written: empty for text, or base64, see encodePayload.
	39: `ALTER TABLE events ADD COLUMN {column_if_not_exists} encoding {key} NOT NULL DEFAULT ''`,
	40: `ALTER TABLE steps ADD COLUMN {column_if_not_exists} held_until {int}`,
	// How many attempts a job had when an operator brought it back last. Those of its budget
	// come after them: attempt and max_attempts count all of its life.
	41: `ALTER TABLE jobs ADD COLUMN {column_if_not_exists} earlier {int} NOT NULL DEFAULT 0`,
	// When the newest attempt was due: due_at is the end of its lease, and null once the job
	// ends.
	42: `ALTER TABLE jobs ADD COLUMN {column_if_not_exists} scheduled_at {int}`,
}

const schemaStepsTable = `CREATE TABLE IF NOT EXISTS schema_steps (number {int} NOT NULL PRIMARY KEY, applied_at {int} NOT NULL) {options schema_steps}`

// Migrate runs the steps that this database has not seen. See core.Upkeep. What
// keeps it from working, such as a right that is missing, is a refusal of kind
// Invalid.
func (s *Store) Migrate(ctx context.Context) error {
	return unwrapInvalid(s.migrate(ctx))
}

// plain is what lies behind an Unavailable, if it is a refusal of kind Invalid: to
// those who send events the database is away, the operator learns why.
func unwrapInvalid(err error) error {
	if cause := invalidCause(err); cause != nil {
		return cause
	}
	return err
}

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

// A SchemaStep is one change of the schema.
type SchemaStep struct {
	Number int
	Name   string // what it does, such as "create table events"
}

// SchemaSteps are all that this version knows, in their order.
func SchemaSteps() []SchemaStep {
	all := make([]SchemaStep, 0, len(schemaSteps)-1)
	for i, sql := range schemaSteps[1:] {
		all = append(all, SchemaStep{i + 1, stepName(sql)})
	}
	return all
}

// Pending returns the steps that Migrate would run, in their order. It changes nothing.
func (s *Store) Pending(ctx context.Context) ([]SchemaStep, error) {
	done, err := s.appliedSteps(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(SchemaSteps(), func(step SchemaStep) bool { return done[int64(step.Number)] }), nil
}

// stepName says what a step does.
func stepName(sql string) string {
	if index, drops := strings.CutPrefix(sql, "{drop_index "); drops {
		_, index = splitIndexName(strings.TrimSuffix(index, "}"))
		return "drop index " + index
	}
	if index, makes := strings.CutPrefix(sql, "{create_done "); makes {
		return "create index " + strings.TrimSuffix(index, "}")
	}
	words := strings.Fields(sql)
	if words[0] == "ALTER" { // ALTER TABLE name ADD COLUMN {column_if_not_exists} name
		return "add column " + words[2] + "." + words[6]
	}
	if i := slices.Index(words, "INDEX"); i >= 0 {
		return "create index " + words[i+2] // INDEX {index_if_not_exists} name
	}
	return "create table " + words[5] // CREATE TABLE IF NOT EXISTS name
}

// Schema tells how far the schema is. See core.Upkeep.
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

// stepsSeen reads which steps have run, in one statement unless it looks like none has.
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

var readSchemaSteps = reading("schema_read", `SELECT number FROM schema_steps`)

// stepsDone reads which steps have run. It looks before it creates, so that
// opening an up-to-date database writes nothing.
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

func stepNumbers(rows [][]any) map[int64]bool {
	done := map[int64]bool{}
	for _, row := range rows {
		if n, ok := row[keyColumn].(int64); ok {
			done[n] = true
		}
	}
	return done
}

// runStep runs one step and records it. Another process may be doing the same:
// the statement is repeatable and the record is inserted at most once. SQLite cannot repeat
// ADD COLUMN, but there the step and its record are one transaction. So if a step fails and
// has a record, another process made it, or a batch whose answer got lost.
func (s *Store) runSchemaStep(ctx context.Context, n int64) error {
	record := `INSERT INTO schema_steps (number, applied_at) VALUES (?, ?) {on_conflict number}`
	stmts := []Stmt{writing("schema_record", s.dialect.sql(record)).with(n, millis(s.clock()))}
	if !droppedLater(n) {
		stmts = append([]Stmt{writing("schema_step", s.dialect.sql(schemaSteps[n])).with()}, stmts...)
	}
	_, err := s.conn.Batch(ctx, s.withSchemaLock(stmts...)...)
	if err != nil {
		if done, failed := s.createAndReadSteps(ctx); failed == nil && done[n] {
			return nil
		}
	}
	return err
}

// superseded reports whether a step makes an index that a later step drops. Such a step is
// recorded and not run: a process that is slow would else make the index anew after a faster
// one has dropped it, and leave it there if it dies before it comes to the later step.
func droppedLater(n int64) bool {
	index, makes := strings.CutPrefix(stepName(schemaSteps[n]), "create index ")
	return makes && slices.ContainsFunc(schemaSteps[n+1:], func(later string) bool { return stepName(later) == "drop index "+index })
}

// alone puts the dialect's lock before statements.
func (s *Store) withSchemaLock(stmts ...Stmt) []Stmt {
	if s.dialect.schemaLockSQL == "" {
		return stmts
	}
	return append([]Stmt{reading("schema_lock", s.dialect.schemaLockSQL).with()}, stmts...)
}
