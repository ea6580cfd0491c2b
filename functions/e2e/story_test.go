//go:build linux

package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const githubSecret = "what github and we know, and nobody else"

const storyConfig = `
server: {public_url: "${PUBLIC_URL}", allow_private_urls: true}
delivery: {timeout: 2s, default_retry: {max: 3, backoff: fixed, interval: 2s}}
sources:
  app: {type: event}
  github: {type: webhook, verify: github, secret: "` + githubSecret + `"}
  topic: {type: sns, skip_verify: true}
handlers:
  issues: {source: github, events: [issues], url: "${RECEIVER}/issues"}
  orders: {source: app, events: ["order.*"], url: "${RECEIVER}/orders"}
  topic: {source: topic, url: "${RECEIVER}/topic"}
queues:
  inbox: {source: app, events: ["message.*"], visibility_timeout: 2s, max_attempts: 50}
workflows:
  approval:
    source: app
    events: [approval.wanted]
    steps:
      - {name: ask, type: callback, url: "${RECEIVER}/ask", callback_timeout: 600, result_path: $.answer}
      - {name: pause, type: wait, seconds: 1}
      - {name: notify, url: "${RECEIVER}/notify", input: '{"by": {{ $.answer.by }}}', end: true}
`

func newStory(t *testing.T, db *database) (*deployment, *receiver.Receiver) {
	t.Helper()
	r := receiver.New(t)
	return deploy{config: storyConfig, receiver: r}.new(t, db), r
}

func hexHMAC(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// TestDelivery: events come in through each kind of source. They are delivered by nudges,
// before the schedule invokes the worker.
func TestDelivery(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		const body = `{"action":"opened","issue":{"number":1}}`
		webhook := []string{"X-Hub-Signature-256", "sha256=" + hexHMAC(githubSecret, body), "X-GitHub-Event", "issues", "X-GitHub-Delivery", "0001"}
		if a := d.must(200, "POST", "/webhooks/github", body, webhook...); a.body != "Event received" || a.eventID() == "" {
			t.Errorf("webhook = %q, event %q", a.body, a.eventID())
		}
		if a := d.must(200, "POST", "/webhooks/github", body, webhook...); a.body != "Duplicate event ignored" {
			t.Errorf("the same webhook again = %q", a.body)
		}
		d.must(401, "POST", "/webhooks/github", body, "X-Hub-Signature-256", "sha256="+hexHMAC("another", body), "X-GitHub-Event", "issues")
		began := time.Now()
		if a, err := ask("POST", d.url.URL+"/events/order.created", `{"n": 1}`); err != nil || a.status != http.StatusAccepted {
			t.Fatalf("event by function URL = %d %q, %v", a.status, a.body, err)
		}
		d.must(200, "POST", "/sns/topic", `{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:us-east-1:000000000000:local","Message":"{\"type\":\"order.paid\"}"}`)
		if got := r.Await(t, 10*time.Second, "/orders", 1)[0]; got.Body != `{"n": 1}` {
			t.Errorf("delivered %q, want the body byte for byte", got.Body)
		} else {
			t.Logf("delivered %v after it was posted", got.At.Sub(began).Round(time.Millisecond))
		}
		r.Await(t, 10*time.Second, "/issues", 1)
		r.Await(t, 10*time.Second, "/topic", 1)
		d.awaitIdle(20 * time.Second)
		if calls := d.service.Calls(); len(calls) == 0 || calls[0].Refused != "" || calls[0].Payload != `{"nudge":true}` || len(calls) > 3 {
			t.Errorf("calls of the Invoke API = %+v, want one to three nudges", calls)
		}
		d.stop()
		db.sound()
		for _, path := range []string{"/issues", "/orders", "/topic"} {
			if n := len(r.At(path)); n != 1 {
				t.Errorf("deliveries to %s = %d, want 1", path, n)
			}
		}
	})
}

// TestQuietSystem: in an idle system, each event is delivered by a nudge.
func TestQuietSystem(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		var took []time.Duration
		for n := range 3 {
			began := time.Now()
			d.send("/events/order.created", `{}`)
			took = append(took, r.Await(t, 10*time.Second, "/orders", n+1)[n].At.Sub(began).Round(time.Millisecond))
			d.awaitIdle(20 * time.Second) // the worker has ended
		}
		t.Logf("from post to delivery: %v", took)
		if calls := d.service.Calls(); len(calls) != 3 {
			t.Errorf("nudges = %d, want 3", len(calls))
		}
	})
}

// TestNudgeFails: the log names the function that cannot be nudged, and senders see no error.
// The schedule delivers the accepted events.
func TestNudgeFails(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: storyConfig, receiver: r, env: []string{"GATEWAY_NUDGE=nobody"}}.new(t, db)
		d.send("/events/order.created", `{}`)
		if calls := d.service.Calls(); len(calls) != 1 || calls[0].Refused != "Function not found: nobody" {
			t.Errorf("calls of the Invoke API = %+v, want the one", calls)
		}
		if said := d.intake.Log(); !strings.Contains(said, "nudge") || !strings.Contains(said, "Function not found") {
			t.Errorf("log %s, want the reason why no worker was nudged", said)
		}
		d.tick(d.worker)
		r.Await(t, 10*time.Second, "/orders", 1)
	})
}

// TestRetryWithinTheMinute: the same worker retries a failed delivery when the retry is due,
// not a minute later.
func TestRetryWithinTheMinute(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		d.worker.SetTimeout(time.Minute)
		r.On("/orders", receiver.Failing(2))
		d.send("/events/order.created", `{}`)
		for i, got := range r.Await(t, 20*time.Second, "/orders", 3) {
			if got.Attempt() != i+1 {
				t.Errorf("delivery %d is attempt %d", i+1, got.Attempt())
			}
		}
		d.awaitIdle(20 * time.Second)
		if n := len(d.worker.Results()); n > 2 {
			t.Errorf("invocations of the worker = %d, want one or two: no other caller woke it", n)
		}
		d.stop()
		db.sound()
	})
}

// A message as consumers of a queue get it.
type message struct {
	Payload json.RawMessage `json:"payload"`
	Attempt int             `json:"attempt"`
	Receipt string          `json:"receipt"`
}

func (d *deployment) receive(wait string) []message {
	d.t.Helper()
	var got struct{ Messages []message }
	a := d.must(200, "GET", "/api/queues/inbox/messages?batch=10&wait="+wait, "")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		d.t.Fatal(err)
	}
	return got.Messages
}

// ack requires that there is one message, and acknowledges it.
func (d *deployment) ack(got []message) {
	d.t.Helper()
	if len(got) != 1 {
		d.t.Fatalf("received %v, want one message", got)
	}
	d.must(200, "POST", "/api/queues/inbox/ack", fmt.Sprintf(`{"ids": [%q]}`, got[0].Receipt))
}

// TestQueue: consumers receive, acknowledge and return messages through the pull function. A
// waiting consumer gets a message that another function stores meanwhile.
func TestQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		d, _ := newStory(t, db)
		d.send("/events/message.sent", `{"n": 1}`)
		first := d.receive("0s")
		if len(first) != 1 || string(first[0].Payload) != `{"n": 1}` && string(first[0].Payload) != `{"n":1}` {
			t.Fatalf("received %v, want the message", first)
		}
		if got := d.receive("0s"); len(got) != 0 {
			t.Errorf("received %v, want nothing: another consumer holds the message", got)
		}
		d.must(200, "POST", "/api/queues/inbox/nack", fmt.Sprintf(`{"ids": [%q]}`, first[0].Receipt))
		second := d.receive("5s")
		if len(second) != 1 || second[0].Attempt != 2 {
			t.Fatalf("received %v, want the message again", second)
		}
		d.ack(second)

		waiting := make(chan []message, 1)
		go func() { waiting <- d.receive("20s") }()
		wait.For(t, 10*time.Second, "a consumer waits", func() bool { return busy(d.pull) })
		d.send("/events/message.sent", `{"n": 2}`)
		d.ack(<-waiting)
		if got := d.receive("0s"); len(got) != 0 {
			t.Errorf("received %v, want nothing", got)
		}
		if calls := d.service.Calls(); len(calls) != 0 {
			t.Errorf("nudges = %d, want none: consumers come by themselves", len(calls))
		}
		d.stop()
		db.sound()
	})
}

// TestEndOfALongPoll: a long poll ends before the function's timeout.
func TestEndOfALongPoll(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: storyConfig, receiver: r}.new(t, db)
		d.pull.SetTimeout(5 * time.Second)
		if got := d.receive("30s"); len(got) != 0 {
			t.Errorf("received %v, want nothing", got)
		}
		for _, r := range d.pull.Results() {
			if r.Error != "" {
				t.Errorf("the function ended with %s", r.Error)
			}
		}
	})
}

// asking sends the callback URLs of its requests to back.
func asking(back chan<- string) receiver.Script {
	return func(_ int, w http.ResponseWriter, req *http.Request) {
		var notice struct {
			URL string `json:"callback_url"`
		}
		if json.NewDecoder(req.Body).Decode(&notice) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		back <- notice.URL
	}
}

// TestWorkflow: a run makes a call, waits for a callback, waits for a time, and completes.
// Nudges continue it after each change.
func TestWorkflow(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		back := make(chan string, 1)
		r.On("/ask", asking(back))
		d.send("/events/approval.wanted", `{}`)
		url := <-back
		wait.For(t, 20*time.Second, "the callback is taken", func() bool {
			a, err := ask("POST", url, `{"by": "desk"}`)
			return err == nil && a.status == 200
		})
		if got := r.Await(t, 20*time.Second, "/notify", 1)[0].Body; got != `{"by": "desk"}` {
			t.Errorf("notified %s", got)
		}
		d.awaitIdle(20 * time.Second)
		d.stop()
		db.sound()
		if got := db.column(`SELECT status FROM runs`); !slices.Equal(got, []string{"completed"}) {
			t.Errorf("runs = %v, want one that is completed", got)
		}
	})
}

// TestOperators: operators can use the same routes as with a server.
func TestOperators(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, _ := newStory(t, db)
		for path, want := range map[string]int{"/health": 200, "/metrics": 200, "/openapi.json": 200, "/api/queues": 200, "/nothing": 404, "/api/nothing": 404} {
			d.must(want, "GET", path, "")
		}
		// Intake lacks the routes of pull, even if a request for one reaches it.
		for _, path := range []string{"/api/queues", "/openapi.json"} {
			if a, err := ask("GET", d.url.URL+path, ""); err != nil || a.status != 404 {
				t.Errorf("intake answers GET %s with %d %.80s, %v, want 404", path, a.status, a.body, err)
			}
		}
	})
}

// TestConcurrency: an environment may serve several requests at once.
func TestConcurrency(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		d.intake.Concurrency, d.intake.MaxCopies = 8, 1
		const events = 64
		done := make(chan error, events)
		for range 8 {
			go func() {
				for range events / 8 {
					a, err := ask("POST", d.api.URL+"/events/order.created", `{}`)
					if err == nil && a.status != http.StatusAccepted {
						err = fmt.Errorf("%d %s", a.status, a.body)
					}
					done <- err
				}
			}()
		}
		for range events {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		r.Await(t, 30*time.Second, "/orders", events)
		d.awaitIdle(20 * time.Second)
		d.stop()
		db.sound()
	})
}
