package gateway_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

func load(t testing.TB, yaml string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(yaml)}}, Path: "gateway.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openStore(t testing.TB, path string) core.Store {
	t.Helper()
	conn, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	if err := s.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newGateway(t testing.TB, c *config.Config, s core.Store) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(c, gateway.Deps{
		Store:     s,
		Clock:     core.SystemClock,
		Log:       slog.New(slog.DiscardHandler),
		Version:   "test",
		SoleTaker: true,
		Metrics:   metrics.New(metrics.Options{Names: gateway.Names(c)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// serve starts Serve. The function stop ends it and returns its error.
func serve(t *testing.T, g *gateway.Gateway) (base string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, l) }()
	return "http://" + l.Addr().String(), func() error { cancel(); return <-ended }
}

func post(t *testing.T, url, body string) *http.Response {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp
}

type delivery struct{ event, attempt, body string }

// receiver answers each delivery with the next of the statuses, and repeats the last one.
func receiver(t *testing.T, statuses ...int) (url string, got chan delivery) {
	t.Helper()
	got = make(chan delivery, 100)
	var mu sync.Mutex // guards statuses
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		status := statuses[0]
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
		mu.Unlock()
		w.WriteHeader(status)
		got <- delivery{r.Header.Get("x-gateway-event-id"), r.Header.Get("x-gateway-attempt"), string(body)}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func next(t *testing.T, got chan delivery) delivery {
	t.Helper()
	select {
	case d := <-got:
		return d
	case <-time.After(10 * time.Second):
		t.Fatal("no delivery in 10 s")
		return delivery{}
	}
}

func TestAnEventInADeliveryOut(t *testing.T) {
	url, got := receiver(t, 500, 200)
	c := load(t, `
server: {allow_private_urls: true}
delivery: {default_retry: {interval: 10ms}}
sources: {shop: {type: event}}
handlers: {billing: {source: shop, events: [order.*], url: '`+url+`'}}`)
	s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	base, stop := serve(t, newGateway(t, c, s))

	resp := post(t, base+"/events/shop/order.created", `{"total": 42}`)
	if resp.StatusCode != 202 {
		t.Fatalf("POST = %s, want 202", resp.Status)
	}
	event := resp.Header.Get("x-gateway-event-id")
	for _, attempt := range []string{"1", "2"} {
		if d, want := next(t, got), (delivery{event, attempt, `{"total": 42}`}); d != want {
			t.Errorf("delivery %+v, want %+v", d, want)
		}
	}
	if resp := post(t, base+"/events/shop/refund.created", `{}`); resp.StatusCode != 202 {
		t.Errorf("POST without matching handler = %s, want 202", resp.Status)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	jobs, err := s.Jobs(context.Background(), core.JobFilter{})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Status != core.Completed || jobs.Items[0].Attempt != 2 {
		t.Errorf("jobs %+v, %v, want one, completed at attempt 2", jobs.Items, err)
	}
}

func TestJobsOfAnEarlierProcessAreRecovered(t *testing.T) {
	url, got := receiver(t, 200)
	c := load(t, `
server: {allow_private_urls: true}
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: '`+url+`'}}`)
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "gateway.db")
	s := openStore(t, path)
	ids, now := core.NewIDs(core.SystemClock), time.Now()
	lane := core.HandlerLane("billing")
	a := core.Arrival{
		Event: core.Event{ID: ids.Next(), Source: "shop", Type: "order", Payload: []byte("{}"), CreatedAt: now},
		Jobs:  []core.NewJob{{ID: ids.Next(), Lane: lane, MaxAttempts: 5}},
	}
	if _, err := s.Accept(ctx, a); err != nil {
		t.Fatal(err)
	}
	if jobs, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: 1, Hold: time.Hour}}); err != nil || len(jobs) != 1 {
		t.Fatalf("Take = %v, %v", jobs, err)
	}
	// The worker of the lease is gone. A new process delivers although the lease has an hour
	// left.
	_, stop := serve(t, newGateway(t, c, s))
	if d := next(t, got); d.event != string(a.Event.ID) || d.attempt != "2" {
		t.Errorf("delivery %+v, want attempt 2 of %s", d, a.Event.ID)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

// TestFilterAndTransform: the filter reads the payload as it was received, and the transform
// makes the body of the delivery.
func TestFilterAndTransform(t *testing.T) {
	url, got := receiver(t, 500, 200)
	c := load(t, `
server: {allow_private_urls: true}
delivery: {default_retry: {interval: 10ms}}
sources: {shop: {type: event}}
handlers:
  big:
    source: shop
    url: '`+url+`'
    filter: $.total > 100 and $$.event.type starts_with "order."
    transform: '{"amount": {{ $.total }}, "from": "{{ $$.event.source }}", "event": "{{ $$.event.id }}"}'
  broken: {source: shop, events: [flood], url: '`+url+`', transform: '[{{ $.a }}, {{ $.a }}, {{ $.a }}, {{ $.a }}, {{ $.a }}, {{ $.a }}, {{ $.a }}, {{ $.a }}]'}`)
	s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	base, stop := serve(t, newGateway(t, c, s))
	for _, p := range []struct{ path, body string }{
		{"order.created", `{"total": 100}`}, {"refund.created", `{"total": 500}`}, {"order.created", `none`},
	} {
		post(t, base+"/events/shop/"+p.path, p.body)
	}
	event := post(t, base+"/events/shop/order.created", `{"total": 100.50}`).Header.Get("x-gateway-event-id")
	want := `{"amount": 100.50, "from": "shop", "event": "` + event + `"}`
	for _, attempt := range []string{"1", "2"} {
		if d := next(t, got); d.event != event || d.attempt != attempt || d.body != want {
			t.Errorf("delivery %+v, want attempt %s of %s with %s", d, attempt, event, want)
		}
	}
	post(t, base+"/events/shop/flood", `{"a": "`+strings.Repeat("a", 1<<19)+`", "total": 0}`) // eight times this is more than 4 MiB
	for {
		jobs, err := s.Jobs(context.Background(), core.JobFilter{Lane: core.HandlerLane("broken")})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(jobs.Items, func(j core.Job) bool { return j.Status == core.Dead }); i >= 0 {
			if j := jobs.Items[i]; j.Attempt != 1 || !strings.HasPrefix(j.LastError, "transform: ") {
				t.Errorf("job %+v, want dead at its first attempt by its transform", j)
			}
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no job died")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	jobs, err := s.Jobs(context.Background(), core.JobFilter{Lane: core.HandlerLane("big")})
	if err != nil || len(jobs.Items) != 1 {
		t.Errorf("jobs %+v, %v, want one for the event that passed", jobs.Items, err)
	}
}

func TestServeFailsWithItsListener(t *testing.T) {
	c := load(t, `sources: {shop: {type: event}}`)
	g := newGateway(t, c, openStore(t, filepath.Join(t.TempDir(), "gateway.db")))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := g.Serve(context.Background(), l); err == nil {
		t.Error("Serve on a closed listener = nil, want an error")
	}
}

// TestProviderNamesTheDelivery: a redelivery of GitHub is a duplicate by GitHub's delivery
// id. This works only if intake knows that the source is GitHub.
func TestProviderNamesTheDelivery(t *testing.T) {
	c := load(t, `sources: {hub: {type: webhook, verify: github, secret: a-secret-of-twenty-four-bytes}}`)
	base, stop := serve(t, newGateway(t, c, openStore(t, filepath.Join(t.TempDir(), "gateway.db"))))
	defer stop()
	mac := hmac.New(sha256.New, []byte("a-secret-of-twenty-four-bytes"))
	mac.Write([]byte("{}"))
	var events []string
	for range 2 {
		r, err := http.NewRequest("POST", base+"/webhooks/hub", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Hub-Signature-256", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
		r.Header.Set("X-GitHub-Event", "push")
		r.Header.Set("X-GitHub-Delivery", "d-1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		events = append(events, resp.Header.Get("x-gateway-event-id"))
	}
	if events[0] == "" || events[0] != events[1] {
		t.Errorf("a delivery and its repetition are events %q, want one", events)
	}
}

// TestAcceptedEventsWakeTheWorker: without the bell, each event would wait for the worker's
// next look, at least 750 ms.
func TestAcceptedEventsWakeTheWorker(t *testing.T) {
	url, got := receiver(t, 200)
	c := load(t, `
server: {allow_private_urls: true}
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: '`+url+`'}}`)
	base, stop := serve(t, newGateway(t, c, openStore(t, filepath.Join(t.TempDir(), "gateway.db"))))
	defer stop()
	pause := time.NewTicker(50 * time.Millisecond) // after each event, the worker keeps looking for a moment
	defer pause.Stop()
	began := time.Now()
	for range 20 {
		<-pause.C
		post(t, base+"/events/shop/order.created", "{}")
		next(t, got)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("20 deliveries, one after another, took %v: nobody woke the worker", took)
	}
}
