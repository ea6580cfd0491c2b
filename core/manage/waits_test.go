package manage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// outlooks is a store with the given gates of lanes. All events are of the source github.
type outlooks struct {
	gates   map[core.Lane]core.Gate
	asked   [][]core.Lane
	sources [][]core.ID // the arguments of SourcesOf
	holds   int         // the calls of Holding
	err     error
}

func (o *outlooks) SourcesOf(_ context.Context, events []core.ID) (map[core.ID]string, error) {
	o.sources = append(o.sources, events)
	of := map[core.ID]string{}
	for _, e := range events {
		of[e] = "github"
	}
	return of, o.err
}

func (o *outlooks) Due(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	o.asked = append(o.asked, lanes)
	all := map[core.Lane]core.Outlook{}
	for _, l := range lanes {
		all[l] = core.Outlook{Gate: o.gates[l]}
	}
	return all, o.err
}

// Holding gives each held lane the reason "r".
func (o *outlooks) Holding(_ context.Context, now time.Time) (all []core.Hold, _ error) {
	o.holds++
	for l, g := range o.gates {
		if g.Held(now) {
			all = append(all, core.Hold{Lane: l, Since: g.HeldSince, Until: g.HoldEnd(), Reason: "r"})
		}
	}
	return all, o.err
}

// LinesOf gives each line the holder H and the waiting jobs A and B. A dead job stops the line "stopped".
func (o *outlooks) LinesOf(_ context.Context, _ core.Lane, next int, keys ...string) (lines []core.LineJobs, _ error) {
	for _, k := range keys {
		line := core.LineJobs{LineState: core.LineState{Key: k, Admitted: 1}, Holders: []core.ID{"H"}, Next: []core.ID{"A", "B"}[:min(next, 2)]}
		if k == "stopped" {
			line.StoppedAt, line.StoppedBy = noon, "D"
		}
		lines = append(lines, line)
	}
	return lines, o.err
}

func TestWhatJobsWaitFor(t *testing.T) {
	soon, later, ago := noon.Add(time.Minute), noon.Add(time.Hour), noon.Add(-time.Minute)
	open := func(until time.Time) core.Gate { return core.Gate{Failures: core.BreakerThreshold, OpenUntil: until} }
	held := func(until time.Time) core.Gate { return core.Gate{HeldSince: ago, HeldUntil: until} }
	for _, c := range []struct {
		name string
		job  core.Job
		gate core.Gate
		want Wait
	}{
		{"completed", core.Job{Lane: "handler/h", Status: core.Completed}, open(soon), Wait{}},
		{"dead", core.Job{Lane: "handler/gone", Status: core.Dead}, core.Gate{}, Wait{}},
		{"running", core.Job{Lane: "handler/h", Status: core.Running, DueAt: later}, open(soon), Wait{}},
		{"due", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, core.Gate{Failures: 4}, Wait{For: NoWorkerYet}},
		{"due now", core.Job{Lane: "handler/h", Status: core.Available, DueAt: noon}, core.Gate{}, Wait{For: NoWorkerYet}},
		{"backing off", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: soon}, core.Gate{}, Wait{For: NotDue, Until: soon}},
		{"breaker", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, open(soon), Wait{For: BreakerOpen, Until: soon}},
		{"breaker, probe due", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, open(ago), Wait{For: BreakerOpen, Until: ago}},
		{"breaker, due before it", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: soon}, open(later), Wait{For: BreakerOpen, Until: later}},
		{"breaker, due after it", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: later}, open(soon), Wait{For: NotDue, Until: later}},
		{"spaced", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, core.Gate{NextAt: noon.Add(time.Second)}, Wait{For: RateReached, Until: noon.Add(time.Second)}},
		{"spaced by a clock set back", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, core.Gate{NextAt: later}, Wait{For: NoWorkerYet}},
		{"message", core.Job{Lane: "queue/q", Status: core.Available, DueAt: ago}, core.Gate{}, Wait{For: NoConsumerYet}},
		{"step that waits", core.Job{Lane: "workflow/w", Status: core.Scheduled, DueAt: soon}, core.Gate{}, Wait{For: NotDue, Until: soon}},
		{"message, delayed", core.Job{Lane: "queue/q", Status: core.Retryable, DueAt: soon}, core.Gate{}, Wait{For: NotDue, Until: soon}},
		{"handler gone", core.Job{Lane: "handler/gone", Status: core.Retryable, DueAt: soon}, open(soon), Wait{For: NotConfigured}},
		{"queue gone", core.Job{Lane: "queue/gone", Status: core.Available, DueAt: ago}, core.Gate{}, Wait{For: NotConfigured}},
		{"workflow gone", core.Job{Lane: "workflow/gone", Status: core.Available, DueAt: ago}, core.Gate{}, Wait{For: NoWorkerYet}},
		{"in a line", core.Job{Lane: "handler/h", Status: core.Waiting, Line: "7"}, core.Gate{}, Wait{For: InLine, Job: "H"}},
		{"in a line, breaker", core.Job{Lane: "handler/h", Status: core.Waiting, Line: "7"}, open(soon), Wait{For: InLine, Job: "H"}},
		{"in a stopped line", core.Job{Lane: "queue/q", Status: core.Waiting, Line: "stopped"}, core.Gate{}, Wait{For: InLine, Job: "D", Since: noon}},
		{"in a line, held", core.Job{Lane: "handler/h", Status: core.Waiting, Line: "7"}, held(core.NoEnd), Wait{For: LaneStopped, Since: ago, Reason: "r"}},
		{"held", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, held(core.NoEnd), Wait{For: LaneStopped, Since: ago, Reason: "r"}},
		{"held until a time", core.Job{Lane: "queue/q", Status: core.Available, DueAt: ago}, held(later), Wait{For: LaneStopped, Until: later, Since: ago, Reason: "r"}},
		{"held, due before the end", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: soon}, held(later), Wait{For: LaneStopped, Until: later, Since: ago, Reason: "r"}},
		{"held, due after the end", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: later}, held(soon), Wait{For: NotDue, Until: later}},
		{"held and gone", core.Job{Lane: "handler/gone", Status: core.Available, DueAt: ago}, held(core.NoEnd), Wait{For: LaneStopped, Since: ago, Reason: "r"}},
		{"was held", core.Job{Lane: "handler/h", Status: core.Available, DueAt: ago}, held(noon), Wait{For: NoWorkerYet}},
		{"alert", core.Job{Lane: "alert/a", Status: core.Available, DueAt: ago}, open(soon), Wait{For: BreakerOpen, Until: soon}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.ID = id(1)
			store := &outlooks{gates: map[core.Lane]core.Gate{c.job.Lane: c.gate}}
			w := NewWaits(store, func() time.Time { return noon }, []core.Lane{"handler/h", "queue/q", "alert/a"})
			waits, err := w.Of(t.Context(), c.job)
			if err != nil || waits[id(1)] != c.want {
				t.Errorf("Of = %+v, %v, want %+v", waits[id(1)], err, c.want)
			}
			if asked := len(store.asked); asked > 0 != (c.want != Wait{}) {
				t.Errorf("the store was asked %d times", asked)
			}
		})
	}
}

// Of asks the store once for any number of jobs, and returns the store's error.
func TestWaitsOfManyJobs(t *testing.T) {
	store := &outlooks{}
	w := NewWaits(store, func() time.Time { return noon }, []core.Lane{"handler/a", "handler/b", "handler/c"})
	jobs := []core.Job{
		{ID: id(1), Lane: "handler/b", Status: core.Available}, {ID: id(2), Lane: "handler/a", Status: core.Available},
		{ID: id(3), Lane: "handler/b", Status: core.Retryable}, {ID: id(4), Lane: "handler/c", Status: core.Completed},
	}
	waits, err := w.Of(t.Context(), jobs...)
	if err != nil || len(waits) != 3 {
		t.Errorf("Of = %v, %v, want those of three", waits, err)
	}
	if diff := cmp.Diff([][]core.Lane{{"handler/b", "handler/a"}}, store.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	store.err = errors.New("disk full")
	if _, err := w.Of(t.Context(), jobs...); !errors.Is(err, store.err) {
		t.Errorf("Of of a store that fails = %v", err)
	}
	if waits, err := (*Waits)(nil).Of(t.Context(), jobs...); waits != nil || err != nil {
		t.Errorf("Of of nil = %v, %v", waits, err)
	}
}

// A job waits for the release of its source, unless its lane is held too, or its time comes later.
func TestJobsOfHeldSources(t *testing.T) {
	soon, later, ago, before := noon.Add(time.Minute), noon.Add(time.Hour), noon.Add(-time.Minute), noon.Add(-time.Hour)
	held := func(until time.Time) core.Gate { return core.Gate{HeldSince: ago, HeldUntil: until} }
	by := func(until time.Time) Wait {
		return Wait{For: LaneStopped, Until: until, Since: ago, Reason: "r", Source: "github"}
	}
	for _, c := range []struct {
		name         string
		job          core.Job
		source, lane core.Gate
		want         Wait
	}{
		{"due", core.Job{Lane: "handler/h", Status: core.Available, DueAt: before}, held(core.NoEnd), core.Gate{}, by(time.Time{})},
		{"due before the hold's end", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: soon}, held(later), core.Gate{}, by(later)},
		{"due at the hold's end", core.Job{Lane: "handler/h", Status: core.Scheduled, DueAt: soon}, held(soon), core.Gate{}, by(soon)},
		{"due after the hold's end", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: later}, held(soon), core.Gate{}, Wait{For: NotDue, Until: later}},
		{"due later, without an end", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: later}, held(core.NoEnd), core.Gate{}, by(time.Time{})},
		{"message", core.Job{Lane: "queue/q", Status: core.Available, DueAt: before}, held(core.NoEnd), core.Gate{}, by(time.Time{})},
		{"step", core.Job{Lane: "workflow/w", Status: core.Available, DueAt: before}, held(later), core.Gate{}, by(later)},
		{"in a line", core.Job{Lane: "handler/h", Status: core.Waiting, Line: "7"}, held(core.NoEnd), core.Gate{}, by(time.Time{})},
		{"handler gone", core.Job{Lane: "handler/gone", Status: core.Available, DueAt: before}, held(core.NoEnd), core.Gate{}, by(time.Time{})},
		{"breaker", core.Job{Lane: "handler/h", Status: core.Available, DueAt: before}, held(core.NoEnd), core.Gate{OpenUntil: soon}, by(time.Time{})},
		{"lane held too", core.Job{Lane: "handler/h", Status: core.Available, DueAt: before}, held(core.NoEnd),
			core.Gate{HeldSince: before, HeldUntil: soon}, Wait{For: LaneStopped, Until: soon, Since: before, Reason: "r"}},
		{"lane held until before it is due", core.Job{Lane: "handler/h", Status: core.Retryable, DueAt: later}, held(core.NoEnd),
			core.Gate{HeldSince: before, HeldUntil: soon}, by(time.Time{})},
		{"was held", core.Job{Lane: "handler/h", Status: core.Available, DueAt: before}, held(noon), core.Gate{}, Wait{For: NoWorkerYet}},
		{"running", core.Job{Lane: "handler/h", Status: core.Running, DueAt: later}, held(core.NoEnd), core.Gate{}, Wait{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.ID, c.job.EventID = id(1), id(2)
			store := &outlooks{gates: map[core.Lane]core.Gate{c.job.Lane: c.lane, "source/github": c.source}}
			w := NewWaits(store, func() time.Time { return noon }, []core.Lane{"handler/h", "queue/q", "workflow/w"})
			waits, err := w.Of(t.Context(), c.job)
			if err != nil || waits[id(1)] != c.want {
				t.Errorf("Of = %+v, %v, want %+v", waits[id(1)], err, c.want)
			}
		})
	}
}

// The holds are read once for any number of jobs, and the sources of the jobs that wait are read if
// some source is held. A job of another source does not wait for the release.
func TestSourcesOfManyJobs(t *testing.T) {
	store := &outlooks{gates: map[core.Lane]core.Gate{"handler/a": {HeldSince: noon, HeldUntil: core.NoEnd}}}
	w := NewWaits(store, func() time.Time { return noon }, []core.Lane{"handler/b"})
	jobs := []core.Job{
		{ID: id(1), EventID: id(11), Lane: "handler/b", Status: core.Available}, {ID: id(2), EventID: id(12), Lane: "handler/b", Status: core.Completed},
		{ID: id(3), EventID: id(13), Lane: "handler/b", Status: core.Retryable},
	}
	of := func(want Hindrance) {
		t.Helper()
		store.holds, store.sources = 0, nil
		waits, err := w.Of(t.Context(), jobs...)
		if err != nil || len(waits) != 2 || waits[id(1)].For != want || waits[id(3)].For != want {
			t.Errorf("Of = %v, %v, want %q twice", waits, err, want)
		}
		if store.holds != 1 {
			t.Errorf("holds were read %d times, want once", store.holds)
		}
	}
	if of(NoWorkerYet); len(store.sources) > 0 {
		t.Errorf("sources of %v were read though none is held", store.sources)
	}
	store.gates["source/other"] = core.Gate{HeldSince: noon, HeldUntil: core.NoEnd}
	of(NoWorkerYet)
	if diff := cmp.Diff([][]core.ID{{id(11), id(13)}}, store.sources); diff != "" {
		t.Errorf("sources were read of (-want +got):\n%s", diff)
	}
	store.gates["source/github"] = core.Gate{HeldSince: noon, HeldUntil: core.NoEnd}
	of(LaneStopped)
}
