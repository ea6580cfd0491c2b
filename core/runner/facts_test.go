package runner

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// Facts about a run name its event, also when an operator ends the run. Each call is stated
// once, also of a callback step.
func TestFactsOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, _ := newAsking(t, nil)
		w.tick()
		if _, err := w.runner().Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		event := w.read(id).EventID
		var facts []string
		for _, f := range w.facts {
			about := core.Event{}
			switch f := f.(type) {
			case core.RunMoved:
				about = f.Event
				facts = append(facts, fmt.Sprintf("run is %s", f.Run.Status))
			case core.StepMoved:
				about = f.Event
				facts = append(facts, fmt.Sprintf("%s is %s, call %d: %d", f.Step.Path, f.Step.Status, f.Attempt.Number, f.Attempt.StatusCode))
			}
			if about.ID != event || string(about.Payload) != `{"n": 1}` {
				t.Errorf("%T is about %+v, want event %s", f, about, event)
			}
		}
		want := []string{"run is running", "ask is waiting, call 1: 202", "ask is canceled, call 0: 0", "run is canceled"}
		if diff := cmp.Diff(want, facts); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}
