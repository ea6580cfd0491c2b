package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// A plan is how the server runs the statements of one name: the index used for each table, and
// the largest number of rows that it touched.
type plan struct {
	keys  map[string]string
	scans []string
	rows  int64
}

// An explainer is a connection that explains each statement and counts the rows that it touches.
// It is for one goroutine.
type explainer struct {
	*session
	plans map[string]plan
}

func (e *explainer) Close() error { return nil }

func (e *explainer) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results := make([]store.Result, len(stmts))
	for i, st := range stmts {
		all, err := parts([]store.Stmt{st}, e.packet)
		if err != nil {
			return nil, err
		}
		p := e.explain(ctx, all[0])
		if st.Name == "jobs" || st.Name == "jobs_of_event" || strings.HasPrefix(st.Name, "events") || st.Name == "runs" {
			e.add(st.Name, p) // they read along an index until they have found enough rows
			continue
		}
		before := e.touched(ctx)
		r, err := e.run(ctx, stmts[i:i+1])
		if err != nil {
			return nil, err
		}
		results[i] = r[0]
		p.rows = max(0, e.touched(ctx)-before-60) // the count itself touches up to 60 rows
		e.add(st.Name, p)
	}
	return results, nil
}

// add keeps the worst of several plans of a statement. A plan of which the server knows that it
// finds no rows adds nothing.
func (e *explainer) add(name string, p plan) {
	worst, ok := e.plans[name]
	if !ok {
		worst.keys = map[string]string{}
	}
	for table, keys := range p.keys {
		worst.keys[table] = together(worst.keys[table], keys)
	}
	worst.scans, worst.rows = append(worst.scans, p.scans...), max(worst.rows, p.rows)
	e.plans[name] = worst
}

// together returns the names of two lists, sorted and without repetitions.
func together(a, b string) string {
	all := strings.Fields(a + " " + b)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

func (e *explainer) must(ctx context.Context, sql string, args ...any) [][]any {
	p := part{sql: sql, args: args}
	b := batch{session: e.session, stmts: []store.Stmt{{Reads: true}}, results: make([]store.Result, 1)}
	if err := b.send(ctx, []part{p}, true); err != nil {
		panic(fmt.Sprint(sql, ": ", err))
	}
	return b.results[0].Rows
}

func (e *explainer) touched(ctx context.Context) (n int64) {
	for _, row := range e.must(ctx, "SHOW SESSION STATUS LIKE 'Handler_read%'") {
		var v int64
		fmt.Sscan(row[1].(string), &v)
		n += v
	}
	return n
}

// explain reads EXPLAIN: id, select_type, table, (partitions,) type,
// possible_keys, key, ... Extra.
func (e *explainer) explain(ctx context.Context, p part) plan {
	out := plan{keys: map[string]string{}}
	if !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE"}, strings.Fields(p.sql)[0]) {
		return out
	}
	for _, row := range e.must(ctx, "EXPLAIN "+p.sql, p.args...) {
		at := 3
		if len(row) == 12 { // MySQL also has the column partitions
			at = 4
		}
		table, _ := row[2].(string)
		kind, _ := row[at].(string)
		key, _ := row[at+2].(string)
		if !slices.Contains(tables, table) || row[1] == "INSERT" {
			continue
		}
		out.keys[table] = together(out.keys[table], key)
		if extra, _ := row[len(row)-1].(string); kind == "ALL" || kind == "index" && key != "PRIMARY" || strings.Contains(extra, "filesort") {
			out.scans = append(out.scans, fmt.Sprint(table, " ", kind, " ", key, " ", extra))
		}
	}
	return out
}

// tables are the tables whose plans are checked, by their names in statements.
var tables = []string{"events", "jobs", "attempts", "cron_marks", "gates", "definitions", "runs", "steps", "history", "mine", "callbacks", "step_texts", "above0", "turns", "minutes"}

const (
	busyLane = core.Lane("handler/busy")
	seedTime = 1000 // Unix milliseconds of the first seeded rows
)

// seed fills the tables with due and finished jobs of one lane and 1,000 dead ones. The first of
// them have events.
func seed(t testing.TB, s *session, due, finished int) {
	t.Helper()
	ctx, start := context.Background(), time.Now()
	do := func(sql string) [][]any {
		sets, err := s.query(ctx, sql, nil)
		if err != nil {
			t.Fatalf("%.80s: %v", sql, err)
		}
		if len(sets) == 0 {
			return nil
		}
		return sets[0]
	}
	const dead, known = 1000, 20_000
	do("CREATE TABLE digits (d BIGINT PRIMARY KEY); INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
	var drop, add []string // indexes are built afterwards, which is faster
	for line := range strings.Lines(do("SHOW CREATE TABLE jobs")[0][1].(string)) {
		if line = strings.Trim(line, " ,\n"); strings.HasPrefix(line, "KEY `") || strings.HasPrefix(line, "UNIQUE KEY `") {
			drop = append(drop, "DROP INDEX `"+strings.Split(line, "`")[1]+"`")
			add = append(add, "ADD "+line)
		}
	}
	do("ALTER TABLE jobs " + strings.Join(drop, ", "))
	do(fmt.Sprintf(`INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, finished_at)
		SELECT LPAD(n, 26, '0'), LPAD(n, 26, '0'), IF(n >= %[1]d AND n < %[2]d, 'handler/dead', '%[3]s'),
			CASE WHEN n < %[1]d THEN 'completed' WHEN n < %[2]d THEN 'dead' ELSE 'available' END, 0, 3,
			IF(n < %[2]d, NULL, %[4]d + n), '', %[4]d + n, IF(n < %[2]d, %[4]d + n, NULL)
		FROM %[5]s`, finished, finished+dead, busyLane, seedTime, naturals(finished+dead+due)))
	do(fmt.Sprintf(`INSERT INTO events (id, source, type, payload, content_type, headers, created_at)
		SELECT LPAD(n, 26, '0'), 'seed', 'seed', '{}', '', '', %[1]d + n
		FROM %[2]s WHERE n < %[3]d OR n >= %[4]d`, seedTime, naturals(min(finished+dead+known, finished+dead+due)), known, finished+dead))
	do("ALTER TABLE jobs " + strings.Join(add, ", "))
	do(fmt.Sprintf(`INSERT INTO runs SELECT CONCAT('R', LPAD(n, 10, '0')), 'none', LPAD(n, 26, '0'), 'd', 'completed', 1, 1, 'one', '{}', '',
		NULL, %[1]d + n, %[1]d + n, %[1]d + n, 0, NULL FROM %[2]s`, seedTime, naturals(finished/5)))
	do(`INSERT INTO steps SELECT CONCAT('S', id), id, 1, NULL, '', 'one', 'one', 'http', 'succeeded', 1, '{}', '{}', '', '', '', id, created_at, finished_at, NULL, NULL, NULL FROM runs;
		INSERT INTO step_texts SELECT id, 'N', '{}' FROM runs;
		INSERT INTO history SELECT id, 1, CONCAT('M', id), 1000, 1, 'completed', '', '' FROM runs;
		INSERT INTO callbacks SELECT CONCAT('T', id), id, CONCAT('S', id), 1000 FROM runs`)
	t.Logf("%d and %d rows written in %v", due, finished, time.Since(start).Round(time.Millisecond))
}

// naturals returns a table with the column n: the numbers from 0 to below n, made of digits. The
// leading digits come first and are bounded, so that the server makes few rows in vain.
func naturals(n int) string {
	sum, from, where := "0", "", ""
	for unit := 1_000_000; unit > 0; unit /= 10 {
		digit := fmt.Sprintf("d%d", unit)
		sum += fmt.Sprintf(" + %d*%s.d", unit, digit)
		if from != "" {
			from, where = from+" STRAIGHT_JOIN ", where+" AND "
		}
		from, where = from+"digits "+digit, where+fmt.Sprintf("%s < %d", sum, n)
	}
	return "(SELECT " + sum + " AS n FROM " + from + " WHERE " + where + ") AS numbers"
}

// wanted is the index for each table that a statement reads.
var wanted = map[string]map[string]string{
	"claim":                    {"jobs": "PRIMARY jobs_waiting"}, // by the ids that the subquery picked
	"claimed":                  {"jobs": "jobs_waiting", "events": "PRIMARY"},
	"due":                      {"jobs": "jobs_waiting"},
	"recover":                  {"jobs": "jobs_waiting"},
	"depth":                    {"jobs": "jobs_waiting"},
	"insert_jobs_if":           {"events": "PRIMARY"},
	"insert_keyless_jobs_if":   {"events": "PRIMARY"},
	"delivered":                {"events": "events_delivery"},
	"delivered_as":             {"events": "events_delivery", "jobs": "jobs_event"},
	"keyed_as":                 {"jobs": "jobs_key"},
	"insert_attempts":          {"jobs": "PRIMARY"},
	"insert_attempts_recorded": {"jobs": "PRIMARY"},
	"settle":                   {"jobs": "PRIMARY"},
	"settled":                  {"attempts": "PRIMARY"},
	"release":                  {"jobs": "PRIMARY"},
	"count_dead":               {"jobs": "jobs_lists"},
	"events":                   {"events": "PRIMARY"},
	"jobs":                     {"jobs": "PRIMARY"},
	"jobs_of_event":            {"jobs": "jobs_event"},
	"jobs_near":                {"jobs": "PRIMARY"},
	"raise_minutes":            {"minutes": "PRIMARY"},
	"sum_minutes":              {"minutes": "PRIMARY"},
	"purge_minutes":            {"minutes": "PRIMARY"},
	"received":                 {"events": "events_by_source"},
	"read_jobs":                {"jobs": "PRIMARY"},
	"event_sources":            {"events": "PRIMARY"},
	"jobs_waiting":             {"jobs": "jobs_waiting"},
	"jobs_dead":                {"jobs": "jobs_lists"},
	"failures_dead":            {"jobs": "jobs_lists"},
	"failures_retryable":       {"jobs": "PRIMARY jobs_waiting"},
	"waiting_beyond":           {"jobs": "jobs_waiting"},
	"jobs_done":                {"jobs": "jobs_lists"},
	"jobs_canceled":            {"jobs": "jobs_lists"},
	"tally_canceled":           {"jobs": "jobs_lists"},
	"cancel":                   {"jobs": "PRIMARY jobs_event"},
	"canceled":                 {"jobs": "jobs_event"},
	"canceled_event":           {"events": "PRIMARY"},
	"slice_attempts":           {"attempts": "PRIMARY"},
	"slice_steps":              {"steps": "steps_path"},
	"slice_history":            {"history": "PRIMARY"},
	"slice_callbacks":          {"callbacks": "callbacks_step"},
	"idle_gates":               {"gates": "PRIMARY"},
	"attempts":                 {"attempts": "PRIMARY"},
	"sent_body":                {"attempts": "PRIMARY"},
	"marks":                    {"cron_marks": "PRIMARY"},
	"claim_passed":             {"jobs": "PRIMARY jobs_waiting", "gates": "PRIMARY"},
	"admit":                    {"gates": "PRIMARY"},
	"admit_probe":              {"gates": "PRIMARY", "jobs": "jobs_waiting"},
	"charge":                   {"gates": "PRIMARY"},
	"refund":                   {"gates": "PRIMARY"},
	"bases":                    {"gates": "PRIMARY"},
	"gates":                    {"gates": "PRIMARY"},
	"succeed":                  {"gates": "PRIMARY", "jobs": "PRIMARY"},
	"fail":                     {"gates": "PRIMARY", "jobs": "PRIMARY"},
	"end_probe":                {"gates": "PRIMARY"},
	"close_gates":              {"gates": "PRIMARY"},
	"hold_lane":                {"gates": "PRIMARY"},
	"unhold_lanes":             {"gates": "PRIMARY"},
	"holding":                  {"gates": "PRIMARY"},
	"mark_strays":              {"gates": "PRIMARY"},
	"clear_strays":             {"gates": "PRIMARY"},
	"set_back":                 {"gates": "PRIMARY"},
	"forget_strays":            {"gates": "PRIMARY"},
	"jobs_waiting_lanes":       {"jobs": "jobs_waiting"},
	"insert_events_if":         {"jobs": "PRIMARY"},
	"move_mark":                {"cron_marks": "PRIMARY"},
	"ack":                      {"jobs": "PRIMARY"},
	"extend":                   {"jobs": "PRIMARY"},
	"held":                     {"jobs": "PRIMARY", "events": "PRIMARY"},
	"lapsed":                   {"jobs": "jobs_lists", "events": "PRIMARY"},
	"peek":                     {"jobs": "jobs_waiting", "events": "PRIMARY"},
	"dead_letters":             {"jobs": "jobs_lists", "events": "PRIMARY"},
	"tally":                    {"jobs": "jobs_waiting"},
	"tally_dead":               {"jobs": "jobs_lists"},
	"drain_waiting":            {"jobs": "jobs_waiting"},
	"drain_dead":               {"jobs": "jobs_lists"},
	"drain_jobs":               {"jobs": "PRIMARY"},
	"drain_attempts":           {"attempts": "PRIMARY", "jobs": "PRIMARY"},

	"finished":               {"jobs": "jobs_finished"},
	"count_done":             {"jobs": "jobs_lists"},
	"jobs_of":                {"jobs": "jobs_event"},
	"attempts_of":            {"attempts": "PRIMARY"},
	"events_by_source":       {"events": "events_by_source"},
	"events_by_kind":         {"events": "events_by_kind"},
	"nth_event_by_source":    {"events": "events_by_source"},
	"nth_event_by_kind":      {"events": "events_by_kind"},
	"oldest_event_by_source": {"events": "events_by_source"},
	"oldest_event_by_kind":   {"events": "events_by_kind"},
	"event_sizes_by_source":  {"events": "events_by_source"},
	"event_sizes_by_kind":    {"events": "events_by_kind"},
	"event_ids_by_kind":      {"events": "events_by_kind"},
	"nth_event":              {"events": "PRIMARY"},
	"oldest_event":           {"events": "PRIMARY"},
	"event_sizes":            {"events": "PRIMARY"},
	"read_events":            {"events": "PRIMARY"},
	"hold_events":            {"events": "PRIMARY"},
	"replayed":               {"jobs": "PRIMARY"},
	"turn":                   {"turns": "PRIMARY"},
	"whose_turn":             {"turns": "PRIMARY"},

	"sources":                  {"events": "events_by_source"},
	"events_by_delivery":       {"events": "events_delivery"},
	"nth_event_by_delivery":    {"events": "events_delivery"},
	"oldest_event_by_delivery": {"events": "events_delivery"},
	"event_sizes_by_delivery":  {"events": "events_delivery"},
	"event_ids_by_delivery":    {"events": "events_delivery"},

	"insert_runs":                   {"jobs": "PRIMARY"},
	"insert_first_steps":            {"runs": "PRIMARY"},
	"situations":                    {"steps": "PRIMARY", "runs": "PRIMARY", "above0": "PRIMARY"},
	"claimed_steps":                 {"jobs": "jobs_waiting", "events": "PRIMARY", "steps": "PRIMARY", "runs": "PRIMARY"},
	"above_taken":                   {"jobs": "jobs_waiting", "steps": "PRIMARY"},
	"step_ids":                      {"steps": "steps_path"},
	"outline":                       {"steps": "steps_path"},
	"step_sizes":                    {"steps": "PRIMARY"},
	"read_steps":                    {"steps": "PRIMARY"},
	"texts_of":                      {"step_texts": "PRIMARY"},
	"insert_texts":                  {"mine": "PRIMARY"},
	"purge_texts":                   {"step_texts": "PRIMARY", "runs": "PRIMARY"},
	"survey_open":                   {"steps": "steps_path"},
	"survey_failed":                 {"steps": "steps_path"},
	"survey_ids":                    {"steps": "PRIMARY"},
	"survey_paths":                  {"steps": "steps_path"},
	"survey_leaves":                 {"steps": "steps_leaf"},
	"lock_runs":                     {"runs": "PRIMARY"},
	"insert_history":                {"runs": "PRIMARY"},
	"more_history":                  {"runs": "PRIMARY", "mine": "PRIMARY"},
	"insert_step_attempts":          {"runs": "PRIMARY", "mine": "PRIMARY"},
	"insert_step_attempts_recorded": {"runs": "PRIMARY", "mine": "PRIMARY"},
	"insert_rises":                  {"runs": "PRIMARY", "mine": "PRIMARY"},
	"insert_steps":                  {"runs": "PRIMARY", "mine": "PRIMARY"},
	"change_steps":                  {"runs": "PRIMARY", "mine": "PRIMARY", "steps": "PRIMARY"},
	"hold_steps":                    {"runs": "PRIMARY", "mine": "PRIMARY", "steps": "PRIMARY", "jobs": "PRIMARY"},
	"insert_step_jobs":              {"runs": "PRIMARY", "mine": "PRIMARY"},
	"insert_taken_step_jobs":        {"runs": "PRIMARY", "mine": "PRIMARY", "gates": "PRIMARY"},
	"change_jobs":                   {"runs": "PRIMARY", "mine": "PRIMARY", "jobs": "PRIMARY"},
	"insert_tokens":                 {"runs": "PRIMARY", "mine": "PRIMARY"},
	"disarm":                        {"runs": "PRIMARY", "mine": "PRIMARY", "callbacks": "callbacks_step"},
	"move_runs":                     {"runs": "PRIMARY", "mine": "PRIMARY"},
	"held_by":                       {"runs": "PRIMARY", "mine": "PRIMARY", "jobs": "PRIMARY"},
	"history":                       {"history": "PRIMARY"},
	"over_runs":                     {"runs": "runs_finished"},
	"purge_runs":                    {"runs": "PRIMARY"},
	"purge_steps":                   {"steps": "steps_path", "runs": "PRIMARY"},
	"purge_history":                 {"history": "PRIMARY", "runs": "PRIMARY"},
	"purge_callbacks":               {"callbacks": "callbacks_step", "runs": "PRIMARY"},
}

// smallSorts are the statements that sort only the few rows they found: the attempts of one job,
// or the jobs of one claim.
var smallSorts = []string{"sum_minutes", "attempts", "sent_body", "claimed", "claimed_steps", "jobs_waiting", "failures_retryable"}

// walks are the statements that read along a whole index, or along events whose ids are as old as
// their times, which is not so here.
var walks = []string{"depth", "over_events", "tally", "count_done", "jobs_waiting", "failures_retryable", "waiting_beyond", "event_sizes", "oldest_event", "nth_event"}

// seededStore starts a server of its own with that many due and finished jobs. It turns
// durability off, which makes filling faster and does not affect plans or the time of claims.
func seededStore(tb testing.TB, due, finished int) *conn {
	tb.Helper()
	ctx := context.Background()
	server, err := servers.StartMySQL(servers.MySQLOptions{Settings: []string{"innodb-buffer-pool-size=512M",
		"innodb-log-file-size=512M", "innodb-flush-log-at-trx-commit=0", "innodb-doublewrite=0"}})
	servers.Check(tb, err)
	tb.Cleanup(func() { server.Stop() })
	url, err := server.NewDatabase("gateway")
	if err != nil {
		tb.Fatal(err)
	}
	c := opened(tb, url+"?readTimeout=5m")
	migrated(tb, c)
	s, err := c.pool.take(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.pool.put(s)
	seed(tb, s, due, finished)
	return c
}

func TestPlans(t *testing.T) {
	if testing.Short() {
		t.Skip("the rows take a while to write")
	}
	rows := 40_000
	if storetest.Whole() {
		rows = 1_000_000
	}
	ctx, c := context.Background(), seededStore(t, rows, rows)
	s, err := c.pool.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.pool.put(s)
	e := &explainer{session: s}
	st := store.New(e, store.MySQL, core.SystemClock)
	t.Run("never analysed", func(t *testing.T) {
		if _, err := s.query(ctx, "UPDATE mysql.innodb_table_stats SET n_rows = 0, clustered_index_size = 1, sum_of_other_index_sizes = 1 "+
			"WHERE database_name = DATABASE(); FLUSH TABLES jobs, events, attempts, runs, steps, history, callbacks", nil); err != nil {
			t.Fatal(err)
		}
		checkPlans(t, e, st)
	})
	t.Run("analysed", func(t *testing.T) {
		// Keys of the first time must not be known the second time, and no breaker of then may be
		// in its ramp.
		if _, err := s.query(ctx, "DELETE FROM gates; DELETE FROM events WHERE delivery_id IS NOT NULL; DELETE FROM jobs WHERE job_key IS NOT NULL; "+
			"ANALYZE TABLE jobs, events, attempts, runs, steps, history, callbacks", nil); err != nil {
			t.Fatal(err)
		}
		checkPlans(t, e, st)
	})
}

func checkPlans(t *testing.T, e *explainer, s core.Store) {
	e.plans = map[string]plan{}
	storetest.EachStatement(t, s, busyLane)
	storetest.EachRunStatement(t, s)
	for name, p := range e.plans {
		t.Logf("%-16s %v, %d rows touched %v", name, p.keys, p.rows, p.scans)
		for table, key := range wanted[name] {
			if p.keys[table] != key {
				t.Errorf("%s uses index %q of %s, want %q", name, p.keys[table], table, key)
			}
		}
		if len(p.scans) > 0 && !slices.Contains(smallSorts, name) && name != "all_gates" {
			t.Errorf("%s scans or sorts: %v", name, p.scans)
		}
		if most := int64(5000); p.rows > most && !slices.Contains(walks, name) {
			t.Errorf("%s touched %d rows, want at most %d", name, p.rows, most)
		}
	}
}

// BenchmarkClaim takes 10 jobs of a short lane and of a long one, with and without a million
// finished jobs.
func BenchmarkClaim(b *testing.B) {
	for _, n := range []struct{ due, finished int }{{1000, 0}, {1_000_000, 0}, {1000, 1_000_000}, {1_000_000, 1_000_000}} {
		b.Run(fmt.Sprintf("due=%d/finished=%d", n.due, n.finished), func(b *testing.B) {
			c := seededStore(b, n.due, n.finished)
			storetest.BenchClaim(b, store.New(c, store.MySQL, core.SystemClock), busyLane)
		})
	}
}
