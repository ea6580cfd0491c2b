package manage

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// A replay of a dry run's span replays the events that the dry run counted, although newer
// events were stored since.
func TestReplayOfWhatWasCounted(t *testing.T) {
	e, w := desk(t, 150)
	f := core.EventFilter{Limit: 100}
	counted, err := e.Replay(t.Context(), f, Span{}, true)
	if want := (Span{numbered(50), numbered(149)}); counted.Span != want || err != nil {
		t.Fatalf("dry Replay selects %v, %v, want %v", counted.Span, err, want)
	}
	for i := range 120 {
		if err := w.add(150+i, e.match); err != nil {
			t.Fatal(err)
		}
	}
	done, err := e.Replay(t.Context(), core.EventFilter{}, counted.Span, false)
	if done != counted || err != nil {
		t.Errorf("Replay = %+v, %v, want %+v", done, err, counted)
	}
	if diff := cmp.Diff(wanted(50, 149), w.replayed); diff != "" {
		t.Errorf("events replayed (-want +got):\n%s", diff)
	}
	if w.calls["Nth"] != 2 {
		t.Errorf("looked %d times for the newest events, want twice, at the dry run", w.calls["Nth"])
	}
}

// A replay of a span whose events were purged in part replays the rest.
func TestReplayOfWhatIsGone(t *testing.T) {
	e, w := desk(t, 6)
	done, err := e.Replay(t.Context(), core.EventFilter{}, Span{core.FirstID(noon.Add(-time.Hour)), numbered(1)}, false)
	if done.Events != 2 || done.Next != "" || err != nil {
		t.Errorf("Replay = %+v, %v, want two events and no more", done, err)
	}
	if diff := cmp.Diff(wanted(0, 1), w.replayed); diff != "" {
		t.Errorf("events replayed (-want +got):\n%s", diff)
	}
	done, err = e.Replay(t.Context(), core.EventFilter{}, Span{numbered(9), numbered(12)}, false)
	if want := (Replayed{Span: Span{numbered(9), numbered(12)}}); done != want || err != nil {
		t.Errorf("Replay of what is all gone = %+v, %v, want %+v", done, err, want)
	}
}

// One call replays a selection of any number of events.
func TestReplayOfMany(t *testing.T) {
	e, w := desk(t, 2500)
	var seen []int
	e.Progress = func(r Replayed) { seen = append(seen, r.Events) }
	got, err := e.Replay(t.Context(), core.EventFilter{Limit: 2400}, Span{}, false)
	want := Replayed{Looked: 2400, Events: 1600, Jobs: 2400, Span: Span{numbered(100), numbered(2499)}}
	if got != want || err != nil {
		t.Errorf("Replay = %+v, %v; want %+v", got, err, want)
	}
	if diff := cmp.Diff(wanted(100, 2499), w.replayed); diff != "" {
		t.Errorf("events replayed (-want +got):\n%s", diff)
	}
	if len(seen) != 16 || seen[0] != core.MaxSlice || seen[15] != 1600 {
		t.Errorf("progress %v, want it after each of 16 slices", seen)
	}
}

// A replay has one entry of the audit, which names the selection and the operation.
func TestReplayIsAudited(t *testing.T) {
	e, w := desk(t, 250)
	ctx := core.WithActor(t.Context(), core.Actor{Name: "ann", Via: core.ViaAPI})
	if _, err := e.Replay(ctx, core.EventFilter{Source: "shop", Limit: 240}, Span{}, false); err != nil {
		t.Fatal(err)
	}
	operations, err := w.OperationList(ctx, "", 2)
	if err != nil || len(operations.Items) != 1 || operations.Items[0].By != "ann" {
		t.Fatalf("operations %+v, %v; want one of ann", operations.Items, err)
	}
	page, err := w.Audited(ctx, core.AuditFilter{})
	want := core.Change{Action: core.AuditReplay, Target: core.AllTargets, Detail: map[string]string{"source": "shop", "limit": "240",
		"first": string(numbered(10)), "last": string(numbered(249)), "operation": string(operations.Items[0].ID)}}
	if err != nil || len(page.Items) != 1 || page.Items[0].Name != "ann" {
		t.Fatalf("entries %+v, %v; want one of ann", page.Items, err)
	}
	if diff := cmp.Diff(want, page.Items[0].Change, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
}

// An event that is purged during a replay counts in Looked only, and its jobs do not count.
func TestReplayOfWhatIsPurgedMeanwhile(t *testing.T) {
	e, w := desk(t, 6)
	now := noon.Add(time.Hour)
	jobs, err := w.Take(t.Context(), now, []core.Quota{{Lane: "handler/h", N: 1, Hold: time.Minute}})
	if err != nil || len(jobs) != 1 || jobs[0].EventID != numbered(0) {
		t.Fatalf("Take = %+v, %v; want the job of the first event", jobs, err)
	}
	o := core.Outcome{JobID: jobs[0].ID, Lease: jobs[0].Lease, Lane: "handler/h", Status: core.Completed, At: now, Attempt: core.Attempt{Number: 1, StartedAt: now}}
	if _, err := w.Settle(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	inner := e.match
	e.match = func(event core.Event) core.Arrival {
		if event.ID == numbered(1) { // the event before it was read
			if _, _, err := w.Purge(t.Context(), noon.Add(24*time.Hour), 100); err != nil {
				t.Fatal(err)
			}
		}
		return inner(event)
	}
	got, err := e.Replay(t.Context(), core.EventFilter{Limit: 10}, Span{}, false)
	if got.Events != 3 || got.Jobs != 5 || err != nil {
		t.Errorf("Replay = %+v, %v; want that the purged event has no jobs", got, err)
	}
}

func TestCountTakesTurns(t *testing.T) {
	e, w := desk(t, 2500)
	f, s := core.EventFilter{Limit: 2400}, Span{}
	for i, want := range []int{1000, 1000, 400} {
		done, err := e.Replay(t.Context(), f, s, true)
		from, to := 100+1000*i, 100+1000*i+want-1
		if err != nil || done.Last != numbered(2499) || done.Looked != want || done.Events != len(wanted(from, to)) {
			t.Fatalf("turn %d: %+v, %v, want %d events up to %s", i, done, err, len(wanted(from, to)), numbered(2499))
		}
		if next := numbered(to).Next(); i < 2 && done.Next != next || i == 2 && done.Next != "" {
			t.Fatalf("turn %d: to go on with %q", i, done.Next)
		}
		f.Limit, s = 0, Span{done.Next, done.Last}
	}
	if len(w.replayed) > 0 {
		t.Errorf("%d events were replayed, want none", len(w.replayed))
	}
}

// With a slow store a count ends after CountTime, before it has counted CountTurn events.
func TestCountEndsInTime(t *testing.T) {
	e, w := desk(t, 500)
	now := noon
	e.clock = func() time.Time { return now }
	w.before = func() { now = now.Add(CountTime / 2) }
	got, err := e.Replay(t.Context(), core.EventFilter{Limit: 500}, Span{}, true)
	want := Replayed{Looked: 200, Events: len(wanted(0, 199)), Jobs: 201, Span: Span{numbered(0), numbered(499)}, Next: numbered(199).Next()}
	if got != want || err != nil {
		t.Errorf("count of two slow reads = %+v, %v, want %+v", got, err, want)
	}
	w.before = func() { now = now.Add(CountTime) }
	if got, err := e.Replay(t.Context(), core.EventFilter{Limit: 100}, Span{}, true); got.Next != "" || got.Events == 0 || err != nil {
		t.Errorf("count of one slow read = %+v, %v; want that there is no more", got, err)
	}
}

func TestReplayOfWrongSpans(t *testing.T) {
	e, w := desk(t, 3)
	for want, s := range map[string]Span{
		"first and last go together":   {First: numbered(0)},
		"first and last go together: ": {Last: numbered(0)},
		"first must not be above last": {numbered(1), numbered(0)},
	} {
		_, err := e.Replay(t.Context(), core.EventFilter{}, s, false)
		if !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), want) || len(w.asked) > 0 {
			t.Errorf("Replay of %v = %v, want %q", s, err, want)
		}
	}
}

// For any selection, counts until Next is empty add up to the numbers of the replay. Replays of a part of
// the span each, until Next is empty, replay each event once, in order.
func TestTurnsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 320).Draw(t, "events")
		e, w := desk(t, n)
		limit := rapid.IntRange(1, 330).Draw(t, "limit")
		now := noon
		e.clock = func() time.Time { return now }
		w.before = func() {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, CountTime / 2, CountTime}).Draw(t, "took"))
		}
		turns := func(f core.EventFilter, s Span, dry bool, at int) (total Replayed) {
			for turn := 0; ; turn++ {
				done, err := e.Replay(context.Background(), f, s, dry)
				if err != nil || turn > 330 {
					t.Fatalf("turn %d: %+v, %v", turn, done, err)
				}
				total.Looked, total.Events, total.Jobs = total.Looked+done.Looked, total.Events+done.Events, total.Jobs+done.Jobs
				if turn == 0 {
					total.Span = done.Span
				}
				if done.Next == "" {
					return total
				}
				f.Limit, s = at, Span{done.Next, done.Last}
			}
		}
		counted := turns(core.EventFilter{Limit: limit}, Span{}, true, 0)
		if counted.Looked != min(limit, n) || len(w.replayed) > 0 {
			t.Fatalf("counted %+v, want %d events and that none is replayed", counted, min(limit, n))
		}
		if n == 0 {
			return
		}
		each := rapid.IntRange(20, 330).Draw(t, "at a time")
		if done := turns(core.EventFilter{Limit: each}, counted.Span, false, each); done != counted {
			t.Fatalf("replayed %+v, want %+v", done, counted)
		}
		if diff := cmp.Diff(wanted(max(0, n-limit), n-1), w.replayed); diff != "" {
			t.Fatalf("events replayed (-want +got):\n%s", diff)
		}
	})
}

// A replay reports a filter that fails, also in a dry run, and also for an event without a
// job.
func TestReplayTellsOfFailedFilters(t *testing.T) {
	e, _ := desk(t, 6)
	var told []core.Fact
	e.Observe = func(f core.Fact) {
		if f, ok := f.(core.FilterFailed); ok {
			told = append(told, f)
		}
	}
	inner := e.match
	e.match = func(event core.Event) core.Arrival {
		a := inner(event)
		if event.Type == "nobody" {
			a.Undecided = []core.Undecided{{Lane: "handler/costly"}}
		}
		return a
	}
	for i, dry := range []bool{true, false} {
		done, err := e.Replay(t.Context(), core.EventFilter{Limit: 10}, Span{}, dry)
		if done.Events != 4 || err != nil || len(told) != 2*(i+1) {
			t.Errorf("Replay = %+v, %v, with %d filters that failed, want 4 events and 2 filters each time", done, err, len(told))
		}
	}
}
