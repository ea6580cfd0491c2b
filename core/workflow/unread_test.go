package workflow

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

// spoil settles the end of a step as one that cannot be stored.
func (w *world) spoil(e core.StepEnd) Move {
	move := w.complete(w.view([]core.StepEnd{e}), func(v View) Move { return w.d.Spoil(w.pen(), v, e, "data: too large") })
	if move.Moved {
		w.apply(move.Transition)
	}
	return move
}

// A step of any type fails for good if its end cannot be stored, and once.
func TestSpoil(t *testing.T) {
	for _, tt := range []struct {
		step    string
		entries int
		want    core.RunStatus
		why     string
	}{
		{"{name: a, type: wait, seconds: 1}", maxEntries, core.RunFailed, "step a: data: too large"},
		{"{name: a, type: wait, seconds: 1, on_failure: continue}", maxEntries, core.RunCompleted, ""},
		{"{name: a, url: http://a.example/, retry: {max: 5}}", maxEntries, core.RunFailed, "step a: data: too large"},
		{"{name: a, type: map, items_path: $.b, url: http://a.example/}", 2, core.RunFailed, "step a: data: more than 10,000 transitions"},
	} {
		w := newWorld(t, compiled(t, "steps: ["+tt.step+"]"), `{"b": [1]}`)
		w.d.entries = tt.entries
		var at core.Situation
		for _, s := range w.ordered() {
			at, _ = w.situation(s.ID)
		}
		e := core.StepEnd{Job: core.TakenJob{Job: core.Job{ID: at.Step.ID}, Situation: at}, Kind: core.Elapsed}
		if m := w.spoil(e); !m.Moved || w.run.Status != tt.want || w.run.Error != tt.why {
			t.Errorf("%s: run is %s: %q, want %s: %q", tt.step, w.run.Status, w.run.Error, tt.want, tt.why)
		}
		if m := w.spoil(e); m.Moved || len(m.Lost) != 1 {
			t.Errorf("%s: the same once more = %+v, want it lost", tt.step, m)
		}
	}
}

// Canceling a run needs no definition.
func TestCancelUnread(t *testing.T) {
	w, ended := newWorld(t, compiled(t, "steps: [{name: a, url: http://a.example/}]"), `{}`), 0
	w.complete(w.view(nil), func(v View) Move {
		m, err := Cancel(w.pen(), v)
		if err != nil {
			t.Fatal(err)
		}
		if m.Missing.Nothing() {
			for _, j := range m.Transition.JobsEnd {
				if j.Status != core.Canceled {
					t.Errorf("the job of step %s is %s, want canceled", j.ID, j.Status)
				}
				ended++
			}
			w.apply(m.Transition)
		}
		return m
	})
	if ended != 1 {
		t.Errorf("%d jobs ended, want that of the step", ended)
	}
	if _, err := Cancel(w.pen(), w.view(nil)); w.run.Error != "canceled" || err != ErrFinished {
		t.Errorf("run is %s: %q, and Cancel once more = %v", w.run.Status, w.run.Error, err)
	}
}
