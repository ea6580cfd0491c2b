package intake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

const (
	arrayType = "application/cloudevents-batch+json; charset=utf-8"
	linesType = "application/x-ndjson"
)

func structured(id, more string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":"order.created"%s}`, id, more)
}

func TestReceiveAll(t *testing.T) {
	one, two, three := structured("1", `,"data":{"n":1.0}`), structured("2", ""), structured("3", `,"data":"x","datacontenttype":"text/plain"`)
	for contentType, body := range map[string]string{
		arrayType: "[" + one + " , " + two + ",\n" + three + "]",
		linesType: "\ufeff" + one + "\r\n\n" + two + "\n" + three,
	} {
		d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "app", Events: []string{"order.*"}, MaxAttempts: 1})
		receipts, err := d.ReceiveAll(t.Context(), request(Event, "app", body, "Content-Type", contentType))
		if err != nil {
			t.Fatalf("%s: %v", contentType, err)
		}
		if len(receipts) != 3 || len(d.inbox.got) != 3 || len(d.facts) != 3 {
			t.Fatalf("%s: %d receipts, %d events, %d facts, want 3 of each", contentType, len(receipts), len(d.inbox.got), len(d.facts))
		}
		for i, want := range []string{`{"n":1.0}`, "", "x"} {
			a := d.inbox.got[i]
			if string(a.Event.Payload) != want || a.Event.Type != "order.created" || a.Event.DeliveryID != fmt.Sprint("/s ", i+1) ||
				len(a.Jobs) != 1 || receipts[i].EventID != a.Event.ID || receipts[i].Jobs != 1 {
				t.Errorf("%s: event %d = %+v, receipt %+v", contentType, i, a, receipts[i])
			}
		}
	}
}

// TestReceiveAllOfNone: an empty batch is one of the specification's, and stores nothing.
func TestReceiveAllOfNone(t *testing.T) {
	d := newDoor(testSources)
	for contentType, body := range map[string]string{arrayType: " [] ", linesType: "\n"} {
		receipts, err := d.ReceiveAll(t.Context(), request(Event, "app", body, "Content-Type", contentType))
		if err != nil || len(receipts) != 0 || len(d.inbox.got) != 0 {
			t.Errorf("%s: ReceiveAll() = %v, %v, %d events; want none", contentType, receipts, err, len(d.inbox.got))
		}
	}
}

func TestReceiveAllRefusals(t *testing.T) {
	sources := append([]Source{{Name: "strict", Kind: Event, Schema: mustSchema(`{"required": ["id"]}`)}}, testSources...)
	good := structured("1", `,"data":{"id":1}`)
	for _, tt := range []struct {
		name, source, contentType, body string
		kind                            core.Kind
		want                            string
	}{
		{"unknown source", "shop", arrayType, "[]", core.NotFound, "Unknown source"},
		{"webhooks take none", "plain", arrayType, "[]", core.NotFound, "Unknown source"},
		{"no array", "app", arrayType, good, core.Invalid, "must be a JSON array"},
		{"cut short", "app", arrayType, "[" + good, core.Invalid, "must be a JSON array"},
		{"more behind it", "app", arrayType, "[] []", core.Invalid, "must be a JSON array"},
		{"no JSON", "app", arrayType, "[" + good + ", {]", core.Invalid, "events[1]: it is not JSON"},
		{"an attribute", "app", arrayType, "[" + good + `, {"specversion":"1.0","id":"2","source":"/s"}]`, core.Invalid, `events[1]: a CloudEvent's "type" must be`},
		{"a line", "app", linesType, good + "\n\n{}\n", core.Invalid, `events[1] (line 3): a CloudEvent's "specversion" must be`},
		{"no event", "app", arrayType, "[1]", core.Invalid, "events[0]: a CloudEvent must be a JSON object"},
		{"schema", "strict", arrayType, "[" + good + "," + structured("2", `,"data":{}`) + "]", core.Invalid, "events[1]: "},
		{"bytes", "app", linesType, good + "\n" + structured("2", `,"data_base64":"/w=="`), core.Invalid, "events[1] (line 2): Invalid UTF-8: the payload is no UTF-8 text"},
		{"not UTF-8", "app", linesType, "\xff", core.Invalid, "Invalid UTF-8"},
		{"too many", "app", linesType, strings.Repeat(good+"\n", core.MaxTogether+1), core.TooLarge, "at most 1000 events"},
		{"too many in an array", "app", arrayType, "[" + strings.Repeat(good+",", core.MaxTogether) + good + "]", core.TooLarge, "at most 1000 events"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(sources)
			_, err := d.ReceiveAll(t.Context(), request(Event, tt.source, tt.body, "Content-Type", tt.contentType))
			if !core.IsKind(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ReceiveAll() = %v, want a refusal that says %q", err, tt.want)
			}
			if len(d.inbox.got) != 0 {
				t.Errorf("%d events are stored, want none", len(d.inbox.got))
			}
		})
	}
	d := newDoor(sources)
	if _, err := d.ReceiveAll(t.Context(), request(Event, "app", "[]", "Content-Type", arrayType, "Idempotency-Key", "k")); !core.IsKind(err, core.Invalid) {
		t.Errorf("with Idempotency-Key: ReceiveAll() = %v, want a refusal", err)
	}
}
