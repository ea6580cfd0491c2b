package intake

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// TestStructuredCloudEvents: data becomes the payload as it was spelled, attributes
// become the headers that binary mode has.
func TestStructuredCloudEvents(t *testing.T) {
	const required = `"specversion":"1.0","id":"A 1","source":"/shop","type":"order.created"`
	attributes := func(more ...string) map[string]string {
		m := map[string]string{"ce-specversion": "1.0", "ce-id": "A%201", "ce-source": "/shop", "ce-type": "order.created"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		name, body           string
		payload, contentType string
		headers              map[string]string
	}{
		{"object", `{` + required + `,"data": {"total": 1.0, "a":1,"a":2} }`, `{"total": 1.0, "a":1,"a":2}`, "application/json", attributes()},
		{"no data", `{` + required + `}`, ``, "", attributes()},
		{"null", `{` + required + `,"data":null}`, `null`, "application/json", attributes()},
		{"string", `{` + required + `,"data":"x"}`, `"x"`, "application/json", attributes()},
		{"string of JSON", `{` + required + `,"datacontenttype":"application/vnd.x+json","data":"x"}`, `"x"`, "application/vnd.x+json", attributes()},
		{"text", `{` + required + `,"datacontenttype":"text/xml","data":"<a>\u00e9</a>"}`, `<a>é</a>`, "text/xml", attributes()},
		{"base64", `{` + required + `,"datacontenttype":"text/plain","data_base64":"aGk="}`, `hi`, "text/plain", attributes()},
		{
			"extensions", `{` + required + `,"tenant":"Café %","retries":3,"urgent":true,"note":null,"subject":"s","data":1}`,
			`1`, "application/json", attributes("ce-tenant", "Caf%C3%A9%20%25", "ce-retries", "3", "ce-urgent", "true", "ce-subject", "s"),
		},
	} {
		for _, kind := range []Kind{Event, Webhook} {
			t.Run(tt.name, func(t *testing.T) {
				d := newDoor(testSources)
				source := map[Kind]string{Event: "app", Webhook: "plain"}[kind]
				// The attributes of a structured event count, and not the headers of binary mode.
				if _, err := d.Receive(t.Context(), request(kind, source, tt.body, "Content-Type", "Application/CloudEvents+JSON; charset=UTF-8", "Ce-Type", "no", "Ce-Other", "no")); err != nil {
					t.Fatal(err)
				}
				e := d.inbox.got[0].Event
				if string(e.Payload) != tt.payload || e.NoData() != (tt.name == "no data") || e.ContentType != tt.contentType || e.Type != "order.created" || e.DeliveryID != "/shop A 1" {
					t.Errorf("payload %s, content type %q, type %q, delivery id %q", e.Payload, e.ContentType, e.Type, e.DeliveryID)
				}
				if diff := cmp.Diff(tt.headers, e.Headers); diff != "" {
					t.Errorf("headers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestCloudEventsRefused(t *testing.T) {
	const required = `"specversion":"1.0","id":"1","source":"/s","type":"t"`
	for name, tt := range map[string]struct {
		contentType, body string
		kind              core.Kind
		message           string
	}{
		"batch":           {"application/cloudevents-batch+json", `[]`, core.Unsupported, "/events/{source}"},
		"XML":             {"application/cloudevents+xml", `<x/>`, core.Unsupported, "+json"},
		"id is a number":  {"application/cloudevents+json", `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`, core.Invalid, `"id"`},
		"many attributes": {"application/cloudevents+json", `{` + required + manyMembers(40) + `}`, core.Invalid, "at most 32"},
		"more behind it":  {"application/cloudevents+json", `{` + required + `} {}`, core.Invalid, "JSON object"},
		"cut short":       {"application/cloudevents+json", `{` + required + `,"data":1`, core.Invalid, "JSON object"},
		"not JSON":        {"application/cloudevents+json", `{`, core.Invalid, "JSON object"},
		"not an object":   {"application/cloudevents+json", `[]`, core.Invalid, "JSON object"},
		"no id":           {"application/cloudevents+json", `{"specversion":"1.0","source":"/s","type":"t"}`, core.Invalid, `"id"`},
		"empty type":      {"application/cloudevents+json", `{"specversion":"1.0","source":"/s","id":"1","type":""}`, core.Invalid, `"type"`},
		"version":         {"application/cloudevents+json", `{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, core.Invalid, `"specversion"`},
		"both data":       {"application/cloudevents+json", `{` + required + `,"data":1,"data_base64":""}`, core.Invalid, "both"},
		"bad base64":      {"application/cloudevents+json", `{` + required + `,"data_base64":"?"}`, core.Invalid, "base64"},
		"base64 number":   {"application/cloudevents+json", `{` + required + `,"data_base64":1}`, core.Invalid, "string"},
		"binary":          {"application/cloudevents+json", `{` + required + `,"data_base64":"/w=="}`, core.Invalid, "Invalid UTF-8"},
		"NUL":             {"application/cloudevents+json", `{` + required + `,"datacontenttype":"text/plain","data":"\u0000"}`, core.Invalid, "Invalid UTF-8"},
		"attribute":       {"application/cloudevents+json", `{` + required + `,"a":{}}`, core.Invalid, `"a"`},
		"attribute name":  {"application/cloudevents+json", `{` + required + `,"a-b":"x"}`, core.Invalid, `"a-b"`},
		"attribute empty": {"application/cloudevents", `{` + required + `,"":"x"}`, core.Invalid, `""`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(testSources)
			_, err := d.Receive(t.Context(), request(Webhook, "plain", tt.body, "Content-Type", tt.contentType))
			if !core.IsKind(err, tt.kind) || !strings.Contains(err.Error(), tt.message) || len(d.inbox.got) != 0 {
				t.Errorf("Receive() = %v with %d stored, want a refusal with %q", err, len(d.inbox.got), tt.message)
			}
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"a%02d":"x"`, i)
	}
	return b.String()
}

// TestAttributesKept: the required attributes are kept before any extension, and the attributes
// that are not kept make one line in the log.
func TestAttributesKept(t *testing.T) {
	var log bytes.Buffer
	d := newDoor(testSources)
	d.Log = slog.New(slog.NewTextHandler(&log, nil))
	r := request(Webhook, "plain", `{}`, "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "t", "Ce-Blob", strings.Repeat("b", maxHeaderBytes))
	for i := range 1000 {
		r.Header[fmt.Sprintf("Ce-A%03d", i)] = []string{"x"}
	}
	if _, err := d.Receive(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	kept := d.inbox.got[0].Event.Headers
	for name, want := range map[string]string{"ce-id": "1", "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0", "ce-a000": "x"} {
		if kept[name] != want {
			t.Errorf("%s = %q, want %q", name, kept[name], want)
		}
	}
	if len(kept) != maxHeaders {
		t.Errorf("headers kept: %d, want %d", len(kept), maxHeaders)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("log lines: %d, want 1:\n%.300s", lines, log.String())
	}
}

// TestDeliveryIDsDiffer: different events have different delivery ids.
func TestDeliveryIDsDiffer(t *testing.T) {
	seen := map[string]string{}
	for name, header := range map[string][]string{
		"blank in the source": {"Ce-Source", "a%20b", "Ce-Id", "c"},
		"blank in the id":     {"Ce-Source", "a", "Ce-Id", "b c"},
		"percent":             {"Ce-Source", "a%2520b", "Ce-Id", "c"},
		"too long":            {"Ce-Source", "a", "Ce-Id", strings.Repeat("x", 300)},
		"like a digest":       {"Idempotency-Key", bounded("a " + strings.Repeat("x", 300))},
	} {
		d := newDoor(testSources)
		if _, err := d.Receive(t.Context(), request(Event, "app", "", header...)); err != nil {
			t.Fatal(err)
		}
		id := d.inbox.got[0].Event.DeliveryID
		if seen[id] != "" {
			t.Errorf("%s and %s are both %q", name, seen[id], id)
		}
		seen[id] = name
	}
}

// TestBinaryAndStructuredAreTheSame: an event that comes again in the other mode
// is a duplicate, and is delivered with the same attributes.
func TestBinaryAndStructuredAreTheSame(t *testing.T) {
	d := newDoor(testSources)
	for _, r := range []Request{
		request(Webhook, "plain", `{"a":1}`, "Content-Type", "application/json",
			"Ce-Specversion", "1.0", "Ce-Id", "Euro%20%E2%82%AC", "Ce-Source", "/shop", "Ce-Type", "a.b", "Ce-Tenant", "x%20y"),
		request(Webhook, "plain", `{"specversion":"1.0","id":"Euro €","source":"/shop","type":"a.b","tenant":"x y","data":{"a":1}}`,
			"Content-Type", "application/cloudevents+json"),
	} {
		if _, err := d.Receive(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	first, second := d.inbox.got[0].Event, d.inbox.got[1].Event
	first.ID, second.ID = "", ""
	if diff := cmp.Diff(first, second); diff != "" || first.DeliveryID != "/shop Euro €" {
		t.Errorf("binary and structured (delivery id %q) differ:\n%s", first.DeliveryID, diff)
	}
}

func TestPercentDecoded(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "Euro%20%E2%82%AC%20%F0%9F%98%80": "Euro € 😀", `"quoted \"x\""`: `quoted "x"`,
		"%C0%A0": "%C0%A0", "100%": "100%", "%zz": "%zz", "%2": "%2", "%2525": "%25", `"`: `"`,
	} {
		if got := percentDecoded(in); got != want {
			t.Errorf("percentDecoded(%q) = %q, want %q", in, got, want)
		}
		if encoded := percentEncoded(want); percentDecoded(encoded) != want {
			t.Errorf("percentDecoded(%q) = %q, want %q", encoded, percentDecoded(encoded), want)
		}
	}
}
