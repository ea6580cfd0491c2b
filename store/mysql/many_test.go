package mysql

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store/storetest"
)

func arrival(ids *core.IDs, lane core.Lane, jobs int) core.Arrival {
	a := core.Arrival{Event: core.Event{ID: ids.Next(), Source: "s", Type: "t", Payload: []byte("{}"), CreatedAt: time.Now().Truncate(time.Millisecond)}}
	for range jobs {
		a.Jobs = append(a.Jobs, core.NewJob{ID: ids.Next(), Lane: lane, MaxAttempts: 3})
	}
	return a
}

func ended(jobs []core.TakenJob) (all []core.Outcome) {
	for _, j := range jobs {
		all = append(all, core.Outcome{JobID: j.ID, Lease: j.Lease, Status: core.Completed, At: time.Now(),
			Attempt: core.Attempt{Number: j.Attempt, StartedAt: time.Now()}})
	}
	return all
}

// TestTwoStores has two stores, as two processes, accept events and take jobs from the same lanes
// until all jobs are done. No job may be taken twice, and no call may fail because of a conflict.
func TestTwoStores(t *testing.T) {
	url, ctx := servers.MySQL(t), context.Background()
	const writers, each, perEvent = 4, 40, 3
	lanes := []core.Lane{"handler/a", "handler/b"}
	ids := core.NewIDs(core.SystemClock)
	var mu sync.Mutex
	times := map[core.ID]int{}
	var done atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		s := migrated(t, opened(t, url))
		for w := range writers {
			wg.Go(func() {
				for range each {
					a := arrival(ids, lanes[w%2], perEvent)
					a.Event.DeliveryID = string(a.Event.ID)
					if _, err := s.Accept(ctx, a); err != nil {
						t.Errorf("Accept: %v", err)
					}
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				for end := time.Now().Add(40 * time.Second); done.Load() < 2*writers*each*perEvent; {
					var quotas []core.Quota
					for _, l := range lanes {
						quotas = append(quotas, core.Quota{Lane: l, N: 7, Hold: time.Minute})
					}
					jobs, err := s.Take(ctx, time.Now(), quotas)
					if err != nil || time.Now().After(end) {
						t.Errorf("Take: %v after %d jobs", err, done.Load())
						return
					}
					mu.Lock()
					for _, j := range jobs {
						times[j.ID]++
					}
					mu.Unlock()
					if settled, err := s.Settle(ctx, ended(jobs)...); err != nil || len(settled.Lost) > 0 {
						t.Errorf("Settle = %v, %v", settled, err)
					}
					done.Add(int64(len(jobs)))
				}
			})
		}
	}
	wg.Wait()
	for id, n := range times {
		if n != 1 {
			t.Errorf("job %s was taken %d times", id, n)
		}
	}
	if len(times) != 2*writers*each*perEvent {
		t.Errorf("%d jobs were taken, want %d", len(times), 2*writers*each*perEvent)
	}
}

// TestTakeDoesNotWait takes while another transaction has locked the first due rows.
func TestTakeDoesNotWait(t *testing.T) {
	url, ctx := servers.MySQL(t), context.Background()
	c := opened(t, url)
	s := migrated(t, c)
	ids, lane := core.NewIDs(core.SystemClock), core.Lane("handler/a")
	a := arrival(ids, lane, 6)
	if _, err := s.Accept(ctx, a); err != nil {
		t.Fatal(err)
	}
	other, err := c.pool.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.pool.put(other)
	held := fmt.Sprintf("BEGIN; SELECT id FROM jobs WHERE id = '%s' FOR UPDATE; SELECT id FROM jobs WHERE id = '%s' FOR UPDATE", a.Jobs[0].ID, a.Jobs[1].ID)
	if _, err := other.query(ctx, held, nil); err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Take(ctx, time.Now(), []core.Quota{{Lane: lane, N: 3, Hold: time.Minute}})
	if err != nil || len(jobs) != 3 || jobs[0].ID != a.Jobs[2].ID {
		t.Errorf("Take = %v, %v, want three beside those that are held", jobs, err)
	}
	if _, err := other.query(ctx, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
}

// TestProbeDoesNotWait: a Take of a probe that finds only locked rows does not use up the probe.
func TestProbeDoesNotWait(t *testing.T) {
	c, ctx := opened(t, servers.MySQL(t)), context.Background()
	storetest.UnusedProbe(t, migrated(t, c), func(job core.ID) func() {
		other, err := c.pool.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.query(ctx, fmt.Sprintf("BEGIN; SELECT id FROM jobs WHERE id = '%s' FOR UPDATE", job), nil); err != nil {
			t.Fatal(err)
		}
		return func() {
			if _, err := other.query(ctx, "ROLLBACK", nil); err != nil {
				t.Error(err)
			}
			c.pool.put(other)
		}
	})
}

// TestSeveralStores: gates hold for all processes of a database.
func TestSeveralStores(t *testing.T) {
	url := servers.MySQL(t)
	var stores []core.Store
	for range 4 {
		stores = append(stores, migrated(t, opened(t, url)))
	}
	storetest.RunSeveral(t, stores...)
}

// TestNoDeadlocks: takes and settles lock gates in the same order. The test uses a server of its
// own, because a server reports the deadlocks of all its databases. No two takers take in the
// same millisecond: see the package comment.
func TestNoDeadlocks(t *testing.T) {
	server, err := servers.StartMySQL(servers.MySQLOptions{Settings: []string{"innodb-print-all-deadlocks=ON"}})
	servers.Check(t, err)
	t.Cleanup(func() { server.Stop() })
	url, err := server.NewDatabase("gateway")
	if err != nil {
		t.Fatal(err)
	}
	deadlocks := func() (real []string) {
		all, err := server.Deadlocks()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, imagined)
	}
	provoke(t, opened(t, url))
	if n := len(deadlocks()); n != 1 {
		t.Fatalf("the server told of %d deadlocks after one, so none later would mean nothing", n)
	}
	storetest.RunLocks(t, time.Millisecond, migrated(t, opened(t, url)), migrated(t, opened(t, url)))
	if real := deadlocks()[1:]; len(real) > 0 {
		t.Errorf("the server saw %d deadlocks, want none; the first:\n%s", len(real), real[0])
	}
}

// imagined reports whether a transaction of a deadlock skips locked rows. MariaDB queues such a
// transaction for a row before it finds that the transaction need not wait, and then removes it
// from the queue. In between, the deadlock detection of another transaction may find it there.
// The pool can only try again, and does.
func imagined(deadlock string) bool {
	for _, who := range strings.Split(deadlock, "TRANSACTION:")[1:] {
		statement, waits, _ := strings.Cut(who, "*** WAITING FOR THIS LOCK TO BE GRANTED:")
		waits, _, _ = strings.Cut(waits, "*** CONFLICTING WITH:")
		if strings.Contains(statement, "SKIP LOCKED") && strings.Contains(waits, "`jobs`") {
			return true
		}
	}
	return false
}

// provoke has two connections wait for each other.
func provoke(t *testing.T, c *conn) {
	ctx := t.Context()
	var both [2]*session
	for i := range both {
		s, err := c.pool.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.pool.put(s)
		both[i] = s
	}
	run := func(s *session, sql string) error {
		_, err := s.query(ctx, sql, nil)
		return err
	}
	if err := run(both[0], "CREATE TABLE circle (id INT PRIMARY KEY); INSERT INTO circle VALUES (0), (1)"); err != nil {
		t.Fatal(err)
	}
	for i, s := range both {
		if err := run(s, fmt.Sprintf("BEGIN; SELECT id FROM circle WHERE id = %d FOR UPDATE", i)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i, s := range both {
		wg.Go(func() {
			_ = run(s, fmt.Sprintf("SELECT id FROM circle WHERE id = %d FOR UPDATE", 1-i))
			_ = run(s, "ROLLBACK")
		})
	}
	wg.Wait()
}

// TestRetryDoesNotWait: a dead job whose row is locked does not delay the retry of the others.
func TestRetryDoesNotWait(t *testing.T) {
	ctx := context.Background()
	c := opened(t, servers.MySQL(t))
	s := migrated(t, c)
	ids, lane, now := core.NewIDs(core.SystemClock), core.Lane("handler/a"), time.Now().Truncate(time.Millisecond)
	if _, err := s.Accept(ctx, arrival(ids, lane, 2)); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Take(ctx, time.Now(), []core.Quota{{Lane: lane, N: 2, Hold: time.Minute}})
	if err != nil || len(taken) != 2 {
		t.Fatalf("Take = %v, %v", taken, err)
	}
	for _, j := range taken {
		dead := core.Outcome{JobID: j.Job.ID, Lease: j.Lease, Status: core.Dead, At: now, Attempt: core.Attempt{Number: 1, StartedAt: now}}
		if _, err := s.Settle(ctx, dead); err != nil {
			t.Fatal(err)
		}
	}
	other, err := c.pool.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.pool.put(other)
	if _, err := other.query(ctx, fmt.Sprintf("BEGIN; SELECT id FROM jobs WHERE id = '%s' FOR UPDATE", taken[0].Job.ID), nil); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Retry(ctx, now, "", ""); n != 1 || err != nil {
		t.Errorf("Retry of all beside a lock on one of two = %d, %v, want 1", n, err)
	}
	if n, err := s.Retry(ctx, now, "", lane); n != 0 || err != nil {
		t.Errorf("Retry of the lane beside a lock on the last = %d, %v, want 0", n, err)
	}
	if _, err := other.query(ctx, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
}

// TestCancelDoesNotWait: a job whose row is locked does not delay the end of the others. It is
// canceled once its row is free.
func TestCancelDoesNotWait(t *testing.T) {
	ctx := context.Background()
	conn := opened(t, servers.MySQL(t))
	s := migrated(t, conn)
	a, now := arrival(core.NewIDs(core.SystemClock), "handler/a", 2), time.Now().Truncate(time.Millisecond)
	if _, err := s.Accept(ctx, a); err != nil {
		t.Fatal(err)
	}
	first, ids := core.Job{ID: a.Jobs[0].ID, EventID: a.Event.ID}, []core.ID{a.Jobs[0].ID, a.Jobs[1].ID}
	other, err := conn.pool.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.pool.put(other)
	if _, err := other.query(ctx, fmt.Sprintf("BEGIN; SELECT id FROM jobs WHERE id = '%s' FOR UPDATE", first.ID), nil); err != nil {
		t.Fatal(err)
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
	if _, err := other.query(ctx, "ROLLBACK", nil); err != nil {
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

// TestServerIsKilled kills the server under load and starts it again. All confirmed events are
// stored, and the store continues without a restart.
func TestServerIsKilled(t *testing.T) {
	server, err := servers.StartMySQL(servers.MySQLOptions{})
	servers.Check(t, err)
	t.Cleanup(func() { server.Stop() })
	url, err := server.NewDatabase("gateway")
	if err != nil {
		t.Fatal(err)
	}
	c := opened(t, url)
	s := migrated(t, c)
	ctx, ids := context.Background(), core.NewIDs(core.SystemClock)
	var mu sync.Mutex
	var confirmed []core.ID
	var failed, stopped atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for stopped.Load() == 0 {
				a := arrival(ids, "handler/a", 1)
				_, err := s.Accept(ctx, a)
				switch {
				case err == nil:
					mu.Lock()
					confirmed = append(confirmed, a.Event.ID)
					mu.Unlock()
				case core.IsKind(err, core.Unavailable):
					failed.Add(1)
					runtime.Gosched()
				default:
					t.Errorf("Accept of a server that is gone = %v, want unavailable", err)
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(confirmed) }
	for range 2 {
		before := count()
		wait.For(t, 20*time.Second, "events", func() bool { return count() >= before+20 })
		fails := failed.Load()
		server.Kill()
		wait.For(t, 20*time.Second, "refusals", func() bool { return failed.Load() > fails })
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		before = count()
		wait.For(t, 20*time.Second, "events again", func() bool { return count() >= before+20 })
	}
	stopped.Store(1)
	wg.Wait()
	for _, id := range confirmed {
		if _, err := s.Event(ctx, id); err != nil {
			t.Fatalf("event %s was confirmed: %v", id, err)
		}
	}
}
