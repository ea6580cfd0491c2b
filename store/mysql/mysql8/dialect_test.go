// Package mysql8 runs the statements of the MySQL dialect through an engine with
// MySQL 8's parser, since the server of the other tests is MariaDB. It says nothing
// about locks, of which that engine has none, nor about plans. It is a module of its
// own, so that the gateway does not depend on the engine.
package mysql8

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	enginesql "github.com/dolthub/go-mysql-server/sql"
	"github.com/go-sql-driver/mysql"
	"github.com/sirupsen/logrus"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	gatewaymysql "github.com/eventgateway/gateway/store/mysql"
)

// serve starts the engine with an empty database.
func serve(t *testing.T) *sql.DB {
	t.Helper()
	logrus.SetOutput(io.Discard)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	provider := memory.NewDBProvider(memory.NewDatabase("gateway"))
	s, err := server.NewServer(server.Config{Protocol: "tcp", Listener: l, Address: l.Addr().String()},
		sqle.NewDefault(provider), enginesql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", l.Addr().String(), "gateway"
	c.InterpolateParams, c.ClientFoundRows = true, true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close(); s.Close() })
	return db
}

// A recorder is a connection that runs each statement by itself and records the statements'
// names. It writes rows into the text with a row source. The texts that store/mysql has for one row, and for
// several without a row source, are parsed, and their names are resolved.
type recorder struct {
	*sql.DB
	t     *testing.T
	names map[string]bool
	keyed map[string]bool // the statements that are written without their row source for several rows
}

func (r *recorder) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results := make([]store.Result, len(stmts))
	for i, st := range stmts {
		r.names[st.Name] = true
		if one, columns := gatewaymysql.OfOne(st.SQL); one != "" {
			if slices.Contains(columns, -1) {
				r.t.Errorf("%s for one row names a column that its row source does not have", st.Name)
			}
			if err := r.understood(ctx, one); err != nil {
				return nil, fmt.Errorf("%s for one row: %w\n%s", st.Name, err, one)
			}
		}
		if k := gatewaymysql.OfKeys(st.SQL); k != nil {
			text, _ := k.On([][]any{st.Rows[0], changed(st.Rows[0])})
			if err := r.understood(ctx, text); err != nil {
				return nil, fmt.Errorf("%s by a list of keys: %w\n%s", st.Name, err, text)
			}
			r.keyed[st.Name] = true
		}
		for _, q := range written(st) {
			err := r.understood(ctx, q.text)
			var got store.Result
			if err == nil {
				got, err = r.run(ctx, st.Reads, runnable(q.text), bytes(q.args))
			}
			if st.Name == "schema_step" && gone(err) {
				err = nil
			}
			if err != nil {
				r.t.Logf("%s: %v\n%s", st.Name, err, q.text)
				return nil, err
			}
			results[i].Rows = append(results[i].Rows, got.Rows...)
			results[i].Changed += got.Changed
		}
	}
	return results, nil
}

// changed returns a row that differs from another in each value.
func changed(row []any) (other []any) {
	for i := range row {
		other = append(other, fmt.Sprint("another ", i))
	}
	return other
}

// gone reports whether a statement failed because the index or the column that it drops does not exist.
// The driver ignores that error too: see store/mysql/errors.go. For a column this engine has no number of
// its own.
func gone(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1091 || strings.Contains(e.Message, "does not have column"))
}

// A query is a statement as it is sent.
type query struct {
	text string
	args []any
}

// written returns the queries of a statement with its rows: one query if the text repeats a part
// for each row, or else one for each row.
func written(st store.Stmt) (all []query) {
	p := strings.Split(st.SQL, store.MySQLRow)
	switch {
	case st.Rows == nil:
		return []query{{st.SQL, st.Args}}
	case len(p) == 3:
		return []query{{p[0] + strings.Repeat(p[1], len(st.Rows)-1) + p[2], slices.Concat(st.Rows...)}}
	}
	for _, row := range st.Rows {
		all = append(all, query{st.SQL, row})
	}
	return all
}

// understood has the engine parse a statement and resolve its names.
func (r *recorder) understood(ctx context.Context, text string) error {
	p, err := r.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	return p.Close()
}

var joined = regexp.MustCompile(`(?s)^UPDATE (\(SELECT \? AS .* AS r) STRAIGHT_JOIN (\w+)(?: FORCE INDEX \(` + "`PRIMARY`" + `\))? SET`)

// listColumns are the generated columns that a later schema step adds to jobs, for jobs_lists.
const listColumns = "list_name VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status IN ('completed', 'dead', 'canceled') THEN status" +
	" WHEN status = 'running' AND attempt >= max_attempts THEN 'at last try' END) STORED," +
	" ADD COLUMN lapses_at BIGINT GENERATED ALWAYS AS (CASE WHEN status = 'running' AND attempt >= max_attempts THEN due_at END) STORED"

// runnable returns a statement as this engine can run it. In an UPDATE, the engine mistakes the
// columns of a derived table for those of the table, unless the derived table comes first. A
// stored generated column added with ALTER TABLE breaks later UPDATEs, so jobs gets it in CREATE
// TABLE.
func runnable(text string) string {
	if strings.HasPrefix(text, "CREATE TABLE IF NOT EXISTS jobs ") {
		return strings.Replace(text, ") STORED)", ") STORED, "+strings.ReplaceAll(listColumns, " ADD COLUMN ", " ")+")", 1)
	}
	text = strings.Replace(text, "ALTER TABLE jobs ADD COLUMN "+listColumns+", ADD INDEX jobs_lists ", "CREATE INDEX jobs_lists ON jobs ", 1)
	return joined.ReplaceAllString(text, "UPDATE $2 JOIN $1 SET")
}

// decided returns an UPDATE of a single table with its subqueries replaced by their results. This
// engine can parse subqueries there but not run them.
func (r *recorder) decided(ctx context.Context, text string, args []any) (string, []any, error) {
	if !strings.HasPrefix(text, "UPDATE gates SET") {
		return text, args, nil
	}
	for {
		from := strings.Index(text, "(SELECT ")
		if from < 0 {
			return text, args, nil
		}
		end, depth := from, 0
		for ; depth > 0 || end == from; end++ {
			depth += strings.Count(text[end:end+1], "(") - strings.Count(text[end:end+1], ")")
		}
		begin := strings.TrimSuffix(text[:from], "EXISTS ")
		query := text[len(begin):end]
		first, own := strings.Count(begin, "?"), strings.Count(query, "?")
		var answer int64
		if err := r.QueryRowContext(ctx, "SELECT "+query, args[first:first+own]...).Scan(&answer); err != nil {
			return "", nil, err
		}
		text, args = fmt.Sprint(begin, answer, text[end:]), slices.Delete(slices.Clone(args), first, first+own)
	}
}

// bytes returns arguments as store/mysql sends them.
func bytes(args []any) (out []any) {
	for _, a := range args {
		if text, ok := a.(string); ok {
			a = []byte(text)
		}
		out = append(out, a)
	}
	return out
}

func (r *recorder) run(ctx context.Context, reads bool, text string, args []any) (result store.Result, err error) {
	if !reads {
		if text, args, err = r.decided(ctx, text, args); err != nil {
			return result, err
		}
		res, err := r.ExecContext(ctx, text, args...)
		if err == nil {
			result.Changed, err = res.RowsAffected()
		}
		return result, err
	}
	rows, err := r.QueryContext(ctx, text, args...)
	if err != nil {
		return result, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		err = rows.Scan(to...)
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b)
			}
		}
		result.Rows = append(result.Rows, row)
	}
	if err == nil {
		err = rows.Err()
	}
	return result, err
}

// TestEveryStatement makes the calls of a store, with one row and with three, and then checks
// that every statement was sent.
func TestEveryStatement(t *testing.T) {
	r := &recorder{DB: serve(t), t: t, names: map[string]bool{}, keyed: map[string]bool{}}
	s := store.New(r, store.MySQL, core.SystemClock)
	ctx, ids, now := context.Background(), core.NewIDs(core.SystemClock), time.Now().Truncate(time.Millisecond)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if have, want, err := s.Schema(ctx); have != 0 || want == 0 || err != nil {
		t.Errorf("Schema of an empty database = %d, %d, %v, want none of some steps", have, want, err)
	}
	must("Migrate", s.Migrate(ctx))
	must("Migrate again", s.Migrate(ctx))
	must("Ping", s.Ping(ctx))
	_, err := store.Check(ctx, r, store.MySQL, core.SystemClock)
	must("Check", err)
	for _, upToDate := range []bool{false, true} {
		writes, _ := store.Rehearse(ctx, r, upToDate) // the recorder's batches are not atomic
		must("Rehearse", writes)
	}
	for _, work := range []core.Work{core.Intake, core.Deliveries, core.Transitions, core.Turns} {
		must("Rehearse "+string(work), s.Rehearse(ctx, work))
	}
	lane := core.HandlerLane("a")
	for _, n := range []int{1, 3} {
		plain, known, keyed := arrival(ids, now, lane, n), arrival(ids, now, lane, n), arrival(ids, now, lane, n)
		keyed.Event.Payload, keyed.Event.Binary = []byte{0xff}, true
		known.Event.DeliveryID = string(known.Event.ID)
		for i := range keyed.Jobs {
			keyed.Jobs[i].Key = string(keyed.Jobs[i].ID)
		}
		for _, a := range []core.Arrival{plain, known, keyed} {
			receipt, err := s.Accept(ctx, a)
			must("Accept", err)
			if want := (core.Receipt{EventID: a.Event.ID, Jobs: n}); receipt != want {
				t.Errorf("Accept = %+v, want %+v", receipt, want)
			}
		}
		_, err := s.Due(ctx, []core.Lane{lane, "handler/none"})
		must("Due", err)
		taken, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: n + 1, Hold: time.Minute}})
		must("Take", err)
		if len(taken) != n+1 {
			t.Fatalf("Take = %d jobs, want %d", len(taken), n+1)
		}
		must("Release", s.Release(ctx, now, taken[n].Job))
		dead := outcomes(taken[:n], core.Dead, now)
		for range 2 { // the second time, it must read the attempts that are settled
			settled, err := s.Settle(ctx, dead...)
			must("Settle", err)
			if len(settled.Lost) > 0 {
				t.Errorf("Settle: lost = %v, want none", settled.Lost)
			}
		}
		_, err = s.Attempts(ctx, taken[0].ID, 0, core.MaxPage)
		must("Attempts", err)
		for _, l := range []core.Lane{lane, ""} {
			_, err = s.Retry(ctx, now, "", l)
			must("Retry", err)
			_, err = s.Retry(ctx, now, taken[0].ID, "")
			must("Retry of one", err)
		}
		again, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: n, Hold: time.Minute}})
		must("Take", err)
		_, err = s.Recover(ctx, now, []core.Lane{lane})
		must("Recover", err)
		_, err = s.Settle(ctx, outcomes(again, core.Completed, now)...)
		must("Settle", err)
		_, _, err = s.Purge(ctx, now.Add(time.Hour), 100)
		must("Purge", err)
		checkMarks(t, s, now, n)
		checkArchive(t, s, ids, now, n)
		checkLarge(t, s, ids, now, n)
		checkGates(t, s, ids, now, n)
		checkQueues(t, s, ids, now, n)
		checkRuns(t, s, ids, now, n)
	}
	_, err = s.Depth(ctx)
	must("Depth", err)
	for _, f := range []core.EventFilter{{}, {Source: "s"}, {Source: "s", Type: "t", Since: now, Until: now, After: ids.Next()}} {
		_, err = s.Events(ctx, f)
		must("Events", err)
	}
	for _, status := range []core.Status{"", core.Running, core.Retryable, core.Dead} {
		_, err = s.Jobs(ctx, core.JobFilter{Status: status, Lane: lane, EventID: ids.Next()})
		must("Jobs", err)
		_, err = s.Jobs(ctx, core.JobFilter{Status: status})
		must("Jobs", err)
	}
	if _, err = s.Event(ctx, ids.Next()); !core.IsKind(err, core.NotFound) {
		t.Errorf("Event = %v, want not found", err)
	}
	if _, err = s.Job(ctx, ids.Next()); !core.IsKind(err, core.NotFound) {
		t.Errorf("Job = %v, want not found", err)
	}
	for _, name := range statementNames(t) {
		if !r.names[name] {
			t.Errorf("statement %q was not run: add what sends it", name)
		}
	}
	for _, name := range []string{"settle", "succeed", "change_steps", "change_jobs", "move_runs", "ack"} {
		if !r.keyed[name] {
			t.Errorf("statement %q keeps its row source", name)
		}
	}
}

// checkGates opens the breaker of a lane, probes, closes it and paces starts.
func checkGates(t *testing.T, s core.Store, ids *core.IDs, now time.Time, n int) {
	t.Helper()
	ctx, lane := t.Context(), core.HandlerLane(fmt.Sprint("gated ", n))
	want := func(step string, want core.Gate) {
		t.Helper()
		if due, err := s.Due(ctx, []core.Lane{lane}); err != nil || due[lane].Gate != want {
			t.Errorf("Due after %s = %+v, %v, want the gate %+v", step, due, err, want)
		}
	}
	take := func(n int, p *core.Pass) []core.TakenJob {
		t.Helper()
		jobs, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: n, Hold: time.Minute, Pass: p}})
		if err != nil || len(jobs) != n {
			t.Fatalf("Take with %+v = %d jobs, %v, want %d", p, len(jobs), err, n)
		}
		return jobs
	}
	settle := func(jobs []core.TakenJob, v core.Verdict) {
		t.Helper()
		all := outcomes(jobs, core.Retryable, now)
		for i, j := range jobs {
			rises := arrival(ids, now, "alert/a", 1)
			all[i].DueAt, all[i].Lane, all[i].Verdict, all[i].Probe, all[i].GivesRise = now, lane, v, j.Probe, &rises
		}
		if got, err := s.Settle(ctx, all...); err != nil || len(got.Lost) > 0 {
			t.Errorf("Settle = %+v, %v", got, err)
		}
	}
	if _, err := s.Accept(ctx, arrival(ids, now, lane, core.BreakerThreshold)); err != nil {
		t.Fatal(err)
	}
	jobs := take(core.BreakerThreshold, nil)
	settle(jobs, core.Failure)
	opened := now.UTC()
	open := core.Gate{Failures: core.BreakerThreshold, OpenUntil: now.Add(core.BreakerCooldown).UTC(), OpenedAt: opened, Openings: 1, MovedBy: jobs[core.BreakerThreshold-1].ID}
	want("failures", open)
	take(0, nil)
	if strays, err := s.Strays(ctx, now, []core.Lane{"alert/a", "handler/b"}); err != nil || !strays[lane].Equal(now) {
		t.Errorf("Strays = %v, %v, want %s since %v", strays, err, lane, now)
	}
	if strays, err := s.Strays(ctx, now, []core.Lane{"alert/a", lane}); err != nil || !strays[lane].IsZero() {
		t.Errorf("Strays = %v, %v, want no %s", strays, err, lane)
	}
	now = now.Add(core.BreakerCooldown)
	probe := &core.Pass{Probe: core.BreakerCooldown}
	settle(take(1, probe), core.NoVerdict)
	jobs = take(1, probe)
	settle(jobs, core.Success)
	want("a success", core.Gate{ClosedAt: now.UTC(), OpenedAt: opened, Openings: 1, MovedBy: jobs[0].ID})
	if lanes, err := s.CloseBreakers(ctx, now, lane); err != nil || len(lanes) > 0 {
		t.Errorf("CloseBreakers of a closed one = %v, %v, want none", lanes, err)
	}
	take(n, &core.Pass{Interval: time.Second, Closed: now})
	want("starts", core.Gate{ClosedAt: now.UTC(), OpenedAt: opened, Openings: 1, MovedBy: jobs[0].ID, NextAt: now.Add(time.Duration(n) * time.Second).UTC()})
}

// checkQueues puts messages into a queue, makes n of them acked, dead or waiting, and drains the
// queue.
func checkQueues(t *testing.T, s core.Store, ids *core.IDs, now time.Time, n int) {
	t.Helper()
	ctx, lane := t.Context(), core.QueueLane(fmt.Sprint(n))
	want := func(what string, got int, err error, want int) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", what, got, err, want)
		}
	}
	a := arrival(ids, now, lane, 4*n)
	for i := range a.Jobs {
		a.Jobs[i].MaxAttempts = 1
	}
	if _, err := s.Accept(ctx, a); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: 3 * n, Hold: time.Minute}})
	want("Take", len(taken), err, 3*n)
	var refs []core.Ref
	for i, j := range taken {
		refs = append(refs, core.Ref{ID: j.ID, Lease: []core.Lease{j.Lease, ""}[i%2]})
	}
	got, err := s.Extend(ctx, now.Add(time.Hour), lane, refs[:n])
	want("Extend", got, err, n)
	held, err := s.Held(ctx, lane, refs)
	want("Held", len(held), err, 3*n)
	got, err = s.Ack(ctx, now, lane, refs[:n])
	want("Ack", got, err, n)
	got, err = s.Ack(ctx, now, lane, refs[:n])
	want("Ack again", got, err, 0)
	lapsed, err := s.Lapsed(ctx, now.Add(time.Minute), []core.Lane{lane}, 100)
	want("Lapsed", len(lapsed), err, 2*n)
	settled, err := s.Settle(ctx, outcomes(taken[n:2*n], core.Dead, now)...)
	want("Settle: lost", len(settled.Lost), err, 0)
	dead, err := s.DeadLetters(ctx, lane, "", 0)
	want("DeadLetters", len(dead.Items), err, n)
	peeked, err := s.Peek(ctx, now, lane, 100)
	want("Peek", len(peeked), err, n)
	tallies, err := s.Tallies(ctx, now, []core.Lane{lane})
	if tally := (core.Tally{Pending: n, Processing: n, OldestDue: now.UTC()}); tallies[lane] != tally || err != nil {
		t.Errorf("Tallies = %+v, %v, want %+v", tallies, err, tally)
	}
	ended, err := s.Ended(ctx, []core.Lane{lane})
	want("Ended: dead", ended[lane].Dead, err, n)
	got, err = s.Drain(ctx, lane, ids.Next(), 100)
	want("Drain", got, err, 3*n)
}

// checkMarks sets n marks, moves them forward, and checks that they do not move back.
func checkMarks(t *testing.T, s core.Store, now time.Time, n int) {
	t.Helper()
	var sources []string
	want := map[string]core.Mark{}
	for i := range n {
		sources = append(sources, fmt.Sprint("cron ", i, " of ", n))
		want[sources[i]] = core.Mark{Source: sources[i], Schedule: "* * * * * UTC", Until: now.UTC()}
	}
	for _, by := range []time.Duration{-time.Minute, 0, -time.Second} {
		var marks []core.Mark
		for _, source := range sources {
			m := want[source]
			m.Until = m.Until.Add(by)
			marks = append(marks, m)
		}
		if err := s.Mark(t.Context(), marks...); err != nil {
			t.Errorf("Mark: %v", err)
		}
	}
	if got, err := s.Marks(t.Context(), sources); err != nil || !maps.Equal(got, want) {
		t.Errorf("Marks = %v, %v, want %v", got, err, want)
	}
}

func arrival(ids *core.IDs, now time.Time, lane core.Lane, jobs int) core.Arrival {
	a := core.Arrival{Event: core.Event{ID: ids.Next(), Source: "s", Type: "t", Payload: []byte("{}"), CreatedAt: now}}
	for range jobs {
		a.Jobs = append(a.Jobs, core.NewJob{ID: ids.Next(), Lane: lane, MaxAttempts: 3})
	}
	return a
}

func outcomes(jobs []core.TakenJob, status core.Status, now time.Time) (all []core.Outcome) {
	for _, j := range jobs {
		all = append(all, core.Outcome{JobID: j.ID, Lease: j.Lease, Status: status, At: now, Attempt: core.Attempt{Number: 1, StartedAt: now}})
	}
	return all
}

var named = regexp.MustCompile(`(?:Name: |\.read\(ctx, |pageOf\(ctx, s, )"([a-z_]+)"`)

// statementNames returns the names of the statements in the source of package store.
func statementNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of package store: %v", err)
	}
	for _, f := range files {
		switch base := filepath.Base(f); {
		case base == "check.go", base == "probe.go", base == "rehearse.go": // statements of Check, Rehearse and ProveAtomic
			continue
		case strings.HasSuffix(base, "_test.go"):
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(src), -1) {
			if m[1] != "schema_lock" { // MySQL has none
				names = append(names, m[1])
			}
		}
	}
	return names
}
