package manage

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestReplayTakesTurns(t *testing.T) {
	e, w := desk(t, 2500)
	f, s := core.EventFilter{Limit: 2400}, Span{}
	for i, want := range []int{1000, 1000, 400} {
		done, err := e.Replay(t.Context(), f, s, false)
		from, to := 100+1000*i, 100+1000*i+want-1
		if err != nil || done.Last != numbered(2499) || done.Events != len(wanted(from, to)) {
			t.Fatalf("turn %d: %+v, %v, want %d events up to %s", i, done, err, len(wanted(from, to)), numbered(2499))
		}
		if next := numbered(to).Next(); i < 2 && done.Next != next || i == 2 && done.Next != "" {
			t.Fatalf("turn %d: to go on with %q", i, done.Next)
		}
		f.Limit, s = 0, Span{done.Next, done.Last}
	}
	if diff := cmp.Diff(wanted(100, 2499), w.replayed); diff != "" {
		t.Errorf("events replayed (-want +got):\n%s", diff)
	}
}

// With a slow store a call ends after ReplayTime, before it has replayed ReplayTurn events.
func TestReplayEndsInTime(t *testing.T) {
	e, w := desk(t, 500)
	now := noon
	e.clock = func() time.Time { return now }
	w.before = func() { now = now.Add(ReplayTime / 2) }
	got, err := e.Replay(t.Context(), core.EventFilter{Limit: 500}, Span{}, false)
	want := Replayed{Looked: 200, Events: len(wanted(0, 199)), Jobs: 201, Span: Span{numbered(0), numbered(499)}, Next: numbered(199).Next()}
	if got != want || err != nil {
		t.Errorf("Replay of two slow reads = %+v, %v, want %+v", got, err, want)
	}
	w.before = func() { now = now.Add(ReplayTime) }
	if got, err := e.Replay(t.Context(), core.EventFilter{Limit: 100}, Span{}, false); got.Next != "" || got.Events == 0 || err != nil {
		t.Errorf("Replay of one slow read = %+v, %v; want that there is no more", got, err)
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

// For any selection, calls until Next is empty replay each event once, in order.
func TestTurnsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 320).Draw(t, "events")
		e, w := desk(t, n)
		limit := rapid.IntRange(1, 330).Draw(t, "limit")
		now := noon
		e.clock = func() time.Time { return now }
		w.before = func() {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, ReplayTime / 2, ReplayTime}).Draw(t, "took"))
		}
		f, s := core.EventFilter{Limit: limit}, Span{}
		for turn := 0; ; turn++ {
			done, err := e.Replay(context.Background(), f, s, false)
			if err != nil || turn > 10 {
				t.Fatalf("turn %d: %+v, %v", turn, done, err)
			}
			if done.Next == "" {
				break
			}
			f.Limit, s = 0, Span{done.Next, done.Last}
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
