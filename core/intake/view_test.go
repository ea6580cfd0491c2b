package intake

import (
	"context"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

func nested(levels int) string {
	return `{"type": "order.created", "id": 7, "in": ` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
}

// JSON that is nested too deep for its view is refused if a consumer has to read it. If it were
// taken as text, no filter would match it, and consumers would get a string.
func TestPayloadsWithoutView(t *testing.T) {
	filter, err := expr.ParseFilter(`$.id == 7`)
	if err != nil {
		t.Fatal(err)
	}
	about, err := expr.ParseFilter(`$$.event.type == 'order.created'`)
	if err != nil {
		t.Fatal(err)
	}
	path, err := expr.ParsePath("$.id")
	if err != nil {
		t.Fatal(err)
	}
	const reader = "handler/a"
	none := fulfilment("flow", "plain")
	none.Workflow.Check = nil
	for _, tt := range []struct {
		name     string
		source   string
		consumer Consumer
		refused  string // "": taken
	}{
		{"nobody", "plain", Consumer{Lane: reader, Source: "app", Filter: filter}, ""},
		{"a handler that reads nothing", "plain", Consumer{Lane: reader, Source: "plain"}, ""},
		{"a queue", "plain", Consumer{Lane: "queue/a", Source: "plain"}, ""},
		{"a filter of other things", "plain", Consumer{Lane: reader, Source: "plain", Filter: about}, ""},
		{"another type", "plain", Consumer{Lane: reader, Source: "plain", Filter: filter, Events: []string{"x"}}, ""},
		{"a filter", "plain", Consumer{Lane: reader, Source: "plain", Filter: filter}, reader},
		{"a key", "plain", Consumer{Lane: reader, Source: "plain", Key: path}, reader},
		{"lines", "plain", Consumer{Lane: reader, Source: "plain", Lines: Lines{Key: path, Limit: 1}}, reader},
		{"a transform", "plain", Consumer{Lane: reader, Source: "plain", Reads: true}, reader},
		{"params", "plain", fulfilment("flow", "plain"), "workflow/flow"},
		{"a workflow", "plain", none, "workflow/flow"},
		{"a schema", "strict", Consumer{Lane: reader, Source: "strict"}, "schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.consumer.MaxAttempts = 1
			for levels, deep := range map[int]bool{200: false, 201: true, 12_000: true} {
				d := newDoor(binarySources, tt.consumer)
				_, err := d.Receive(t.Context(), request(Webhook, tt.source, nested(levels), "Ce-Type", "order.created"))
				switch {
				case !deep || tt.refused == "":
					if err != nil || len(d.inbox.got) != 1 {
						t.Errorf("%d levels: %v, want it taken", levels, err)
					}
				case !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), tt.refused) || !strings.Contains(err.Error(), "200 levels") || len(d.inbox.got) != 0:
					t.Errorf("%d levels: %v, want it refused because of %s", levels, err, tt.refused)
				}
			}
		})
	}
}

// A replay has no sender to refuse: a filter gives no answer, and a delivery fails by itself.
func TestRematchWithoutView(t *testing.T) {
	e := core.Event{Source: "plain", Type: "order.created", Payload: []byte(nested(300))}
	filter, err := expr.ParseFilter(`$.id == 7`)
	if err != nil {
		t.Fatal(err)
	}
	match := Rematch([]Consumer{{Lane: "handler/a", Source: "plain", Filter: filter}, {Lane: "handler/b", Source: "plain", Reads: true}}, newDoor(nil).IDs)
	a := match(e)
	if len(a.Jobs) != 1 || a.Jobs[0].Lane != "handler/b" || len(a.Undecided) != 1 || !expr.Unreadable(a.Undecided[0].Why) {
		t.Errorf("jobs %+v, undecided %+v; want b alone, and why a has none", a.Jobs, a.Undecided)
	}
}

// A byte order mark before JSON hides nothing from a source, and stays in the payload.
func TestByteOrderMark(t *testing.T) {
	filter, err := expr.ParseFilter(`$.data.id == 7`)
	if err != nil {
		t.Fatal(err)
	}
	const mark, data = "\ufeff", `{"type": "order.created", "data": {"id": 7}}`
	for _, tt := range []struct{ body, contentType, payload string }{
		{mark + data, "application/json", mark + data},
		{mark + data, "", mark + data},
		{mark + data, formType, mark + data},
		{mark + `{"specversion":"1.0","id":"1","source":"/s","type":"order.created","data":` + data + `}`, "application/cloudevents+json", data},
	} {
		d := newDoor(binarySources, Consumer{Lane: "handler/a", Source: "strict", MaxAttempts: 1, Filter: filter, Events: []string{"order.created"}})
		if _, err := d.Receive(context.Background(), request(Webhook, "strict", tt.body, "Content-Type", tt.contentType)); err != nil {
			t.Errorf("%s: %v", tt.contentType, err)
			continue
		}
		if a := d.inbox.got[0]; len(a.Jobs) != 1 || string(a.Event.Payload) != tt.payload || a.Event.Type != "order.created" {
			t.Errorf("%s: type %q, jobs %+v, payload %q; want a job and %q", tt.contentType, a.Event.Type, a.Jobs, a.Event.Payload, tt.payload)
		}
	}
}
