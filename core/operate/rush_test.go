package operate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/operate"
)

// rushing is a world with dead jobs of two handlers and of a workflow, and a service that does
// operations itself.
func rushing(t *testing.T, each int) *world {
	w := newWorld(t)
	for range each {
		w.put("shop", "{}", "handler/a", "handler/b", "workflow/w")
	}
	for _, l := range []core.Lane{"handler/a", "handler/b", "workflow/w"} {
		w.fail(l, "timeout")
	}
	w.deps.Rush = 20
	w.service.Doer, w.service.Bell = operate.New(w.deps), &core.Bell{}
	time.Sleep(time.Second)
	return w
}

// do retries all dead jobs at once, for a person whose change the audit keeps.
func (w *world) do(ctx context.Context, did func(operate.Batch, core.Operation)) (core.Operation, error) {
	return w.service.Do(core.WithActor(ctx, core.Actor{Name: "os:ann", Via: core.ViaCommand}), manage.Rush{
		Operation: core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Status: string(core.Dead)}},
		Change:    core.Change{Action: core.AuditRetry, Target: core.AllTargets}, Did: did,
	})
}

// wantRetried checks that the dead jobs of handlers were retried exactly once each.
func (w *world) wantRetried(each int) {
	w.t.Helper()
	for lane, status := range map[core.Lane]core.Status{"handler/a": core.Available, "handler/b": core.Available, "workflow/w": core.Dead} {
		n := 0
		for f := (core.JobFilter{Lane: lane, Limit: core.MaxPage}); ; {
			page, err := w.Jobs(context.Background(), f)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, j := range page.Items {
				if n++; j.Status != status || status == core.Available && j.MaxAttempts != 2 {
					w.t.Fatalf("job %+v, want it %s, and retried once unless it is a step", j, status)
				}
				f.After = j.ID
			}
			if !page.More {
				break
			}
		}
		if n != each {
			w.t.Errorf("%d jobs of %s, want %d", n, lane, each)
		}
	}
}

// An operation without a rate takes no time of its own. It has one entry of the audit, and a worker only
// completes its job.
func TestRush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 25 // three slices
		w := rushing(t, each)
		began, slices := w.now(), 0
		op, err := w.do(context.Background(), func(b operate.Batch, op core.Operation) { slices++ })
		if err != nil || op.State != core.OperationFinished || op.Acted != 2*each || op.Rate != 0 || op.By != "os:ann" {
			t.Fatalf("Do = %+v, %v; want %d jobs retried", op, err, 2*each)
		}
		if took := w.now().Sub(began); took != 0 || slices != 3 {
			t.Errorf("%d slices in %s, want 3 without a pause", slices, took)
		}
		w.wantRetried(each)
		page, err := w.Audited(context.Background(), core.AuditFilter{})
		if err != nil || len(page.Items) != 1 || page.Items[0].Action != core.AuditRetry || page.Items[0].Detail["operation"] != string(op.ID) {
			t.Errorf("Audited = %+v, %v; want one entry, which names the operation", page.Items, err)
		}
		if w.attempt(operate.New(w.deps)) {
			t.Error("the job of the operation is due at once, want it left to the process that began it")
		}
		time.Sleep(operate.Head)
		if !w.attempt(operate.New(w.deps)) || len(w.take()) != 0 {
			t.Error("a worker did not complete the job of the operation")
		}
		if again, err := w.do(context.Background(), nil); err != nil || again.ID != "" {
			t.Errorf("Do without a dead job = %+v, %v; want no operation", again, err)
		}
		if all, err := w.OperationList(context.Background(), "", 10); err != nil || len(all.Items) != 1 {
			t.Errorf("%d operations, %v; want 1", len(all.Items), err)
		}
	})
}

// A worker soon goes on with an operation that a process left because its caller went away, its time was
// over or its store failed. Each job is retried once.
func TestRushLeft(t *testing.T) {
	away := errors.New("connection lost")
	for name, c := range map[string]struct {
		within time.Duration
		err    error
	}{"the caller went away": {0, context.Canceled}, "the time is over": {time.Second, nil}, "the store failed": {0, away}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const each = 25
				w := rushing(t, each)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				w.service.Within = c.within
				store := &failing{Store: w.Model}
				walker := w.deps.Walker
				walker.Store = store
				deps := w.deps
				deps.Walker = walker
				w.service.Doer = operate.New(deps)
				op, err := w.do(ctx, func(operate.Batch, core.Operation) {
					switch {
					case c.within > 0:
						time.Sleep(c.within)
					case c.err == away:
						store.err = away
					default:
						cancel()
					}
				})
				if !errors.Is(err, c.err) || op.ID == "" || op.State != core.OperationRunning || op.Acted != w.deps.Rush {
					t.Fatalf("Do = %+v, %v; want that it goes on after %d jobs, and %v", op, err, w.deps.Rush, c.err)
				}
				time.Sleep(operate.Head)
				if done := w.run(op, func() {}); done.State != core.OperationFinished || done.Acted != 2*each {
					t.Errorf("%+v, want that a worker finished it", done)
				}
				w.wantRetried(each)
			})
		})
	}
}

// failing is a store whose slices fail once err is set.
type failing struct {
	operate.Store
	err error
}

func (f *failing) DoSlice(ctx context.Context, now time.Time, s core.Slice) (core.Operation, error) {
	if f.err != nil {
		return core.Operation{}, f.err
	}
	return f.Store.DoSlice(ctx, now, s)
}

// A worker leaves an operation alone while another process does its slices.
func TestRushBesideWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 120
		w := rushing(t, each)
		ours, looks := 0, 0
		end := make(chan struct{})
		go func() {
			defer close(end)
			// Each slice takes 300 ms, so there are slices for longer than Head.
			op, err := w.do(context.Background(), func(operate.Batch, core.Operation) { ours++; time.Sleep(300 * time.Millisecond) })
			if err != nil || op.Acted != 2*each || op.Seq != ours {
				t.Errorf("Do = %+v, %v after %d slices; want that it did all of them", op, err, ours)
			}
		}()
		for busy := true; busy; {
			select {
			case <-end:
				busy = false
			case <-time.After(50 * time.Millisecond):
				if w.attempt(operate.New(w.deps)) {
					looks++
				}
			}
		}
		if looks == 0 || looks > 3 {
			t.Errorf("a worker looked %d times within four seconds, want each %s", looks, operate.Head)
		}
		w.wantRetried(each)
	})
}
