package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// fulfilment is a workflow, as a consumer of the events of a source. Its payloads need a field
// called id.
func fulfilment(name, source string, events ...string) Consumer {
	id, err := expr.ParsePath("$.id")
	if err != nil {
		panic(err)
	}
	return Consumer{
		Lane: core.WorkflowLane(name), Source: source, Events: events, MaxAttempts: core.Unlimited,
		Workflow: &Workflow{
			Name: name, Definition: core.Definition{Hash: "hash of " + name, Body: "body"}, Step: "first", Timeout: time.Hour,
			Check: func(d *expr.Document) []string {
				if _, ok := d.One(id); !ok {
					return []string{"$.id: is missing", "$.id: is missed"}
				}
				return nil
			},
		},
	}
}

func TestRunsBegin(t *testing.T) {
	d := newDoor(testSources,
		Consumer{Lane: "handler/a", Source: "app", MaxAttempts: 5}, fulfilment("one", "app", "order.*"),
		fulfilment("two", "app"), fulfilment("other", "app", "refund.*"), fulfilment("far", "hub"))
	heard := d.Bell.Listen("workflow/one")
	receipt, err := d.Receive(t.Context(), request(Event, "app", `{"id": 7}`))
	if err != nil || receipt.Jobs != 3 {
		t.Fatalf("Receive = %+v, %v, want 3 jobs", receipt, err)
	}
	a := d.inbox.got[0]
	lanes, begun := map[core.ID]core.NewJob{}, map[string]core.NewRun{}
	ids := map[core.ID]bool{a.Event.ID: true}
	for _, j := range a.Jobs {
		lanes[j.ID], ids[j.ID] = j, true
	}
	for _, r := range a.Runs {
		begun[r.Workflow], ids[r.ID] = r, true
		want := core.NewJob{ID: r.StepID, Lane: core.WorkflowLane(r.Workflow), MaxAttempts: core.Unlimited}
		if diff := cmp.Diff(want, lanes[r.StepID]); diff != "" {
			t.Errorf("job of the run of %s (-want +got):\n%s", r.Workflow, diff)
		}
		def := core.Definition{Hash: "hash of " + r.Workflow, Body: "body"}
		if diff := cmp.Diff(core.NewRun{ID: r.ID, Workflow: r.Workflow, Definition: def, StepID: r.StepID, Step: "first", Timeout: time.Hour}, r); diff != "" {
			t.Errorf("run (-want +got):\n%s", diff)
		}
	}
	if len(a.Runs) != 2 || begun["one"].ID == "" || begun["two"].ID == "" || len(ids) != 6 {
		t.Errorf("runs %+v with ids %v, want one each of workflows one and two, and six ids", a.Runs, ids)
	}
	select {
	case <-heard.C:
	default:
		t.Error("nobody was woken for workflow/one")
	}
}

// An event whose params one workflow refuses makes no job for any consumer, by each entrance.
func TestParamsAreChecked(t *testing.T) {
	sources := append(testSources, topicSource(nil), Source{Name: "nightly", Kind: Tick})
	for _, tt := range []struct {
		source string
		send   func(*door) error
	}{
		{"app", func(d *door) error { _, err := d.Receive(t.Context(), request(Event, "app", `{"no": 1}`)); return err }},
		{"app", func(d *door) error { _, err := d.Receive(t.Context(), request(Event, "app", `not JSON`)); return err }},
		{"app", func(d *door) error {
			_, err := d.Receive(t.Context(), request(Event, "app", `["`+strings.Repeat("x", largeBody)+`"]`))
			return err
		}},
		{"plain", func(d *door) error { _, err := d.Receive(t.Context(), request(Webhook, "plain", `{}`)); return err }},
		{"topic", func(d *door) error {
			_, err := d.Receive(t.Context(), request(Topic, "topic", envelopeOf(t, nil), "Content-Type", "text/plain"))
			return err
		}},
		{"nightly", func(d *door) error { return d.Fire(t.Context(), "nightly", received) }},
	} {
		t.Run(tt.source, func(t *testing.T) {
			d := newDoor(sources, Consumer{Lane: "handler/a", Source: tt.source, MaxAttempts: 5}, fulfilment("one", tt.source), fulfilment("two", tt.source))
			err := tt.send(d)
			want := "workflow one: $.id: is missing\nworkflow one: $.id: is missed\nworkflow two: $.id: is missing\nworkflow two: $.id: is missed"
			if !core.IsKind(err, core.Invalid) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("refused with %v, want %s", err, want)
			}
			facts := []core.Fact{core.TurnedAway{Source: tt.source, Kind: core.Invalid}}
			if tt.source == "nightly" {
				facts = nil // no sender was refused
			}
			if diff := cmp.Diff(facts, d.facts); len(d.inbox.got) != 0 || diff != "" {
				t.Errorf("stored %+v, facts (-want +got):\n%s", d.inbox.got, diff)
			}
		})
	}
}

func TestMisfitsAreBounded(t *testing.T) {
	var consumers []Consumer
	for _, name := range strings.Split("a b c d e f g", " ") {
		consumers = append(consumers, fulfilment(name, "app"))
	}
	_, err := newDoor(testSources, consumers...).Receive(t.Context(), request(Event, "app", `{}`))
	if n := strings.Count(err.Error(), "\n") + 1; n != 10 {
		t.Errorf("refused with %d lines, want 10: %v", n, err)
	}
}

func TestWorkflowWithoutParams(t *testing.T) {
	c := fulfilment("one", "app")
	c.Workflow.Check = nil
	d := newDoor(testSources, c)
	if _, err := d.Receive(t.Context(), request(Event, "app", `not JSON`)); err != nil || len(d.inbox.got[0].Runs) != 1 {
		t.Errorf("Receive = %v, stored %+v, want one run", err, d.inbox.got)
	}
}
