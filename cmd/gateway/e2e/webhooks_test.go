//go:build linux

package e2e

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
)

// A sender is a provider of webhooks, with one webhook.
type sender struct {
	provider  string // its name in servers.Clients and of its source
	secret    string
	body      string
	eventType string // expected type of the event
	delivery  string // expected delivery id
}

// The bodies have unusual but valid JSON: a delivered body must be equal, byte for byte.
var senders = []sender{
	{
		"github", githubSecret, `{"action": "opened", "issue":{"number": 1.50, "title":"5 \u20ac or 5 €"} }`,
		"issues", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
	},
	{
		"stripe", "whsec_stripe shows it like that and takes it as it is", "{\n  \"id\": \"evt_1PgafTB7WZ01zgkW\",\n  \"object\": \"event\",\n  \"type\": \"invoice.paid\",\n  \"created\": 12345678901234567890\n}",
		"invoice.paid", "evt_1PgafTB7WZ01zgkW",
	},
	{
		"standardwebhooks", base64Secret("a secret of a provider of standard webhooks"), `{"type":"contact.created","timestamp":"2026-11-20T09:00:00Z","data":{"id":"1f81eb52"}}` + "\n",
		"contact.created", "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
	},
	{
		"slack", "8f742231b10e8888abcd99yyyzzz85a5", `{"token":"z26uFbvR1xHJEdHE1OQiO6t8","type":"event_callback","event":{"type":"app_mention","text":"<@U061F7AUR> 5 > 4 \/ 2"},"event_id":"Ev0LAN670R"}`,
		"app_mention", "Ev0LAN670R",
	},
}

func base64Secret(key string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(key))
}

var webhooksConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, signing_secret: "` + base64Secret(storyKey) + `"}
sources:
  github: {type: webhook, verify: github, secret: "` + senders[0].secret + `"}
  stripe: {type: webhook, verify: stripe, secret: "` + senders[1].secret + `"}
  standardwebhooks: {type: webhook, verify: standard-webhooks, secret: "` + senders[2].secret + `"}
  slack: {type: webhook, verify: slack, secret: "` + senders[3].secret + `"}
  open: {type: webhook}
  app: {type: event}
handlers:
  github: {source: github, url: "${RECEIVER}/github"}
  stripe: {source: stripe, url: "${RECEIVER}/stripe"}
  standardwebhooks: {source: standardwebhooks, url: "${RECEIVER}/standardwebhooks"}
  slack: {source: slack, url: "${RECEIVER}/slack"}
  open: {source: open, url: "${RECEIVER}/open"}
  app: {source: app, url: "${RECEIVER}/app"}
`

// newWebhooks starts a gateway with a source for each sender.
func newWebhooks(t *testing.T) (*gateway, *receiver.Receiver, *servers.ProviderClients) {
	t.Helper()
	clients := servers.Clients(t)
	r := receiver.New(t)
	g := newGateway(t, webhooksConfig, r)
	g.start()
	return g, r, clients
}

// signed returns the sender's webhook, signed by its library at a time.
func (s sender) signed(c *servers.ProviderClients, at time.Time) servers.Signed {
	return c.Sign(servers.Posting{Provider: s.provider, Secret: s.secret, Body: s.body, ID: s.delivery, Type: s.eventType, At: at})
}

// postSigned posts a webhook that a provider's library signed.
func (g *gateway) postSigned(path string, s servers.Signed) answer {
	g.t.Helper()
	var headers []string
	for name, value := range s.Headers {
		headers = append(headers, name, value)
	}
	return g.post(path, s.Body, headers...)
}

// asSigned converts a delivery into the form of the providers' libraries.
func asSigned(d receiver.Delivery) servers.Signed {
	headers := map[string]string{}
	for name := range d.Header {
		headers[strings.ToLower(name)] = d.Header.Get(name)
	}
	return servers.Signed{Headers: headers, Body: d.Body}
}

// inspected is an event as "inspect --json" shows it.
type inspected struct {
	Source         string            `json:"source"`
	EventType      string            `json:"event_type"`
	Headers        map[string]string `json:"headers"`
	IdempotencyKey *string           `json:"idempotency_key"`
}

func (g *gateway) inspect(event string) inspected {
	g.t.Helper()
	var e inspected
	g.runJSON(&e, "inspect", event)
	return e
}

func wantAnswer(t *testing.T, what string, a answer, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("%s = %d %q, want %d %q", what, a.status, a.body, status, body)
	}
}

// TestProvidersWebhooks follows a webhook from the library that signed it to the libraries
// that verify the gateway's deliveries.
func TestProvidersWebhooks(t *testing.T) {
	t.Parallel()
	g, r, clients := newWebhooks(t)
	events := map[string]string{} // by provider
	for _, s := range senders {
		path, now := "/webhooks/"+s.provider, time.Now()
		first := g.postSigned(path, s.signed(clients, now))
		wantAnswer(t, s.provider, first, 200, "Event received")
		events[s.provider] = first.eventID()

		// A sender that got no answer signs again.
		second := g.postSigned(path, s.signed(clients, now.Add(time.Second)))
		wantAnswer(t, s.provider+" again", second, 200, "Duplicate event ignored")
		if second.eventID() != first.eventID() || first.eventID() == "" {
			t.Errorf("%s: event ids = %q, then %q, want the same", s.provider, first.eventID(), second.eventID())
		}

		e := g.inspect(first.eventID())
		if e.Source != s.provider || e.EventType != s.eventType || e.IdempotencyKey == nil || *e.IdempotencyKey != s.delivery {
			t.Errorf("%s: inspect shows %+v, want event type %q and delivery %q", s.provider, e, s.eventType, s.delivery)
		}
		d := r.Await(t, 5*time.Second, "/"+s.provider, 1)[0]
		if d.Body != s.body || d.Header.Get("X-Gateway-Event-Type") != s.eventType {
			t.Errorf("%s: delivered %q of type %q, want %q", s.provider, d.Body, d.Header.Get("X-Gateway-Event-Type"), s.body)
		}
		if err := clients.Verify("standardwebhooks", base64Secret(storyKey), asSigned(d)); err != nil {
			t.Errorf("%s: the signature of the delivery: %v", s.provider, err)
		}
		if err := clients.Verify("cloudevents", "", asSigned(d)); err != nil {
			t.Errorf("%s: the delivery as a CloudEvent: %v", s.provider, err)
		}
	}
	g.stop()
	db := g.ledger()
	db.check(1)
	for _, s := range senders {
		stored := db.column(`SELECT payload FROM events WHERE source = '` + s.provider + `'`)
		if len(stored) != 1 || stored[0] != s.body {
			t.Errorf("%s: stored %q, want %q alone", s.provider, stored, s.body)
		}
	}
	if n := db.count(`SELECT COUNT(*) FROM events`); n != len(senders) {
		t.Errorf("%d events are stored, want %d", n, len(senders))
	}
}

// proofs returns the headers that contain a signature or are covered by one.
func proofs(s servers.Signed) []string {
	carried := []string{"content-type", "x-github-event", "x-github-delivery"}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Headers)), func(name string) bool { return slices.Contains(carried, name) })
}

// TestEveryFlippedByte: a change of any byte of a signed webhook makes the gateway refuse it.
func TestEveryFlippedByte(t *testing.T) {
	t.Parallel()
	g, _, clients := newWebhooks(t)
	flip := func(s string, i int) string {
		b := []byte(s)
		b[i] ^= 1
		return string(b)
	}
	for _, s := range senders {
		path, good := "/webhooks/"+s.provider, s.signed(clients, time.Now())
		for i := range s.body {
			bad := servers.Signed{Headers: good.Headers, Body: flip(s.body, i)}
			wantAnswer(t, fmt.Sprintf("%s, byte %d of the body", s.provider, i), g.postSigned(path, bad), 401, "Invalid signature")
		}
		for _, name := range proofs(good) {
			for i := range good.Headers[name] {
				bad := servers.Signed{Headers: maps.Clone(good.Headers), Body: s.body}
				bad.Headers[name] = flip(bad.Headers[name], i)
				// TestTamperedWebhooks covers headers that are no signature at all.
				if a := g.postSigned(path, bad); a.status != 400 && a.status != 401 || a.body != "Invalid signature" {
					t.Errorf("%s, %s: %s = %d %q, want 400 or 401 Invalid signature", s.provider, name, bad.Headers[name], a.status, a.body)
				}
			}
		}
	}
	if got := g.events(); len(got) != 0 {
		t.Errorf("%d events are stored, want none", len(got))
	}
}

// A tampering changes the value of one header of a webhook; a change to "-" leaves the header
// out.
type tampering struct {
	provider, name string
	change         func(value string) string
	status         int
}

func put(text string) func(string) string { return func(string) string { return text } }

func replace(old, with string) func(string) string {
	return func(value string) string { return strings.Replace(value, old, with, 1) }
}

// cut returns a function that keeps the end of a value.
func cut(from int) func(string) string { return func(value string) string { return value[from:] } }

// other returns a function that replaces the character at i by another digit, which is valid
// in hexadecimal and base64.
func other(i int) func(string) string {
	return func(value string) string {
		digit := "4"
		if value[i] == '4' {
			digit = "5"
		}
		return value[:i] + digit + value[i+1:]
	}
}

// respelled sets bits of the last character that careless decoders of base64 ignore.
func respelled(value string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := len(value) - len("=") - 1
	return value[:last] + string(alphabet[strings.IndexByte(alphabet, value[last])+1]) + "="
}

// later returns a function that adds a second to a time at the start of a value, after a
// prefix.
func later(prefix, after string) func(string) string {
	return func(value string) string {
		seconds, rest, _ := strings.Cut(strings.TrimPrefix(value, prefix), after)
		n, _ := strconv.ParseInt(seconds, 10, 64)
		if after != "" {
			rest = after + rest
		}
		return prefix + strconv.FormatInt(n+1, 10) + rest
	}
}

var absent = put("-")

var tamperings = []tampering{
	{"github", "x-hub-signature-256", other(10), 401},
	{"github", "x-hub-signature-256", absent, 401},
	{"github", "x-hub-signature-256", cut(len("sha256=")), 400},
	{"github", "x-hub-signature-256", replace("sha256=", "sha1="), 400},
	{"github", "x-hub-signature-256", put("sha256=" + strings.Repeat("z", 64)), 400},
	{"github", "x-hub-signature-256", func(v string) string { return v[:len(v)-1] }, 400},

	{"stripe", "stripe-signature", later("t=", ","), 401},
	{"stripe", "stripe-signature", other(25), 401},
	{"stripe", "stripe-signature", absent, 401},
	{"stripe", "stripe-signature", replace("t=", "t=x"), 400},
	{"stripe", "stripe-signature", cut(len("t=1795189599,")), 400},
	{"stripe", "stripe-signature", replace("v1=", "v1=zz"), 400},
	{"stripe", "stripe-signature", put("nothing of the kind"), 400},

	{"standardwebhooks", "webhook-id", other(6), 401},
	{"standardwebhooks", "webhook-timestamp", later("", ""), 401},
	{"standardwebhooks", "webhook-signature", other(10), 401},
	{"standardwebhooks", "webhook-id", absent, 401},
	{"standardwebhooks", "webhook-timestamp", absent, 401},
	{"standardwebhooks", "webhook-signature", absent, 401},
	{"standardwebhooks", "webhook-timestamp", put("today"), 400},
	{"standardwebhooks", "webhook-signature", replace("v1,", "v1,!"), 400},
	{"standardwebhooks", "webhook-signature", cut(len("v1,")), 400},
	{"standardwebhooks", "webhook-signature", respelled, 400},

	{"slack", "x-slack-request-timestamp", later("", ""), 401},
	{"slack", "x-slack-signature", other(10), 401},
	{"slack", "x-slack-request-timestamp", absent, 401},
	{"slack", "x-slack-signature", absent, 401},
	{"slack", "x-slack-request-timestamp", put("today"), 400},
	{"slack", "x-slack-signature", replace("v0=", "v0=z"), 400},
	{"slack", "x-slack-signature", cut(len("v0=")), 400},
}

// TestTamperedWebhooks: the gateway answers 401 to a wrong signature, and 400 to an unreadable
// one.
func TestTamperedWebhooks(t *testing.T) {
	t.Parallel()
	g, _, clients := newWebhooks(t)
	for _, s := range senders {
		good := s.signed(clients, time.Now())
		for _, tt := range tamperings {
			if tt.provider != s.provider {
				continue
			}
			bad := servers.Signed{Headers: maps.Clone(good.Headers), Body: good.Body}
			if bad.Headers[tt.name] = tt.change(good.Headers[tt.name]); bad.Headers[tt.name] == "-" {
				delete(bad.Headers, tt.name)
			}
			what := fmt.Sprintf("%s with %s: %q", s.provider, tt.name, bad.Headers[tt.name])
			wantAnswer(t, what, g.postSigned("/webhooks/"+s.provider, bad), tt.status, "Invalid signature")
		}
		other := s
		other.secret = base64Secret("the secret of somebody else")
		wantAnswer(t, s.provider+" with another secret", g.postSigned("/webhooks/"+s.provider, other.signed(clients, time.Now())), 401, "Invalid signature")
	}
	if got := g.events(); len(got) != 0 {
		t.Errorf("%d events are stored, want none", len(got))
	}
}

// TestOldWebhooks: a signature that covers a time is valid for five minutes before and after
// it.
func TestOldWebhooks(t *testing.T) {
	t.Parallel()
	g, _, clients := newWebhooks(t)
	for _, s := range senders[1:] { // GitHub signs no time
		for _, tt := range []struct {
			off    time.Duration
			status int
			want   string
		}{
			{-330 * time.Second, 401, "Invalid signature"},
			{330 * time.Second, 401, "Invalid signature"},
			{-270 * time.Second, 200, "Event received"},
			{270 * time.Second, 200, "Duplicate event ignored"},
		} {
			a := g.postSigned("/webhooks/"+s.provider, s.signed(clients, time.Now().Add(tt.off)))
			wantAnswer(t, fmt.Sprintf("%s, signed %v from now", s.provider, tt.off), a, tt.status, tt.want)
		}
	}
}

// TestSlackAsksFirst: Slack sends a text and expects it in the answer before it sends events.
// The gateway answers only a request that Slack signed.
func TestSlackAsksFirst(t *testing.T) {
	t.Parallel()
	g, _, clients := newWebhooks(t)
	s := senders[3]
	s.body = `{"token":"Jhj5dZrVaK7ZwHHjRyZWjbDl","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`
	asked := s.signed(clients, time.Now())
	a := g.postSigned("/webhooks/slack", asked)
	wantAnswer(t, "url_verification", a, 200, "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
	if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		t.Errorf("content type of the answer = %q, want text/plain", got)
	}
	asked.Body = strings.Replace(asked.Body, "3eZ", "4eZ", 1)
	wantAnswer(t, "url_verification that Slack did not sign", g.postSigned("/webhooks/slack", asked), 401, "Invalid signature")
	if got := g.events(); len(got) != 0 {
		t.Errorf("%d events are stored, want none", len(got))
	}
}

// ownTypes are the types in the signed payloads of samples. The gateway prefers such a type to
// one in a header, and therefore to the type given to "send".
var ownTypes = map[string]string{"stripe": "invoice.paid", "standardwebhooks": "contact.created", "slack": "app_mention"}

// TestSendSignsLikeTheProviders: the provider's own library and the gateway accept the
// signatures of "send".
func TestSendSignsLikeTheProviders(t *testing.T) {
	t.Parallel()
	g, r, clients := newWebhooks(t)
	for _, s := range senders {
		send := g.command("send", "-s", s.provider, "-t", "order.tried", s.body, "--url", r.URL())
		if got := run(t, send); got.code != 0 {
			t.Errorf("send for %s: exit code %d, %s", s.provider, got.code, got.stderr)
			continue
		}
		sent := r.At("/webhooks/" + s.provider)[0]
		if sent.Body != s.body {
			t.Errorf("send for %s posted %q, want %q", s.provider, sent.Body, s.body)
		}
		if err := clients.Verify(s.provider, s.secret, asSigned(sent)); err != nil {
			t.Errorf("send for %s: %v", s.provider, err)
		}
		if out := g.run("send", "-s", s.provider, "-t", "order.tried", s.body); !strings.Contains(out, "200") {
			t.Errorf("send for %s to the gateway printed %q, want that it was taken", s.provider, out)
		}
		want := cmp.Or(ownTypes[s.provider], "order.tried")
		if got := r.Await(t, 5*time.Second, "/"+s.provider, 1)[0].Header.Get("X-Gateway-Event-Type"); got != want {
			t.Errorf("send for %s made an event of type %q, want %s", s.provider, got, want)
		}
	}
}
