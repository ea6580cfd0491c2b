package intake

import (
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/verify"
)

// providerSources is one webhook source for each provider, called like it.
func providerSources() (all []Source) {
	for _, p := range providers {
		all = append(all, Source{Name: p.name, Kind: Webhook, Provider: p.name})
	}
	return all
}

// TestProviders: requests of real senders, shortened, are accepted with the right type and
// delivery id.
func TestProviders(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		name, source, body string
		header             []string
		wantType, wantID   string
	}{
		{"github", "github", `{"action":"opened"}`, []string{"X-Github-Event", "issues", "X-Github-Delivery", "72d3162e"}, "issues", "72d3162e"},
		{"github as a form", "github", `payload=%7B%22action%22%3A%22opened%22%7D`, []string{"Content-Type", form, "X-Github-Delivery", "1"}, "opened", "1"},
		{"stripe", "stripe", `{"id":"evt_1","object":"event","type":"invoice.paid"}`, nil, "invoice.paid", "evt_1"},
		{"stripe, thin", "stripe", `{"id":"evt_2","object":"v2.core.event","type":"v1.billing.meter.no_meter_found"}`, nil, "v1.billing.meter.no_meter_found", "evt_2"},
		{"shopify", "shopify", `{"id":1}`, []string{"X-Shopify-Topic", "orders/create", "X-Shopify-Webhook-Id", "b54557e4"}, "orders/create", "b54557e4"},
		{"shopify, newer", "shopify", `{"topic":"orders/create"}`, []string{"Shopify-Webhook-Id", "b54557e4"}, "orders/create", "b54557e4"},
		{"slack", "slack", `{"type":"event_callback","event_id":"Ev08","event":{"type":"app_mention","text":"hi"}}`, nil, "app_mention", "Ev08"},
		{"slack, no inner type", "slack", `{"type":"event_callback","event_id":"Ev08","event":{}}`, nil, "event_callback", "Ev08"},
		{"slack, other outer type", "slack", `{"type":"app_rate_limited","event":{"type":"x"}}`, nil, "app_rate_limited", ""},
		{"slack, command", "slack", `command=%2Fdeploy&text=`, []string{"Content-Type", form}, "event", ""},
		{"the wrapper of slack elsewhere", "stripe", `{"type":"event_callback","event":{"type":"x"}}`, nil, "event_callback", ""},
		{"standard webhooks", "standard-webhooks", `{"type":"user.created"}`, []string{"Webhook-Id", "msg_1"}, "user.created", "msg_1"},
		{"svix", "standard-webhooks", `{"type":"user.created"}`, []string{"Svix-Id", "msg_2"}, "user.created", "msg_2"},
		{"gitlab", "gitlab", `{"object_kind":"merge_request"}`, []string{"X-Gitlab-Event", "Merge Request Hook", "Idempotency-Key", "f5e5"}, "Merge_Request_Hook", "f5e5"},
		{"gitlab without header", "gitlab", `{"object_kind":"merge_request"}`, nil, "merge_request", ""},
		{"linear", "linear", `{"action":"create","type":"Issue"}`, []string{"Linear-Delivery", "234d1a4e"}, "Issue", "234d1a4e"},
		{"paddle", "paddle", `{"event_id":"evt_01","event_type":"subscription.created"}`, nil, "subscription.created", "evt_01"},
		{"twilio", "twilio", `MessageSid=SM1&From=%2B1`, []string{"Content-Type", form, "I-Twilio-Idempotency-Token", "a-b"}, "event", "a-b"},
		{"a form that names its type", "twilio", `type=call.ended`, []string{"Content-Type", form + "; charset=utf-8"}, "call.ended", ""},
		{"types of others are not believed", "stripe", `{"type":"x"}`, []string{"X-Github-Event", "push"}, "x", ""},
		{"ids of others are not believed", "stripe", `{"type":"x"}`, []string{"X-Github-Delivery", "g", "Webhook-Id", "w", "Idempotency-Key", "k"}, "x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(providerSources())
			if _, err := d.Receive(t.Context(), request(Webhook, tt.source, tt.body, tt.header...)); err != nil {
				t.Fatal(err)
			}
			e := d.inbox.got[0].Event
			if e.Type != tt.wantType || e.DeliveryID != tt.wantID || string(e.Payload) != tt.body {
				t.Errorf("type %q, delivery id %q, payload %q, want %q, %q, %q", e.Type, e.DeliveryID, e.Payload, tt.wantType, tt.wantID, tt.body)
			}
		})
	}
}

func TestSlackChallenge(t *testing.T) {
	const body = `{"token":"x","challenge":"3eZbrw1aB","type":"url_verification"}`
	refusing := Source{Name: "refusing", Kind: Webhook, Provider: "slack", Verify: func(Request) error { return core.Refuse(core.Unauthorized, "Invalid signature") }}
	for _, tt := range []struct {
		name, source, body, answer string
		stored                     int
	}{
		{"challenge", "slack", body, "3eZbrw1aB", 0},
		{"of nobody", "slack", `{"type":"url_verification"}`, "", 1},
		{"with control characters", "slack", `{"type":"url_verification","challenge":"a\r\nb"}`, "", 1},
		{"another provider", "github", body, "", 1},
		{"not verified", "refusing", body, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(append(providerSources(), refusing))
			result, err := d.Receive(t.Context(), request(Webhook, tt.source, tt.body))
			if (err != nil) != (tt.source == "refusing") || result.Answer != tt.answer || len(d.inbox.got) != tt.stored {
				t.Errorf("Receive() = %+v, %v with %d stored, want answer %q and %d", result, err, len(d.inbox.got), tt.answer, tt.stored)
			}
		})
	}
}

// TestTypeOfVerifiedWebhooks: the signed part of a request names the type first, then the
// provider's header, then an unsigned ce-type.
func TestTypeOfVerifiedWebhooks(t *testing.T) {
	const (
		form       = "application/x-www-form-urlencoded"
		structured = `{"specversion":"1.0","id":"1","source":"/s","type":"a.b","data":{"type":"inner"}}`
	)
	for _, tt := range []struct {
		name, source, body string
		header             []string
		want               string
	}{
		{"stripe", "stripe", `{"type":"invoice.payment_failed"}`, []string{"Ce-Type", "invoice.paid"}, "invoice.payment_failed"},
		{"stripe, called a form", "stripe", `{"type":"invoice.payment_failed"}`, []string{"Ce-Type", "invoice.paid", "Content-Type", form}, "invoice.payment_failed"},
		{"stripe without type", "stripe", `{}`, []string{"Ce-Type", "a"}, "a"},
		{"standard webhooks", "standard-webhooks", `{"type":"user.created"}`, []string{"Ce-Type", "user.deleted"}, "user.created"},
		{"linear", "linear", `{"type":"Issue"}`, []string{"Ce-Type", "Comment"}, "Issue"},
		{"paddle", "paddle", `{"event_type":"subscription.created","type":"x"}`, []string{"Ce-Type", "c"}, "subscription.created"},
		{"slack", "slack", `{"type":"event_callback","event":{"type":"message"}}`, []string{"Ce-Type", "c"}, "message"},
		{"slack, other outer type", "slack", `{"type":"app_rate_limited","event":{"type":"x"}}`, []string{"Ce-Type", "c"}, "app_rate_limited"},
		{"slack, no string inside", "slack", `{"type":"event_callback","event":{"type":1}}`, []string{"Ce-Type", "c"}, "event_callback"},
		{"hmac", "hmac", `{"type":"t"}`, []string{"Ce-Type", "c", "X-Github-Event", "push"}, "t"},
		{"hmac, header of a provider", "hmac", `{}`, []string{"Ce-Type", "c", "X-Github-Event", "push"}, "push"},
		{"hmac, neither", "hmac", `{}`, []string{"Ce-Type", "c%20d"}, "event"},
		{"hmac, unusable type is not passed over", "hmac", `{"type":"a b"}`, []string{"Ce-Type", "c"}, "event"},
		{"hmac, a form", "hmac", `type=call.ended`, []string{"Ce-Type", "c", "Content-Type", form}, "call.ended"},
		{"hmac, a form called text", "hmac", `type=call.ended`, []string{"Ce-Type", "c", "Content-Type", "text/plain"}, "call.ended"},
		{"hmac, a structured event", "hmac", structured, []string{"Ce-Type", "c", "Content-Type", "application/cloudevents+json", "X-Github-Event", "push"}, "a.b"},
		{"github", "github", `{"action":"opened","type":"t"}`, []string{"Ce-Type", "c", "X-Github-Event", "issues"}, "issues"},
		{"github without header", "github", `{"action":"opened"}`, []string{"Ce-Type", "c"}, "opened"},
		{"github, a structured event", "github", structured, []string{"Content-Type", "application/cloudevents+json", "X-Github-Event", "push"}, "a.b"},
		{"gitlab", "gitlab", `{"object_kind":"push"}`, []string{"Ce-Type", "c", "X-Gitlab-Event", "Push Hook"}, "Push_Hook"},
		{"shopify, in the body", "shopify", `{"topic":"orders/paid"}`, []string{"Ce-Type", "c", "X-Shopify-Topic", "orders/create"}, "orders/paid"},
		{"shopify, type of a metaobject", "shopify", `{"type":"lookbook"}`, []string{"Ce-Type", "c", "X-Shopify-Topic", "metaobjects/create"}, "metaobjects/create"},
		{"twilio", "twilio", `From=1`, []string{"Ce-Type", "c", "Content-Type", form}, "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(verifiedSources())
			if _, err := d.Receive(t.Context(), request(Webhook, tt.source, tt.body, tt.header...)); err != nil {
				t.Fatal(err)
			}
			if e := d.inbox.got[0].Event; e.Type != tt.want {
				t.Errorf("type %q, want %q", e.Type, tt.want)
			}
		})
	}
}

// verifiedSources are the providers' sources and one with verify: hmac. Their verifier
// accepts every request.
func verifiedSources() []Source {
	all := append(providerSources(), Source{Name: "hmac", Kind: Webhook, Provider: "hmac"})
	for i := range all {
		all[i].Verify = func(Request) error { return nil }
	}
	return all
}

// TestUnsignedAttributes: attributes in headers beside a signed body are kept, but give no
// delivery id. Deliveries do not carry a type that the event does not have.
func TestUnsignedAttributes(t *testing.T) {
	attributes := []string{"Ce-Specversion", "1.0", "Ce-Id", "1001", "Ce-Source", "/s", "Ce-Type", "invoice.paid"}
	for _, tt := range []struct {
		name, source, body, contentType string
		wantID, wantType                string // the type as an attribute
	}{
		{"another type", "hmac", `{"type":"invoice.voided"}`, "application/json", "", ""},
		{"the same type", "hmac", `{"type":"invoice.paid"}`, "application/json", "", "invoice.paid"},
		{"the type is the attribute's", "hmac", `{}`, "application/json", "", "invoice.paid"},
		{"the provider's id", "stripe", `{"id":"evt_1","type":"invoice.voided"}`, "application/json", "evt_1", ""},
		{"a structured event", "hmac", `{"specversion":"1.0","id":"7","source":"/other","type":"a.b"}`, "application/cloudevents+json", "/other 7", "a.b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(verifiedSources())
			r := request(Webhook, tt.source, tt.body, append(attributes, "Content-Type", tt.contentType)...)
			if _, err := d.Receive(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			e := d.inbox.got[0].Event
			if e.DeliveryID != tt.wantID || e.Headers["ce-type"] != tt.wantType || e.Headers["ce-id"] == "" {
				t.Errorf("delivery id %q, headers %v, want id %q, ce-type %q", e.DeliveryID, e.Headers, tt.wantID, tt.wantType)
			}
		})
	}
}

// TestByBody: for a source that recognizes repeats by the body, equal bodies are one delivery,
// also with different headers. Different bodies are different deliveries.
func TestByBody(t *testing.T) {
	const structured = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1}`
	sources := verifiedSources()
	for i := range sources {
		sources[i].ByBody = true
	}
	id := func(source, body string, header ...string) string {
		d := newDoor(sources)
		if _, err := d.Receive(t.Context(), request(Webhook, source, body, header...)); err != nil {
			t.Fatal(err)
		}
		return d.inbox.got[0].Event.DeliveryID
	}
	// printf '{"a":1}' | sha256sum
	const want = "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
	first := id("github", `{"a":1}`, "X-Github-Delivery", "1")
	again := id("github", `{"a":1}`, "X-Github-Delivery", "2", "X-Github-Event", "push", "Ce-Id", "1", "Ce-Source", "/s")
	if first != want || again != want {
		t.Errorf("delivery ids %q, again %q, want %q", first, again, want)
	}
	if other := id("github", `{"a":1} `, "X-Github-Delivery", "1"); other == want {
		t.Errorf("another body has the same delivery id %q", other)
	}
	if plain, unwrapped := id("hmac", structured), id("hmac", structured, "Content-Type", "application/cloudevents+json"); plain != unwrapped {
		t.Errorf("delivery ids %q, as a structured event %q, want the same", plain, unwrapped)
	}
}

// TestSignedIDs: if a scheme covers the delivery id, the provider's id is in the body, or in
// the headers that Standard Webhooks signs. With other schemes the id is in an unsigned
// header.
func TestSignedIDs(t *testing.T) {
	for _, name := range verify.Names() {
		p := providerCalled(name)
		if p.name == "" {
			continue // an alias, or hmac, which has no delivery ids
		}
		signed := p.idField != "" || name == "standard-webhooks"
		if got := verify.CoverOf(name).DeliveryID; got != signed {
			t.Errorf("the Cover of %s in core/verify has DeliveryID = %v, want %v: the id is in the headers %q or the body's %q", name, got, signed, p.idHeaders, p.idField)
		}
	}
}
