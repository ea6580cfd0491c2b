package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// TestDecline: the result has each consumer of the source that gets no job for an event, with the reason, and no
// other consumer. It matches the jobs that a replay makes.
func TestDecline(t *testing.T) {
	filter := func(text string) *expr.Filter {
		f, err := expr.ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	long := `$.note != "` + strings.Repeat("é", 300) + `"`
	consumers := []Consumer{
		{Lane: "handler/all", Source: "shop", MaxAttempts: 1},
		{Lane: "handler/paid", Source: "shop", Events: []string{"order.paid", "invoice.*"}, MaxAttempts: 1},
		{Lane: "handler/large", Source: "shop", Filter: filter("$.total > 10"), MaxAttempts: 1},
		{Lane: "queue/small", Source: "shop", Filter: filter("$.total < 10"), MaxAttempts: 1},
		{Lane: "queue/long", Source: "shop", Filter: filter("not " + long), MaxAttempts: 1},
		{Lane: "handler/costly", Source: "shop", Filter: filter("$.text matches '" + strings.Repeat("[^x]{1000}", 20) + "'"), MaxAttempts: 1},
		{Lane: "workflow/line", Source: "shop", MaxAttempts: 1, Workflow: &Workflow{Name: "line", Step: "a", Check: func(*expr.Document) []string {
			return []string{"order_id is missing", "total must be text"}
		}}},
		{Lane: "handler/elsewhere", Source: "other", Events: []string{"nothing"}, MaxAttempts: 1},
	}
	e := core.Event{ID: "E", Source: "shop", Type: "order.created", Payload: []byte(`{"total": 5, "text": "` + strings.Repeat("y", 60_000) + `"}`), ContentType: "application/json", CreatedAt: time.Unix(0, 0)}
	got := Decline(consumers)(e)
	want := []core.Declined{
		{Lane: "handler/paid", Why: "the type order.created matches none of its events: order.paid, invoice.*"},
		{Lane: "handler/large", Why: "its filter does not hold: $.total > 10"},
		{Lane: "queue/long", Why: `its filter does not hold: not $.note != "` + strings.Repeat("é", 185) + "…"},
		{Lane: "handler/costly", Why: "its filter gives no answer: " + expr.ErrBudget.Error()},
		{Lane: "workflow/line", Why: "the payload does not fit its params: order_id is missing; total must be text"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decline (-want +got):\n%s", diff)
	}
	jobs := Rematch(consumers, core.NewIDs(time.Now))(e).Jobs
	if in := len(consumers) - 1; len(jobs)+len(got) != in {
		t.Errorf("%d jobs and %d refusals of %d consumers", len(jobs), len(got), in)
	}
}
