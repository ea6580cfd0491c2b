package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
)

// Like the tests of wiring_test.go, these tests check that a setting reaches its service.

// queue configures one queue of the source shop.
func queue(fields string, sections ...string) string {
	return strings.Join(append(sections, "sources: {shop: {type: event}}", "queues: {work: {source: shop, "+fields+"}}"), "\n")
}

// call sends a request with a bearer token, unless token is empty, and returns the status and
// the body. It may be called from any goroutine.
func call(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	r, _ := http.NewRequest(method, url, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

type message struct {
	ID      core.ID
	EventID core.ID `json:"event_id"`
	Attempt int
	Receipt string
	Payload json.RawMessage
}

// pull receives from the queue work. It may be called from any goroutine.
func (w *wired) pull(t *testing.T, query string) []message {
	t.Helper()
	status, body := call(t, "GET", w.url+"/api/queues/work/messages?"+query, "", "")
	var got struct{ Messages []message }
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Errorf("receive: %d %s, %v", status, body, err)
	}
	return got.Messages
}

// pullOne receives, and requires exactly one message.
func (w *wired) pullOne(t *testing.T) message {
	t.Helper()
	got := w.pull(t, "batch=2")
	if len(got) != 1 {
		t.Fatalf("messages %+v, want one", got)
	}
	return got[0]
}

// postAction posts an action on messages of the queue work.
func (w *wired) postAction(t *testing.T, action, body, want string) {
	t.Helper()
	if status, got := call(t, "POST", w.url+"/api/queues/work/"+action, "", body); status != 200 || got != want {
		t.Errorf("%s %s = %d %s, want %s", action, body, status, got, want)
	}
}

func TestQueueGetsItsEvents(t *testing.T) {
	w := wire(t, `
sources: {shop: {type: event}, desk: {type: event}}
handlers: {work: {source: shop, url: 'https://a.example'}}
queues:
  all: {source: shop}
  work: {source: shop, events: [order.*], max_attempts: 7}
  large: {source: shop, filter: $.total > 41}
  small: {source: shop, filter: $.total < 42}
  once: {source: shop, idempotency_key: $.total}
  tickets: {source: desk}`)
	for _, want := range []map[core.Lane]int{
		{"handler/work": 5, "queue/all": core.Unlimited, "queue/work": 7, "queue/large": core.Unlimited, "queue/once": core.Unlimited},
		{"handler/work": 5, "queue/all": core.Unlimited, "queue/work": 7, "queue/large": core.Unlimited},
	} {
		got := map[core.Lane]int{}
		for _, j := range w.jobs(t, core.JobFilter{EventID: w.accept202(t, "order.created")}) {
			got[j.Lane] = j.MaxAttempts
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("jobs and their attempts (-want +got):\n%s", diff)
		}
	}
	if jobs := w.jobs(t, core.JobFilter{EventID: w.accept202(t, "refund.created"), Lane: "queue/work"}); len(jobs) != 0 {
		t.Errorf("the queue got an event it does not want: %+v", jobs)
	}
}

func TestVisibilityTimeout(t *testing.T) {
	for fields, want := range map[string]time.Duration{"": 30 * time.Second, "visibility_timeout: 2h": 2 * time.Hour} {
		w := wire(t, queue(fields))
		event := w.accept202(t, "order")
		before := time.Now().Truncate(time.Millisecond)
		got := w.pullOne(t)
		if got.EventID != event || got.Attempt != 1 || string(got.Payload) != `{"total": 42}` {
			t.Errorf("message %+v, want that of event %s", got, event)
		}
		job, err := w.spy.Job(t.Context(), got.ID)
		if err != nil {
			t.Fatal(err)
		}
		if due := job.DueAt; due.Before(before.Add(want)) || due.After(time.Now().Add(want)) {
			t.Errorf("{%s}: invisible for %v, want %v", fields, due.Sub(before), want)
		}
		w.postAction(t, "extend", `{"ids": ["`+got.Receipt+`"]}`, `{"extended":1}`)
		w.postAction(t, "ack", `{"ids": ["`+got.Receipt+`"]}`, `{"acked":1}`)
	}
}

func TestKeysOfQueues(t *testing.T) {
	w := wire(t, "api: {auth_token: t0ken}\nsources: {shop: {type: event}}\n"+
		"queues: {open: {source: shop}, work: {source: shop, api_key: k3y}, other: {source: shop, api_key: 0ther}}")
	const none = `{"ids": []}`
	for _, tt := range []struct {
		method, path, token, body string
		want                      int
	}{
		{"GET", "/open/messages", "", "", 200},
		{"GET", "/work/messages", "", "", 401},
		{"GET", "/work/messages", "k3y", "", 200},
		{"GET", "/work/messages", "0ther", "", 401},
		{"GET", "/work/messages", "t0ken", "", 401},
		{"POST", "/work/ack", "", none, 401},
		{"POST", "/work/ack", "k3y", none, 200},
		{"POST", "/work/nack", "0ther", none, 401},
		{"POST", "/other/extend", "0ther", none, 200},
		{"GET", "/nobody/messages", "", "", 404},
		{"GET", "", "", "", 401},
		{"GET", "", "k3y", "", 401},
		{"GET", "", "t0ken", "", 200},
		{"GET", "/work/peek", "k3y", "", 401},
		{"GET", "/work/peek", "t0ken", "", 200},
		{"GET", "/work/dlq", "t0ken", "", 200},
		{"POST", "/work/retry", "k3y", "", 401},
		{"POST", "/work/drain", "t0ken", "", 200},
	} {
		if got, body := call(t, tt.method, w.url+"/api/queues"+tt.path, tt.token, tt.body); got != tt.want {
			t.Errorf("%s %s with %q = %d %s, want %d", tt.method, tt.path, tt.token, got, body, tt.want)
		}
	}
}

func TestListOfQueues(t *testing.T) {
	w := wire(t, "sources: {shop: {type: event}, desk: {type: event}}\n"+
		"queues: {work: {source: shop, events: [order, 'a.*'], visibility_timeout: 90, max_attempts: 2}, idle: {source: desk}}")
	w.accept202(t, "order")
	w.postAction(t, "ack", fmt.Sprintf(`{"ids": [%q]}`, w.pullOne(t).ID), `{"acked":1}`)
	w.accept202(t, "order")
	w.pullOne(t)
	w.accept202(t, "order")
	_, got := call(t, "GET", w.url+"/api/queues", "", "")
	const want = `{"queues":[` +
		`{"name":"idle","source":"desk","events":[],"visibility_timeout":"30s","depth":0,"pending":0,"processing":0,"dead":0,"canceled":0},` +
		`{"name":"work","source":"shop","events":["order","a.*"],"visibility_timeout":"90s","depth":2,"pending":1,"processing":1,"dead":0,"canceled":0}]}`
	if got != want {
		t.Errorf("queues %s\nwant   %s", got, want)
	}
}

// A waiting consumer is woken by an event of this process and by a retry. A look at the
// database would come too late.
func TestPollsAreWoken(t *testing.T) {
	s := &watched{openStore(t, filepath.Join(t.TempDir(), "gateway.db")), make(chan struct{}, 1)}
	g, err := gateway.New(load(t, queue("max_attempts: 1, visibility_timeout: 1h")), gateway.Deps{
		Store: s, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler), Rest: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g.Handler())
	t.Cleanup(front.Close)
	t.Cleanup(g.Puller.Close)
	w := &wired{g, nil, front.URL}
	got := make(chan []message, 1)
	park := func() {
		go func() { got <- w.pull(t, "wait=30s") }()
		await(t, s.looks)
	}

	park()
	w.accept202(t, "order")
	m := await(t, got)
	if len(m) != 1 {
		t.Fatalf("messages %+v, want one", m)
	}
	w.postAction(t, "nack", fmt.Sprintf(`{"ids": [%q]}`, m[0].Receipt), `{"retried":0,"dead":1}`)
	for len(s.looks) > 0 {
		<-s.looks
	}
	park()
	w.postAction(t, "retry", fmt.Sprintf(`{"id": %q}`, m[0].ID), `{"retried":1}`)
	if again := await(t, got); len(again) != 1 || again[0].ID != m[0].ID || again[0].Attempt != 2 {
		t.Errorf("after the retry %+v, want message %s at attempt 2", again, m[0].ID)
	}
}

// A watched store signals each look at a queue.
type watched struct {
	core.Store
	looks chan struct{}
}

func (w *watched) look(lanes ...core.Lane) {
	if slices.ContainsFunc(lanes, func(l core.Lane) bool { return l.Queue() != "" }) {
		select {
		case w.looks <- struct{}{}:
		default:
		}
	}
}

func (w *watched) Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	w.look(lanes...)
	return w.Store.Due(ctx, lanes)
}

func (w *watched) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for _, q := range quotas {
		w.look(q.Lane)
	}
	return w.Store.Take(ctx, now, quotas)
}

// At a stop, waiting consumers get an answer at once.
func TestStopAnswersPolls(t *testing.T) {
	s := &watched{openStore(t, filepath.Join(t.TempDir(), "gateway.db")), make(chan struct{}, 1)}
	base, stop := serve(t, newGateway(t, load(t, queue("", "worker: {drain_timeout_secs: 20}")), s))
	reply := make(chan string, 1)
	go func() {
		status, body := call(t, "GET", base+"/api/queues/work/messages?wait=30s", "", "")
		reply <- fmt.Sprint(status, " ", body)
	}()
	await(t, s.looks)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	if got, want := await(t, reply), `200 {"messages":[]}`; got != want {
		t.Errorf("the poll got %s, want %s", got, want)
	}
	if err := await(t, stopped); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

// A message that dies causes an alert, whether it was nacked or its last lease ended while no
// consumer was waiting.
func TestDeadMessagesAreAlerted(t *testing.T) {
	url, got := recorder(t)
	w := wire(t, queue("max_attempts: 1, visibility_timeout: 1h", "server: {allow_private_urls: true}", "alerts: {url: '"+url+"', on: [dlq]}"))
	want := map[string]bool{}
	for _, action := range []string{"nack", "extend"} {
		w.accept202(t, "order")
		id := w.pullOne(t).ID
		want[string(id)] = true
		if action == "nack" {
			w.postAction(t, "nack", fmt.Sprintf(`{"ids": [%q]}`, id), `{"retried":0,"dead":1}`)
		} else {
			w.postAction(t, "extend", fmt.Sprintf(`{"ids": [%q], "visibility_timeout": "1ms"}`, id), `{"extended":1}`)
		}
	}
	for end := time.Now().Add(20 * time.Second); len(w.jobs(t, core.JobFilter{Status: core.Retryable})) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the lease is not over in time")
		}
	}
	w.deliver(t)
	told := map[string]bool{}
	for range want {
		body, _ := io.ReadAll(await(t, got).Body)
		var alert struct {
			Alert, Queue string
			JobID        string `json:"job_id"`
		}
		if err := json.Unmarshal(body, &alert); err != nil || alert.Alert != "dlq" || alert.Queue != "work" {
			t.Fatalf("alert %s, %v, want one of queue work", body, err)
		}
		told[alert.JobID] = true
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// The messages of a queue wait for consumers. The worker neither delivers nor buries them,
// and a restart does not end the leases of consumers.
func TestRestartLeavesMessagesToTheirConsumers(t *testing.T) {
	w := wire(t, queue("visibility_timeout: 1h"))
	w.accept202(t, "order")
	m := w.pullOne(t)
	w.deliver(t)
	if again := w.pull(t, "wait=200ms"); len(again) != 0 {
		t.Errorf("a message that somebody holds came again: %+v", again)
	}
	strays, err := w.spy.Strays(context.Background(), time.Now(), []core.Lane{"queue/work"})
	if err != nil || len(strays) != 0 {
		t.Errorf("Strays = %v, %v, want none", strays, err)
	}
	w.postAction(t, "ack", fmt.Sprintf(`{"ids": [%q]}`, m.Receipt), `{"acked":1}`)
}

// A taking store keeps the lanes whose jobs were taken as they were stored, by event.
type taking struct {
	core.Store
	mu    sync.Mutex
	lanes map[core.ID][]core.Lane
}

func (s *taking) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	r, taken, err := s.Store.AcceptAndTake(ctx, now, a, holds)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range taken {
		s.lanes[r.EventID] = append(s.lanes[r.EventID], j.Lane)
	}
	return r, taken, err
}

// An idle worker, and a consumer who waits, get new jobs in the commit that stores them.
func TestNewJobsAreTakenAtOnce(t *testing.T) {
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(sink.Close)
	s := &taking{Store: openStore(t, filepath.Join(t.TempDir(), "gateway.db")), lanes: map[core.ID][]core.Lane{}}
	base, stop := serve(t, newGateway(t, load(t, billing(sink.URL, "", "queues: {work: {source: shop}}")), s))
	w := &wired{url: base}
	want := []core.Lane{"handler/billing", "queue/work"}
	var got []core.Lane
	for range 50 { // the first ones may come before the worker has begun, or the consumer waits
		polled := make(chan []message, 1)
		go func() { polled <- w.pull(t, "wait=30s") }()
		time.Sleep(20 * time.Millisecond)
		id := w.accept202(t, "order.created")
		if m := await(t, polled); len(m) != 1 || m[0].EventID != id || m[0].Attempt != 1 {
			t.Fatalf("messages %+v, want that of event %s", m, id)
		}
		s.mu.Lock()
		got = slices.Sorted(slices.Values(s.lanes[id]))
		s.mu.Unlock()
		if slices.Equal(got, want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("taken at once: %v, want %v", got, want)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
