//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// queueConfig has a queue for each story. Alerts have the shortest possible leases.
const queueConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
api: {auth_token: a-token-of-more-than-24-bytes}
delivery: {timeout: 1s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
worker: {stale_threshold_secs: 1}
sources: {app: {type: event}}
queues:
  plain: {source: app, events: ["plain.*"], api_key: the-key-of-the-queue-plain}
  weak: {source: app, events: ["weak.*"], max_attempts: 2}
  brief: {source: app, events: ["brief.*"], visibility_timeout: 500ms}
  once: {source: app, events: ["once.*"], visibility_timeout: 300ms, max_attempts: 1}
  picky: {source: app, events: ["picky.*"], filter: "$.total > 100", idempotency_key: $.order}
  steady: {source: app, events: ["steady.*"], visibility_timeout: 3s}
alerts: [{url: "${RECEIVER}/alerts", on: [dlq]}]
`

const (
	queueToken   = "a-token-of-more-than-24-bytes"
	queueKey     = "the-key-of-the-queue-plain"
	steadyHold   = 3 * time.Second  // visibility_timeout of the queue steady
	sweptWithin  = 10 * time.Second // a message is dead within this time after the end of its last lease
	sweeperGrace = 20 * time.Second // for a busy machine, and for alerts that were under way at a kill
)

// everyPlace returns the places of everyServer, and a SQLite file.
func everyPlace() []place { return append([]place{{"SQLite", ownFile}}, everyServer()...) }

// TestQueues checks the promises to consumers and operators of queues, on every kind of
// database.
func TestQueues(t *testing.T) {
	t.Parallel()
	stories := []struct {
		name string
		tell func(*testing.T, *gateway, *receiver.Receiver)
	}{
		{"messages", testMessages},
		{"nacks", testNacks},
		{"extends", testExtends},
		{"no consumer polls", testNoConsumerPolls},
		{"filter and key", testPicky},
		{"API keys", testKeys},
		{"drain", testDrain},
		{"commands", testQueueCommands},
	}
	for _, tt := range everyPlace() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGatewayOn(t, tt.on(t), queueConfig, r)
			g.start()
			for _, s := range stories {
				t.Run(s.name, func(t *testing.T) {
					outer := g.t
					defer func() { g.t = outer }()
					g.t = t
					s.tell(t, g, r)
				})
			}
			g.stop()
			g.ledger().sound()
		})
	}
}

// of returns a queue of queueConfig.
func of(g *gateway, name string) queue {
	q := queue{g: g, name: name, token: queueToken}
	if name == "plain" {
		q.key = queueKey
	}
	return q
}

// put sends a message to one of the queues of queueConfig, and returns its event's id.
func (q queue) put(body string) string {
	q.g.t.Helper()
	return q.g.send("/events/"+q.name+".sent", body, bearer(queueToken)...)
}

func testMessages(t *testing.T, g *gateway, _ *receiver.Receiver) {
	q := of(g, "plain")
	const body = `{ "n": 1.50, "s": "<ü>" }`
	event := q.put(body)
	m := q.await(1)[0]
	if m.EventID != event || m.EventType != "plain.sent" || string(m.Payload) != body || m.Attempt != 1 || m.Headers["content-type"] != "application/json" || m.ID == "" || m.Receipt == "" {
		t.Errorf("message = %+v, payload %s, want the first attempt of event %s with payload %s", m, m.Payload, event, body)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000", m.CreatedAt); err != nil {
		t.Errorf("created_at: %v", err)
	}
	second := q.put(`2`)
	q.put(`3`)
	want := listedQueue{Name: "plain", Source: "app", Events: []string{"plain.*"}, Visibility: "30s", Depth: 3, Pending: 2, Processing: 1}
	if got := q.listed(); !slices.Equal(got.Events, want.Events) || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed as %+v, want %+v", got, want)
	}
	if ms := q.peek(); payloads(ms) != "2 3" || ms[0].EventID != second || ms[0].Attempt != 0 || ms[0].Receipt != "" {
		t.Errorf("peek = %+v, want 2 and 3, untouched", ms)
	}
	rest := q.await(2)
	if payloads(rest) != "2 3" || rest[0].Attempt != 1 {
		t.Errorf("received %+v, want the first attempts of 2 and 3", rest)
	}
	q.none("all are in flight")
	if n := of(g, "weak").ack(m.Receipt, m.ID); n != 0 {
		t.Errorf("acked = %d as messages of another queue, want 0", n)
	}
	if n := q.ack(m.Receipt, rest[0].ID, "01J90000000000000000000001", "nonsense"); n != 2 {
		t.Errorf("acked = %d, want 2: one by receipt, one by id, and nothing unknown", n)
	}
	if n := q.ack(rest[1].ID, rest[1].ID, rest[1].Receipt, m.Receipt, m.ID); n != 1 {
		t.Errorf("acked = %d, want 1: each message counts once", n)
	}
	if retried, dead := q.nack("", m.ID, rest[0].Receipt); retried+dead+q.extend("10s", m.ID, rest[0].Receipt) != 0 {
		t.Error("messages that were acked are nacked or extended, want that it is over")
	}
	if got := q.listed(); got.Depth != 0 || got.Dead != 0 {
		t.Errorf("listed as %+v, want nothing in it", got)
	}
	if out := g.run("inspect", event); !strings.Contains(out, "queue/plain") || !strings.Contains(out, "completed") {
		t.Errorf("inspect of an acked message:\n%swant queue/plain, completed", out)
	}

	// A message that comes during a poll.
	sent := make(chan answer, 1)
	time.AfterFunc(50*time.Millisecond, func() {
		a, _ := fetch(pooled, request{method: http.MethodPost, url: g.url("/events/plain.sent"), body: `4`, headers: bearer(queueToken)})
		sent <- a
	})
	ms := q.receive(10, "20s")
	if a := <-sent; len(ms) != 1 || ms[0].EventID != a.eventID() {
		t.Errorf("received %+v after waiting, want the message of event %q", ms, a.eventID())
	}
	q.ack(receipts(ms)...)
}

func testNacks(t *testing.T, g *gateway, r *receiver.Receiver) {
	q := of(g, "weak")
	q.put(`1`)
	q.put(`2`)
	<-time.After(coarse) // messages that become visible in the same millisecond have no order
	first := q.await(1)[0]
	if retried, dead := q.nack("", first.Receipt); retried != 1 || dead != 0 {
		t.Errorf("nack = %d retried, %d dead, want 1 and 0", retried, dead)
	}
	ms := append(q.await(1), q.await(1)...)
	if payloads(ms) != "2 1" || ms[1].Attempt != 2 || ms[1].Receipt == first.Receipt {
		t.Fatalf("received %+v, want 2, and 1 behind it at its second attempt", ms)
	}
	if retried, dead := q.nack("", first.Receipt, ms[1].ID); retried != 0 || dead != 1 {
		t.Errorf("nack at the last attempt = %d retried, %d dead, want 0 and 1", retried, dead)
	}
	q.ack(ms[0].Receipt)
	dead := q.dead()
	if len(dead) != 1 || dead[0].ID != first.ID || dead[0].LastError != "nacked" || dead[0].Attempt != 2 {
		t.Errorf("dead-letter queue = %+v, want message %s", dead, first.ID)
	}
	if l := q.listed(); l.Dead != 1 || l.Depth != 0 {
		t.Errorf("listed as %+v, want one dead message", l)
	}
	if told := alerted(t, r, first.ID); told.Queue != "weak" || told.Error != "nacked" || told.Attempts != 2 || told.Alert != "dlq" {
		t.Errorf("alert = %+v, want one about queue weak", told)
	}

	if n := q.retry(first.ID); n != 1 {
		t.Errorf("retried = %d, want 1", n)
	}
	if n := q.retry(""); n != 0 {
		t.Errorf("retried again = %d, want 0", n)
	}
	m := q.await(1)[0]
	if m.ID != first.ID || m.Attempt != 3 {
		t.Errorf("received %+v after the retry, want the third attempt of message %s", m, first.ID)
	}
	asked := time.Now()
	if retried, _ := q.nack("2s", m.Receipt); retried != 1 {
		t.Errorf("nack with a delay = %d retried, want 1", retried)
	}
	m = q.await(1)[0]
	if early := 2*time.Second - time.Since(asked); m.Attempt != 4 || early > coarse+g.clockError() {
		t.Errorf("received %+v, %v before the end of the delay, want the fourth attempt after it", m, early)
	}
	q.ack(m.Receipt)
}

// A dlqAlert is the body of an alert about a dead message.
type dlqAlert struct {
	Alert, Queue, Error string
	Job                 string `json:"job_id"`
	Attempts            int
}

// alerted waits for the alert about a message.
func alerted(t *testing.T, r *receiver.Receiver, id string) (told dlqAlert) {
	t.Helper()
	wait.For(t, sweptWithin+sweeperGrace, "alert about message "+id, func() bool {
		for _, d := range r.At("/alerts") {
			if err := json.Unmarshal([]byte(d.Body), &told); err != nil {
				t.Fatalf("alert %s: %v", d.Body, err)
			}
			if told.Job == id {
				return true
			}
		}
		return false
	})
	return told
}

func testExtends(t *testing.T, g *gateway, _ *receiver.Receiver) {
	q := of(g, "brief")
	q.put(`1`)
	m := q.await(1)[0]
	if n := q.extend("60s", m.Receipt, m.ID); n != 1 {
		// Either the machine was too slow, or extend is wrong.
		t.Fatalf("extended = %d, want 1", n)
	}
	if ms := q.receive(1, "1s"); len(ms) != 0 {
		t.Errorf("received %+v, want that it is still in flight", ms)
	}
	if n := q.extend("1ms", m.Receipt); n != 1 {
		t.Errorf("made shorter = %d, want 1", n)
	}
	again := q.await(1)[0]
	if again.ID != m.ID || again.Attempt != m.Attempt+1 || again.Receipt == m.Receipt {
		t.Errorf("received %+v, want the next attempt of message %s with another receipt", again, m.ID)
	}
	if n := q.extend("60s", again.Receipt); n != 1 {
		t.Errorf("extended = %d, want 1", n)
	}
	retried, dead := q.nack("", m.Receipt)
	if acked, extended := q.ack(m.Receipt), q.extend("60s", m.Receipt); acked+extended+retried+dead != 0 {
		t.Errorf("by the receipt of the first attempt: acked %d, extended %d, retried %d, dead %d, want nothing", acked, extended, retried, dead)
	}
	if n := q.ack(again.Receipt); n != 1 {
		t.Errorf("acked = %d, want 1: only the holder of a message may ack it", n)
	}
}

// testNoConsumerPolls: a message whose last consumer died becomes dead, with an alert, even if no
// other consumer polls.
func testNoConsumerPolls(t *testing.T, g *gateway, r *receiver.Receiver) {
	q := of(g, "once")
	q.put(`1`)
	m := q.await(1)[0]
	if told := alerted(t, r, m.ID); told.Queue != "once" || told.Error != "lease expired" {
		t.Errorf("alert = %+v, want one about queue once", told)
	}
	if dead := q.dead(); len(dead) != 1 || dead[0].ID != m.ID || dead[0].Attempt != 1 || dead[0].LastError != "lease expired" {
		t.Errorf("dead-letter queue = %+v, want message %s", dead, m.ID)
	}
	if n := q.ack(m.Receipt); n != 0 {
		t.Errorf("acked = %d when it was dead, want 0", n)
	}
	q.none("it is dead")
}

func testPicky(t *testing.T, g *gateway, _ *receiver.Receiver) {
	q := of(g, "picky")
	q.put(`{"order":1,"total":100}`)
	q.put(`{"order":2,"total":101}`)
	for range 2 {
		a := g.post("/events/picky.sent", `{"order":2,"total":500}`, bearer(queueToken)...)
		if a.status != http.StatusOK || a.body != "Duplicate event ignored" {
			t.Errorf("an order that was sent before is answered %d %q, want 200 as a duplicate", a.status, a.body)
		}
	}
	ms := q.await(1)
	if payloads(ms) != `{"order":2,"total":101}` {
		t.Errorf("received %s, want order 2 alone", payloads(ms))
	}
	q.none("the other order is too small, the others are duplicates")
	q.ack(receipts(ms)...)
	a := g.post("/events/picky.sent", `{"order":2,"total":500}`, bearer(queueToken)...)
	if a.status != http.StatusOK {
		t.Errorf("an order that was acked is answered %d, want 200 as a duplicate", a.status)
	}
}

func testKeys(t *testing.T, g *gateway, _ *receiver.Receiver) {
	plain, weak, nobody := of(g, "plain"), of(g, "weak"), queue{g: g, name: "nobody"}
	ids := map[string]any{"ids": []string{"x"}}
	tests := []struct {
		q                 queue
		method, path, key string
		body              any
		status            int
		want              string // the whole body, if the status is not 200
	}{
		{plain, "GET", "/messages", "", nil, 401, "Invalid token"},
		{plain, "GET", "/messages", queueToken, nil, 401, "Invalid token"},
		{plain, "POST", "/ack", "wrong", ids, 401, "Invalid token"},
		{plain, "POST", "/nack", "wrong", ids, 401, "Invalid token"},
		{plain, "POST", "/extend", "wrong", ids, 401, "Invalid token"},
		{plain, "GET", "/messages", queueKey, nil, 200, ""},
		{weak, "GET", "/messages", "", nil, 200, ""},
		{weak, "GET", "/messages", "any", nil, 200, ""},
		{plain, "GET", "/peek", queueKey, nil, 401, "Invalid token"},
		{plain, "GET", "/dlq", queueKey, nil, 401, "Invalid token"},
		{plain, "POST", "/retry", queueKey, map[string]any{}, 401, "Invalid token"},
		{plain, "POST", "/drain", queueKey, nil, 401, "Invalid token"},
		{plain, "GET", "/peek", queueToken, nil, 200, ""},
		{nobody, "GET", "/messages", "", nil, 404, `{"error":"queue not found"}`},
		{nobody, "POST", "/ack", "", ids, 404, `{"error":"queue not found"}`},
		{nobody, "GET", "/dlq", queueToken, nil, 404, `{"error":"queue not found"}`},
	}
	for _, tt := range tests {
		a, err := tt.q.ask(context.Background(), tt.method, tt.path, tt.key, tt.body)
		if err != nil || a.status != tt.status || tt.status != 200 && a.body != tt.want {
			t.Errorf("%s %s%s with key %q = %d %q, %v, want %d %q", tt.method, tt.q.name, tt.path, tt.key, a.status, a.body, err, tt.status, tt.want)
		}
	}
	a, err := fetch(pooled, request{method: "GET", url: g.url("/api/queues"), headers: bearer(queueKey)})
	if err != nil || a.status != 401 || a.body != "Invalid token" {
		t.Errorf("GET /api/queues with the key of a queue = %d %q, %v, want 401", a.status, a.body, err)
	}
}

func testDrain(t *testing.T, g *gateway, _ *receiver.Receiver) {
	q := of(g, "plain")
	for i := range 5 {
		q.put(fmt.Sprint(i))
	}
	held := q.await(2)
	q.ack(held[0].Receipt)
	if n := q.drain(); n != 4 {
		t.Errorf("drained = %d, want 4: all but the one that was acked", n)
	}
	if n := q.ack(held[1].Receipt); n != 0 {
		t.Errorf("acked = %d of what was drained, want 0", n)
	}
	q.none("it was drained")
	if n := q.drain(); n != 0 {
		t.Errorf("drained again = %d, want 0", n)
	}
	if l := q.listed(); l.Depth != 0 || l.Dead != 0 {
		t.Errorf("listed as %+v, want nothing in it", l)
	}
}

// testQueueCommands: the commands show and change the same as the API, while the gateway runs.
func testQueueCommands(t *testing.T, g *gateway, _ *receiver.Receiver) {
	q := of(g, "weak")
	q.drain()
	for i := range 3 {
		q.put(fmt.Sprintf(`{"n":%d}`, i))
	}
	held := q.await(2)
	q.nack("", receipts(held[:1])...)
	if n := q.ack(held[0].ID); n != 0 {
		t.Errorf("acked = %d of what was given back, want 0", n)
	}
	for _, m := range q.await(2) { // the message without a consumer, and the nacked message
		if m.ID == held[0].ID {
			q.nack("", m.Receipt)
		} else {
			q.extend("1ms", m.Receipt)
		}
	}
	var list struct{ Queues []listedQueue }
	g.runJSON(&list, "queues", "list")
	at := slices.IndexFunc(list.Queues, func(l listedQueue) bool { return l.Name == "weak" })
	if at < 0 || list.Queues[at].Pending != 1 || list.Queues[at].Processing != 1 || list.Queues[at].Dead != 1 {
		t.Fatalf("queues list = %+v, want weak with one message of each kind", list.Queues)
	}
	var dead, next messages
	g.runJSON(&dead, "queues", "dlq", "weak")
	if len(dead.Messages) != 1 || dead.Messages[0].ID != held[0].ID {
		t.Errorf("queues dlq = %+v, want message %s", dead.Messages, held[0].ID)
	}
	g.runJSON(&next, "queues", "peek", "weak")
	if len(next.Messages) != 1 || next.Messages[0].Attempt != 1 {
		t.Errorf("queues peek = %+v, want the message that no consumer holds", next.Messages)
	}
	for _, args := range [][]string{{"list"}, {"inspect", "weak"}, {"peek", "weak"}, {"dlq", "weak"}} {
		out := g.run(append([]string{"queues"}, args...)...)
		if args[0] != "list" && !strings.Contains(out, held[0].ID) && !strings.Contains(out, next.Messages[0].ID) {
			t.Errorf("queues %s:\n%swant a message", strings.Join(args, " "), out)
		}
	}
	if out := g.run("queues", "retry", "weak", "--id", held[0].ID); out != "1 message visible again\n" {
		t.Errorf("queues retry prints %q, want how many messages are visible again", out)
	}
	seen := map[string]int{}
	for _, m := range q.await(2) {
		seen[m.ID] = m.Attempt
	}
	if want := map[string]int{held[0].ID: 3, next.Messages[0].ID: 2}; !maps.Equal(seen, want) {
		t.Errorf("received after queues retry: %v, want %v", seen, want)
	}
	if got := run(t, g.command("queues", "drain", "weak")); got.code == 0 || !strings.Contains(got.stderr, "--force") {
		t.Errorf("queues drain without a terminal: exit code %d, %q, want a refusal that names --force", got.code, got.stderr)
	}
	if out := g.run("queues", "drain", "weak", "--force"); !strings.Contains(out, "3 messages") {
		t.Errorf("queues drain printed %q, want that it were 3 messages", out)
	}
	if l := q.listed(); l.Depth != 0 || l.Dead != 0 {
		t.Errorf("listed as %+v after queues drain, want nothing in it", l)
	}
}
