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

// replaying is a world with events without jobs, and a service that does operations itself.
func replaying(t *testing.T, events int) (*world, []core.ID) {
	w := newWorld(t)
	var ids []core.ID
	for range events {
		ids = append(ids, w.put("shop", "{}").Event.ID)
	}
	w.deps.Rush = 20
	w.service.Doer, w.service.Observe = operate.New(w.deps), w.deps.Observe
	time.Sleep(time.Second)
	return w, ids
}

// replay replays the events from one to another at once.
func (w *world) replay(ctx context.Context, f core.OperationFilter, did func(operate.Batch, core.Operation)) (core.Operation, error) {
	return w.service.Do(ctx, manage.Rush{Operation: core.Operation{Action: core.ReplayAction, Filter: f},
		Change: core.Change{Action: core.AuditReplay, Target: core.AllTargets}, Did: did})
}

// wantReplayed checks that some events have one job for each consumer, and all others none, and that the
// facts say so.
func (w *world) wantReplayed(all, replayed []core.ID) {
	w.t.Helper()
	want := map[core.ID]int{}
	for _, id := range replayed {
		want[id] = 2
	}
	jobs, err := w.JobsOf(context.Background(), all)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, id := range all {
		if len(jobs[id]) != want[id] {
			w.t.Errorf("event %d has %d jobs, want %d", i, len(jobs[id]), want[id])
		}
	}
	for _, f := range w.facts {
		if f, ok := f.(core.Replayed); ok {
			want[f.Event.ID] -= len(f.Asked)
		}
	}
	for id, n := range want {
		if n != 0 {
			w.t.Errorf("the facts of event %s miss %d jobs, or have too many", id, n)
		}
	}
}

// A replay of a span without a rate gives jobs to exactly the events of the span. A worker soon goes on
// with one that a process left. Each event is replayed once.
func TestRushOfReplay(t *testing.T) {
	away := errors.New("connection lost")
	for name, c := range map[string]struct {
		within  time.Duration
		err     error
		unwound bool
	}{
		"done":                 {0, nil, false},
		"the caller went away": {0, context.Canceled, true},
		"the time is over":     {time.Second, nil, true},
		"the store failed":     {0, away, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, ids := replaying(t, 75)
				part := ids[5:65] // three slices
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				store := &failing{Store: w.Model}
				w.service.Within = c.within
				deps := w.deps
				deps.Walker.Store = store
				w.service.Doer = operate.New(deps)
				op, err := w.replay(ctx, core.OperationFilter{Source: "shop", First: part[0], Last: part[59]}, func(operate.Batch, core.Operation) {
					switch {
					case c.within > 0:
						time.Sleep(c.within)
					case c.err == away:
						store.err = away
					case c.unwound:
						cancel()
					}
				})
				if !errors.Is(err, c.err) || op.ID == "" || (op.State == core.OperationRunning) != c.unwound {
					t.Fatalf("Do = %+v, %v; want that it goes on: %t, and %v", op, err, c.unwound, c.err)
				}
				if c.unwound {
					if op.Acted != w.deps.Rush {
						t.Errorf("%d events were replayed, want one slice", op.Acted)
					}
					time.Sleep(operate.Head)
					op = w.run(op, func() {})
				}
				if op.State != core.OperationFinished || op.Acted != 60 || op.Looked != 60 || op.Seq != 3 {
					t.Errorf("%+v, want that it looked at 60 events and replayed them, in three slices", op)
				}
				w.wantReplayed(ids, part)
			})
		})
	}
}

// A filter with the id of a delivery selects that event. A span may begin and end between events, and may
// have none.
func TestReplaySelections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ids := replaying(t, 3)
		a := core.Arrival{Event: core.Event{ID: w.ids.Next(), Source: "shop", Type: "order", DeliveryID: "evt_1", Payload: []byte("{}"), CreatedAt: w.now()}}
		if _, err := w.Accept(context.Background(), a); err != nil {
			t.Fatal(err)
		}
		all := append(ids, a.Event.ID)
		time.Sleep(time.Second)
		for _, c := range []struct {
			filter core.OperationFilter
			acted  int
		}{
			{core.OperationFilter{DeliveryID: "evt_1"}, 1},
			{core.OperationFilter{DeliveryID: "evt_1", Source: "other"}, 0},
			{core.OperationFilter{First: a.Event.ID.Next(), Last: a.Event.ID.Next()}, 0},
			{core.OperationFilter{Last: ids[0].Next()}, 1}, // between two events
		} {
			if op, err := w.replay(context.Background(), c.filter, nil); err != nil || op.Acted != c.acted || (op.ID != "") != (c.acted > 0) {
				t.Errorf("Do(%+v) = %+v, %v; want %d events", c.filter, op, err, c.acted)
			}
		}
		w.wantReplayed(all, []core.ID{ids[0], a.Event.ID})
	})
}

// A slice of large events has few of them, since they are all in memory.
func TestReplayOfLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := replaying(t, 0)
		var ids []core.ID
		for range 12 {
			ids = append(ids, w.put("shop", string(make([]byte, core.MaxRead/4))).Event.ID)
		}
		time.Sleep(time.Second)
		most := 0
		op, err := w.replay(context.Background(), core.OperationFilter{Source: "shop"}, func(b operate.Batch, _ core.Operation) { most = max(most, b.Matches()) })
		if err != nil || op.Acted != 12 || most != 4 {
			t.Errorf("Do = %+v, %v, with at most %d events in a slice; want 12 events, and 4", op, err, most)
		}
		w.wantReplayed(ids, ids)
	})
}

// An operation is begun without a match after about two seconds, so that it is not lost either. Then it
// ends like any other. If nothing is left to look at, there is none, but the numbers are right, and the
// filters that failed are reported.
func TestRushLooksForItsFirstMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ids := replaying(t, 2050) // more than one Next looks at
		slow := &slowReads{Store: w.Model}
		walker, match := w.deps.Walker, w.deps.Match
		walker.Store = slow
		walker.Match = func(e core.Event) core.Arrival {
			if e.ID == ids[2049] {
				return match(e)
			}
			return core.Arrival{Event: e, Undecided: []core.Undecided{{Lane: "handler/a"}}}
		}
		w.service = manage.NewOperations(walker, w.ids, w.now)
		w.service.Observe = w.deps.Observe
		deps := w.deps
		deps.Walker, deps.Rush = walker, core.MaxRush
		w.service.Doer = operate.New(deps)
		failed := func() (n int) {
			for _, f := range w.facts {
				if _, ok := f.(core.FilterFailed); ok {
					n++
				}
			}
			return n
		}
		op, err := w.replay(context.Background(), core.OperationFilter{Last: ids[2039]}, nil)
		if err != nil || op.ID != "" || op.Looked != 2040 || op.Skipped != 2040 || failed() != 2040 {
			t.Errorf("Do of what nobody wants = %+v, %v, with %d filters that failed; want no operation, and 2040", op, err, failed())
		}
		slow.wait = 150 * time.Millisecond
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		op, err = w.replay(cut, core.OperationFilter{First: ids[0]}, nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Do = %+v, %v; want that the caller has gone", op, err)
		}
		page, err := w.OperationList(context.Background(), "", 2)
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%d operations, %v; want one", len(page.Items), err)
		}
		slow.wait, w.deps = 0, deps
		if done := w.run(page.Items[0], func() {}); done.Acted != 1 || done.State != core.OperationFinished {
			t.Errorf("%+v, want that one event was replayed", done)
		}
	})
}

// slowReads is a store whose reads of events take a time each.
type slowReads struct {
	operate.Store
	wait time.Duration
}

func (s *slowReads) Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error) {
	time.Sleep(s.wait)
	return s.Store.Read(ctx, from, f)
}
