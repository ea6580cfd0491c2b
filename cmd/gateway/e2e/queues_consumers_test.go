//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A queue is a queue of a gateway, for the tests as its users. Its methods require the answer
// 200.
type queue struct {
	g          *gateway
	name       string
	key, token string // of the queue and of the management API; empty if it is open
}

// A message as consumers and operators see it.
type message struct {
	ID        string            `json:"id"`
	EventID   string            `json:"event_id"`
	EventType string            `json:"event_type"`
	Payload   json.RawMessage   `json:"payload"`
	Headers   map[string]string `json:"headers"`
	Attempt   int               `json:"attempt"`
	CreatedAt string            `json:"created_at"`
	Receipt   string            `json:"receipt"`
	LastError string            `json:"last_error"`
}

// A listedQueue is an entry in the answer of GET /api/queues.
type listedQueue struct {
	Name       string   `json:"name"`
	Source     string   `json:"source"`
	Events     []string `json:"events"`
	Visibility string   `json:"visibility_timeout"`
	Depth      int      `json:"depth"`
	Pending    int      `json:"pending"`
	Processing int      `json:"processing"`
	Dead       int      `json:"dead"`
}

// polled is for requests that may wait.
var polled = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1100}}

// bearer returns the header with a key.
func bearer(key string) []string {
	if key == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + key}
}

// ask makes one request to a path below the queue's.
func (q queue) ask(ctx context.Context, method, path, key string, body any) (answer, error) {
	r := request{method: method, url: q.g.url("/api/queues/" + q.name + path), headers: bearer(key)}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		r.body = string(text)
	}
	return fetchUntil(ctx, polled, r)
}

// must makes a request, requires the answer 200, and decodes it.
func (q queue) must(into any, method, path, key string, body any) {
	q.g.t.Helper()
	a, err := q.ask(context.Background(), method, path, key, body)
	if err == nil && a.status == http.StatusOK {
		err = json.Unmarshal([]byte(a.body), into)
	}
	if err != nil || a.status != http.StatusOK {
		q.g.t.Fatalf("%s %s%s = %d %q, %v, want 200", method, q.name, path, a.status, a.body, err)
	}
}

// messages is a body of messages.
type messages struct {
	Messages []message `json:"messages"`
}

// receive asks for messages. The wait is a duration such as "5s".
func (q queue) receive(batch int, wait string) []message {
	q.g.t.Helper()
	var got messages
	q.must(&got, http.MethodGet, fmt.Sprintf("/messages?batch=%d&wait=%s", batch, wait), q.key, nil)
	if got.Messages == nil {
		q.g.t.Fatalf("receive from %s: no list of messages in the answer", q.name)
	}
	return got.Messages
}

// await receives exactly n messages, with several requests if necessary.
func (q queue) await(n int) []message {
	q.g.t.Helper()
	var all []message
	for deadline := time.Now().Add(20 * time.Second); len(all) < n; {
		all = append(all, q.receive(n-len(all), "2s")...)
		if time.Now().After(deadline) {
			q.g.t.Fatalf("received %d messages of %s, want %d", len(all), q.name, n)
		}
	}
	return all
}

// none requires that no message is visible.
func (q queue) none(why string) {
	q.g.t.Helper()
	if got := q.receive(100, "0s"); len(got) != 0 {
		q.g.t.Errorf("received %+v of %s, want none: %s", got, q.name, why)
	}
}

func (q queue) ack(ids ...string) int {
	q.g.t.Helper()
	var got struct{ Acked int }
	q.must(&got, http.MethodPost, "/ack", q.key, map[string]any{"ids": ids})
	return got.Acked
}

func (q queue) nack(delay string, ids ...string) (retried, dead int) {
	q.g.t.Helper()
	body := map[string]any{"ids": ids}
	if delay != "" {
		body["delay"] = delay
	}
	var got struct{ Retried, Dead int }
	q.must(&got, http.MethodPost, "/nack", q.key, body)
	return got.Retried, got.Dead
}

func (q queue) extend(visibility string, ids ...string) int {
	q.g.t.Helper()
	var got struct{ Extended int }
	q.must(&got, http.MethodPost, "/extend", q.key, map[string]any{"ids": ids, "visibility_timeout": visibility})
	return got.Extended
}

// Actions of operators.

func (q queue) peek() []message {
	q.g.t.Helper()
	var got messages
	q.must(&got, http.MethodGet, "/peek", q.token, nil)
	return got.Messages
}

// dead returns the whole dead-letter queue.
func (q queue) dead() []message {
	q.g.t.Helper()
	var all []message
	for path := "/dlq?limit=100"; ; {
		var page struct {
			messages
			More bool `json:"has_more"`
		}
		q.must(&page, http.MethodGet, path, q.token, nil)
		all = append(all, page.Messages...)
		if !page.More || len(page.Messages) == 0 {
			return all
		}
		path = "/dlq?limit=100&after=" + all[len(all)-1].ID
	}
}

// retry retries one dead message, or all if id is empty.
func (q queue) retry(id string) int {
	q.g.t.Helper()
	body := map[string]any{}
	if id != "" {
		body["id"] = id
	}
	var got struct{ Retried int }
	q.must(&got, http.MethodPost, "/retry", q.token, body)
	return got.Retried
}

func (q queue) drain() int {
	q.g.t.Helper()
	var got struct{ Drained int }
	q.must(&got, http.MethodPost, "/drain", q.token, map[string]any{})
	return got.Drained
}

// listed returns the queue's entry in the list of all queues.
func (q queue) listed() listedQueue {
	q.g.t.Helper()
	var got struct{ Queues []listedQueue }
	a, err := fetch(pooled, request{method: http.MethodGet, url: q.g.url("/api/queues"), headers: bearer(q.token)})
	if err == nil {
		err = json.Unmarshal([]byte(a.body), &got)
	}
	for _, l := range got.Queues {
		if l.Name == q.name {
			return l
		}
	}
	q.g.t.Fatalf("GET /api/queues = %d %s, %v, want queue %s in it", a.status, a.body, err, q.name)
	return listedQueue{}
}

// receipts returns the receipts of messages.
func receipts(ms []message) []string {
	all := make([]string, len(ms))
	for i, m := range ms {
		all[i] = m.Receipt
	}
	return all
}

// payloads joins the payloads of messages.
func payloads(ms []message) string {
	all := make([]string, len(ms))
	for i, m := range ms {
		all[i] = string(m.Payload)
	}
	return strings.Join(all, " ")
}
