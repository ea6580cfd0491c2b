package intake

import (
	"errors"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

var binarySources = []Source{
	{Name: "app", Kind: Event, Binary: true}, {Name: "plain", Kind: Webhook, Binary: true},
	{Name: "text", Kind: Webhook},
	{Name: "strict", Kind: Webhook, Binary: true, Schema: mustSchema(`{"type": "object"}`)},
}

func mustSchema(text string) *expr.Schema {
	s, err := expr.ParseSchema([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// TestBinaryPayloads: a source with binary: true takes any bytes, and consumers with a filter or
// a key see null.
func TestBinaryPayloads(t *testing.T) {
	filter, err := expr.ParseFilter(`not exists $.a`)
	if err != nil {
		t.Fatal(err)
	}
	path, err := expr.ParsePath("$.a")
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"specversion":"1.0","id":"1","source":"/s","type":"order.created"`
	for _, tt := range []struct {
		name, source, body, contentType string
		payload                         string
		binary                          bool
	}{
		{"bytes", "plain", "\x89PNG\x00\xff", "image/png", "\x89PNG\x00\xff", true},
		{"a NUL byte", "plain", "a\x00", "", "a\x00", true},
		{"Latin-1", "app", "{\"a\": \"\xe9\"}", "application/json", "{\"a\": \"\xe9\"}", true},
		{"text", "plain", `{"a": 1}`, "application/json", `{"a": 1}`, false},
		{"data_base64", "app", head + `,"datacontenttype":"image/png","data_base64":"AP8="}`, "application/cloudevents+json", "\x00\xff", true},
		{"data_base64 of text", "app", head + `,"datacontenttype":"text/csv","data_base64":"YSxi"}`, "application/cloudevents+json", "a,b", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(binarySources, Consumer{Lane: "handler/a", Source: tt.source, MaxAttempts: 1, Filter: filter, Key: path, Lines: Lines{Key: path, Limit: 1}})
			kind := map[string]Kind{"app": Event, "plain": Webhook}[tt.source]
			if _, err := d.Receive(t.Context(), request(kind, tt.source, tt.body, "Content-Type", tt.contentType)); err != nil {
				t.Fatal(err)
			}
			got := d.inbox.got[0]
			if string(got.Event.Payload) != tt.payload || got.Event.Binary != tt.binary {
				t.Errorf("payload %q, binary %v, want %q, %v", got.Event.Payload, got.Event.Binary, tt.payload, tt.binary)
			}
			if tt.binary && (len(got.Jobs) != 1 || got.Jobs[0].Key != "" || got.Jobs[0].Line.Key != "") {
				t.Errorf("jobs = %+v, want one without a key: the filter and the key see null", got.Jobs)
			}
		})
	}
}

// TestNotText: a source without binary: true refuses bytes that are not text. The sender gets a
// fixed text, and the cause names the setting that an operator can change.
func TestNotText(t *testing.T) {
	d := newDoor(binarySources)
	const head = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AP8="}`
	for name, r := range map[string]Request{
		"bytes":       request(Webhook, "text", "\xff"),
		"data_base64": request(Webhook, "text", head, "Content-Type", "application/cloudevents+json"),
		"a structured CloudEvent that is no text": request(Webhook, "plain", "{\"specversion\":\"1.0\",\"id\":\"\xff\",\"source\":\"s\",\"type\":\"t\"}", "Content-Type", "application/cloudevents+json"),
	} {
		_, err := d.Receive(t.Context(), r)
		refusal, ok := errors.AsType[*core.Refusal](err)
		if !ok || refusal.Message != "Invalid UTF-8" || !errors.Is(err, ErrNotText) {
			t.Errorf("%s: Receive() = %v, want Invalid UTF-8 and ErrNotText", name, err)
		}
	}
	if _, err := d.Receive(t.Context(), request(Webhook, "strict", "\xff")); !core.IsKind(err, core.Invalid) || errors.Is(err, ErrNotText) {
		t.Errorf("a schema and bytes: Receive() = %v, want that the schema refuses null", err)
	}
	if len(d.inbox.got) != 0 {
		t.Errorf("%d events are stored, want none", len(d.inbox.got))
	}
}

// TestNoData: a CloudEvent without data has none when it is stored, in either mode.
func TestNoData(t *testing.T) {
	d := newDoor(testSources)
	binaryMode := []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "order.created"}
	for _, r := range []Request{
		request(Event, "app", "", binaryMode...),
		request(Webhook, "plain", "", binaryMode...),
		request(Event, "app", `{"specversion":"1.0","id":"2","source":"/s","type":"t"}`, "Content-Type", "application/cloudevents+json"),
		request(Event, "app", `{"specversion":"1.0","id":"3","source":"/s","type":"t","datacontenttype":"application/json"}`, "Content-Type", "application/cloudevents+json"),
	} {
		if _, err := d.Receive(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range d.inbox.got {
		if len(a.Event.Payload) != 0 || !a.Event.NoData() || view(&a.Event).Value() != nil {
			t.Errorf("%+v: want no data, and null for filters", a.Event)
		}
	}
	empty := request(Webhook, "plain", `{"specversion":"1.0","id":"4","source":"/s","type":"t","datacontenttype":"text/plain","data":""}`, "Content-Type", "application/cloudevents+json")
	if _, err := d.Receive(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	if e := d.inbox.got[4].Event; e.NoData() || view(&e).Value() != "" {
		t.Errorf("%+v: want data that is the empty text", e)
	}
}
