package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// Select decides as the filter of a handler, for every kind of payload and for filters without an
// answer. The handler of Rematch is the reference.
func TestSelectDecidesAsAHandler(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	events := []core.Event{
		{Type: "order.created", Payload: []byte(`{"customer": {"id": "c-7"}, "total": 200}`)},
		{Type: "order.created", Payload: []byte(`{"customer": {"id": "c-8"}, "total": 20.0}`), ContentType: "application/json"},
		{Type: "ping", Payload: []byte(`customer=c-7`), ContentType: "application/x-www-form-urlencoded"},
		{Type: "ping", Payload: []byte(`c-7, but no JSON`), ContentType: "text/plain"},
		{Type: "ping", Payload: []byte("\x00\xff"), Binary: true},
		{Type: "ping", Headers: map[string]string{"ce-specversion": "1.0"}},
		{Type: "deep", Payload: []byte(deep)},
		{Type: "wide", Payload: []byte(wide)},
		{Type: "empty"},
	}
	for _, filter := range []string{
		`$.customer.id == "c-7"`, `$.customer == "c-7"`, `not $.customer exists`, `$ contains "no JSON"`, `$.total < 100`,
		`$$.event.type starts_with "order."`, `$$.event.source == app and $$.event.time > "2026"`, `$ == null`,
		costly.String(), `not ` + costly.String(),
	} {
		selects, err := Select(filter)
		if err != nil {
			t.Fatal(err)
		}
		match := Rematch([]Consumer{{Lane: "handler/h", Source: "app", Filter: must(expr.ParseFilter(filter)), MaxAttempts: 1}}, core.NewIDs(core.SystemClock))
		for _, e := range events {
			e.ID, e.Source, e.CreatedAt = "01J00000000000000000000001", "app", time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			if got, want := selects(e), len(match(e).Jobs) == 1; got != want {
				t.Errorf("Select(%s) of %s %.40q = %v, but a handler's filter: %v", filter, e.Type, e.Payload, got, want)
			}
		}
	}
	if _, err := Select("$.total >"); err == nil {
		t.Error("Select of a broken filter has no error")
	}
}
