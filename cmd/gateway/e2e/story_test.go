//go:build linux

package e2e

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const (
	storyMax      = 3
	storyInterval = 200 * time.Millisecond
	storyKey      = "a signing key of the handlers' own"
	githubSecret  = "what github and we know, and nobody else"
	shopSecret    = "what the shop and we know, and nobody else"
)

var storyConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery:
  signing_secret: whsec_` + base64.StdEncoding.EncodeToString([]byte(storyKey)) + `
  timeout: 5s
  default_retry: {max: 3, backoff: exponential, interval: 200ms}
sources:
  app: {type: event}
  github: {type: webhook, verify: github, secret: "` + githubSecret + `"}
  shop: {type: webhook, verify: hmac, secret: "` + shopSecret + `"}
handlers:
  issues: {source: github, events: [issues], url: "${RECEIVER}/issues", headers: {authorization: "Bearer of the handler"}}
  orders: {source: shop, events: ["order.*"], url: "${RECEIVER}/orders"}
`

func newStory(t *testing.T) (*gateway, *receiver.Receiver) {
	t.Helper()
	r := receiver.New(t)
	g := newGateway(t, storyConfig, r)
	g.start()
	return g, r
}

func hexHMAC(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// TestDeliveryHeaders checks each header that a handler gets, and verifies the signature by
// the text of Standard Webhooks only.
func TestDeliveryHeaders(t *testing.T) {
	t.Parallel()
	g, r := newStory(t)
	const body = `{"action":"opened", "issue":{"number":1}}`
	a := g.post("/webhooks/github", body,
		"X-Hub-Signature-256", "sha256="+hexHMAC(githubSecret, body), "X-GitHub-Event", "issues", "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Authorization", "Bearer of the sender", "Cookie", "a=b")
	if a.status != http.StatusOK || a.body != "Event received" {
		t.Fatalf("webhook = %d %q, want 200 Event received", a.status, a.body)
	}
	d := r.Await(t, 5*time.Second, "/issues", 1)[0]
	if d.Body != body {
		t.Errorf("body = %q, want %q, byte for byte", d.Body, body)
	}
	if got := masked(d.Header, a.eventID()); got != issueHeaders {
		t.Errorf("headers =\n%s\nwant\n%s", got, issueHeaders)
	}
	if d.Job() == a.eventID() || len(d.Job()) != 26 {
		t.Errorf("job id = %q, want a ULID of its own", d.Job())
	}
	checkSignature(t, d)
}

const issueHeaders = `Authorization: Bearer of the handler
Ce-Id: <event>
Ce-Source: /sources/github
Ce-Specversion: 1.0
Ce-Time: <time>
Ce-Type: issues
Content-Length: 41
Content-Type: application/json
Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
User-Agent: gateway/<version>
Webhook-Id: <job>
Webhook-Signature: v1,<base64>
Webhook-Timestamp: <seconds>
X-Gateway-Attempt: 1
X-Gateway-Event-Id: <event>
X-Gateway-Event-Type: issues
X-Gateway-Handler: issues
X-Gateway-Hops: 1
X-Gateway-Job-Id: <job>
X-Gateway-Source: github`

var masks = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`), "<time>"},
	{regexp.MustCompile(`^gateway/\S+$`), "gateway/<version>"},
	{regexp.MustCompile(`^v1,[A-Za-z0-9+/]{43}=$`), "v1,<base64>"},
	{regexp.MustCompile(`^\d{10}$`), "<seconds>"},
}

// masked writes sorted headers, one a line. It replaces values that differ between runs with
// names.
func masked(h http.Header, event string) string {
	job := h.Get("X-Gateway-Job-Id")
	var lines []string
	for name, values := range h {
		value := strings.Join(values, " | ")
		switch value {
		case event:
			value = "<event>"
		case job:
			value = "<job>"
		}
		for _, m := range masks {
			value = m.form.ReplaceAllString(value, m.as)
		}
		lines = append(lines, name+": "+value)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkSignature verifies a delivery by the Standard Webhooks specification.
func checkSignature(t *testing.T, d receiver.Delivery) {
	t.Helper()
	m := hmac.New(sha256.New, []byte(storyKey))
	fmt.Fprintf(m, "%s.%s.%s", d.Header.Get("Webhook-Id"), d.Header.Get("Webhook-Timestamp"), d.Body)
	want := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	if got := d.Header.Get("Webhook-Signature"); got != want {
		t.Errorf("webhook-signature = %q, want %q", got, want)
	}
	var seconds int64
	fmt.Sscan(d.Header.Get("Webhook-Timestamp"), &seconds)
	if age := d.At.Sub(time.Unix(seconds, 0)); age < 0 || age > 3*time.Second {
		t.Errorf("webhook-timestamp = %d, %v before the delivery, want the time of this attempt", seconds, age)
	}
}

// TestIntakeAnswers checks the answers to senders. A refused event is not stored.
func TestIntakeAnswers(t *testing.T) {
	t.Parallel()
	g, r := newStory(t)
	const body = `{"type":"order.paid","id":7}`
	good, bad := hexHMAC(shopSecret, body), hexHMAC("another", body)
	tests := []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"hmac", "/webhooks/shop", []string{"X-Webhook-Signature", good}, 200, "Event received"},
		{"hmac with prefix", "/webhooks/shop", []string{"X-Webhook-Signature", "sha256=" + good}, 200, "Event received"},
		{"wrong secret", "/webhooks/shop", []string{"X-Webhook-Signature", bad}, 401, "Invalid signature"},
		{"no signature", "/webhooks/shop", nil, 401, "Invalid signature"},
		{"no hex", "/webhooks/shop", []string{"X-Webhook-Signature", "sha256=zz"}, 400, "Invalid signature"},
		{"github without prefix", "/webhooks/github", []string{"X-Hub-Signature-256", hexHMAC(githubSecret, body)}, 400, "Invalid signature"},
		{"github, wrong", "/webhooks/github", []string{"X-Hub-Signature-256", "sha256=" + bad}, 401, "Invalid signature"},
		{"unknown source", "/webhooks/nobody", []string{"X-Webhook-Signature", good}, 404, "Unknown source"},
		{"wrong door", "/webhooks/app", []string{"X-Webhook-Signature", good}, 404, "Unknown source"},
		{"no handler", "/events/nobody.wants.this", nil, 202, "Event accepted"},
		{"no handler, long route", "/events/app/nobody.wants.this", nil, 202, "Event accepted"},
	}
	stored := 0
	for _, tt := range tests {
		a := g.post(tt.path, body, tt.headers...)
		if a.status != tt.status || a.body != tt.want {
			t.Errorf("%s: POST %s = %d %q, want %d %q", tt.name, tt.path, a.status, a.body, tt.status, tt.want)
		}
		if yes := a.status < 300; yes != (a.eventID() != "") {
			t.Errorf("%s: status %d with event id %q", tt.name, a.status, a.eventID())
		} else if yes {
			stored++
		}
	}
	r.Await(t, 5*time.Second, "/orders", 2)
	if got := len(g.events()); got != stored {
		t.Errorf("stored events = %d, want the %d that were answered with a yes", got, stored)
	}
}

// TestRepeatedWebhook: a sender that got no answer sends again, and the event is stored once.
func TestRepeatedWebhook(t *testing.T) {
	t.Parallel()
	g, r := newStory(t)
	const body = `{"action":"opened"}`
	headers := []string{"X-Hub-Signature-256", "sha256=" + hexHMAC(githubSecret, body), "X-GitHub-Event", "issues", "X-GitHub-Delivery", "0001"}
	first := g.post("/webhooks/github", body, headers...)
	second := g.post("/webhooks/github", body, headers...)
	if second.status != 200 || second.body != "Duplicate event ignored" || second.eventID() != first.eventID() {
		t.Errorf("repeat = %d %q, event %s, want 200 Duplicate event ignored, event %s", second.status, second.body, second.eventID(), first.eventID())
	}
	r.Await(t, 5*time.Second, "/issues", 1)
	if n := len(g.jobs()); n != 1 {
		t.Errorf("jobs = %d, want 1", n)
	}
}

// TestStory follows one webhook: its job becomes dead, an operator retries the job, and it is
// delivered.
func TestStory(t *testing.T) {
	t.Parallel()
	g, r := newStory(t)
	r.On("/orders", receiver.Failing(storyMax+1)) // the last attempt after the retry succeeds
	const body = `{"type":"order.paid","id":7}`
	event := g.post("/webhooks/shop", body, "X-Webhook-Signature", hexHMAC(shopSecret, body)).eventID()

	checkBackoff(t, r.Await(t, 10*time.Second, "/orders", storyMax))
	wait.For(t, 5*time.Second, "job is dead", func() bool { return len(g.jobs("--status", "dead")) == 1 })
	dead := g.jobs("--status", "dead")[0]
	if dead.EventID != event || dead.Handler != "orders" || dead.Attempt != storyMax || dead.LastError == nil || !strings.HasPrefix(*dead.LastError, "status: 500") {
		t.Errorf("dead job = %+v, want the event's, with all attempts used and its error", dead)
	}
	checkDeadListing(t, g, dead)

	began := time.Now()
	if out := g.run("jobs", "retry", dead.ID); !strings.Contains(out, "1 job") {
		t.Errorf("jobs retry says %q, want how many", out)
	}
	second := r.Await(t, 5*time.Second, "/orders", storyMax+2)[storyMax:]
	if took := second[0].At.Sub(began); took > 2500*time.Millisecond {
		t.Errorf("the running gateway took %v to notice the retry, want about a second", took)
	}
	for i, d := range second {
		if d.Attempt() != storyMax+i+1 || d.Job() != dead.ID {
			t.Errorf("delivery %d after the retry: attempt %d of job %s, want attempt %d of job %s", i+1, d.Attempt(), d.Job(), storyMax+i+1, dead.ID)
		}
	}
	wait.For(t, 5*time.Second, "job is completed", func() bool { return len(g.jobs("--status", "completed")) == 1 })
	checkInspection(t, g, event, dead.ID)
	g.stop()
	openLedger(t, g.database()).check(1)
}

// checkBackoff checks the gaps between attempts: they double, within 20 %, and a busy machine
// may add 700 ms.
func checkBackoff(t *testing.T, ds []receiver.Delivery) {
	t.Helper()
	const late = 700 * time.Millisecond
	for i, d := range ds {
		if d.Attempt() != i+1 || d.Job() != ds[0].Job() {
			t.Errorf("delivery %d: attempt %d of job %s, want attempt %d of job %s", i+1, d.Attempt(), d.Job(), i+1, ds[0].Job())
		}
		checkSignature(t, d)
		if i == 0 {
			continue
		}
		gap, want := d.At.Sub(ds[i-1].At), storyInterval<<(i-1)
		// Times are stored in milliseconds.
		if low, high := want*8/10-2*time.Millisecond, want*12/10+late; gap < low || gap > high {
			t.Errorf("gap before attempt %d = %v, want %v to %v", i+1, gap, low, high)
		}
	}
}

func checkDeadListing(t *testing.T, g *gateway, dead job) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(g.run("jobs", "list", "--status", "dead")), "\n")
	last := lines[len(lines)-1]
	for _, want := range []string{dead.ID, dead.EventID, "orders", "dead", "status: 500"} {
		if !strings.Contains(last, want) {
			t.Errorf("jobs list --status dead shows %q, want %q in it", last, want)
		}
	}
}

// wantInspection is the output of inspect --json at the end, with ids and times masked. The
// attempts are in the order in which they were made.
const wantInspection = `{
	"id": "<event>", "source": "shop", "event_type": "order.paid", "idempotency_key": null, "created_at": "<time>",
	"payload": {"type": "order.paid", "id": 7}, "headers": {"content-type": "application/json"}, "workflow_runs": [],
	"jobs": [{
		"id": "<job>", "event_id": "<event>", "handler": "orders", "status": "completed", "attempt": 5, "max_attempts": 6, "earlier_attempts": 3,
		"scheduled_at": "<time>", "completed_at": "<time>", "last_error": null, "created_at": "<time>",
		"attempts": [
			{"attempt": 1, "status_code": 500, "error": "status: 500 Internal Server Error", "response": "not now\n", "duration_ms": "<ms>", "created_at": "<time>"},
			{"attempt": 2, "status_code": 500, "error": "status: 500 Internal Server Error", "response": "not now\n", "duration_ms": "<ms>", "created_at": "<time>"},
			{"attempt": 3, "status_code": 500, "error": "status: 500 Internal Server Error", "response": "not now\n", "duration_ms": "<ms>", "created_at": "<time>"},
			{"attempt": 4, "status_code": 500, "error": "status: 500 Internal Server Error", "response": "not now\n", "duration_ms": "<ms>", "created_at": "<time>"},
			{"attempt": 5, "status_code": 200, "error": null, "response": null, "duration_ms": "<ms>", "created_at": "<time>"}
		]}]}`

func checkInspection(t *testing.T, g *gateway, event, job string) {
	t.Helper()
	var got, want any
	g.runJSON(&got, "inspect", event)
	if err := json.Unmarshal([]byte(wantInspection), &want); err != nil {
		t.Fatal(err)
	}
	got = maskJSON(got, map[string]string{event: "<event>", job: "<job>"})
	if g, w := indent(got), indent(want); g != w {
		t.Errorf("inspect --json =\n%s\nwant\n%s", g, w)
	}
	text := g.run("inspect", event)
	attempt := regexp.MustCompile(`(?m)^ +([1-5]) .* (200|500) `)
	var rows []string
	for _, m := range attempt.FindAllStringSubmatch(text, -1) {
		rows = append(rows, m[1]+":"+m[2])
	}
	if got, want := strings.Join(rows, " "), "1:500 2:500 3:500 4:500 5:200"; got != want {
		t.Errorf("attempts that inspect shows = %s, want %s, in\n%s", got, want, text)
	}
	for _, want := range []string{event, job, "shop", "order.paid", "orders", "completed", `"id": 7`} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect does not show %q:\n%s", want, text)
		}
	}
}

var jsonTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$`)

// maskJSON replaces ids, times and durations in a decoded document.
func maskJSON(v any, ids map[string]string) any {
	switch v := v.(type) {
	case string:
		if jsonTime.MatchString(v) {
			return "<time>"
		}
		return cmp.Or(ids[v], v)
	case []any:
		for i := range v {
			v[i] = maskJSON(v[i], ids)
		}
	case map[string]any:
		for name := range v {
			v[name] = maskJSON(v[name], ids)
		}
		if _, ok := v["duration_ms"].(float64); ok {
			v["duration_ms"] = "<ms>"
		}
	}
	return v
}

func indent(v any) string {
	out, _ := json.MarshalIndent(v, "", "  ") // it was decoded from JSON
	return string(out)
}
