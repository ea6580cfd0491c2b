package intake

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eventgateway/gateway/core"
)

// received is when every request of these tests began to arrive.
var received = time.Date(2026, 3, 4, 5, 6, 7, 891_234_567, time.UTC)

// inbox is a store that keeps the arrivals that it accepted, and answers as the test sets.
type inbox struct {
	got    []core.Arrival
	answer core.Receipt // zero means the answer for a new event
	err    error
}

func (i *inbox) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	if i.err != nil {
		return core.Receipt{}, i.err
	}
	i.got = append(i.got, a)
	if i.answer != (core.Receipt{}) {
		return i.answer, nil
	}
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// A door is an Intake with its store, and with the facts that it reported.
type door struct {
	*Intake
	inbox inbox
	facts []core.Fact
}

func newDoor(sources []Source, consumers ...Consumer) *door {
	d := &door{}
	clock := func() time.Time { return received.Add(3 * time.Millisecond) }
	d.Intake = New(Deps{
		Inbox: &d.inbox, IDs: core.NewIDs(clock), Clock: clock, Bell: new(core.Bell),
		Observe: func(f core.Fact) { d.facts = append(d.facts, f) },
		Sources: sources, Consumers: consumers,
	})
	return d
}

var testSources = []Source{
	{Name: "app", Kind: Event},
	{Name: "plain", Kind: Webhook},
	{Name: "hub", Kind: Webhook, Provider: "github"},
}

func request(k Kind, source, body string, header ...string) Request {
	r := Request{Kind: k, Source: source, Body: []byte(body), Header: Header{}, At: received}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
	}
	if k == Event {
		r.Type = "order.created"
	}
	return r
}

func TestReceiveStoresTheEventAsItCame(t *testing.T) {
	d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "hub", MaxAttempts: 5}, Consumer{Lane: "handler/b", Source: "app", MaxAttempts: 1})
	body := "{ \"zen\": 1.0 }\n"
	receipt, err := d.Receive(t.Context(), request(Webhook, "hub", body,
		"X-Github-Event", "push", "X-Github-Delivery", "72d3162e", "Content-Type", "application/json",
		"X-Hub-Signature-256", "sha256=00", "Authorization", "Bearer x", "Cookie", "a=b",
		"Traceparent", "00-1-2-01", "Ce-Subject", "s"))
	if err != nil {
		t.Fatal(err)
	}
	want := core.Arrival{
		Event: core.Event{
			Source: "hub", Type: "push", Payload: []byte(body), ContentType: "application/json",
			DeliveryID: "72d3162e", CreatedAt: received.Truncate(time.Millisecond),
			Headers: map[string]string{
				"x-github-event": "push", "x-github-delivery": "72d3162e",
				"traceparent": "00-1-2-01", "ce-subject": "s",
			},
		},
		Jobs: []core.NewJob{{Lane: "handler/a", MaxAttempts: 5}},
	}
	if diff := cmp.Diff(want, d.inbox.got[0], cmpopts.IgnoreTypes(core.ID(""))); diff != "" {
		t.Errorf("arrival (-want +got):\n%s", diff)
	}
	facts := []core.Fact{core.Accepted{Event: d.inbox.got[0].Event, Jobs: 1, Asked: d.inbox.got[0].Jobs, Took: 3 * time.Millisecond}}
	if diff := cmp.Diff(facts, d.facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if receipt.EventID != d.inbox.got[0].Event.ID || receipt.Jobs != 1 {
		t.Errorf("receipt = %+v, want the event's id and 1 job", receipt)
	}
}

func TestEventType(t *testing.T) {
	hook := func(source, body string, header ...string) Request { return request(Webhook, source, body, header...) }
	long := strings.Repeat("x", maxType)
	tests := []struct {
		name string
		r    Request
		want string
	}{
		{"nothing", hook("plain", ""), "event"},
		{"not JSON", hook("plain", "type=a"), "event"},
		{"body", hook("plain", ` {"a":{"type":"no"},"type":"invoice.paid"}`), "invoice.paid"},
		{"body, last wins", hook("plain", `{"type":"a","type":"b"}`), "b"},
		{"body, not a string", hook("plain", `{"type":7}`), "event"},
		{"body, cut short", hook("plain", `{"type":"a"`), "event"},
		{"body, too deep", hook("plain", `{"type":"a","b":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`), "event"},
		{"body, array", hook("plain", `["type","a"]`), "event"},
		{"body, bad type", hook("plain", `{"type":"a b"}`), "event"},
		{"body, dots", hook("plain", `{"type":"a..b"}`), "event"},
		{"body, longest", hook("plain", `{"type":"`+long+`"}`), long},
		{"body, too long", hook("plain", `{"type":"`+long+`x"}`), "event"},
		{"action only from github", hook("plain", `{"action":"opened"}`), "event"},
		{"action", hook("hub", `{"action":"opened"}`), "opened"},
		{"type before action", hook("hub", `{"action":"opened","type":"t"}`), "t"},
		{"provider header", hook("hub", `{"type":"t"}`, "X-Github-Event", "push"), "push"},
		{"provider header, other source", hook("plain", `{"type":"t"}`, "X-Github-Event", "push"), "push"},
		{"bad header is not passed over", hook("hub", `{"type":"t"}`, "X-Github-Event", "pu sh"), "event"},
		{"empty header is none", hook("hub", `{"type":"t"}`, "X-Github-Event", ""), "t"},
		{"ce-type first", hook("hub", `{"type":"t"}`, "X-Github-Event", "push", "Ce-Type", "com.example.x"), "com.example.x"},
		{"first of two", hook("plain", ``, "Ce-Type", "a", "Ce-Type", "b"), "a"},
		{"path", request(Event, "app", `{"type":"t"}`), "order.created"},
		{"ce-type before path", request(Event, "app", ``, "Ce-Type", "c"), "c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(testSources)
			if _, err := d.Receive(t.Context(), tt.r); err != nil {
				t.Fatal(err)
			}
			if got := d.inbox.got[0].Event.Type; got != tt.want {
				t.Errorf("type = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestValidType(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "A-Z_0.9:x/y": true, "orders/create": true, ".": true, strings.Repeat("a", 128): true,
		"": false, "..": false, "a..b": false, "a b": false, "ä": false, "a\x00": false, "a%2Fb": false,
		strings.Repeat("a", 129): false,
	} {
		if got := ValidType(s); got != want {
			t.Errorf("ValidType(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestDeliveryID(t *testing.T) {
	long := strings.Repeat("k", maxDeliveryID+1)
	ce := []string{"Ce-Source", "/shop", "Ce-Id", "17"}
	tests := []struct {
		name string
		r    Request
		want string
	}{
		{"none", request(Webhook, "hub", ""), ""},
		{"github", request(Webhook, "hub", "", "X-Github-Delivery", "g"), "g"},
		{"github header, other source", request(Webhook, "plain", "", "X-Github-Delivery", "g"), ""},
		{"too long to store", request(Webhook, "hub", "", "X-Github-Delivery", long),
			"sha256:ce16fe78208a4e93f7158e62393680e025b2ad584f4e875ce903a654bb74cf93"},
		{"CloudEvent", request(Webhook, "plain", "", ce...), "/shop 17"},
		{"CloudEvent, half", request(Webhook, "plain", "", ce[:2]...), ""},
		{"github before CloudEvent", request(Webhook, "hub", "", append(ce, "X-Github-Delivery", "g")...), "g"},
		{"key", request(Event, "app", "", "Idempotency-Key", "k"), "k"},
		{"key before CloudEvent", request(Event, "app", "", append(ce, "Idempotency-Key", "k")...), "k"},
		{"key, webhook", request(Webhook, "plain", "", "Idempotency-Key", "k"), ""},
		{"longest key", request(Event, "app", "", "Idempotency-Key", long[1:]), long[1:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(testSources)
			if _, err := d.Receive(t.Context(), tt.r); err != nil {
				t.Fatal(err)
			}
			if got := d.inbox.got[0].Event.DeliveryID; got != tt.want {
				t.Errorf("delivery id = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	typed := func(s string) Request {
		r := request(Event, "app", "")
		r.Type = s
		return r
	}
	from := func(ip string, r Request) Request {
		r.ClientIP = netip.MustParseAddr(ip)
		return r
	}
	no := core.Refuse(core.Unauthorized, "Invalid signature")
	sources := append([]Source{
		{Name: "never", Kind: Webhook, Verify: func(Request) error { return no }},
		{Name: "broken", Kind: Webhook, Verify: func(Request) error { return errors.New("no certificate") }},
		{Name: "office", Kind: Webhook, Verify: func(Request) error { return no }, Allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}},
	}, testSources...)
	tests := []struct {
		name string
		r    Request
		want string
		kind core.Kind // 0 for an error that is no refusal
	}{
		{"unknown source", request(Webhook, "nope", ""), "Unknown source", core.NotFound},
		{"wrong type", request(Webhook, "app", ""), "Unknown source", core.NotFound},
		{"wrong type, too", request(Event, "plain", ""), "Unknown source", core.NotFound},
		{"address", from("10.2.0.1", request(Webhook, "office", "")), "Forbidden", core.Forbidden},
		{"no address", request(Webhook, "office", ""), "Forbidden", core.Forbidden},
		{"signature after address", from("::ffff:10.1.0.1", request(Webhook, "office", "")), "Invalid signature", core.Unauthorized},
		{"signature before UTF-8", request(Webhook, "never", "\xff"), "Invalid signature", core.Unauthorized},
		{"verifier broken", request(Webhook, "broken", ""), `verification error: source "broken": no certificate`, 0},
		{"UTF-8", request(Webhook, "plain", "a\xff"), "Invalid UTF-8: " + ErrNotText.Error(), core.Invalid},
		{"surrogate half", request(Webhook, "plain", "\xed\xa0\x80"), "Invalid UTF-8: " + ErrNotText.Error(), core.Invalid},
		{"NUL", request(Webhook, "plain", "a\x00"), "Invalid UTF-8: " + ErrNotText.Error(), core.Invalid},
		{"UTF-8 before type", func() Request { r := typed("a b"); r.Body = []byte("\xff"); return r }(), "Invalid UTF-8: " + ErrNotText.Error(), core.Invalid},
		{"type", typed("a b"), `event type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without "..": malformed request`, core.Invalid},
		{"no type", typed(""), `event type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without "..": malformed request`, core.Invalid},
		{"key too long", request(Event, "app", "", "Idempotency-Key", strings.Repeat("k", 256)), "Idempotency-Key must be one header of 1 to 255 bytes of text: malformed request", core.Invalid},
		{"two keys", request(Event, "app", "", "Idempotency-Key", "a", "Idempotency-Key", "b"), "Idempotency-Key must be one header of 1 to 255 bytes of text: malformed request", core.Invalid},
		{"empty key", request(Event, "app", "", "Idempotency-Key", ""), "Idempotency-Key must be one header of 1 to 255 bytes of text: malformed request", core.Invalid},
		{"odd key", request(Event, "app", "", "Idempotency-Key", "\xff"), "Idempotency-Key must be one header of 1 to 255 bytes of text: malformed request", core.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(sources)
			_, err := d.Receive(t.Context(), tt.r)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error = %v, want %s", err, tt.want)
			}
			if tt.kind != 0 && !core.IsKind(err, tt.kind) {
				t.Errorf("%v is not of kind %v", err, tt.kind)
			}
			if tt.kind == 0 && !errors.Is(err, ErrVerification) {
				t.Errorf("%v is no ErrVerification", err)
			}
			if len(d.inbox.got) > 0 {
				t.Error("the event was stored")
			}
			source := tt.r.Source
			if source == "nope" {
				source = "" // an unknown source has no name in facts
			}
			var want core.Fact = core.TurnedAway{Source: source, Kind: tt.kind}
			if tt.want == "Invalid signature" {
				want = core.Unverified{Source: source, Reason: tt.want, ClientIP: address(tt.r.ClientIP)}
			}
			if diff := cmp.Diff([]core.Fact{want}, d.facts); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnverifiedIsAFact(t *testing.T) {
	refusal := &core.Refusal{Kind: core.Unauthorized, Message: "Invalid signature", Cause: errors.New("no header")}
	d := newDoor([]Source{{Name: "s", Kind: Webhook, Verify: func(Request) error { return refusal }}})
	r := request(Webhook, "s", "")
	r.ClientIP = netip.MustParseAddr("192.0.2.1")
	_, _ = d.Receive(t.Context(), r)
	want := []core.Fact{core.Unverified{Source: "s", Reason: "Invalid signature: no header", ClientIP: "192.0.2.1"}}
	if diff := cmp.Diff(want, d.facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestDuplicateRingsNobody(t *testing.T) {
	d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "plain", MaxAttempts: 1})
	heard := d.Bell.Listen("handler/a")
	d.inbox.answer = core.Receipt{EventID: "FIRST", Duplicate: true}
	receipt, err := d.Receive(t.Context(), request(Webhook, "plain", ""))
	if err != nil || receipt.Receipt != d.inbox.answer {
		t.Fatalf("Receive = %+v, %v", receipt, err)
	}
	want := []core.Fact{core.Repeated{Source: "plain", Type: "event", First: "FIRST"}}
	if diff := cmp.Diff(want, d.facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	select {
	case <-heard.C:
		t.Error("the bell rang")
	default:
	}
	d.inbox.answer = core.Receipt{}
	if _, err := d.Receive(t.Context(), request(Webhook, "plain", "")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard.C:
	default:
		t.Error("the bell did not ring for a new job")
	}
}

func TestStoreErrorsPass(t *testing.T) {
	d := newDoor(testSources)
	d.inbox.err = core.Refuse(core.Unavailable, "database unreachable")
	_, err := d.Receive(t.Context(), request(Webhook, "plain", ""))
	if !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), `source "plain"`) {
		t.Errorf("error = %v, want the store's refusal with the source's name", err)
	}
	want := []core.Fact{core.TurnedAway{Source: "plain", Kind: core.Unavailable}}
	if diff := cmp.Diff(want, d.facts); diff != "" {
		t.Errorf("facts of an event that was not stored (-want +got):\n%s", diff)
	}
}

func TestEmptyBody(t *testing.T) {
	d := newDoor(testSources)
	const form = "application/x-www-form-urlencoded" // as curl -d '' sends it
	for _, r := range []Request{request(Event, "app", "", "Content-Type", form), request(Webhook, "plain", "", "Content-Type", form)} {
		if _, err := d.Receive(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	a, b := d.inbox.got[0].Event, d.inbox.got[1].Event
	if string(a.Payload) != "{}" || a.ContentType != "" {
		t.Errorf("payload of an event = %q (%s), want {}, which is no form", a.Payload, a.ContentType)
	}
	if string(b.Payload) != "" || b.ContentType != form {
		t.Errorf("payload of a webhook = %q (%s), want none, of the type it came with", b.Payload, b.ContentType)
	}
}

func TestKeptHeadersAreBounded(t *testing.T) {
	d := newDoor(testSources)
	r := request(Webhook, "plain", "", "Traceparent", "bad\xff", "Content-Type", strings.Repeat("t", 256), "Ce-A", strings.Repeat("a", maxHeaderBytes-4), "Ce-B", "past the bytes")
	if _, err := d.Receive(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	e := d.inbox.got[0].Event
	if len(e.Headers) != 1 || e.Headers["ce-a"] == "" || e.ContentType != "" {
		t.Errorf("kept %d headers and content type %q, want only ce-a", len(e.Headers), e.ContentType)
	}
	r = request(Webhook, "plain", "")
	for i := range 100 {
		r.Header[fmt.Sprintf("Ce-X%03d", i)] = []string{"v"}
	}
	if _, err := d.Receive(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	headers := d.inbox.got[1].Event.Headers
	if _, last := headers["ce-x031"]; len(headers) != maxHeaders || !last {
		t.Errorf("kept %d headers, want the first %d by name", len(headers), maxHeaders)
	}
}

func BenchmarkReceive(b *testing.B) {
	var consumers []Consumer
	for i := range 100 {
		consumers = append(consumers, Consumer{Lane: core.HandlerLane(fmt.Sprint(i)), Source: "plain", Events: []string{fmt.Sprintf("t%d", i)}, MaxAttempts: 5})
	}
	in := New(Deps{Inbox: nullInbox{}, IDs: core.NewIDs(core.SystemClock), Clock: core.SystemClock, Sources: testSources, Consumers: consumers})
	body := `{"data":{"text":"` + strings.Repeat("x", 1000) + `"},"type":"t7"}`
	r := request(Webhook, "plain", body, "Content-Type", "application/json", "User-Agent", "bench")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Receive(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

type nullInbox struct{}

func (nullInbox) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

func (i *inbox) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := i.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

func (n nullInbox) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := n.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}
