package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// intoJobs begins a statement that fills jobs. Columns that it leaves out have their defaults.
const intoJobs = `INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
	created_at, finished_at) `

// The statements with which seed writes rows without the store: events of 1,000 jobs each, due
// jobs, and finished jobs with an attempt each.
const (
	seedEvents = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 1000)
		INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) SELECT printf('0%010d', i), 'shop', 'order', '{}', 'application/json', '', NULL, 1000 + i FROM n`
	numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `
	seedDue = numbers + intoJobs + `SELECT printf('D%010d', i), printf('0%010d', 1 + i / 1000), ?2, NULL,
		'available', 0, 3, 1000 + i, NULL, '', 1000 + i, NULL FROM n WHERE i <= ?1`
	seedDone = numbers + intoJobs + `SELECT printf('F%010d', i), printf('0%010d', 1 + i / 1000), ?2, NULL,
		'completed', 1, 3, NULL, NULL, '', 1000 + i, 1500 + i FROM n WHERE i <= ?1`
	// A tenth as many finished runs, with a step each.
	seedRuns = numbers + `INSERT INTO runs SELECT printf('R%010d', i), 'none', printf('0%010d', i), 'd', 'completed', 1, 1, 'one', '{}', '',
		NULL, 1000 + i, 1000 + i, 1500 + i, 0, NULL FROM n WHERE i <= ?1`
	seedSteps = `INSERT INTO steps SELECT 'S' || id, id, 1, NULL, '', 'one', 'one', 'http', 'succeeded', 1, '{}', '{}', '', '', '', id,
		created_at, finished_at, NULL, NULL, NULL FROM runs`
	seedTexts     = `INSERT INTO step_texts SELECT id, 'N', '{}' FROM runs`
	seedHistory   = `INSERT INTO history SELECT id, 1, 'M' || id, 1000, 1, 'completed', '', '' FROM runs`
	seedCallbacks = `INSERT INTO callbacks SELECT 'T' || id, id, 'S' || id, 1000 FROM runs`
	seedTries     = `INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT id, 'L', 1, 200, '', '', 5, created_at FROM jobs WHERE status = 'completed'`
)

// seed fills a database with due and finished jobs of one lane.
func seed(tb testing.TB, c store.Conn, lane core.Lane, due, finished int) {
	tb.Helper()
	for _, s := range []store.Stmt{
		{SQL: seedEvents, Args: []any{int64(max(due, finished) + 1000)}},
		{SQL: seedDue, Args: []any{int64(due), string(lane)}},
		{SQL: seedDone, Args: []any{int64(finished), string(lane)}},
		{SQL: seedTries},
		{SQL: seedRuns, Args: []any{int64(finished / 10)}},
		{SQL: seedSteps}, {SQL: seedTexts}, {SQL: seedHistory}, {SQL: seedCallbacks},
	} {
		s.Name = "seed"
		if _, err := c.Batch(context.Background(), s); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestPlans: every statement finds its rows by an index, and none sorts a lane, with many due
// jobs and many finished ones.
func TestPlans(t *testing.T) {
	rows := storetest.PlannedRows()
	if testing.Short() {
		rows = 1000
	}
	var conn store.Conn
	plans, names := map[string][]string{}, map[string]string{} // by the statement's text
	s := open(t, func(c store.Conn) store.Conn {
		conn = c
		return storetest.Watched(c, func(st store.Stmt) {
			if _, seen := plans[st.SQL]; !seen && !strings.HasPrefix(st.Name, "schema") {
				plans[st.SQL] = explain(t, c, st)
				names[st.SQL] = st.Name
			}
		})
	})
	seed(t, conn, "handler/plan", rows, rows)
	clear(plans)
	storetest.EachStatement(t, s, "handler/plan")
	storetest.EachRunStatement(t, s)
	for sql, plan := range plans {
		if index := wanted[names[sql]]; index != "" && !strings.Contains(strings.Join(plan, " "), index) {
			t.Errorf("%s: not by %s but\n  %s\nof: %s", names[sql], index, strings.Join(plan, "\n  "), sql)
		}
		for _, step := range plan {
			if !fine(names[sql], step) {
				t.Errorf("%s: %s\nof the plan:\n  %s\nof: %s", names[sql], step, strings.Join(plan, "\n  "), sql)
			}
		}
	}
	t.Logf("%d statements looked at", len(plans))
}

// bounded are scans of few rows: of a list of parameters, of one row, of the rows of a LIMIT, or of
// the held sources.
var bounded = []string{"SCAN list", "SCAN CONSTANT ROW", "SCAN picked", "SCAN counted", "SCAN r", "SCAN (subquery", "SCAN slice", "SCAN found", "SCAN source_holds"}

// The plans of event listings.
const (
	byID     = "SEARCH events USING INDEX sqlite_autoindex_events_1 (id>? AND id<?)"
	bySource = "SEARCH events USING INDEX events_by_source (source=? AND id>? AND id<?)"
	byKind   = "SEARCH events USING INDEX events_by_kind (type=? AND source=? AND id>? AND id<?)"

	byDelivery = "SEARCH events USING INDEX events_delivery (source=? AND delivery_id=?)"
)

func covered(step string) string { return strings.Replace(step, "INDEX", "COVERING INDEX", 1) }

// listings are the statements that read a table in the order of a key until a page is full, with
// their plans.
var listings = map[string][]string{
	"events_by_delivery": {byDelivery}, "nth_event_by_delivery": {byDelivery}, "oldest_event_by_delivery": {byDelivery}, "event_ids_by_delivery": {byDelivery}, "event_sizes_by_delivery": {byDelivery},
	"events": {byID}, "events_by_source": {bySource}, "events_by_kind": {byKind},
	"nth_event": {byID}, "nth_event_by_source": {covered(bySource)}, "nth_event_by_kind": {covered(byKind), byKind}, "event_ids_by_kind": {covered(byKind), byKind},
	"oldest_event": {byID}, "oldest_event_by_source": {covered(bySource)}, "oldest_event_by_kind": {covered(byKind), byKind},
	"event_sizes": {byID}, "event_sizes_by_source": {bySource}, "event_sizes_by_kind": {byKind},
	"jobs": {"SEARCH jobs USING PRIMARY KEY (id<?)"}, "jobs_of_event": {"SEARCH jobs USING PRIMARY KEY (id>? AND id<?)", "CO-ROUTINE jobs", "SCAN jobs"},
	"jobs_of_later": {"SEARCH jobs USING INDEX jobs_later (event_id=? AND id>? AND id<?)", "CO-ROUTINE jobs", "SCAN jobs"},
	"runs": {"SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id<?)", "SEARCH runs USING INDEX runs_status (status=? AND id<?)",
		"SEARCH runs USING INDEX runs_event (event_id=? AND id<?)"},
}

// besides are the plan's steps that read the workflow step of each job of a listing.
var besides = []string{"CORRELATED SCALAR SUBQUERY", "SEARCH steps USING INDEX sqlite_autoindex_steps_1 (id=?)"}

// wanted are the indexes that statements must use where another index would also avoid a scan.
var wanted = map[string]string{
	"lapsed": "jobs_lapsing", "peek": "jobs_waiting", "dead_letters": "jobs_dead", "drain_waiting": "jobs_waiting", "drain_dead": "jobs_dead",
	"tally": "COVERING INDEX jobs_waiting", "tally_dead": "COVERING INDEX jobs_dead",
	"ack": "PRIMARY KEY", "extend": "PRIMARY KEY", "held": "PRIMARY KEY", "drain_jobs": "PRIMARY KEY", "drain_attempts": "PRIMARY KEY",
	"situations": "sqlite_autoindex_steps_1", "claimed_steps": "jobs_waiting", "above_taken": "jobs_waiting", "step_ids": "steps_path", "outline": "steps_path", "survey_open": "steps_path",
	"survey_failed": "steps_path", "step_sizes": "sqlite_autoindex_steps_1", "read_steps": "sqlite_autoindex_steps_1",
	"texts_of": "sqlite_autoindex_step_texts_1 (run_id=? AND name=?)", "insert_texts": "mine USING PRIMARY KEY (run_id=? AND seq=?)",
	"purge_texts": "sqlite_autoindex_step_texts_1 (run_id=?)", "survey_ids": "sqlite_autoindex_steps_1", "survey_paths": "steps_path (run_id=? AND epoch=? AND path=?)",
	"survey_leaves": "steps_leaf", "insert_history": "sqlite_autoindex_runs_1", "more_history": held, "insert_step_attempts": held, "insert_step_attempts_recorded": held,
	"insert_rises": held, "insert_steps": held, "change_steps": held, "hold_steps": held, "insert_step_jobs": held, "insert_taken_step_jobs": held, "change_jobs": held, "insert_tokens": held,
	"disarm": "callbacks_step (run_id=? AND step_id=?)", "move_runs": "mine USING PRIMARY KEY (run_id=? AND seq=?)",
	"held_by": "mine USING PRIMARY KEY (run_id=? AND seq=?)", "awaited": "PRIMARY KEY", "history": "PRIMARY KEY (run_id=? AND seq>?)",
	"over_jobs": "jobs_finished (finished_at<?)", "over_events": "sqlite_autoindex_events_1 (id>? AND id<?)", "idle_gates": "PRIMARY KEY",
	"pick_attempts": "PRIMARY KEY (job_id=?)", "pick_steps": "steps_path (run_id=?)", "pick_history": "PRIMARY KEY (run_id=?)",
	"pick_callbacks": "callbacks_step (run_id=?)", "delete_attempts": "PRIMARY KEY (job_id=? AND lease=?)",
	"delete_history": "PRIMARY KEY (run_id=? AND seq=?)", "slice_attempts": "PRIMARY KEY (job_id>?)", "slice_steps": "COVERING INDEX steps_path",
	"slice_history": "PRIMARY KEY (run_id>?)", "slice_callbacks": "COVERING INDEX callbacks_step (run_id>?)",
	"jobs_near": "PRIMARY KEY (id<?)", "event_sources": "sqlite_autoindex_events_1 (id=?)", "read_jobs": "PRIMARY KEY (id=?)", "sources": "COVERING INDEX events_by_source (source>?)", "sources_of": "COVERING INDEX events_by_kind (type=? AND source>?)",
	"jobs_waiting": "COVERING INDEX jobs_waiting (lane=?", "jobs_dead": "COVERING INDEX jobs_dead (lane=? AND id>? AND id<?)", "jobs_done": "COVERING INDEX jobs_done (lane=? AND id>? AND id<?)",
	"jobs_waiting_lanes": "COVERING INDEX jobs_waiting (lane>?)", "jobs_dead_lanes": "COVERING INDEX jobs_dead (lane>?)", "jobs_done_lanes": "COVERING INDEX jobs_done (lane>?)",
	"jobs_canceled": "COVERING INDEX jobs_canceled (lane=? AND id>? AND id<?)", "jobs_canceled_lanes": "COVERING INDEX jobs_canceled (lane>?)",
	"failures_dead": "COVERING INDEX jobs_dead (lane=? AND id>? AND id<?)", "failures_retryable": "COVERING INDEX jobs_waiting (lane=?", "failure_texts": "PRIMARY KEY (id=?)", "waiting_beyond": "COVERING INDEX jobs_waiting (lane=?",
	"tally_canceled": "COVERING INDEX jobs_canceled (lane=?)",
	"claim_sifted":   "sqlite_autoindex_events_1 (id=?)", "claim_sifted_passed": "sqlite_autoindex_events_1 (id=?)", "park": "sqlite_autoindex_events_1 (id=?)",
	"peek_sifted": "jobs_waiting", "due_bound": "jobs_waiting", "parked": "jobs_waiting", "return_parked": "jobs_waiting", "begin_ramp": "jobs_waiting",
	"cancel": "PRIMARY KEY (id>? AND id<?)", "canceled": "PRIMARY KEY (id>? AND id<?)", "cancel_later": "jobs_later (event_id=? AND id>? AND id<?)", "canceled_later": "jobs_later (event_id=? AND id>? AND id<?)", "canceled_event": "sqlite_autoindex_events_1 (id=?)",
	"finished": "jobs_finished (finished_at>?)", "count_done": "COVERING INDEX jobs_done", "jobs_of": "PRIMARY KEY (id>? AND id<?)", "later_jobs_of": "jobs_later (event_id=?)", "attempts_of": "PRIMARY KEY (job_id=?)",
	"read_events": "sqlite_autoindex_events_1 (id=?)", "replayed": "PRIMARY KEY", "turn": "sqlite_autoindex_turns_1", "whose_turn": "sqlite_autoindex_turns_1",
	"raise_minutes": "PRIMARY KEY (at=? AND lane=? AND process=?)", "sum_minutes": "PRIMARY KEY (at>? AND at<?)", "purge_minutes": "PRIMARY KEY (at<?)",
	"received":  "COVERING INDEX events_by_source (source=? AND id>? AND id<?)",
	"over_runs": "runs_finished", "purge_steps": "steps_path", "purge_history": "PRIMARY KEY (run_id=?)", "purge_callbacks": "callbacks_step",
}

// held is the plan with which a transition checks that it holds its run.
const held = "SEARCH mine USING PRIMARY KEY (run_id=? AND seq=?)"

func fine(name, step string) bool {
	switch {
	case strings.Contains(step, "USE TEMP B-TREE"):
		// The jobs of a claim and the attempts of a job are few. A page of the jobs that wait in the lines
		// of a lane sorts all of them. Failures sorts the retryable ones among a bounded number of jobs.
		// Sums group the minutes of at most a day.
		return name == "sum_minutes" || name == "failures_retryable" || name == "jobs_in_lines" || name == "claimed" || name == "claimed_steps" || name == "attempts" || name == "sent_body" || name == "jobs_waiting"
	case strings.HasPrefix(step, "SCAN"):
		for _, b := range bounded {
			if strings.HasPrefix(step, b) {
				return true
			}
		}
		// Up to the first 100,000 entries of an index.
		return name == "depth" && strings.Contains(step, "COVERING INDEX jobs_waiting") || name == "count_done" && strings.Contains(step, "COVERING INDEX jobs_done") ||
			name == "depth_waiting" && strings.Contains(step, "COVERING INDEX line_places_job") ||
			name == "retry" && strings.Contains(step, "INDEX jobs_dead") || name == "count_dead" && strings.Contains(step, "INDEX jobs_dead") ||
			(name == "jobs_near" || strings.HasPrefix(name, "jobs_of_")) && step == "SCAN jobs" || name == "over_events" && step == "SCAN events" || // over the rows of a LIMIT
			name == "all_gates" && step == "SCAN gates" || name == "ping"
	case listings[name] != nil:
		return slices.Contains(listings[name], step) || strings.HasPrefix(name, "jobs") && slices.ContainsFunc(besides, func(b string) bool { return strings.HasPrefix(step, b) })
	}
	return true
}

func explain(t *testing.T, c store.Conn, st store.Stmt) []string {
	args := st.Args
	if st.Rows != nil {
		args = st.Rows[0]
	}
	res, err := c.Batch(context.Background(), store.Stmt{Name: "explain", SQL: "EXPLAIN QUERY PLAN " + st.SQL, Args: args, Reads: true})
	if err != nil {
		t.Fatalf("explain %s: %v", st.Name, err)
	}
	var plan []string
	for _, row := range res[0].Rows {
		plan = append(plan, fmt.Sprint(row[3]))
	}
	return plan
}

// BenchmarkClaim takes 10 jobs of a lane and releases them unmeasured, with more and more due
// jobs, and with a million finished ones.
func BenchmarkClaim(b *testing.B) {
	for _, n := range []struct{ due, finished int }{{1_000, 0}, {1_000_000, 0}, {1_000, 1_000_000}, {1_000_000, 1_000_000}} {
		b.Run(fmt.Sprintf("due=%d/finished=%d", n.due, n.finished), func(b *testing.B) {
			if testing.Short() && n.due+n.finished > 1000 {
				b.Skip("a million rows take a while to write")
			}
			var conn store.Conn
			s := open(b, func(c store.Conn) store.Conn { conn = c; return c })
			seed(b, conn, "handler/plan", n.due, n.finished)
			storetest.BenchClaim(b, s, "handler/plan")
		})
	}
}
