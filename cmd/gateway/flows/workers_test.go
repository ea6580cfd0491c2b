package flows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/postgres"
)

// many has parallel and map steps, one within the other.
const many = `
worker: {max_concurrency: 4, stale_threshold_secs: 1}
delivery: {timeout: 5s}
workflows:
  many:
    source: shop
    steps:
      - name: fan
        type: parallel
        branches:
          - {name: one, url: http://receiver/one}
          - name: items
            steps:
              - {name: first, url: http://receiver/first, result_path: null}
              - {name: each, type: map, items_path: $.items, max_concurrency: 3, iterator: {name: item, url: http://receiver/item}}
          - {name: pause, steps: [{name: nap, type: wait, seconds: 1, goto: two}, {name: two, type: parallel, branches: [{name: a, url: http://receiver/a}, {name: b, url: http://receiver/b}]}]}
      - {name: last, url: http://receiver/last, input: $, result_path: null}
`

const manyOutput = `{"items":[{"did":"item"},{"did":"item"},{"did":"item"},{"did":"item"},{"did":"item"}],"one":{"did":"one"},"pause":{"a":{"did":"a"},"b":{"did":"b"}}}`

// manyJoins are the steps of many that are joined.
var manyJoins = []string{"fan", "fan/items/each", "fan/pause/two"}

// TestManyWorkers runs eight workers on one database, like processes. They are killed at
// random and replaced. Time goes twenty times as fast as elsewhere, so that their leases end
// soon.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	runs, deaths := 200, 30
	if testing.Short() {
		runs, deaths = 30, 5
	}
	url := servers.Postgres(t)
	w := newWorld(t, place{"postgres", store.Postgres, func(t testing.TB) store.Conn { return pooled(t, url, 4) }}, many)
	w.clock.speed = 20
	for range runs {
		w.accept("order", `{"items": [1, 2, 3, 4, 5]}`)
	}
	f := &fleet{world: w, url: url}
	for i := range f.workers {
		f.start(i)
	}
	killed := f.kill(t, deaths)
	f.stop()
	t.Logf("%d runs, %d workers killed, %d calls", runs, killed, len(w.receiver.take()))
	checkMany(t, w, runs)
}

func pooled(t testing.TB, url string, n int) store.Conn {
	conn, err := postgres.Open(context.Background(), url, n)
	return opened(t, conn, err)
}

// A fleet is eight workers of one database.
type fleet struct {
	*world
	url     string
	workers [8]struct {
		fuse   *fuse
		cancel context.CancelFunc
	}
	all sync.WaitGroup
}

// start starts a worker with its own connection.
func (f *fleet) start(i int) {
	w, fuse := &f.workers[i], newFuse(0)
	conn := pooled(f.t, f.url, 3)
	f.wrap = func(store.Conn) store.Conn { return cut{conn, fuse} }
	g := f.begin()
	ctx, cancel := context.WithCancel(context.Background())
	w.fuse, w.cancel = fuse, cancel
	f.all.Go(func() {
		if _, err := g.Worker.Tick(ctx, core.Budget{Rest: 50 * time.Millisecond}); err != nil {
			f.t.Errorf("tick: %v", err)
		}
	})
}

// A cut connection stops when its fuse is dead: neither batches nor their answers pass then.
type cut struct {
	store.Conn
	fuse *fuse
}

func (c cut) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if !c.fuse.alive() {
		return nil, errDead
	}
	results, err := c.Conn.Batch(ctx, stmts...)
	if !c.fuse.alive() {
		return nil, errDead
	}
	return results, err
}

// kill kills workers and starts others in their place, until it has killed deaths of them or
// all runs are finished. Then it waits for the end of all runs. It returns the number of
// killed workers.
func (f *fleet) kill(t *testing.T, deaths int) (killed int) {
	t.Helper()
	beat := time.NewTicker(50 * time.Millisecond)
	defer beat.Stop()
	for start := time.Now(); f.open() > 0; <-beat.C {
		if time.Since(start) > 3*time.Minute {
			t.Fatalf("%d runs are still open after 3 minutes", f.open())
		}
		if killed < deaths {
			i := rand.IntN(len(f.workers))
			f.workers[i].fuse.kill()
			f.workers[i].cancel()
			f.start(i)
			killed++
		}
	}
	return killed
}

// open returns the number of unfinished runs.
func (f *fleet) open() int {
	return int(f.query("SELECT COUNT(*) AS n FROM runs WHERE status IN ('pending', 'running')")[0][0].(int64))
}

func (f *fleet) stop() {
	for _, w := range f.workers {
		w.cancel()
	}
	f.all.Wait()
}

func checkMany(t *testing.T, w *world, runs int) {
	t.Helper()
	all := w.runs()
	if len(all) != runs {
		t.Fatalf("%d runs, want %d", len(all), runs)
	}
	for _, r := range all {
		if r = w.run(r.ID); r.Status != core.RunCompleted || string(r.Output) != manyOutput {
			t.Errorf("run %s is %s (%s) with %s", r.ID, r.Status, r.Error, r.Output)
		}
		joined := map[string]int{}
		for _, e := range w.history(r.ID) {
			joined[fmt.Sprint(e.Type, " ", e.Path)]++
		}
		for _, path := range manyJoins {
			if n := joined["step_succeeded "+path]; n != 1 {
				t.Errorf("run %s: %s was joined %d times, want once", r.ID, path, n)
			}
		}
	}
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
