package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// intoJobs begins a statement that fills jobs. Columns that it leaves out have their defaults.
const intoJobs = `INSERT OR IGNORE INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
	created_at, finished_at) `

// An explainer is a connection that explains each statement and records how many rows D1 read for
// it. D1 bills by that number. It is for one goroutine.
type explainer struct {
	*Conn
	bill  *bill
	plans map[string]*plan // by the text of the statement
}

// A plan is how D1 runs a statement.
type plan struct {
	name  string
	steps []string
	read  int64 // the largest number of rows read
	walks bool  // see store.Stmt
}

func (e *explainer) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	for _, st := range stmts {
		if e.plans[st.SQL] != nil {
			continue
		}
		steps, err := e.explain(ctx, st)
		if err != nil {
			return nil, fmt.Errorf("explain %s: %w", st.Name, err)
		}
		e.plans[st.SQL] = &plan{name: st.Name, steps: steps, walks: st.Walks}
	}
	e.bill.read = nil
	results, err := e.Conn.Batch(ctx, stmts...)
	if err != nil {
		return nil, err
	}
	_, counts, err := encode(stmts)
	if err != nil {
		return nil, err
	}
	read := e.bill.read
	for i, n := range counts { // a statement of many rows is sent as several queries
		p := e.plans[stmts[i].SQL]
		for _, r := range read[:n] {
			p.read = max(p.read, r)
		}
		read = read[n:]
	}
	return results, nil
}

func (e *explainer) explain(ctx context.Context, st store.Stmt) (steps []string, err error) {
	st.SQL, st.Reads = "EXPLAIN QUERY PLAN "+st.SQL, true
	res, err := e.Conn.Batch(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, row := range res[0].Rows {
		steps = append(steps, row[3].(string))
	}
	return steps, nil
}

// A bill takes the number of rows that each statement read from the last response, and counts those that
// all wrote. D1 counts the entries of indexes as well.
type bill struct {
	http.RoundTripper
	read    []int64
	written int64
}

func (b *bill) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var answer struct {
		Result []struct {
			Meta struct {
				RowsRead    int64 `json:"rows_read"`
				RowsWritten int64 `json:"rows_written"`
			} `json:"meta"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	b.read = nil
	for _, r := range answer.Result {
		b.read = append(b.read, r.Meta.RowsRead)
		b.written += r.Meta.RowsWritten
	}
	return resp, nil
}

const busyLane = core.Lane("handler/busy")

// seed fills a database with due jobs of one lane, with finished jobs that have an attempt each,
// and with an event for each 1,000 jobs. Each statement writes at most 100,000 rows, to stay
// within the timeout of a try. A statement may be sent again: workerd closes a connection after
// 5 s without a request, also if the next one is already on its way.
func seed(t *testing.T, c *Conn, due, finished int) {
	t.Helper()
	const piece = 100_000
	fill := func(n int, sql string) {
		for from := 0; from < n; from += piece {
			numbers := fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", from+1, min(from+piece, n))
			if _, err := c.Batch(context.Background(), store.Stmt{Name: "seed", SQL: numbers + sql}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(max(due, finished)/1000+1, `INSERT OR IGNORE INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) SELECT printf('0%010d', i), 'shop', 'order', '{}', 'application/json', '', NULL, 1000 + i FROM n`)
	fill(due, intoJobs+`SELECT printf('D%010d', i), printf('0%010d', 1 + i / 1000), '`+string(busyLane)+`', NULL,
		'available', 0, 3, 1000 + i, NULL, '', 1000 + i, NULL FROM n`)
	fill(finished, intoJobs+`SELECT printf('F%010d', i), printf('0%010d', 1 + i / 1000), '`+string(busyLane)+`', NULL,
		'completed', 1, 3, NULL, NULL, '', 1000 + i, 1500 + i FROM n`)
	fill(finished/10, `INSERT OR IGNORE INTO runs SELECT printf('R%010d', i), 'none', printf('0%010d', i), 'd', 'completed', 1, 1, 'one', '{}', '',
		NULL, 1000 + i, 1000 + i, 1500 + i, 0, NULL FROM n`)
	fill(finished/10, `INSERT OR IGNORE INTO step_texts SELECT printf('R%010d', i), 'N', '{}' FROM n`)
	fill(finished/10, `INSERT OR IGNORE INTO steps SELECT printf('S%010d', i), printf('R%010d', i), 1, NULL, '', 'one', 'one', 'http', 'succeeded', 1, '{}', '{}',
		'', '', '', printf('R%010d', i), 1000 + i, 1500 + i, NULL, NULL, NULL FROM n`)
	fill(finished/10, `INSERT OR IGNORE INTO history SELECT printf('R%010d', i), 1, printf('M%010d', i), 1000, 1, 'completed', '', '' FROM n`)
	fill(finished/10, `INSERT OR IGNORE INTO callbacks SELECT printf('T%010d', i), printf('R%010d', i), printf('S%010d', i), 1000 FROM n`)
	fill(finished, `INSERT OR IGNORE INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT printf('F%010d', i), 'L', 1, 200, '', '', 5, 1000 + i FROM n`)
}

// along reports whether a statement reads along an index until it has counted, listed or changed enough rows.
// A statement that only reads has to say so, since a driver may bound how many of these run at a time.
func (p plan) along() bool { return p.walks || p.name == "retry" || p.name == "jobs_waiting" }

// large are the tables that may have many rows, by their names in statements.
var large = []string{"jobs", "events", "attempts", "cron_marks", "gates", "definitions", "runs", "steps", "history", "mine", "callbacks", "above",
	"line_places", "line_slots"}

// few are the statements that may sort. The rows of a claim, the attempts of a job and the jobs that
// enter lines are few. The listings of a lane's waiting jobs sort all of them.
var few = []string{"claimed", "claimed_steps", "attempts", "sent_body", "join_line", "rejoin_line", "jobs_waiting", "jobs_in_lines", "failures_retryable", "sum_minutes"}

// bad returns the steps of a plan whose cost grows with the tables.
func (p plan) bad() (steps []string) {
	for _, step := range p.steps {
		whole := slices.ContainsFunc(large, func(table string) bool { return strings.HasPrefix(step, "SCAN "+table) })
		along := strings.Contains(step, "INDEX") && p.along() || (p.name == "jobs_near" || strings.HasPrefix(p.name, "jobs_of_")) && step == "SCAN jobs" || // over the rows of a LIMIT
			p.name == "over_events" && step == "SCAN events" || p.name == "all_gates" && step == "SCAN gates"
		sorts := strings.Contains(step, "TEMP B-TREE") && !slices.Contains(few, p.name)
		if whole && !along || sorts || strings.Contains(step, "AUTOMATIC") {
			steps = append(steps, step)
		}
	}
	return steps
}

// most returns the largest number of rows that a statement may read, however large the tables
// are.
func (p plan) most(sql string) int64 {
	switch {
	case p.name == "jobs_waiting", p.name == "jobs_in_lines", p.name == "runs" && strings.Contains(sql, "status"):
		return math.MaxInt64 // a search for a status without rows reads the whole index, and jobs_waiting and jobs_in_lines sort all waiting jobs of a lane
	case p.along():
		return core.MaxDepth + 5000
	}
	return 5000
}

// TestPlans: every statement finds its rows by an index and reads a bounded number of rows. The
// tables hold many due and many finished jobs, and were never analysed, as D1's are
// not.
func TestPlans(t *testing.T) {
	rows := storetest.PlannedRows()
	if testing.Short() {
		rows = 1000
	}
	o := servers.D1Options{}
	if _, err := os.Stat("/dev/shm"); err == nil {
		o.Dir = "/dev/shm"
	}
	server, err := servers.StartD1(o) // a server of its own, because the database is large
	servers.Check(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	c := connect(t, faces["api"](server.Hosted(0)))
	b := &bill{RoundTripper: c.client.HTTPClient.Transport}
	c.client.HTTPClient.Transport = b
	e := &explainer{Conn: c, bill: b, plans: map[string]*plan{}}
	s := migrated(t, e)
	seed(t, c, rows, rows)

	for _, sql := range []string{"SELECT id FROM jobs WHERE last_error = 'x'", "SELECT id FROM jobs WHERE lane = 'x' AND due_at < 9 ORDER BY created_at",
		"DELETE FROM events WHERE EXISTS (SELECT 1 FROM (VALUES ('x')) AS r WHERE events.id = r.column1)"} {
		if steps, err := e.explain(t.Context(), store.Stmt{SQL: sql}); err != nil || len(plan{steps: steps}.bad()) == 0 {
			t.Errorf("%s is taken for a good one: %q, %v", sql, steps, err)
		}
	}

	clear(e.plans)
	storetest.EachStatement(t, s, busyLane)
	storetest.EachRunStatement(t, s)
	names := map[string]bool{}
	for sql, p := range e.plans {
		names[p.name] = true
		t.Logf("%-16s %6d rows read: %s", p.name, p.read, strings.Join(p.steps, "; "))
		if bad := p.bad(); bad != nil {
			t.Errorf("%s: %q\n%s", p.name, bad, sql)
		}
		if p.read > p.most(sql) {
			t.Errorf("%s read %d rows, want at most %d\n%s", p.name, p.read, p.most(sql), sql)
		}
	}
	for _, name := range []string{"insert_event", "insert_keyless_jobs_if", "drop_bare_event", "delivered", "delivered_as", "keyed_as", "stored", "claim", "claimed",
		"insert_attempts", "insert_attempts_recorded", "sent_body", "settle", "settled", "release", "recover", "due", "depth", "events", "jobs", "attempts", "retry", "count_dead", "purge_jobs",
		"marks", "insert_mark", "move_mark", "claim_passed", "insert_gates", "admit", "admit_probe", "charge", "refund", "bases", "gates",
		"succeed", "fail", "end_probe", "close_gates", "hold_lane", "unhold_lanes", "holding", "insert_events_if", "all_gates", "mark_strays", "set_back", "clear_strays",
		"ack", "extend", "held", "lapsed", "peek", "dead_letters", "tally", "tally_dead", "tally_canceled",
		"cancel", "canceled", "cancel_later", "canceled_later", "lines_of_event", "lines_of_later", "audit_canceled", "canceled_event", "jobs_canceled", "jobs_canceled_lanes",
		"events_by_source", "events_by_kind", "nth_event_by_source", "nth_event_by_kind", "oldest_event_by_source", "oldest_event_by_kind", "event_sizes_by_source", "event_sizes_by_kind",
		"events_by_delivery", "nth_event_by_delivery", "oldest_event_by_delivery", "event_sizes_by_delivery", "event_ids_by_delivery", "sources",
		"nth_event", "oldest_event", "event_sizes", "read_events", "jobs_of", "later_jobs_of", "jobs_of_event", "jobs_of_later", "attempts_of", "finished", "count_done", "replayed", "jobs_near", "read_jobs", "event_sources", "jobs_waiting", "jobs_dead", "jobs_done", "jobs_waiting_lanes", "jobs_dead_lanes", "jobs_done_lanes", "sources_of", "event_ids_by_kind", "slice_attempts", "slice_steps", "slice_history", "slice_callbacks", "idle_gates", "insert_turn", "turn", "whose_turn",
		"drain_waiting", "drain_dead", "drain_jobs", "drain_attempts",
		"insert_definitions", "insert_runs", "insert_first_steps", "definition", "situations", "claimed_steps", "above_taken",
		"step_ids", "outline", "step_sizes", "read_steps", "texts_of", "insert_texts", "purge_texts", "survey_open", "survey_failed", "survey_ids", "survey_paths", "survey_leaves",
		"insert_history", "more_history", "insert_step_attempts", "insert_step_attempts_recorded", "insert_rises", "insert_steps", "change_steps", "hold_steps", "insert_step_jobs", "insert_taken_step_jobs", "change_jobs",
		"insert_tokens", "disarm", "move_runs", "held_by", "awaited", "run", "runs", "history",
		"over_runs", "purge_runs", "purge_steps", "purge_history", "purge_callbacks",
		"insert_lined_jobs", "entered", "take_only_slot", "take_free_slot", "join_line", "rejoin_line", "pass_slots", "leave_places", "admit_holders",
		"vacate_slots", "stop_lines", "reentered", "still_held", "line_list", "count_places", "next_places", "stopped_by", "slot_holders", "dead_lined",
		"lines_held", "fill_slots", "revive_holders", "start_lines", "revive_others", "tally_waiting", "depth_waiting", "jobs_in_lines",
		"failures_dead", "failures_retryable", "failure_texts", "waiting_beyond",
		"insert_minutes", "raise_minutes", "sum_minutes", "received", "oldest_minute", "purge_minutes"} {
		if !names[name] {
			t.Errorf("%s was not looked at", name)
		}
	}
}
