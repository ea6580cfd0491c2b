package intake

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A stored event gets the jobs that it would get if it arrived now, with two differences. Repeats
// are not recognized. If the event lacks the params of a workflow, only that workflow is left out.
func TestRematch(t *testing.T) {
	consumers := []Consumer{
		{Lane: "handler/all", Source: "app", Key: must(expr.ParsePath("$.id")), MaxAttempts: 5},
		{Lane: "handler/large", Source: "app", Events: []string{"order.*"}, Filter: must(expr.ParseFilter(`$.total > 100`)), MaxAttempts: 2},
		{Lane: "handler/late", Source: "app", Filter: must(expr.ParseFilter(`$.id exists`)), MaxAttempts: 1},
		{Lane: "queue/other", Source: "hub", MaxAttempts: 1},
		fulfilment("one", "app", "order.*"),
	}
	for _, tt := range []struct {
		name    string
		event   core.Event
		lanes   []core.Lane
		workers int // runs
	}{
		{"of all", core.Event{Source: "app", Type: "order.created", Payload: []byte(`{"id": 7, "total": 200}`)}, []core.Lane{"handler/all", "handler/late", "handler/large", "workflow/one"}, 1},
		{"whose filter does not hold", core.Event{Source: "app", Type: "order.created", Payload: []byte(`{"id": 7, "total": 20}`)}, []core.Lane{"handler/all", "handler/late", "workflow/one"}, 1},
		{"without the params of a workflow", core.Event{Source: "app", Type: "order.created", Payload: []byte(`{"total": 200}`)}, []core.Lane{"handler/all", "handler/large"}, 0},
		{"of another type", core.Event{Source: "app", Type: "ping", Payload: []byte(`{"total": 200}`)}, []core.Lane{"handler/all"}, 0},
		{"that is a form", core.Event{Source: "app", Type: "ping", Payload: []byte(`id=7`), ContentType: "application/x-www-form-urlencoded"}, []core.Lane{"handler/all", "handler/late"}, 0},
		{"of a source that nobody listens to", core.Event{Source: "gone", Type: "ping"}, nil, 0},
		{"of the alerts", core.Event{Source: core.AlertSource, Type: "dlq", Payload: []byte(`{}`)}, nil, 0},
	} {
		match := Rematch(consumers, core.NewIDs(core.SystemClock))
		tt.event.ID, tt.event.CreatedAt = "01J00000000000000000000001", time.UnixMilli(1)
		first, second := match(tt.event), match(tt.event)
		if diff := cmp.Diff(first, second, cmpopts.IgnoreTypes(core.ID("")), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("an event %s, matched again (-first +second):\n%s", tt.name, diff)
		}
		var lanes []core.Lane
		for i, j := range first.Jobs {
			lanes = append(lanes, j.Lane)
			if j.Key != "" || j.MaxAttempts == 0 || j.ID == second.Jobs[i].ID {
				t.Errorf("an event %s has the job %+v, then %+v; want no key, a budget, and new ids", tt.name, j, second.Jobs[i])
			}
		}
		if diff := cmp.Diff(tt.lanes, lanes); diff != "" || len(first.Runs) != tt.workers || first.Event.ID != tt.event.ID {
			t.Errorf("an event %s: %d runs, want %d; lanes (-want +got):\n%s", tt.name, len(first.Runs), tt.workers, diff)
		}
		for _, r := range first.Runs {
			if r.StepID != first.Jobs[len(first.Jobs)-1].ID || r.Workflow != "one" {
				t.Errorf("an event %s begins the run %+v, want one whose first step has the id of its job", tt.name, r)
			}
		}
	}
}

// costly is a filter that runs out of steps on the payload wide.
var (
	costly = must(expr.ParseFilter(`$..[*,*,*,*,*,*,*,*] == 2`))
	wide   = "[" + strings.Repeat("0,", 500_000) + "0]"
)

// TestFilterFailed: if a filter gives no answer, only its own consumer gets no job. The event
// is stored, and a replay evaluates the filter again.
func TestFilterFailed(t *testing.T) {
	consumers := []Consumer{
		{Lane: "handler/billing", Source: "app", Filter: costly, MaxAttempts: 1},
		{Lane: "handler/opposite", Source: "app", Filter: must(expr.ParseFilter(`not $..[*,*,*,*,*,*,*,*] == 2`)), MaxAttempts: 1},
		{Lane: "handler/other", Source: "app", Filter: must(expr.ParseFilter(`$[0] == 0`)), MaxAttempts: 1},
		{Lane: "queue/all", Source: "app", MaxAttempts: 1},
	}
	d := newDoor(testSources, consumers...)
	result, err := d.Receive(t.Context(), request(Event, "app", wide))
	if err != nil || result.Jobs != 2 {
		t.Fatalf("Receive = %+v, %v, want it stored with 2 jobs", result, err)
	}
	var failed []string
	for _, f := range d.facts {
		if f, ok := f.(core.FilterFailed); ok {
			failed = append(failed, fmt.Sprintf("%s %v %v", f.Lane.Filter(), f.Event.ID == result.EventID, errors.Is(f.Why, expr.ErrBudget)))
		}
	}
	if diff := cmp.Diff([]string{"handlers.billing.filter true true", "handlers.opposite.filter true true"}, failed); diff != "" {
		t.Errorf("filters that failed (-want +got):\n%s", diff)
	}
	consumers[0].Filter = must(expr.ParseFilter(`$[-1] == 0`)) // the author corrects it
	again := Rematch(consumers, core.NewIDs(core.SystemClock))(d.inbox.got[0].Event)
	if len(again.Jobs) != 3 || len(again.Undecided) != 1 || again.Undecided[0].Lane != "handler/opposite" {
		t.Errorf("a replay = %d jobs and %v, want 3 and handlers.opposite undecided", len(again.Jobs), again.Undecided)
	}
}

// TestRematchDelays: the delay of a consumer begins with the replay, not with the event.
func TestRematchDelays(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	match := Rematch([]Consumer{{Lane: "handler/slow", Source: "app", MaxAttempts: 1, Delay: time.Hour}}, core.NewIDs(func() time.Time { return now }))
	jobs := match(core.Event{ID: "01J00000000000000000000001", Source: "app", Type: "t", Payload: []byte(`{}`), CreatedAt: time.UnixMilli(1)}).Jobs
	if len(jobs) != 1 || !jobs[0].DueAt.Equal(now.Add(time.Hour)) {
		t.Errorf("jobs %+v, want one that is due at %v", jobs, now.Add(time.Hour))
	}
}
