package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// intoJobs begins a statement that fills jobs. Columns that it leaves out have their defaults.
const intoJobs = `INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
	created_at, finished_at) `

// seed fills a database with due and finished jobs of one lane, without the store, and turns off
// the server's automatic statistics of the tables.
func seed(tb testing.TB, address string, lane core.Lane, due, finished int) {
	tb.Helper()
	for _, table := range []string{"events", "jobs", "attempts", "gates", "runs", "steps", "step_texts", "history", "callbacks"} {
		exec(tb, address, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)", "ALTER TABLE "+table+" SET UNLOGGED")
	}
	const jobs = intoJobs + `SELECT '%s' || lpad(i::text, 10, '0'), '0' || lpad((1 + i / 1000)::text, 10, '0'), '%s', NULL, %s FROM generate_series(1, %d) i`
	// Indexes are made afterwards, which takes a third of the time.
	exec(tb, address, `CREATE TABLE indexes AS SELECT indexname AS name, indexdef AS sql FROM pg_indexes
			WHERE schemaname = current_schema AND tablename = 'jobs' AND indexname <> 'jobs_pkey'`,
		`DO $$ DECLARE i TEXT; BEGIN FOR i IN SELECT name FROM indexes LOOP EXECUTE 'DROP INDEX ' || i; END LOOP; END $$`,
		fmt.Sprintf(`INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) SELECT '0' || lpad(i::text, 10, '0'), 'shop', 'order', '{}', 'application/json', '', NULL, 1000 + i
			FROM generate_series(1, %d) i`, max(due, finished)/1000+1000),
		fmt.Sprintf(jobs, "D", lane, "'available', 0, 3, 1000 + i, NULL, '', 1000 + i, NULL", due),
		fmt.Sprintf(jobs, "F", lane, "'completed', 1, 3, NULL, NULL, '', 1000 + i, 1500 + i", finished),
		"INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT id, 'L', 1, 200, '', '', 5, created_at FROM jobs WHERE status = 'completed' LIMIT 100000",
		fmt.Sprintf(`INSERT INTO runs SELECT 'R' || lpad(i::text, 10, '0'), 'none', '0' || lpad(i::text, 10, '0'), 'd', 'completed', 1, 1, 'one', '{}', '',
			NULL, 1000 + i, 1000 + i, 1500 + i, 0, NULL FROM generate_series(1, %d) i`, finished/10),
		`INSERT INTO steps SELECT 'S' || id, id, 1, NULL, '', 'one', 'one', 'http', 'succeeded', 1, '{}', '{}', '', '', '', id, created_at, finished_at, NULL, NULL, NULL::bigint FROM runs`,
		`INSERT INTO step_texts SELECT id, 'N', '{}' FROM runs`,
		`INSERT INTO history SELECT id, 1, 'M' || id, 1000, 1, 'completed', '', '' FROM runs`,
		`INSERT INTO callbacks SELECT 'T' || id, id, 'S' || id, 1000 FROM runs`,
		`DO $$ DECLARE i TEXT; BEGIN FOR i IN SELECT sql FROM indexes LOOP EXECUTE i; END LOOP; END $$`,
		// Making an index counts the rows of its table. The planner must not know that count.
		`UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relnamespace = current_schema::regnamespace`)
}

// TestPlans: every statement finds its rows by an index, and none sorts a lane. That holds with
// and without statistics, and for plans made for all arguments and for given ones.
func TestPlans(t *testing.T) {
	t.Parallel()
	// Also with -short: the server rightly reads all of a table of a few pages. With 200,000 rows,
	// analysed, it rightly searches events by another index, and reads the 20,000 runs.
	const rows = 1_000_000
	address := servers.Postgres(t)
	full, empty := inSchema(t, address), inSchema(t, address)
	migrated(t, opened(t, empty))
	migrated(t, opened(t, full))
	seed(t, full, "handler/plan", rows, rows)

	texts := map[string]store.Stmt{}
	s := migrated(t, storetest.Watched(opened(t, full), func(st store.Stmt) {
		if !strings.HasPrefix(st.Name, "schema") {
			texts[st.SQL] = st
		}
	}))
	storetest.EachStatement(t, s, "handler/plan")
	storetest.EachRunStatement(t, s)
	if len(texts) < 128 {
		t.Errorf("%d statements were seen, want all of them", len(texts))
	}

	look := func(when, address string, explain func(*testing.T, *pgx.Conn, store.Stmt) []string) {
		t.Run(when, func(t *testing.T) {
			pc, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			registerTypes(pc.TypeMap())
			defer pc.Close(context.Background())
			if err := pc.PgConn().Exec(t.Context(), sessionSettings).Close(); err != nil {
				t.Fatal(err)
			}
			for sql, st := range texts {
				for _, st := range forms(st) {
					plan := explain(t, pc, st)
					if why := flaw(st.Name, plan); why != "" {
						t.Errorf("%s of %d rows: %s\nof the plan:\n  %s\nof: %s", st.Name, len(st.Rows), why, strings.Join(plan, "\n  "), sql)
					}
				}
			}
		})
	}
	look("empty/any", empty, explainAny)
	look("never analysed/any", full, explainAny)
	look("never analysed/these", full, explainThese)
	exec(t, full, "ANALYZE events", "ANALYZE jobs", "ANALYZE attempts", "ANALYZE gates",
		"ANALYZE runs", "ANALYZE steps", "ANALYZE history", "ANALYZE callbacks")
	look("analysed/any", full, explainAny)
	look("analysed/these", full, explainThese)
}

// TestPlansAreMadeAnew: a plan for a table that was empty is not kept once the table has grown.
func TestPlansAreMadeAnew(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	c := opened(t, address+"&pool_max_conns=1")
	s := migrated(t, c)
	exec(t, address, "ALTER TABLE jobs SET (autovacuum_enabled = false)", "VACUUM jobs")
	late := []core.Outcome{ // two, since a statement for one row needs no join
		{JobID: "x", Lease: "y", Status: core.Completed, At: time.Now()},
		{JobID: "y", Lease: "y", Status: core.Completed, At: time.Now()},
	}
	plan := func() (plan string) {
		if settled, err := s.Settle(t.Context(), late...); err != nil || len(settled.Lost) != 2 {
			t.Fatalf("Settle = %v, %v", settled, err)
		}
		err := c.pool.AcquireFunc(t.Context(), func(pc *pgxpool.Conn) error {
			name := lines(t, pc.Conn(), "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%UPDATE jobs%'")[0]
			plan = strings.Join(lines(t, pc.Conn(), "EXPLAIN EXECUTE "+name+"("+strings.TrimSuffix(strings.Repeat("NULL, ", 8), ", ")+")"), "\n")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if before := plan(); !strings.Contains(before, "Join Filter") {
		t.Fatalf("the plan for an empty table is as good as any other, so this test shows nothing:\n%s", before)
	}
	put(t, s, time.Now(), 10_000)
	err := c.pool.AcquireFunc(t.Context(), func(pc *pgxpool.Conn) error {
		pc.Conn().PgConn().CustomData()["planned"] = time.Now().Add(-planLifetime)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := plan(); strings.Contains(after, "Join Filter") {
		t.Errorf("the plan for an empty table was kept:\n%s", after)
	}
}

// forms returns a statement on rows with one and with two of them, which have different texts.
func forms(st store.Stmt) []store.Stmt {
	if st.Rows == nil {
		return []store.Stmt{st}
	}
	one, two := st, st
	one.Rows, two.Rows = st.Rows[:1], [][]any{st.Rows[0], st.Rows[len(st.Rows)-1]}
	return []store.Stmt{one, two}
}

// explainAny returns the generic plan of a statement, which a session keeps.
func explainAny(t *testing.T, pc *pgx.Conn, st store.Stmt) []string {
	execute := "EXPLAIN (COSTS OFF) EXECUTE q"
	if n := strings.Count(st.SQL, "?"); n > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
	}
	defer lines(t, pc, "DEALLOCATE q")
	sql, _ := translate(st.SQL).with(st, false)
	lines(t, pc, "PREPARE q AS "+sql)
	return lines(t, pc, execute)
}

// explainThese returns the plan for the statement's arguments, as it is made behind a pooler.
func explainThese(t *testing.T, pc *pgx.Conn, st store.Stmt) []string {
	sql, args := translate(st.SQL).with(st, true)
	return lines(t, pc, "EXPLAIN (COSTS OFF) "+sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

func lines(t *testing.T, pc *pgx.Conn, sql string, args ...any) (out []string) {
	t.Helper()
	if len(args) == 0 { // as it is: its dollar signs are not placeholders
		res, err := pc.PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		for _, row := range res[0].Rows {
			out = append(out, string(row[0]))
		}
		return out
	}
	rows, err := pc.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if out, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// wanted are the indexes that statements must use.
var wanted = map[string]string{
	"claim": "jobs_waiting", "claimed": "jobs_waiting", "due": "jobs_waiting", "recover": "jobs_waiting", "depth": "jobs_waiting",
	"count_dead": "jobs_dead", "over_jobs": "jobs_finished", "over_events": "events_pkey",
	"insert_jobs_if": "events_pkey", "insert_keyless_jobs_if": "events_pkey", "insert_keyless_scheduled_jobs_if": "events_pkey", "drop_bare_event": "events_pkey", "stored": "events_pkey",
	"delivered": "events_delivery", "delivered_as": "events_delivery", "keyed_as": "jobs_key", "insert_attempts": "jobs_pkey", "insert_attempts_recorded": "jobs_pkey", "settle": "jobs_pkey", "settle_at_once": "jobs_pkey",
	"settled": "attempts_pkey", "release": "jobs_pkey", "attempts": "attempts_pkey", "sent_body": "attempts_pkey",
	"event": "events_pkey", "events": "events_pkey", "job": "jobs_pkey",
	"marks": "cron_marks_pkey", "move_mark": "cron_marks_pkey",
	"claim_passed": "jobs_waiting", "admit": "gates_pkey", "admit_probe": "gates_pkey", "charge": "gates_pkey", "refund": "gates_pkey",
	"bases": "gates_pkey", "gates": "gates_pkey", "succeed": "gates_pkey", "fail": "gates_pkey", "end_probe": "gates_pkey", "close_gates": "gates_pkey", "hold_lane": "gates_pkey", "unhold_lanes": "gates_pkey", "holding": "gates_pkey",
	"mark_strays": "gates_pkey", "clear_strays": "gates_pkey", "set_back": "gates_pkey", "forget_strays": "gates_pkey",
	"ack": "jobs_pkey", "insert_events_if": "jobs_pkey", "extend": "jobs_pkey", "held": "jobs_pkey", "lapsed": "jobs_lapsing", "peek": "jobs_waiting", "dead_letters": "jobs_dead",
	"tally": "jobs_waiting", "tally_dead": "jobs_dead",
	"failures_dead": "jobs_dead", "failures_retryable": "jobs_waiting", "waiting_beyond": "jobs_waiting",
	"drain_waiting": "jobs_waiting", "drain_dead": "jobs_dead", "drain_jobs": "jobs_pkey", "drain_attempts": "attempts_pkey",
	"insert_runs": "jobs_pkey", "insert_first_steps": "runs_pkey", "definition": "definitions_pkey",
	"situations": "steps_pkey", "claimed_steps": "jobs_waiting", "above_taken": "jobs_waiting", "step_ids": "steps_path", "outline": "steps_path", "survey_open": "steps_path", "survey_failed": "steps_path",
	"step_sizes": "steps_pkey", "read_steps": "steps_pkey", "texts_of": "step_texts_pkey", "insert_texts": "history_pkey", "purge_texts": "step_texts_pkey",
	"survey_ids": "steps_pkey", "survey_paths": "steps_path", "survey_leaves": "steps_leaf",
	"insert_history": "runs_pkey", "more_history": "history_pkey", "insert_step_attempts": "history_pkey", "insert_step_attempts_recorded": "history_pkey", "insert_rises": "history_pkey",
	"insert_steps": "history_pkey", "change_steps": "steps_pkey", "hold_steps": "steps_pkey", "insert_step_jobs": "history_pkey", "insert_taken_step_jobs": "history_pkey", "change_jobs": "jobs_pkey",
	"insert_tokens": "history_pkey", "disarm": "callbacks_step", "move_runs": "runs_pkey", "held_by": "history_pkey",
	"awaited": "callbacks_pkey", "run": "runs_pkey", "runs": "runs_", "history": "history_pkey",
	"jobs_near": "jobs_pkey", "read_jobs": "jobs_pkey", "event_sources": "events_pkey", "jobs_waiting": "jobs_waiting", "jobs_dead": "jobs_dead", "jobs_done": "jobs_done",
	"jobs_canceled": "jobs_canceled", "jobs_canceled_lanes": "jobs_canceled", "tally_canceled": "jobs_canceled",
	"cancel": "jobs_pkey", "cancel_later": "jobs_later", "canceled": "jobs_pkey", "canceled_later": "jobs_later", "canceled_event": "events_pkey",
	"lines_of_event": "jobs_pkey", "lines_of_later": "jobs_later", "jobs_of_event": "jobs_pkey", "jobs_of_later": "jobs_later", "audit_canceled": "jobs_later",
	"jobs_waiting_lanes": "jobs_waiting", "jobs_dead_lanes": "jobs_dead", "jobs_done_lanes": "jobs_done", "sources_of": "events_by_kind", "event_ids_by_kind": "events_by_kind", "pick_attempts": "attempts_pkey", "pick_steps": "steps_path", "pick_history": "history_pkey",
	"pick_callbacks": "callbacks_step", "slice_attempts": "attempts_pkey", "slice_steps": "steps_path", "slice_history": "history_pkey",
	"slice_callbacks": "callbacks_step", "idle_gates": "gates_pkey",
	"finished": "jobs_finished", "count_done": "jobs_done", "jobs_of": "jobs_pkey", "later_jobs_of": "jobs_later", "attempts_of": "attempts_pkey", "read_events": "events_pkey",
	"events_by_source": "events_by_source", "events_by_kind": "events_by_kind", "nth_event_by_source": "events_by_source", "nth_event_by_kind": "events_by_kind",
	"oldest_event_by_source": "events_by_source", "oldest_event_by_kind": "events_by_kind", "event_sizes_by_source": "events_by_source", "event_sizes_by_kind": "events_by_kind",
	"events_by_delivery": "events_delivery", "nth_event_by_delivery": "events_delivery", "oldest_event_by_delivery": "events_delivery", "event_sizes_by_delivery": "events_delivery",
	"event_ids_by_delivery": "events_delivery", "sources": "events_by_source",
	"nth_event": "events_pkey", "oldest_event": "events_pkey", "event_sizes": "events_pkey", "hold_events": "events_pkey", "replayed": "jobs_pkey",
	"turn": "turns_pkey", "whose_turn": "turns_pkey", "over_runs": "runs_finished",
	"purge_steps": "steps_path", "purge_history": "history_pkey", "purge_callbacks": "callbacks_step",
	"claim_sifted": "events_pkey", "claim_sifted_passed": "events_pkey", "park": "events_pkey",
	"peek_sifted": "jobs_waiting", "due_bound": "jobs_waiting", "parked": "jobs_waiting", "return_parked": "jobs_waiting", "begin_ramp": "jobs_waiting",
	"take_only_slot": "jobs_pkey", "take_free_slot": "line_slots_pkey", "join_line": "line_places_pkey", "rejoin_line": "line_places_pkey",
	"pass_slots": "line_slots_pkey", "leave_places": "line_slots_pkey", "admit_holders": "jobs_pkey", "stop_lines": "line_slots_pkey",
	"reentered": "jobs_pkey", "still_held": "jobs_pkey", "line_list": "line_slots_pkey", "count_places": "line_places_pkey", "next_places": "line_places_pkey",
	"slot_holders": "line_slots_pkey", "dead_lined": "jobs_dead", "lines_held": "jobs_pkey", "fill_slots": "line_places_pkey",
	"revive_holders": "jobs_pkey", "revive_others": "jobs_pkey", "start_lines": "line_slots_pkey", "jobs_in_lines": "line_places_pkey",
	"raise_minutes": "minutes_pkey", "received": "events_by_source", "oldest_minute": "minutes_pkey",
}

var byIndex = regexp.MustCompile(`Index (?:Only )?Scan (?:Backward )?using (\w+)`)

// sifting are the statements that join held sources with their gates. While both tables are tiny,
// PostgreSQL may read the gates once instead of looking each up.
var sifting = []string{"claim_sifted", "claim_sifted_passed", "park", "peek_sifted"}

// flaw returns the fault of a plan, or "".
func flaw(name string, plan []string) string {
	all := strings.Join(plan, "\n")
	if name == "sum_minutes" && strings.Contains(all, "minutes_pkey") { // it groups the minutes of at most a day
		return ""
	}
	for _, bad := range []string{"Seq Scan", "Bitmap", "Hash", "Merge", "Join Filter"} {
		// Held sources are few. There are few gates, all of which all_gates reads, and a purge may delete most of them. A line has at most MaxLineLimit slots.
		if strings.Contains(strings.ReplaceAll(all, "Seq Scan on source_holds", ""), bad) && name != "all_gates" &&
			!(bad == "Join Filter" && slices.Contains(append([]string{"forget_gates", "fill_slots", "take_free_slot"}, sifting...), name)) {
			return bad
		}
	}
	// The jobs of a claim, the attempts of a job and the rows of an INSERT are few. Jobs that
	// are not completed are sorted by design. Jobs of a status are few if the statistics say so. The
	// locked rows of line_locks, and the jobs that enter lines, are few too.
	few := []string{"claimed", "claimed_steps", "attempts", "sent_body", "jobs_waiting", "jobs_in_lines", "failures_retryable", "lock_lines", "join_line", "rejoin_line"}
	if strings.Contains(all, "Sort") && !(name == "runs" && !strings.Contains(all, "runs_pkey")) && !slices.Contains(few, name) && !strings.HasPrefix(name, "insert") {
		return "Sort"
	}
	for i, line := range plan {
		m := byIndex.FindStringSubmatch(line)
		if m == nil || i+1 < len(plan) && strings.Contains(plan[i+1], "Index Cond") {
			continue
		}
		// A whole index, up to a bound, or an index with no other rows. Held sources are few.
		if whole := name == "depth" && m[1] == "jobs_waiting" || name == "count_done" && m[1] == "jobs_done" || m[1] == "jobs_dead" || name == "depth_waiting" && m[1] == "line_places_job" || name == "forget_gates" || m[1] == "gates_pkey" && slices.Contains(sifting, name) || strings.HasPrefix(m[1], "source_holds"); !whole {
			return strings.TrimSpace(line) + " without a condition"
		}
	}
	// If almost all events have the type, the first event of the next source has it as well.
	if name == "sources_of" && strings.Contains(all, "events_by_source") {
		return ""
	}
	if index := wanted[name]; index != "" && !strings.Contains(all, index) {
		return "not by " + index
	}
	return ""
}

// BenchmarkClaim takes 10 jobs of a lane and releases them unmeasured, with more and more due
// jobs, and with a million finished ones.
func BenchmarkClaim(b *testing.B) {
	for _, n := range []struct{ due, finished int }{{1_000, 0}, {1_000_000, 0}, {1_000, 1_000_000}, {1_000_000, 1_000_000}} {
		b.Run(fmt.Sprintf("due=%d/finished=%d", n.due, n.finished), func(b *testing.B) {
			if testing.Short() && n.due+n.finished > 1000 {
				b.Skip("a million rows take a while to write")
			}
			address := servers.Postgres(b)
			s := migrated(b, opened(b, address))
			seed(b, address, "handler/plan", n.due, n.finished)
			storetest.BenchClaim(b, s, "handler/plan")
		})
	}
}

// BenchmarkClaimAfter takes and settles 10 jobs at a time, without a vacuum, after many jobs were
// taken and settled. Without a floor (see store/duefloor.go), each settled job leaves two more dead
// index entries that a claim must skip.
func BenchmarkClaimAfter(b *testing.B) {
	for _, before := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("settled=%d", before), func(b *testing.B) {
			if testing.Short() && before > 0 {
				b.Skip("a hundred thousand jobs take a while to settle")
			}
			address := servers.Postgres(b)
			c := opened(b, address)
			s := migrated(b, c)
			if _, err := c.Batch(b.Context(), store.Stmt{Name: "alter", SQL: "ALTER TABLE jobs SET (autovacuum_enabled = off)"}); err != nil {
				b.Fatal(err)
			}
			seed(b, address, "handler/plan", before+20_000, 0)
			storetest.BenchSettle(b, s, "handler/plan", before)
		})
	}
}
