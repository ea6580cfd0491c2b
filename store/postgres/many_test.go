package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store/storetest"
)

// TestTwoProcesses has two stores, each with its own connections, accept the same arrivals and
// share the work. Each job must be done once, and no caller may see a deadlock.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	stores := []core.Store{migrated(t, opened(t, address)), migrated(t, opened(t, address))}
	const deliveries, keys = 60, 30
	now := time.Now().Truncate(time.Millisecond)
	var accepting, working sync.WaitGroup
	for i := range 16 {
		accepting.Go(func() {
			ids := core.NewIDs(core.SystemClock)
			for n := range deliveries {
				if i%2 == 1 {
					n = deliveries - 1 - n // half of the callers go through them in reverse order
				}
				a := core.Arrival{Event: core.Event{ID: ids.Next(), Source: "s", Type: "t", DeliveryID: fmt.Sprint("d", n), CreatedAt: now}}
				for j := range 3 {
					a.Jobs = append(a.Jobs, core.NewJob{ID: ids.Next(), Lane: "handler/a", Key: fmt.Sprint("k", n*(j+1)%keys), MaxAttempts: 9})
				}
				if _, err := stores[i%2].Accept(t.Context(), a); err != nil {
					t.Errorf("Accept = %v", err)
				}
			}
		})
	}
	var mu sync.Mutex
	taken := map[core.ID]int{}
	var over atomic.Bool
	for i := range 6 {
		working.Go(func() {
			for {
				last := over.Load()
				jobs := takeAndSettle(t, stores[i%2], now)
				mu.Lock()
				for _, id := range jobs {
					taken[id]++
				}
				mu.Unlock()
				if last && len(jobs) == 0 {
					return
				}
			}
		})
	}
	accepting.Wait()
	over.Store(true)
	working.Wait()
	if len(taken) != keys {
		t.Errorf("%d jobs were done, want one for each of %d keys", len(taken), keys)
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("job %s was taken %d times", id, n)
		}
	}
	t.Logf("the server saw %v deadlocks", one(t, opened(t, address), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
}

// TestSeveralStores: gates hold for all processes of a database.
func TestSeveralStores(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	var stores []core.Store
	for range 4 {
		stores = append(stores, migrated(t, opened(t, address)))
	}
	storetest.RunSeveral(t, stores...)
}

// TestNoDeadlocks: takes and settles lock gates in the same order.
func TestNoDeadlocks(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	conns := []*conn{opened(t, address), opened(t, address)}
	storetest.RunLocks(t, 0, migrated(t, conns[0]), migrated(t, conns[1]))
	for _, c := range conns {
		c.Close()
	}
	// A connection has reported its counts by the time it is gone.
	asking := opened(t, address)
	wait.For(t, 30*time.Second, "the connections are gone", func() bool {
		return one(t, asking, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'") == int64(0)
	})
	if n := one(t, asking, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != int64(0) {
		t.Errorf("the server saw %v deadlocks, want none", n)
	}
}

// takeAndSettle takes up to five jobs, completes them, and returns their ids.
func takeAndSettle(t *testing.T, s core.Store, now time.Time) (ids []core.ID) {
	jobs, err := s.Take(t.Context(), now, []core.Quota{{Lane: "handler/a", N: 5, Hold: time.Hour}})
	if err != nil {
		t.Errorf("Take = %v", err)
	}
	var outcomes []core.Outcome
	for _, j := range jobs {
		ids = append(ids, j.Job.ID)
		outcomes = append(outcomes, core.Outcome{JobID: j.Job.ID, Lease: j.Job.Lease, Status: core.Completed, At: now,
			Attempt: core.Attempt{Number: 1, StartedAt: now}})
	}
	settled, err := s.Settle(t.Context(), outcomes...)
	if err != nil || len(settled.Lost) > 0 {
		t.Errorf("Settle = %v, %v", settled, err)
	}
	return ids
}

// TestRestart kills the server and starts it again while events come in. All confirmed events are
// stored, and the pool replaces its connections.
func TestRestart(t *testing.T) {
	t.Parallel()
	server, err := servers.StartPostgres(servers.PostgresOptions{})
	servers.Check(t, err)
	t.Cleanup(func() { server.Stop() })
	address, err := server.NewDatabase("gateway")
	if err != nil {
		t.Fatal(err)
	}
	s := migrated(t, opened(t, address))
	var mu sync.Mutex
	var confirmed []core.ID
	var stop atomic.Bool
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ids := core.NewIDs(core.SystemClock); !stop.Load(); {
				a := core.Arrival{Event: core.Event{ID: ids.Next(), Source: "s", Type: "t", CreatedAt: time.Now()},
					Jobs: []core.NewJob{{ID: ids.Next(), Lane: "handler/a", MaxAttempts: 9}}}
				_, err := s.Accept(context.Background(), a)
				mu.Lock()
				if err == nil {
					confirmed = append(confirmed, a.Event.ID)
				}
				mu.Unlock()
				if err != nil {
					refused.Add(1)
					if !core.IsKind(err, core.Unavailable) {
						t.Errorf("Accept while the server restarts = %v, want unavailable", err)
					}
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(confirmed) }
	for range 3 {
		n, r := count(), refused.Load()
		wait.For(t, 30*time.Second, "events are accepted", func() bool { return count() > n+100 })
		server.Kill()
		wait.For(t, 30*time.Second, "callers are told", func() bool { return refused.Load() > r })
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	n := count()
	wait.For(t, 30*time.Second, "events are accepted again", func() bool { return count() > n+100 })
	stop.Store(true)
	wg.Wait()
	for _, id := range confirmed {
		if _, err := s.Event(t.Context(), id); err != nil {
			t.Errorf("a confirmed event is not there: %v", err)
		}
	}
	t.Logf("%d events confirmed, %d refused", len(confirmed), refused.Load())
}

// TestStaleConnections: the server restarts while the pool is idle, so that all connections of
// the pool are dead. No call may fail because of that.
func TestStaleConnections(t *testing.T) {
	t.Parallel()
	address := servers.Postgres(t)
	c := opened(t, address)
	s := migrated(t, c)
	now := time.Now().Truncate(time.Millisecond)
	put(t, s, now, 10)
	var calls = map[string]func() error{
		"Ping":   func() error { return s.Ping(t.Context()) },
		"Accept": func() error { put(t, s, now, 1); return nil },
		"Event": func() error {
			if _, err := s.Event(t.Context(), "x"); !core.IsKind(err, core.NotFound) {
				return err
			}
			return nil
		},
		"Take": func() error {
			_, err := s.Take(t.Context(), now, []core.Quota{{Lane: "handler/a", N: 1, Hold: time.Hour}})
			return err
		},
	}
	for name, call := range calls {
		var wg sync.WaitGroup
		for range pool { // fill the pool
			wg.Go(func() { one(t, c, "SELECT pg_sleep(0.05)::text") })
		}
		wg.Wait()
		exec(t, address, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if err := call(); err != nil {
			t.Errorf("%s on a dead connection = %v, want a new one", name, err)
		}
	}
}
