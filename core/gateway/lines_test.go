package gateway_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/intake"
)

// TestLinesReachTheIntake: each job of a handler or queue with lines takes a place in one. Other
// consumers have no lines.
func TestLinesReachTheIntake(t *testing.T) {
	consumers, err := gateway.Consumers(load(t, `
sources: {shop: {type: event}}
handlers:
  all: {source: shop, url: "https://a.example"}
  billing: {source: shop, url: "https://a.example", lines: {key: $.customer}}
queues:
  fair: {source: shop, lines: {key: $.tenant, limit: 5}}
  mail: {source: shop}
workflows:
  ship: {source: shop, steps: [{name: call, url: "https://a.example"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[core.Lane]core.Line{}
	match := intake.Rematch(consumers, core.NewIDs(core.SystemClock))
	for _, j := range match(core.Event{ID: "01J00000000000000000000001", Source: "shop", Type: "t", Payload: []byte(`{"customer": 7, "tenant": "acme"}`)}).Jobs {
		got[j.Lane] = j.Line
	}
	want := map[core.Lane]core.Line{
		"handler/all": {}, "handler/billing": {Key: "7", Limit: 1},
		"queue/fair": {Key: "acme", Limit: 5}, "queue/mail": {}, "workflow/ship": {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines of the jobs by lane (-want +got):\n%s", diff)
	}
}
