package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/memory"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

func TestMain(m *testing.M) {
	memory.Use()
	os.Exit(m.Run())
}

// empty is the file of an empty, migrated database. Copying it takes less time than making its
// tables again.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gateway-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "gateway.db")
	conn, err := Open(path)
	if err != nil {
		return nil, err
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	if err := errors.Join(s.Migrate(context.Background()), s.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// open opens an empty, migrated database in a new folder. wrap, if not nil, wraps its connection.
func open(tb testing.TB, wrap func(store.Conn) store.Conn) core.Store {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "gateway.db")
	file, err := empty()
	if err != nil {
		tb.Fatalf("make an empty database: %v", err)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		tb.Fatal(err)
	}
	conn, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	conn = storetest.Weakened(conn)
	if wrap != nil {
		conn = wrap(conn)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	if err := s.Migrate(context.Background()); err != nil {
		tb.Fatalf("Migrate: %v", err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) core.Store { return open(t, nil) })
}

func TestFaults(t *testing.T) {
	storetest.RunFaults(t, func(t *testing.T, f *storetest.Fault) core.Store {
		return open(t, func(c store.Conn) store.Conn { return storetest.Faulty(c, f) })
	})
}

func TestMigrations(t *testing.T) {
	storetest.RunMigrations(t, store.SQLite, func(t *testing.T) func() store.Conn {
		path := filepath.Join(t.TempDir(), "gateway.db")
		return func() store.Conn { return openConn(t, path) }
	})
}

// TestSeveralStores: a gateway sees the change of a command that runs beside it.
func TestSeveralStores(t *testing.T) {
	var shared store.Conn
	first := open(t, func(c store.Conn) store.Conn { shared = c; return c })
	storetest.RunSeveral(t, first, store.New(shared, store.SQLite, core.SystemClock))
}

func TestGuards(t *testing.T) { storetest.Guards(t) }

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) core.Store { return open(b, nil) })
}

// TestCountsAreBounded: health checks and the tallies of queues count at most core.MaxDepth rows.
func TestCountsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand rows, in full runs only")
	}
	var conn store.Conn
	s, ctx := open(t, func(c store.Conn) store.Conn { conn = c; return c }), context.Background()
	const lane = core.Lane("queue/down")
	fill := func(status string, due, finished any) {
		t.Helper()
		const many = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			` + intoJobs + `SELECT ? || i, 'e', ?, NULL, ?, 0, 1, ?, NULL, '', 0, ? FROM n`
		args := []any{int64(core.MaxDepth + 1), status, string(lane), status, due, finished}
		if _, err := conn.Batch(ctx, store.Stmt{Name: "many", SQL: many, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	tally := func(now int64, want core.Tally) {
		t.Helper()
		got, err := s.Tallies(ctx, time.UnixMilli(now), []core.Lane{lane})
		if got[lane] != want || err != nil {
			t.Errorf("Tallies at %d = %+v, %v, want %+v", now, got, err, want)
		}
	}
	fill("available", int64(1000), nil)
	if n, err := s.Depth(ctx); n != core.MaxDepth || err != nil {
		t.Errorf("Depth of %d jobs = %d, %v, want %d", core.MaxDepth+1, n, err, core.MaxDepth)
	}
	completed := func(want int) {
		t.Helper()
		if n, err := s.Completed(ctx); n != want || err != nil {
			t.Errorf("Completed = %d, %v, want %d", n, err, want)
		}
	}
	completed(0)
	fill("completed", nil, int64(1))
	completed(core.MaxDepth)
	fill("dead", nil, int64(1))
	completed(core.MaxDepth)
	if ended, err := s.Ended(ctx, []core.Lane{lane}); ended[lane] != (core.Ended{Dead: core.MaxDepth}) || err != nil {
		t.Errorf("Ended = %+v, %v, want %d dead jobs", ended, err, core.MaxDepth)
	}
	due := time.UnixMilli(1000).UTC()
	tally(1000, core.Tally{Pending: core.MaxDepth, OldestDue: due})
	tally(0, core.Tally{Pending: core.MaxDepth})
	fill("running", int64(2000), nil)
	tally(1000, core.Tally{Pending: core.MaxDepth, OldestDue: due}) // it counts no further
	tally(0, core.Tally{Pending: core.MaxDepth})
	fill("retryable", int64(1), nil)
	tally(1000, core.Tally{Pending: core.MaxDepth, Retryable: core.MaxDepth, OldestDue: time.UnixMilli(1).UTC()})
}

// TestRetryOfMany revives more jobs than one statement does.
func TestRetryOfMany(t *testing.T) {
	s, ctx, now := open(t, nil), context.Background(), time.Now().Truncate(time.Millisecond)
	ids, lane := core.NewIDs(core.SystemClock), core.HandlerLane("down")
	a := core.Arrival{Event: core.Event{ID: ids.Next(), Source: "s", Type: "t", CreatedAt: now}}
	const many = 2500
	for range many {
		a.Jobs = append(a.Jobs, core.NewJob{ID: ids.Next(), Lane: lane, MaxAttempts: 1})
	}
	if _, err := s.Accept(ctx, a); err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: many, Hold: time.Minute}})
	if err != nil || len(jobs) != many {
		t.Fatalf("Take = %d jobs, %v, want %d", len(jobs), err, many)
	}
	var dead []core.Outcome
	for _, j := range jobs {
		dead = append(dead, core.Outcome{JobID: j.ID, Lease: j.Lease, Status: core.Dead, At: now, Attempt: core.Attempt{Number: 1, StartedAt: now}})
	}
	if settled, err := s.Settle(ctx, dead...); err != nil || len(settled.Lost) > 0 {
		t.Fatalf("Settle = %v, %v", settled, err)
	}
	for _, want := range []int{many, 0} {
		if n, err := s.Retry(ctx, now, "", lane); n != want || err != nil {
			t.Errorf("Retry = %d, %v, want %d", n, err, want)
		}
	}
}

func TestShapes(t *testing.T) {
	storetest.Shapes(t, store.SQLite, func(t *testing.T) store.Conn { return openConn(t, filepath.Join(t.TempDir(), "gateway.db")) })
}
