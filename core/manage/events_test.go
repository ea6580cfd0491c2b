package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
	"github.com/eventgateway/gateway/store/storetest"
)

var errDisk = errors.New("disk full")

// watched is a store that records its calls, fails at the nth call of a method, and calls the
// function before ahead of each Read.
type watched struct {
	*storetest.Model
	asked    []string
	replayed []core.ID // events
	broken   string    // "Read 2" fails at its second call
	calls    map[string]int
	most     int // the most attempts that one call returned
	before   func()
}

func (w *watched) ask(method string) error {
	w.asked = append(w.asked, method)
	w.calls[method]++
	if w.broken == fmt.Sprintf("%s %d", method, w.calls[method]) {
		return errDisk
	}
	return nil
}

func (w *watched) Nth(ctx context.Context, f core.EventFilter, n int) (core.ID, error) {
	if err := w.ask("Nth"); err != nil {
		return "", err
	}
	return w.Model.Nth(ctx, f, n)
}

func (w *watched) Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error) {
	if err := w.ask("Read"); err != nil {
		return core.Page[core.Event]{}, err
	}
	if w.before != nil {
		w.before()
	}
	return w.Model.Read(ctx, from, f)
}

func (w *watched) Event(ctx context.Context, id core.ID) (core.Event, error) {
	if err := w.ask("Event"); err != nil {
		return core.Event{}, err
	}
	return w.Model.Event(ctx, id)
}

func (w *watched) JobsOf(ctx context.Context, events []core.ID) (map[core.ID][]core.Job, error) {
	if err := w.ask("JobsOf"); err != nil {
		return nil, err
	}
	return w.Model.JobsOf(ctx, events)
}

func (w *watched) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	if err := w.ask("AttemptsOf"); err != nil {
		return nil, err
	}
	of, err := w.Model.AttemptsOf(ctx, jobs)
	n := 0
	for _, attempts := range of {
		n += len(attempts)
	}
	w.most = max(w.most, n)
	return of, err
}

func (w *watched) Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	if err := w.ask("Runs"); err != nil {
		return core.Page[core.Run]{}, err
	}
	return w.Model.Runs(ctx, f)
}

func (w *watched) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error) {
	if err := w.ask("Replay"); err != nil {
		return 0, err
	}
	for _, a := range arrivals {
		w.replayed = append(w.replayed, a.Event.ID)
	}
	return w.Model.Replay(ctx, now, arrivals...)
}

func (w *watched) BeginOperation(ctx context.Context, op core.Operation, a core.Arrival) error {
	if err := w.ask("BeginOperation"); err != nil {
		return err
	}
	return w.Model.BeginOperation(ctx, op, a)
}

func (w *watched) DoSlice(ctx context.Context, now time.Time, s core.Slice) (core.Operation, error) {
	if err := w.ask("DoSlice"); err != nil {
		return core.Operation{}, err
	}
	for _, a := range s.Arrivals {
		w.replayed = append(w.replayed, a.Event.ID)
	}
	return w.Model.DoSlice(ctx, now, s)
}

// desk makes a service over a store with events of types "a", "b" and "nobody" in turn, one
// second apart, from noon on. An event of type "b" has a run beside its job.
func desk(t interface{ Fatal(...any) }, events int) (*Events, *watched) {
	clock := func() time.Time { return noon.Add(time.Hour) }
	w := &watched{Model: storetest.NewModel(clock), calls: map[string]int{}}
	ids := core.NewIDs(clock)
	e := NewEvents(w, clock, matching(ids))
	walker := operate.Walker{Store: w, Match: func(event core.Event) core.Arrival { return e.match(event) }}
	operations := NewOperations(walker, ids, clock)
	operations.Observe = func(f core.Fact) { tell(e.Observe, f) }
	operations.Doer = operate.New(operate.Deps{Walker: walker, IDs: ids, Clock: clock, Bell: &core.Bell{}, Observe: operations.Observe})
	e.Bulk = operations
	for i := range events {
		if err := w.add(i, e.match); err != nil {
			t.Fatal(err)
		}
	}
	return e, w
}

func numbered(i int) core.ID { return core.FirstID(noon.Add(time.Duration(i) * time.Second)) }

func (w *watched) add(i int, match Match) error {
	e := core.Event{ID: numbered(i), Source: "shop", Type: []string{"a", "b", "nobody"}[i%3], Payload: []byte("{}"), CreatedAt: noon.Add(time.Duration(i) * time.Second)}
	_, err := w.Accept(context.Background(), match(e))
	return err
}

func matching(ids *core.IDs) Match {
	return func(e core.Event) core.Arrival {
		a := core.Arrival{Event: e}
		if e.Type == "nobody" {
			return a
		}
		a.Jobs = []core.NewJob{{ID: ids.Next(), Lane: "handler/h", MaxAttempts: 1000}}
		if e.Type == "b" {
			job := core.NewJob{ID: ids.Next(), Lane: "workflow/w", MaxAttempts: core.Unlimited}
			a.Jobs = append(a.Jobs, job)
			a.Runs = []core.NewRun{{ID: ids.Next(), Workflow: "w", StepID: job.ID, Step: "s", StepType: "http", Definition: core.Definition{Hash: "h", Body: "{}"}}}
		}
		return a
	}
}

// wanted returns the ids of the events from number from to number to that have jobs.
func wanted(from, to int) (ids []core.ID) {
	for i := from; i <= to; i++ {
		if i%3 != 2 {
			ids = append(ids, numbered(i))
		}
	}
	return ids
}

func TestReplay(t *testing.T) {
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	for _, tt := range []struct {
		name   string
		events int
		filter core.EventFilter
		looked int
		want   []core.ID
		jobs   int
	}{
		{"the newest hundred unless told", 150, core.EventFilter{}, 100, wanted(50, 149), 99},
		{"fewer than asked for", 4, core.EventFilter{Limit: 10}, 4, wanted(0, 3), 4},
		{"one", 5, core.EventFilter{Limit: 1}, 1, wanted(4, 4), 2},
		{"the newest, which nobody wants", 6, core.EventFilter{Limit: 1}, 1, nil, 0},
		{"none that are selected", 6, core.EventFilter{Source: "gone"}, 0, nil, 0},
		{"none at all", 0, core.EventFilter{}, 0, nil, 0},
		{"those of a type", 9, core.EventFilter{Type: "b", Limit: 2}, 2, []core.ID{numbered(4), numbered(7)}, 4},
		{"those of a time", 20, core.EventFilter{Since: at(3), Until: at(6)}, 3, wanted(3, 5), 3},
		{"more than a chunk", 350, core.EventFilter{Limit: 301}, 301, wanted(49, 349), 302},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, w := desk(t, tt.events)
			stored := len(jobsIn(t, w))
			dry, err := e.Replay(t.Context(), tt.filter, Span{}, true)
			if want := (Replayed{Looked: tt.looked, Events: len(tt.want), Jobs: tt.jobs, Span: dry.Span}); dry != want || err != nil || len(w.replayed) > 0 || len(jobsIn(t, w)) != stored {
				t.Errorf("dry Replay = %+v, %v, with %d events replayed; want %+v and none", dry, err, len(w.replayed), want)
			}
			got, err := e.Replay(t.Context(), tt.filter, Span{}, false)
			if got != dry || err != nil {
				t.Errorf("Replay = %+v, %v, want %+v", got, err, dry)
			}
			if diff := cmp.Diff(tt.want, w.replayed); diff != "" {
				t.Errorf("events replayed (-want +got):\n%s", diff)
			}
			if n := len(jobsIn(t, w)); n != stored+tt.jobs {
				t.Errorf("%d jobs, %d before; want %d more", n, stored, tt.jobs)
			}
		})
	}
}

// jobsIn returns the stored jobs, without those of operations.
func jobsIn(t *testing.T, w *watched) (all []core.Job) {
	f := core.JobFilter{Limit: core.MaxPage}
	for {
		page, err := w.Model.Jobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if !page.More {
			return slices.DeleteFunc(all, func(j core.Job) bool { return j.Lane.Operation() })
		}
		f.After = all[len(all)-1].ID
	}
}

func TestReplayBounds(t *testing.T) {
	e, w := desk(t, 1)
	for _, limit := range []int{-1, MaxReplay + 1} {
		_, err := e.Replay(t.Context(), core.EventFilter{Limit: limit}, Span{}, false)
		if !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), "limit") || len(w.asked) > 0 {
			t.Errorf("Replay of %d = %v after %v, want a refusal before anything", limit, err, w.asked)
		}
	}
	if got, err := e.Replay(t.Context(), core.EventFilter{Limit: MaxReplay}, Span{}, false); got.Events != 1 || err != nil {
		t.Errorf("Replay of %d = %+v, %v", MaxReplay, got, err)
	}
}

// Events that arrive during a replay or an export are not included.
func TestWhatComesInMeanwhile(t *testing.T) {
	e, w := desk(t, 150)
	next := 150
	w.before = func() {
		for range 120 {
			if err := w.add(next, e.match); err != nil {
				t.Fatal(err)
			}
			next++
		}
	}
	if _, err := e.Replay(t.Context(), core.EventFilter{Limit: 1000}, Span{}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted(0, 149), w.replayed); diff != "" {
		t.Errorf("events replayed (-want +got):\n%s", diff)
	}
}

// After an error the caller gets the counts until then, and the operation that goes on if it was begun.
func TestReplayThatFails(t *testing.T) {
	for broken, want := range map[string]struct {
		events, jobs int
		going        bool
	}{
		"Nth 1": {}, "Nth 2": {}, "Read 1": {}, "BeginOperation 1": {},
		"DoSlice 1": {0, 0, true}, "DoSlice 3": {200, 300, true}, "Read 7": {100, 150, true},
	} {
		e, w := desk(t, 350)
		w.broken = broken
		got, err := e.Replay(t.Context(), core.EventFilter{Limit: 350}, Span{}, false)
		if got.Events != want.events || got.Jobs != want.jobs || (got.Going != "") != want.going || got.Next != "" || !errors.Is(err, errDisk) {
			t.Errorf("Replay where %s fails = %+v, %v, want %+v", broken, got, err, want)
		}
		page, err := w.OperationList(t.Context(), "", 2)
		if n := len(page.Items); err != nil || (n == 1) != want.going || n == 1 && page.Items[0].ID != got.Going {
			t.Errorf("%d operations where %s fails, %v; want one if the replay goes on", n, broken, err)
		}
	}
}

func TestReplayRingsForThoseWhoGetJobs(t *testing.T) {
	e, _ := desk(t, 3)
	e.Bell = &core.Bell{}
	listener := e.Bell.Listen("handler/h", "workflow/w", "queue/q")
	var told []core.Fact
	e.Observe = func(f core.Fact) { told = append(told, f) }
	if _, err := e.Replay(t.Context(), core.EventFilter{}, Span{}, true); err != nil || len(listener.Rung())+len(told) > 0 {
		t.Errorf("a dry replay rang or was told, or failed: %v", err)
	}
	got, err := e.ReplayOne(t.Context(), numbered(1))
	if want := (Replayed{Looked: 1, Events: 1, Jobs: 2, Span: Span{numbered(1), numbered(1)}}); got != want || err != nil {
		t.Errorf("ReplayOne = %+v, %v, want %+v", got, err, want)
	}
	if rung := listener.Rung(); !slices.Equal(rung, []core.Lane{"handler/h", "workflow/w"}) {
		t.Errorf("rang for %v", rung)
	}
	if f, ok := told[0].(core.Replayed); !ok || len(told) != 1 || f.Event.ID != numbered(1) || len(f.Asked) != 2 {
		t.Errorf("reported %+v, want that event %s was replayed for two", told, numbered(1))
	}
}

// TestReplayToSome: only the named consumers get jobs, if they want the event.
func TestReplayToSome(t *testing.T) {
	for _, c := range []struct {
		to   []core.Lane
		jobs int
		want string // of the refusal
	}{
		{nil, 2, ""},
		{[]core.Lane{"handler/h"}, 1, ""},
		{[]core.Lane{"workflow/w", "queue/q"}, 1, ""},
		{[]core.Lane{"queue/q"}, 0, ""},
		{[]core.Lane{"handler/gone"}, 0, `handler "gone" is not configured`},
		{[]core.Lane{"source/shop"}, 0, "is not a handler, queue or workflow"},
	} {
		e, w := desk(t, 3)
		e.Names = &Names{Handlers: []string{"h"}, Queues: []string{"q"}, Workflows: []string{"w"}, Sources: []string{"shop"}, Unknown: func(kind, name string, _ []string) error {
			return core.Refuse(core.NotFound, "%s %q is not configured", kind, name)
		}}
		got, err := e.ReplayOne(t.Context(), numbered(1), c.to...)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || len(w.replayed) > 0 {
				t.Errorf("ReplayOne to %v: %v, want %s", c.to, err, c.want)
			}
			continue
		}
		if err != nil || got.Jobs != c.jobs || got.Events != min(c.jobs, 1) {
			t.Errorf("ReplayOne to %v = %+v, %v, want %d jobs", c.to, got, err, c.jobs)
		}
	}
}

func TestEventsThatAreNotThere(t *testing.T) {
	e, w := desk(t, 3)
	var errs [3]error
	_, errs[0] = e.Inspect(t.Context(), "E")
	_, errs[1] = e.Jobs(t.Context(), "E")
	_, errs[2] = e.ReplayOne(t.Context(), "E")
	if want := [3]error{ErrEvent, ErrEvent, ErrEvent}; errs != want {
		t.Errorf("of an event that is not there: %v, want ErrEvent", errs)
	}
	if jobs, err := e.Jobs(t.Context(), numbered(2)); len(jobs) > 0 || err != nil {
		t.Errorf("Jobs of an event that nobody wants = %v, %v, want none", jobs, err)
	}
	if got, err := e.ReplayOne(t.Context(), numbered(2)); got.Events+got.Jobs > 0 || err != nil || len(w.replayed) > 0 {
		t.Errorf("ReplayOne of an event that nobody wants = %+v, %v", got, err)
	}
	for _, broken := range []string{"Event 1", "JobsOf 1", "Runs 1"} {
		e, w := desk(t, 3)
		w.broken = broken
		if _, err := e.Inspect(t.Context(), numbered(1)); !errors.Is(err, errDisk) {
			t.Errorf("Inspect where %s fails = %v", broken, err)
		}
	}
}

func TestInspectEvent(t *testing.T) {
	e, _ := desk(t, 3)
	got, err := e.Inspect(t.Context(), numbered(1))
	if err != nil || got.ID != numbered(1) || string(got.Payload) != "{}" || len(got.Jobs) != 2 || len(got.Runs) != 1 {
		t.Fatalf("Inspect = %+v, %v; want an event with two jobs and a run", got, err)
	}
	jobs, err := e.Jobs(t.Context(), numbered(1))
	if diff := cmp.Diff(got.Jobs, jobs); diff != "" || err != nil {
		t.Errorf("Jobs: %v (-inspected +got):\n%s", err, diff)
	}
	if jobs[0].ID > jobs[1].ID {
		t.Errorf("jobs %s, %s; want the one created first first", jobs[0].ID, jobs[1].ID)
	}
}

func TestExport(t *testing.T) {
	e, w := desk(t, 250)
	i := 40
	for told, err := range e.Export(t.Context(), core.EventFilter{}, 210, false) {
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 2, 0}[i%3]; told.ID != numbered(i) || string(told.Payload) != "{}" || len(told.Jobs) != want || len(told.Runs) != i%3%2 {
			t.Fatalf("event %d is %s with %d jobs and %d runs; want %s with %d and %d", i, told.ID, len(told.Jobs), len(told.Runs), numbered(i), want, i%3%2)
		}
		i++
	}
	if i != 250 || w.calls["JobsOf"] != 9 {
		t.Errorf("ended at event %d after %d questions for jobs; want 250 and 9", i, w.calls["JobsOf"])
	}
	if asked := w.calls["Runs"]; asked != 140 {
		t.Errorf("asked %d times for runs, want 140: of events without jobs, and of those with one of a workflow", asked)
	}
}

// A bare export has the same events, and reads nothing else.
func TestBareExport(t *testing.T) {
	e, w := desk(t, 250)
	i := 40
	for told, err := range e.Export(t.Context(), core.EventFilter{}, 210, true) {
		if err != nil {
			t.Fatal(err)
		}
		if told.ID != numbered(i) || string(told.Payload) != "{}" || told.Jobs != nil || told.Runs != nil || told.Attempts != nil {
			t.Fatalf("event %d is %+v, want %s alone", i, told, numbered(i))
		}
		i++
	}
	if read := w.calls["JobsOf"] + w.calls["AttemptsOf"] + w.calls["Runs"]; i != 250 || read != 0 {
		t.Errorf("ended at event %d after %d reads of jobs, attempts and runs; want 250 and none", i, read)
	}
	for range e.Export(t.Context(), core.EventFilter{}, 0, true) {
		break // a caller may end it
	}
}

func TestExportEndsAfterAnError(t *testing.T) {
	for broken, want := range map[string]int{"Nth 1": 0, "Nth 2": 0, "Read 1": 0, "Read 2": 100, "JobsOf 2": 25, "Runs 2": 2} {
		e, w := desk(t, 250)
		w.broken = broken
		n, failed := 0, 0
		for _, err := range e.Export(t.Context(), core.EventFilter{}, 250, false) {
			if err != nil {
				failed++
				continue
			}
			n++
		}
		if n != want || failed != 1 {
			t.Errorf("Export where %s fails yields %d events and %d errors, want %d and one", broken, n, failed, want)
		}
	}
}

// TestExportTellsAttempts: an export has all attempts of all jobs. Each query reads a bounded
// number of attempts, however often jobs were tried.
func TestExportTellsAttempts(t *testing.T) {
	e, w := desk(t, 12)
	jobs, err := w.Model.Jobs(t.Context(), core.JobFilter{Lane: "handler/h"})
	if err != nil || len(jobs.Items) != 8 {
		t.Fatalf("Jobs = %d, %v, want 8", len(jobs.Items), err)
	}
	now, tries := noon.Add(time.Hour), map[core.ID]int{}
	for i, j := range jobs.Items {
		tries[j.ID] = i * 25
	}
	for round := range 7 * 25 {
		now = now.Add(time.Minute)
		taken, err := w.Model.Take(t.Context(), now, []core.Quota{{Lane: "handler/h", N: 8, Hold: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range taken {
			o := core.Outcome{JobID: j.ID, Lease: j.Lease, Status: core.Retryable, DueAt: now.Add(time.Second), Attempt: core.Attempt{Number: j.Attempt, StartedAt: now, StatusCode: 503}}
			if tries[j.ID] <= round+1 {
				o.DueAt = now.Add(1000 * time.Hour)
			}
			if tries[j.ID] > round {
				if _, err := w.Model.Settle(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	told := 0
	for event, err := range e.Export(t.Context(), core.EventFilter{}, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range event.Jobs {
			attempts := event.Attempts[j.ID]
			if len(attempts) != tries[j.ID] || len(attempts) > 1 && !attempts[0].StartedAt.Before(attempts[1].StartedAt) {
				t.Errorf("job %s has %d attempts, want %d, the oldest first", j.ID, len(attempts), tries[j.ID])
			}
			told++
		}
	}
	if asked := w.calls["AttemptsOf"]; told != 12 || asked < 3 || asked > 6 || w.most > triedChunk {
		t.Errorf("%d jobs in %d questions for %d attempts at most; want 12 jobs, and no more than %d attempts each", told, asked, w.most, triedChunk)
	}
	w.broken = fmt.Sprintf("AttemptsOf %d", w.calls["AttemptsOf"]+2)
	for _, err = range e.Export(t.Context(), core.EventFilter{}, 0, false) {
	}
	if !errors.Is(err, errDisk) {
		t.Errorf("Export where attempts cannot be read ends with %v, want %v", err, errDisk)
	}
}

// An export that the caller stops makes no further queries.
func TestExportMayBeLeft(t *testing.T) {
	e, w := desk(t, 250)
	for range e.Export(t.Context(), core.EventFilter{}, 250, false) {
		break
	}
	if w.calls["Read"] != 1 {
		t.Errorf("%d reads, want one", w.calls["Read"])
	}
}

// For any stored events, filter and limit, an export has the newest n selected events, or all
// of them, the oldest first.
func TestExportIsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, w := desk(t, rapid.IntRange(0, 320).Draw(t, "events"))
		f := core.EventFilter{Type: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "type")}
		if rapid.Bool().Draw(t, "since") {
			f.Since = noon.Add(time.Duration(rapid.IntRange(0, 330).Draw(t, "from")) * time.Second)
		}
		n := rapid.IntRange(0, 330).Draw(t, "n")
		all, err := w.Model.Read(context.Background(), "", core.EventFilter{Type: f.Type, Since: f.Since, Limit: core.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		want := all.Items
		if n > 0 {
			want = all.Items[max(0, len(all.Items)-n):]
		}
		i := 0
		for told, err := range e.Export(context.Background(), f, n, false) {
			if err != nil || i >= len(want) || told.ID != want[i].ID {
				t.Fatalf("event %d of %d is %s, %v", i, len(want), told.ID, err)
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("%d events, want %d", i, len(want))
		}
	})
}
