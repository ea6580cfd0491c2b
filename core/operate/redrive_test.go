package operate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
	"github.com/eventgateway/gateway/store/storetest"
)

// A clinic is a store in memory with failed runs, which it redrives. Each redriven run fails again at
// once.
type clinic struct {
	*storetest.Model
	now      core.Clock
	runs     []core.Run // the newest first
	redriven map[core.ID]int
	broken   core.ID // the redrive of this run fails once
	healthy  core.ID // this run is refused: another caller redrove it
}

// Runs implements [core.Chronicle].
func (c *clinic) Runs(_ context.Context, f core.RunFilter) (page core.Page[core.Run], err error) {
	for _, r := range c.runs {
		if f.After != "" && r.ID >= f.After || r.Status != f.Status || f.Workflow != "" && r.Workflow != f.Workflow {
			continue
		}
		if len(page.Items) == f.Limit {
			page.More = true
			break
		}
		page.Items = append(page.Items, r)
	}
	return page, nil
}

// Newest implements [core.Archive].
func (c *clinic) Newest(ctx context.Context) (id core.ID, finished time.Time, err error) {
	id, finished, err = c.Model.Newest(ctx)
	for _, r := range c.runs {
		if id = max(id, r.ID); r.FinishedAt.After(finished) {
			finished = r.FinishedAt
		}
	}
	return id, finished, err
}

// Redrive implements [operate.Mover].
func (c *clinic) Redrive(_ context.Context, run core.ID, _ bool, _ core.Definition) (core.Run, error) {
	switch run {
	case c.broken:
		c.broken = ""
		return core.Run{}, core.Refuse(core.Unavailable, "the store is away")
	case c.healthy:
		return core.Run{}, core.Refuse(core.Invalid, "the run is running")
	}
	c.redriven[run]++
	for i := range c.runs {
		if c.runs[i].ID == run {
			c.runs[i].FinishedAt = c.now().Add(time.Millisecond)
		}
	}
	return core.Run{}, nil
}

// TestRedrive: each run that had failed when the operation was made is redriven once and counted once,
// also if it fails again, and if a redrive fails in the middle of a slice. Since bounds the runs.
func TestRedrive(t *testing.T) { synctest.Test(t, testRedrive) }

func testRedrive(t *testing.T) {
	w := newWorld(t)
	c := &clinic{Model: w.Model, now: w.now, redriven: map[core.ID]int{}}
	var since time.Time
	for i := range 40 {
		if i == 10 {
			time.Sleep(time.Second)
			since = w.now()
		}
		name := []string{"fulfil", "other"}[i%2]
		c.runs = append([]core.Run{{ID: w.ids.Next(), Workflow: name, Status: core.RunFailed, FinishedAt: w.now(), Error: "status: 500"}}, c.runs...)
	}
	c.broken, c.healthy = c.runs[13].ID, c.runs[15].ID // both of fulfil
	time.Sleep(time.Second)
	w.deps.Store, w.deps.Mover = c, c
	op := w.begin(core.Operation{Action: core.RedriveAction, Filter: core.OperationFilter{Lane: "workflow/fulfil", Since: since}, Rate: 50})

	doer, failed := operate.New(w.deps), 0
	for range 100 {
		for _, j := range w.take() {
			end, _, err := doer.Attempt(context.Background(), j)
			if err != nil { // the worker gives the job back
				failed++
				if err := w.Release(context.Background(), w.now(), j.Job); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if _, err := doer.Settle(context.Background(), end); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
	}
	got, err := w.Operation(t.Context(), op.ID)
	if err != nil || got.State != core.OperationFinished || got.Acted != 14 || got.Skipped != 1 || failed != 1 {
		t.Errorf("operation = %+v, %v, with %d failures; want 14 runs redriven, 1 skipped, and one failure", got, err, failed)
	}
	for i, r := range c.runs {
		want := 0
		if i < 30 && r.Workflow == "fulfil" && r.ID != c.healthy {
			want = 1
		}
		if c.redriven[r.ID] != want {
			t.Errorf("run %d of %s was redriven %d times, want %d", i, r.Workflow, c.redriven[r.ID], want)
		}
	}
}

// A partial store leaves one job out of the first slice, as a store does with a job that another caller
// has locked: the cursor stays.
type partial struct {
	*storetest.Model
	done  bool
	after func() // is called after that slice
}

// DoSlice implements [core.OperationLog].
func (p *partial) DoSlice(ctx context.Context, now time.Time, s core.Slice) (core.Operation, error) {
	if !p.done && len(s.Jobs) > 1 {
		p.done = true
		s.Jobs, s.Cursor, s.State = s.Jobs[1:], s.Operation.Cursor, core.OperationRunning
		defer p.after()
	}
	return p.Model.DoSlice(ctx, now, s)
}

// TestPartialSlice: a slice that left a job out is walked again. The jobs that it retried and that died
// again are no matches then.
func TestPartialSlice(t *testing.T) { synctest.Test(t, testPartialSlice) }

func testPartialSlice(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.put("shop", "{}", "handler/a")
	}
	w.fail("handler/a", "status: 500")
	time.Sleep(time.Second)
	died := 0
	die := func() {
		time.Sleep(time.Millisecond)
		died += w.fail("handler/a", "status: 500")
	}
	w.deps.Store = &partial{Model: w.Model, after: die}
	got := w.run(w.begin(core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/a"}, Rate: 50}), die)
	if got.State != core.OperationFinished || got.Acted != 20 || died != 20 {
		t.Errorf("operation = %+v, and %d jobs were tried again; want 20", got, died)
	}
}
