package manage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A canceler cancels the pending runs of a desk. Before it looks at a run, it calls before.
type canceler struct {
	w        *watched
	before   func()
	canceled []core.ID
}

func (c *canceler) CancelPending(ctx context.Context, id core.ID) (core.Run, error) {
	if c.before != nil {
		c.before()
	}
	run, err := c.w.Run(ctx, id)
	if err != nil {
		return run, err
	}
	if run.Status != core.RunPending {
		return run, core.Refuse(core.Invalid, "it is %s", run.Status)
	}
	c.canceled = append(c.canceled, id)
	return run, c.w.move(run, core.RunCanceled)
}

// move changes the status of a run, as a runner does.
func (w *watched) move(run core.Run, to core.RunStatus) error {
	t := core.Transition{Mark: core.ID(string(run.ID) + string(to)), Seq: run.Seq, Run: run, Entries: []core.Entry{{Seq: run.Seq + 1, At: noon, Epoch: 1}}}
	t.Run.Seq, t.Run.Status = run.Seq+1, to
	_, err := w.Transit(context.Background(), t)
	return err
}

// runOf returns the only run of an event.
func (w *watched) runOf(t *testing.T, event core.ID) core.Run {
	t.Helper()
	page, err := w.Runs(t.Context(), core.RunFilter{EventID: event})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("Runs = %v, %v, want one", page.Items, err)
	}
	return page.Items[0]
}

func TestCancel(t *testing.T) {
	for _, tt := range []struct {
		name   string
		event  int // 0 has a job, 1 a job and a run, 2 nothing
		status core.RunStatus
		race   bool // a worker begins the run after it was listed
		want   Canceled
		fact   *core.EventCanceled
	}{
		{"a job", 0, "", false, Canceled{Cancellation: core.Cancellation{Canceled: 1}}, &core.EventCanceled{Jobs: 1}},
		{"a pending run", 1, core.RunPending, false, Canceled{Cancellation: core.Cancellation{Canceled: 1}, CanceledRuns: []core.ID{"run"}}, &core.EventCanceled{Jobs: 1, Runs: 1}},
		{"a running run", 1, core.RunRunning, false, Canceled{Cancellation: core.Cancellation{Canceled: 1}, RunningRuns: []core.ID{"run"}}, &core.EventCanceled{Jobs: 1}},
		{"a run that is begun meanwhile", 1, core.RunPending, true, Canceled{Cancellation: core.Cancellation{Canceled: 1}, RunningRuns: []core.ID{"run"}}, &core.EventCanceled{Jobs: 1}},
		{"a finished run", 1, core.RunFailed, false, Canceled{Cancellation: core.Cancellation{Canceled: 1}}, &core.EventCanceled{Jobs: 1}},
		{"no jobs", 2, "", false, Canceled{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, w := desk(t, 3)
			var told []core.Fact
			e.Observe = func(f core.Fact) { told = append(told, f) }
			runs := &canceler{w: w}
			e.Runs = runs
			id := numbered(tt.event)
			if tt.event == 1 {
				run := w.runOf(t, id)
				if tt.status != core.RunPending {
					if err := w.move(run, tt.status); err != nil {
						t.Fatal(err)
					}
				}
				if tt.race {
					runs.before = func() { _ = w.move(run, core.RunRunning) }
				}
				for _, ids := range []*[]core.ID{&tt.want.CanceledRuns, &tt.want.RunningRuns} {
					if len(*ids) > 0 {
						*ids = []core.ID{run.ID}
					}
				}
			}
			got, err := e.Cancel(t.Context(), id)
			tt.want.Event = id
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("Cancel: %v (-want +got):\n%s", err, diff)
			}
			if !slices.Equal(runs.canceled, got.CanceledRuns) {
				t.Errorf("canceled runs: %v, but the result has %v", runs.canceled, got.CanceledRuns)
			}
			var facts []core.Fact
			if tt.fact != nil {
				tt.fact.ID = id
				facts = append(facts, *tt.fact)
			}
			if diff := cmp.Diff(facts, told); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// Cancel rings for the lanes whose lines may go on, and for no other.
func TestCancelRings(t *testing.T) {
	e, w := desk(t, 0)
	event := core.Event{ID: numbered(1), Source: "shop", Type: "a", Payload: []byte("{}"), CreatedAt: noon}
	_, err := w.Accept(t.Context(), core.Arrival{Event: event, Jobs: []core.NewJob{
		{ID: core.FirstID(noon), Lane: "handler/plain", MaxAttempts: 1},
		{ID: core.FirstID(noon.Add(time.Second)), Lane: "handler/lined", MaxAttempts: 1, Line: core.Line{Key: "7", Limit: 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.Bell = &core.Bell{}
	heard := e.Bell.Listen("handler/plain", "handler/lined")
	for i, want := range [][]core.Lane{{"handler/lined"}, nil} { // the second call cancels nothing
		e.clock = func() time.Time { return noon.Add(time.Duration(i) * time.Minute) }
		if _, err := e.Cancel(t.Context(), event.ID); err != nil {
			t.Fatal(err)
		}
		if rung := heard.Rung(); !slices.Equal(rung, want) {
			t.Errorf("rung for %q, want %q", rung, want)
		}
	}
}

// The event of an operation is refused: without its job, no worker would do the operation, and it would run for ever.
func TestCancelOperation(t *testing.T) {
	e, w := desk(t, 0)
	event := core.Event{ID: numbered(1), Source: core.AlertSource, Type: core.OperationEvent + "retry", Payload: []byte("{}"), CreatedAt: noon}
	job := core.NewJob{ID: core.FirstID(noon), Lane: core.OperationLane, MaxAttempts: core.Unlimited}
	if _, err := w.Accept(t.Context(), core.Arrival{Event: event, Jobs: []core.NewJob{job}}); err != nil {
		t.Fatal(err)
	}
	got, err := e.Cancel(t.Context(), event.ID)
	if want := "event " + string(event.ID) + " is an operation; to end it, cancel the operation"; !core.IsKind(err, core.Invalid) || err.Error() != want || got.Canceled != 0 {
		t.Errorf("Cancel = %+v, %v; want %q", got, err, want)
	}
	if j, err := w.Job(t.Context(), job.ID); err != nil || j.Status != core.Available {
		t.Errorf("its job is %+v, %v; want that it is available", j, err)
	}
}

// A second Cancel changes nothing, and says nothing to the log.
func TestCancelAgain(t *testing.T) {
	e, w := desk(t, 2)
	e.Runs = &canceler{w: w}
	if _, err := e.Cancel(t.Context(), numbered(1)); err != nil {
		t.Fatal(err)
	}
	e.clock = func() time.Time { return noon.Add(2 * time.Hour) }
	e.Observe = func(f core.Fact) { t.Errorf("told %+v, want nothing", f) }
	got, err := e.Cancel(t.Context(), numbered(1))
	want := Canceled{Event: numbered(1), Cancellation: core.Cancellation{Finished: 1}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Cancel again: %v (-want +got):\n%s", err, diff)
	}
}

func TestCancelRefusals(t *testing.T) {
	e, w := desk(t, 2)
	if _, err := e.Cancel(t.Context(), numbered(7)); err != ErrEvent {
		t.Errorf("Cancel of a missing event = %v, want %v", err, ErrEvent)
	}
	lost := errors.New("lost")
	e.Runs = refusing{lost}
	got, err := e.Cancel(t.Context(), numbered(1))
	if err != lost || got.Canceled != 1 {
		t.Errorf("Cancel with runs that cannot be canceled = %+v, %v, want the error, after the job was canceled", got, err)
	}
	if job := w.runOf(t, numbered(1)); job.Status != core.RunPending {
		t.Errorf("the run is %s", job.Status)
	}
}

// refusing cancels no run.
type refusing struct{ err error }

func (r refusing) CancelPending(context.Context, core.ID) (core.Run, error) { return core.Run{}, r.err }
