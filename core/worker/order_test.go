package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/infra/test/lines"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

const ordered = core.Lane("handler/ordered")

// A yard is a SQLite database with jobs in lines, and workers over it, each as in a process of its
// own. The attempts are recorded.
type yard struct {
	t     *testing.T
	conn  store.Conn
	store *store.Store
	rules core.LineRules
	log   lines.Log
	ids   *core.IDs
	reply func(core.TakenJob) worker.Reply

	cancels []context.CancelFunc
	running sync.WaitGroup
}

// inYard calls play in a bubble of virtual time.
func inYard(t *testing.T, rules core.LineRules, play func(*yard)) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	synctest.Test(t, func(t *testing.T) {
		conn, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		y := &yard{t: t, conn: conn, rules: rules, ids: core.NewIDs(core.SystemClock)}
		y.store = store.New(conn, store.SQLite, core.SystemClock)
		defer y.store.Close()
		if err := y.store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		play(y)
		y.stop()
	})
}

// accept stores an event with one job for each key, in one commit. The line of the key "" is none.
func (y *yard) accept(attempts int, keys ...string) (ids []core.ID) {
	y.t.Helper()
	arrivals := make([]core.Arrival, len(keys))
	for i, key := range keys {
		job := core.NewJob{ID: y.ids.Next(), Lane: ordered, MaxAttempts: attempts}
		if key != "" {
			job.Line = core.Line{Key: key, Limit: y.rules.Limit}
		}
		e := core.Event{ID: y.ids.Next(), Source: "shop", Payload: []byte("{}"), CreatedAt: time.Now()}
		arrivals[i] = core.Arrival{Event: e, Jobs: []core.NewJob{job}}
		ids = append(ids, job.ID)
		y.log.Add(lines.Entry{Kind: lines.Stored, Key: key, Job: string(job.ID)})
	}
	if _, err := y.store.AcceptAll(y.t.Context(), arrivals); err != nil {
		y.t.Fatal(err)
	}
	return ids
}

// inTurn returns n keys, one of each line after the other.
func inTurn(n, lines int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("key ", i%lines))
	}
	return keys
}

// start starts a worker. It has no bell, so it learns of the work of others by looks only.
func (y *yard) start(rules core.LineRules) {
	ctx, cancel := context.WithCancel(context.Background())
	y.cancels = append(y.cancels, cancel)
	w := worker.New(worker.Deps{Worklist: store.New(y.conn, store.SQLite, core.SystemClock), Clock: core.SystemClock, Observe: y.observe},
		worker.Limits{Slots: 8, Batch: 8, Drain: time.Minute}, []worker.Target{{
			Lane: ordered, Sender: y, Lines: rules, Retry: core.Retry{Interval: 300 * time.Millisecond}, Timeout: time.Minute, Hold: 90 * time.Second,
		}})
	y.running.Go(func() {
		if _, err := w.Tick(ctx, core.Budget{Rest: time.Second}); err != nil {
			y.t.Errorf("Tick: %v", err)
		}
	})
}

// stop stops the workers.
func (y *yard) stop() {
	for _, cancel := range y.cancels {
		cancel()
	}
	y.cancels = nil
	y.running.Wait()
}

func (y *yard) observe(f core.Fact) {
	if f, ok := f.(core.Troubled); ok {
		y.t.Errorf("%s: %v", f.Doing, f.Err)
	}
}

// Send records an attempt. Its end is recorded before the outcome is stored.
func (y *yard) Send(_ context.Context, j core.TakenJob) worker.Reply {
	e := lines.Entry{Kind: lines.Begun, Key: j.Line, Job: string(j.ID), Attempt: j.Attempt}
	y.log.Add(e)
	time.Sleep(time.Duration(1+rand.IntN(20)) * time.Millisecond)
	r := y.reply(j)
	e.Kind = lines.Ended
	switch {
	case r.OK:
		e.Outcome = lines.Completed
	case j.Attempt >= j.MaxAttempts || r.Final:
		e.Outcome = lines.Dead
	default:
		e.Outcome = lines.Failed
	}
	y.log.Add(e)
	return r
}

// settle waits until no job is running, due, or to be retried.
func (y *yard) settle() {
	y.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		synctest.Wait()
		due, err := y.store.Due(y.t.Context(), []core.Lane{ordered})
		if err != nil {
			y.t.Fatal(err)
		}
		if due[ordered].DueAt.IsZero() {
			return
		}
		if time.Since(began) > time.Hour {
			y.t.Fatalf("jobs are due after an hour: %+v", due)
		}
	}
}

// check reports the problems of the history.
func (y *yard) check() {
	y.t.Helper()
	problems := lines.Check(lines.Rules{Limit: y.rules.Limit, StopOnDead: y.rules.StopOnDead}, y.log.Entries())
	for i, p := range problems {
		if i == 10 {
			y.t.Errorf("and %d more", len(problems)-i)
			break
		}
		y.t.Error(p)
	}
}

// status returns the status of a job.
func (y *yard) status(id core.ID) core.Status {
	y.t.Helper()
	j, err := y.store.Job(y.t.Context(), id)
	if err != nil {
		y.t.Fatal(err)
	}
	return j.Status
}

var (
	done   = worker.Reply{OK: true, StatusCode: 200}
	failed = worker.Reply{Error: "status: 500", StatusCode: 500}
)

// flaky fails a fifth of the attempts, and one in fifty for good.
func flaky(core.TakenJob) worker.Reply {
	switch n := rand.IntN(50); {
	case n == 0:
		r := failed
		r.Final = true
		return r
	case n <= 10:
		return failed
	}
	return done
}

// TestOrder: two workers on one database keep the order of each key, or its limit, while attempts
// fail and are retried. Half of the events come while the workers run.
func TestOrder(t *testing.T) {
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			inYard(t, core.LineRules{Limit: limit}, func(y *yard) {
				y.reply = flaky
				const keys, each = 20, 30
				y.accept(8, inTurn(keys*each/2, keys)...)
				y.start(y.rules)
				y.start(y.rules)
				for range each / 2 {
					time.Sleep(15 * time.Millisecond)
					y.accept(8, inTurn(keys, keys)...)
				}
				y.settle()
				y.check()
			})
		})
	}
}

// TestDeadJobStopsItsLine: the other lines go on. Skip lets the line go on without the dead job,
// and Retry lets it go on with it.
func TestDeadJobStopsItsLine(t *testing.T) {
	for _, retry := range []bool{false, true} {
		t.Run(fmt.Sprint("retry ", retry), func(t *testing.T) {
			inYard(t, core.LineRules{Limit: 1, StopOnDead: true}, func(y *yard) {
				var bad core.ID
				mended := false
				y.reply = func(j core.TakenJob) worker.Reply {
					if j.ID == bad && !mended {
						return failed
					}
					return done
				}
				bad = y.accept(3, inTurn(15, 3)...)[7] // the third of five
				y.start(y.rules)
				y.start(y.rules)
				y.settle()
				y.check()
				wantStopped(y, bad)
				mended = true
				again := lines.Entry{Kind: lines.Skipped, Key: "key 1", Job: string(bad)}
				if retry {
					again.Kind = lines.Retried
				}
				y.log.Add(again)
				if retry {
					if n, err := y.store.Retry(y.t.Context(), time.Now(), bad, ""); err != nil || n != 1 {
						y.t.Errorf("Retry = %d, %v, want 1", n, err)
					}
				} else if found, err := y.store.Skip(y.t.Context(), time.Now(), bad); err != nil || !found {
					y.t.Errorf("Skip = %v, %v, want true", found, err)
				}
				y.settle()
				y.check()
				if got, want := y.status(bad) == core.Completed, retry; got != want {
					y.t.Errorf("the job that stopped the line is %s", y.status(bad))
				}
			})
		})
	}
}

// wantStopped reports if a job is not dead, or if its line is not the only one with jobs.
func wantStopped(y *yard, bad core.ID) {
	y.t.Helper()
	page, err := y.store.Lines(y.t.Context(), ordered, "", 0)
	if err != nil || len(page.Items) != 1 || page.Items[0].StoppedBy != bad || page.Items[0].Waiting != 2 {
		y.t.Errorf("lines %+v, %v, want one that job %s stops with two behind it", page.Items, err, bad)
	}
	if s := y.status(bad); s != core.Dead {
		y.t.Errorf("job %s is %s, want dead", bad, s)
	}
}

// TestLinesAreTakenAway: a worker whose lane has no lines any more delivers the jobs that wait in
// lines, at first as many at a time as before.
func TestLinesAreTakenAway(t *testing.T) {
	inYard(t, core.LineRules{Limit: 1}, func(y *yard) {
		y.reply = flaky
		y.accept(8, inTurn(60, 3)...)
		y.start(core.LineRules{})
		y.settle()
		page, err := y.store.Lines(y.t.Context(), ordered, "", 0)
		if err != nil || len(page.Items) > 0 {
			y.t.Errorf("lines %+v, %v, want none", page.Items, err)
		}
	})
}
