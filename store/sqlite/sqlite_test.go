package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// open opens an empty, migrated database in a folder of its own.
func open(tb testing.TB, wrap func(store.Conn) store.Conn) core.Store {
	tb.Helper()
	conn, err := Open(filepath.Join(tb.TempDir(), "gateway.db"))
	if err != nil {
		tb.Fatal(err)
	}
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

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) core.Store { return open(b, nil) })
}

// TestRetryOfMany brings back more jobs than one statement does.
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
	if lost, err := s.Settle(ctx, dead...); err != nil || len(lost) > 0 {
		t.Fatalf("Settle = %v, %v", lost, err)
	}
	for _, want := range []int{many, 0} {
		if n, err := s.Retry(ctx, now, "", lane); n != want || err != nil {
			t.Errorf("Retry = %d, %v, want %d", n, err, want)
		}
	}
}
