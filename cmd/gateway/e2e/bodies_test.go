//go:build linux

package e2e

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
)

const formType = "application/x-www-form-urlencoded"

// TestBodies: the body of a webhook is stored and delivered byte for byte, with its content
// type. The gateway finds the type of the event in it.
func TestBodies(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, webhooksConfig, r)
	g.start()
	tests := []struct{ name, body, contentType, eventType string }{
		{"JSON with odd spelling", "\t{ \"type\": \"order\\u002epaid\",\r\n\"n\": 1.50e+3, \"n\": 2 }\n", "application/json; charset=utf-8", "order.paid"},
		{"JSON that is no object", ` [1, "type"] `, "application/json", "event"},
		{"a form", "id=7&type=order.paid&note=a+b%20c%26", formType, "order.paid"},
		{"a form around JSON", "payload=%7B%22type%22%3A%22order.paid%22%2C%20%22n%22%3A1.50%7D", formType + "; charset=UTF-8", "order.paid"},
		{"text", "Grüße, 世界 👋\n", "text/plain; charset=utf-8", "event"},
		{"XML", `<?xml version="1.0"?><order type="paid"/>`, "application/xml", "event"},
		{"text called JSON", `{"type": "order.paid"`, "application/json", "event"},
		{"a byte order mark", "\ufeff{}", "application/json", "event"},
		{"nothing", "", "", "event"},
	}
	events := map[string]string{}
	for i, tt := range tests {
		a := g.post("/webhooks/open", tt.body, "Content-Type", tt.contentType)
		wantAnswer(t, tt.name, a, 200, "Event received")
		e := g.inspect(a.eventID())
		if e.EventType != tt.eventType || e.Headers["content-type"] != tt.contentType {
			t.Errorf("%s: inspect shows type %q, content type %q, want %q, %q", tt.name, e.EventType, e.Headers["content-type"], tt.eventType, tt.contentType)
		}
		d := r.Await(t, 5*time.Second, "/open", i+1)[i]
		if d.Body != tt.body || tt.contentType != "" && d.Header.Get("Content-Type") != tt.contentType {
			t.Errorf("%s: delivered %q as %q, want %q as %q", tt.name, d.Body, d.Header.Get("Content-Type"), tt.body, tt.contentType)
		}
		events[tt.name] = a.eventID()
	}
	for name, body := range map[string]string{"no UTF-8": "{\"type\": \"caf\xe9\"}", "half a character": "\xe2\x82", "a NUL": "{\"a\": \"\x00\"}"} {
		wantAnswer(t, name, g.post("/webhooks/open", body), 400, "Invalid UTF-8")
	}
	if a := g.post("/webhooks/open", "{}", "Content-Encoding", "gzip"); a.status != 415 {
		t.Errorf("a body that calls itself gzip = %d %q, want 415", a.status, a.body)
	}
	g.stop()
	db := g.ledger()
	db.check(1)
	for _, tt := range tests {
		if got := db.column(`SELECT payload FROM events WHERE id = '` + events[tt.name] + `'`); len(got) != 1 || got[0] != tt.body {
			t.Errorf("%s: stored %q, want %q", tt.name, got, tt.body)
		}
	}
	if n := db.count(`SELECT COUNT(*) FROM events`); n != len(tests) {
		t.Errorf("%d events are stored, want %d", n, len(tests))
	}
}

// TestSignedForms: a signature covers the bytes of a form, not its decoded values.
func TestSignedForms(t *testing.T) {
	t.Parallel()
	g, r, clients := newWebhooks(t)
	for _, tt := range []struct {
		sender          sender
		body, eventType string
	}{
		{senders[0], "payload=" + url.QueryEscape(`{"action":"opened","title":"a b & c"}`), "issues"},
		{senders[3], "token=xyzz0WbapA4vBCDEFasx0q6G&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F1", "event"},
	} {
		s := tt.sender
		s.body = tt.body
		signed := s.signed(clients, time.Now())
		signed.Headers["content-type"] = formType
		a := g.postSigned("/webhooks/"+s.provider, signed)
		wantAnswer(t, s.provider+", a form", a, 200, "Event received")
		if e := g.inspect(a.eventID()); e.EventType != tt.eventType {
			t.Errorf("%s, a form: event type %q, want %q", s.provider, e.EventType, tt.eventType)
		}
		if d := r.Await(t, 5*time.Second, "/"+s.provider, 1)[0]; d.Body != tt.body || d.Header.Get("Content-Type") != formType {
			t.Errorf("%s, a form: delivered %q as %q, want %q as %q", s.provider, d.Body, d.Header.Get("Content-Type"), tt.body, formType)
		}
		signed.Body = strings.Replace(tt.body, "%2", "%32", 1)
		wantAnswer(t, s.provider+", a form spelled otherwise", g.postSigned("/webhooks/"+s.provider, signed), 401, "Invalid signature")
	}
}

// TestCloudEvents: an event written by the CloudEvents library keeps its attributes up to the
// handler, in both modes and at both kinds of sources.
func TestCloudEvents(t *testing.T) {
	t.Parallel()
	g, r, clients := newWebhooks(t)
	const data = `{"n":1.5,"sign":"€"}`
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	attributes := map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": "e-1", "Ce-Source": "/shop", "Ce-Type": "order.created",
		"Ce-Time": "2026-11-20T09:00:00.000Z", "Ce-Subject": "cart 7", "Ce-Region": "eu",
	}
	for _, door := range []struct {
		source, path, yes string
		status            int
		first, second     string // mode
	}{
		{"open", "/webhooks/open", "Event received", 200, "cloudevents-binary", "cloudevents-structured"},
		{"app", "/events/app/the.path.says.so", "Event accepted", 202, "cloudevents-structured", "cloudevents-binary"},
	} {
		posting := servers.Posting{Provider: door.first, Body: data, ID: "e-1", Type: "order.created", At: at}
		a := g.postSigned(door.path, clients.Sign(posting))
		wantAnswer(t, door.path+", "+door.first, a, door.status, door.yes)
		if e := g.inspect(a.eventID()); e.EventType != "order.created" || e.Source != door.source {
			t.Errorf("%s: inspect shows %+v, want type order.created", door.path, e)
		}
		d := r.Await(t, 5*time.Second, "/"+door.source, 1)[0]
		got := map[string]string{}
		for name := range d.Header {
			if strings.HasPrefix(name, "Ce-") {
				got[name], _ = url.PathUnescape(d.Header.Get(name))
			}
		}
		if !maps.Equal(got, attributes) || d.Body != data || !strings.HasPrefix(d.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: delivered %v %q as %q, want %v %q", door.path, got, d.Body, d.Header.Get("Content-Type"), attributes, data)
		}
		if err := clients.Verify("cloudevents", "", asSigned(d)); err != nil {
			t.Errorf("%s: %v", door.path, err)
		}

		// A repeat has the same source and id, in either mode.
		posting.Provider = door.second
		again := g.postSigned(door.path, clients.Sign(posting))
		wantAnswer(t, door.path+", again "+door.second, again, 200, "Duplicate event ignored")
		if again.eventID() != a.eventID() {
			t.Errorf("%s: duplicate of %s, want of %s", door.path, again.eventID(), a.eventID())
		}
	}
}

// TestStructuredCloudEvents checks events that no library writes, but a user can.
func TestStructuredCloudEvents(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, webhooksConfig, r)
	g.start()
	post := func(members string) answer {
		return g.post("/webhooks/open", `{"specversion":"1.0","source":"/hand","type":"note.written",`+members+`}`, "Content-Type", "application/cloudevents+json")
	}
	for i, tt := range []struct{ name, members, body, contentType string }{
		{"spelling of the data", `"id":"1","data": {"n": 1.50, "n": 2} `, `{"n": 1.50, "n": 2}`, "application/json"},
		{"text", `"id":"2","datacontenttype":"text/plain","data":"5 \u20ac"`, "5 €", "text/plain"},
		{"base64", `"id":"3","datacontenttype":"application/xml","data_base64":"PGEvPg=="`, "<a/>", "application/xml"},
		{"a JSON string", `"id":"4","datacontenttype":"application/json","data":"text"`, `"text"`, "application/json"},
	} {
		wantAnswer(t, tt.name, post(tt.members), 200, "Event received")
		d := r.Await(t, 5*time.Second, "/open", i+1)[i]
		if d.Body != tt.body || d.Header.Get("Content-Type") != tt.contentType || d.Header.Get("Ce-Type") != "note.written" {
			t.Errorf("%s: delivered %q as %q, want %q as %q", tt.name, d.Body, d.Header.Get("Content-Type"), tt.body, tt.contentType)
		}
	}
	for name, a := range map[string]answer{
		"no id":      post(`"data":{}`),
		"no object":  g.post("/webhooks/open", `[]`, "Content-Type", "application/cloudevents+json"),
		"no JSON":    g.post("/webhooks/open", `{`, "Content-Type", "application/cloudevents+json; charset=utf-8"),
		"bad base64": post(`"id":"5","data_base64":"!"`),
	} {
		var why struct{ Error string }
		if err := json.Unmarshal([]byte(a.body), &why); a.status != 400 || err != nil || why.Error == "" {
			t.Errorf("%s = %d %q, want 400 and why", name, a.status, a.body)
		}
	}
	if a := g.post("/webhooks/open", `[]`, "Content-Type", "application/cloudevents-batch+json"); a.status != 415 {
		t.Errorf("a batch = %d %q, want 415", a.status, a.body)
	}
	if got := g.events(); len(got) != 4 {
		t.Errorf("%d events are stored, want 4", len(got))
	}
}
