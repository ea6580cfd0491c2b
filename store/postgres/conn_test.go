package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

func write(sql string, args ...any) store.Stmt {
	return store.Stmt{Name: "write", SQL: sql, Args: args}
}

func read(sql string, args ...any) store.Stmt {
	return store.Stmt{Name: "read", SQL: sql, Args: args, Reads: true}
}

// do runs statements that must succeed.
func do(t *testing.T, c store.Conn, stmts ...store.Stmt) []store.Result {
	t.Helper()
	res, err := c.Batch(t.Context(), stmts...)
	if err != nil {
		t.Fatalf("Batch: %v", err)
	}
	return res
}

// one reads a single value.
func one(t *testing.T, c store.Conn, sql string) any {
	t.Helper()
	return do(t, c, read(sql))[0].Rows[0][0]
}

// eachMode runs a test in each query mode that a URL may set.
func eachMode(t *testing.T, test func(t *testing.T, c *conn)) {
	address := servers.Postgres(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			test(t, opened(t, inSchema(t, address)+"&default_query_exec_mode="+mode))
		})
	}
}

func TestBatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, c *conn) {
		do(t, c, write("CREATE TABLE t (n BIGINT PRIMARY KEY, s TEXT)"))
		_, err := c.Batch(t.Context(), write("INSERT INTO t VALUES (?, ?)", int64(1), nil), write("INSERT INTO t VALUES (?, ?)", int64(1), "again"))
		if err == nil || core.IsKind(err, core.Unavailable) || !strings.HasPrefix(err.Error(), "write: ") {
			t.Errorf("Batch = %v, want an error that names the statement", err)
		}
		if n := one(t, c, "SELECT COUNT(*) FROM t"); n != int64(0) {
			t.Errorf("%v rows after a failed batch, want 0", n)
		}
		if res, err := c.Batch(t.Context()); res != nil || err != nil {
			t.Errorf("empty batch = %v, %v, want nothing", res, err)
		}
		odd := `{"a,b"} \ NULL 'x' $1 ?`
		res := do(t, c, store.Stmt{Name: "rows", SQL: "INSERT INTO t SELECT unnest(?::bigint[]), unnest(?::text[])",
			Rows: [][]any{{int64(1), odd}, {int64(-2), ""}, {int64(3), nil}}})
		if res[0].Changed != 3 {
			t.Errorf("Changed = %d, want 3", res[0].Changed)
		}
		for _, row := range [][]any{{int64(-4), odd}, {int64(5), nil}} {
			do(t, c, store.Stmt{Name: "row", SQL: "INSERT INTO t SELECT unnest(?::bigint[]), unnest(?::text[])", Rows: [][]any{row}})
		}
		res = do(t, c, read("SELECT n, s, 7, COUNT(*) OVER () FROM t ORDER BY n"), read("SELECT 1 WHERE ? = 2", int64(1)))
		got := fmt.Sprintf("%#v", res)
		want := fmt.Sprintf("%#v", []store.Result{{Rows: [][]any{{int64(-4), odd, int64(7), int64(5)}, {int64(-2), "", int64(7), int64(5)},
			{int64(1), odd, int64(7), int64(5)}, {int64(3), nil, int64(7), int64(5)}, {int64(5), nil, int64(7), int64(5)}}}, {}})
		if got != want {
			t.Errorf("results = %s\nwant %s", got, want)
		}
	})
}

// TestRowsInTexts: a single row is sent as values, unless the statement is a DELETE or the server plans
// it for its values.
func TestRowsInTexts(t *testing.T) {
	const update = "UPDATE t SET s = r.s_ FROM (SELECT unnest(?::bigint[]) AS n_, unnest(?::text[]) AS s_) AS r WHERE t.n = r.n_"
	const remove = "DELETE FROM t USING (SELECT unnest(?::bigint[]) AS n_) AS r WHERE t.n = r.n_"
	for _, tt := range []struct {
		sql     string
		rows    [][]any
		literal bool
		want    string
	}{
		{update, [][]any{{int64(1), "a"}}, false, "UPDATE t SET s = r.s_ FROM (SELECT $1::bigint AS n_, $2::text AS s_) AS r WHERE t.n = r.n_ [1 a]"},
		{update, [][]any{{int64(1), "a"}, {int64(2), nil}}, true, "UPDATE t SET s = r.s_ FROM (SELECT unnest($1::bigint[]) AS n_, unnest($2::text[]) AS s_) AS r WHERE t.n = r.n_ [{1,2} {\"a\",NULL}]"},
		{update, [][]any{{int64(1), "a"}}, true, "UPDATE t SET s = r.s_ FROM (SELECT unnest($1::bigint[]) AS n_, unnest($2::text[]) AS s_) AS r WHERE t.n = r.n_ [{1} {\"a\"}]"},
		{remove, [][]any{{int64(1)}}, true, "DELETE FROM t USING (SELECT unnest($1::bigint[]) AS n_) AS r WHERE t.n = r.n_ [{1}]"},
	} {
		sql, args := translate(tt.sql).with(store.Stmt{SQL: tt.sql, Rows: tt.rows}, tt.literal)
		if got := fmt.Sprint(sql, " ", args); got != tt.want {
			t.Errorf("%d rows, literal %v:\n%s\nwant\n%s", len(tt.rows), tt.literal, got, tt.want)
		}
	}
	sql, args := translate(remove).with(store.Stmt{SQL: remove, Rows: [][]any{{int64(1)}}}, false)
	if _, array := args[0].(*column); !array || !strings.Contains(sql, "unnest($1::bigint[])") {
		t.Errorf("a DELETE of one row is %s with %T, want an array", sql, args[0])
	}
}

// TestReadsSeeOneState: all reads of a batch see the same state, while another caller commits
// between them.
func TestReadsSeeOneState(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, c *conn) {
		do(t, c, write("CREATE TABLE t (n BIGINT)"))
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				do(t, c, write("INSERT INTO t VALUES (1)"))
			}
		})
		for range 50 {
			res := do(t, c, read("SELECT COUNT(*) FROM t"), read("SELECT pg_sleep(0.001)::text"), read("SELECT COUNT(*) FROM t"))
			if a, b := res[0].Rows[0][0], res[2].Rows[0][0]; a != b {
				t.Errorf("a batch counts %v and then %v", a, b)
			}
		}
		stop.Store(true)
		wg.Wait()
		if _, err := c.Batch(t.Context(), read("SELECT 1"), store.Stmt{Name: "sly", SQL: "INSERT INTO t VALUES (1)", Reads: true}); err == nil {
			t.Error("statements that say they read were allowed to write")
		}
	})
}

func row(id int64) []store.Stmt {
	return []store.Stmt{{Name: "row", SQL: "INSERT INTO t SELECT unnest(?::bigint[])", Rows: [][]any{{id}}}}
}

// TestBadBatchFailsAlone sends good and bad batches at once, so that they share commits. Only the
// bad ones may fail.
func TestBadBatchFailsAlone(t *testing.T) {
	t.Parallel()
	c := opened(t, servers.Postgres(t))
	do(t, c, write("CREATE TABLE t (n BIGINT CHECK (n % 5 <> 0))"))
	var wg sync.WaitGroup
	for n := range int64(200) {
		wg.Go(func() {
			res, err := c.Batch(context.Background(), row(n)...)
			if bad := n%5 == 0; bad != (err != nil) || !bad && res[0].Changed != 1 {
				t.Errorf("batch %d = %v, %v", n, res, err)
			}
		})
	}
	wg.Wait()
	if n := one(t, c, "SELECT COUNT(*) FROM t"); n != int64(160) {
		t.Errorf("%v rows, want the 160 good ones", n)
	}
}

// TestErrors raises errors by their codes, in the first few tries of a statement.
func TestErrors(t *testing.T) {
	t.Parallel()
	c := opened(t, servers.Postgres(t))
	do(t, c, write(`CREATE FUNCTION fail(state TEXT, tries BIGINT) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('tried') <= tries THEN RAISE EXCEPTION 'trouble' USING ERRCODE = state; END IF; RETURN 'fine'; END $$`))
	for _, tc := range []struct {
		state string
		tries int64
		kind  core.Kind // 0 for success, -1 for an error that is no refusal
	}{
		{"40001", 3, 0}, {"40P01", 3, 0}, {"55P03", 3, 0},
		{"40001", 1000, core.Unavailable},
		{"53100", 1, core.Unavailable}, {"53200", 1, core.Unavailable}, {"57014", 1, core.Unavailable}, {"25006", 1, 0}, {"25006", 1000, core.Unavailable}, {"58030", 1, core.Unavailable},
		{"23505", 1, -1}, {"22021", 1, -1}, {"42P01", 1, core.Unavailable}, {"42703", 1, core.Unavailable}, {"XX000", 1, -1},
		{"42501", 1, core.Unavailable},
	} {
		do(t, c, write("DROP SEQUENCE IF EXISTS tried"), write("CREATE SEQUENCE tried"))
		_, err := c.Batch(t.Context(), read("SELECT fail(?, ?)", tc.state, tc.tries))
		var refusal *core.Refusal
		if refused := errors.As(err, &refusal); (tc.kind == 0) != (err == nil) || refused != (tc.kind > 0) || refused && refusal.Kind != tc.kind {
			t.Errorf("%s, %d times: %v, want kind %d", tc.state, tc.tries, err, tc.kind)
		}
		if err != nil && tc.state != "42501" && !strings.Contains(err.Error(), "read: ") {
			t.Errorf("%s: %v, which does not name the statement", tc.state, err)
		}
	}
}

// TestCancelledBatchLeavesNothing: a caller that cancels its batch gets an answer at once, and
// the server stops the statement.
func TestCancelledBatchLeavesNothing(t *testing.T) {
	t.Parallel()
	c := opened(t, servers.Postgres(t))
	do(t, c, write("CREATE TABLE t (n BIGINT)"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Batch(ctx, write("INSERT INTO t VALUES (1)"), read("SELECT pg_sleep(600)::text"))
		failed <- err
	}()
	asleep := func() bool {
		return one(t, c, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()") == int64(1)
	}
	wait.For(t, 30*time.Second, "the batch sleeps", asleep)
	cancel()
	if err := <-failed; !core.IsKind(err, core.Unavailable) {
		t.Errorf("Batch = %v, want unavailable", err)
	}
	wait.For(t, 30*time.Second, "the server gives up too", func() bool { return !asleep() })
	if n := one(t, c, "SELECT COUNT(*) FROM t"); n != int64(0) {
		t.Errorf("%v rows of a batch that was given up, want 0", n)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	c, err := Open(t.Context(), servers.Postgres(t), pool)
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, write("CREATE TABLE t (n BIGINT)"))
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for {
				stmts := row(1)
				if i%2 == 0 {
					stmts = []store.Stmt{read("SELECT 1")}
				}
				if _, err := c.Batch(context.Background(), stmts...); err != nil {
					if !core.IsKind(err, core.Unavailable) {
						t.Errorf("Batch while closing = %v, want unavailable", err)
					}
					return
				}
			}
		})
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	wg.Wait()
}

// TestTakeDoesNotWait: a Take skips a row that another transaction has locked.
func TestTakeDoesNotWait(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	s := migrated(t, opened(t, address))
	now := time.Now().Truncate(time.Millisecond)
	jobs := put(t, s, now, 2)
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for _, sql := range []string{"BEGIN", fmt.Sprintf("SELECT 1 FROM jobs WHERE id = '%s' FOR UPDATE", jobs[0])} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Take(t.Context(), now, []core.Quota{{Lane: "handler/a", N: 2, Hold: time.Minute}})
	if err != nil || len(got) != 1 || got[0].Job.ID != jobs[1] {
		t.Errorf("Take beside a lock on %s = %v, %v, want %s alone", jobs[0], got, err, jobs[1])
	}
}

// TestProbeDoesNotWait: a Take of a probe that finds only locked rows does not use up the probe.
func TestProbeDoesNotWait(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	storetest.UnusedProbe(t, migrated(t, opened(t, address)), func(job core.ID) func() {
		other, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{"BEGIN", fmt.Sprintf("SELECT 1 FROM jobs WHERE id = '%s' FOR UPDATE", job)} {
			if _, err := other.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		return func() { other.Close(context.Background()) }
	})
}

// TestRetryDoesNotWait: a dead job whose row is locked does not delay the retry of the others.
func TestRetryDoesNotWait(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	s := migrated(t, opened(t, address))
	now := time.Now().Truncate(time.Millisecond)
	put(t, s, now, 2)
	taken, err := s.Take(t.Context(), now, []core.Quota{{Lane: "handler/a", N: 2, Hold: time.Minute}})
	if err != nil || len(taken) != 2 {
		t.Fatalf("Take = %v, %v", taken, err)
	}
	for _, j := range taken {
		dead := core.Outcome{JobID: j.Job.ID, Lease: j.Lease, Status: core.Dead, At: now, Attempt: core.Attempt{Number: 1, StartedAt: now}}
		if _, err := s.Settle(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
	}
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for _, sql := range []string{"BEGIN", fmt.Sprintf("SELECT 1 FROM jobs WHERE id = '%s' FOR UPDATE", taken[0].Job.ID)} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Retry(t.Context(), now, "", ""); n != 1 || err != nil {
		t.Errorf("Retry of all beside a lock on one of two = %d, %v, want 1", n, err)
	}
	if n, err := s.Retry(t.Context(), now, "", "handler/a"); n != 0 || err != nil {
		t.Errorf("Retry of the lane beside a lock on the last = %d, %v, want 0", n, err)
	}
}

// TestCancelDoesNotWait: a job whose row is locked does not delay the end of the others. It is
// canceled once its row is free.
func TestCancelDoesNotWait(t *testing.T) {
	t.Parallel()
	ctx, address := t.Context(), servers.Postgres(t)
	s := migrated(t, opened(t, address))
	now := time.Now().Truncate(time.Millisecond)
	ids := put(t, s, now, 2)
	first, err := s.Job(ctx, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for _, sql := range []string{"BEGIN", fmt.Sprintf("SELECT 1 FROM jobs WHERE id = '%s' FOR UPDATE", ids[0])} {
		if _, err := other.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	type canceled struct {
		core.Cancellation
		err error
	}
	done := make(chan canceled, 1)
	go func() {
		c, err := s.Cancel(ctx, now, first.EventID)
		done <- canceled{c, err}
	}()
	for {
		j, err := s.Job(ctx, ids[1])
		if err != nil {
			t.Fatal(err)
		}
		if j.Status == core.Canceled {
			break
		}
		select {
		case c := <-done:
			t.Fatalf("Cancel beside a lock on one of two = %+v, and the other job is %s", c, j.Status)
		case <-time.After(time.Millisecond):
		}
	}
	if _, err := other.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	c := <-done
	if core.IsKind(c.err, core.Unavailable) { // the machine is slow, and Cancel gave up
		c.Cancellation, c.err = s.Cancel(ctx, now, first.EventID)
	}
	if c.err != nil || c.Cancellation != (core.Cancellation{Canceled: 2}) {
		t.Errorf("Cancel after the lock = %+v, want 2 canceled", c)
	}
}

// put accepts an event with n jobs, and returns the ids of the jobs.
func put(t *testing.T, s core.Store, now time.Time, n int) (ids []core.ID) {
	t.Helper()
	next := core.NewIDs(core.SystemClock)
	a := core.Arrival{Event: core.Event{ID: next.Next(), Source: "s", Type: "t", CreatedAt: now}}
	for range n {
		ids = append(ids, next.Next())
		a.Jobs = append(a.Jobs, core.NewJob{ID: ids[len(ids)-1], Lane: "handler/a", MaxAttempts: 9})
	}
	if _, err := s.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return ids
}
