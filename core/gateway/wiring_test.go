package gateway_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
)

// The tests of this file check one thing: a setting reaches its service. The behavior of the
// service is tested in its own package.

// patience is how long a test waits for an expected event.
const patience = 30 * time.Second

// A spy is a store that reports its calls.
type spy struct {
	core.Store
	outcomes chan core.Outcome // settled outcomes
	takes    chan int          // the number of jobs that each Take asked for
	accept   func()            // called before each Accept, if set
}

func (s *spy) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if s.accept != nil {
		s.accept()
	}
	return s.Store.Accept(ctx, a)
}

func (s *spy) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	n := 0
	for _, q := range quotas {
		n += q.N
	}
	select {
	case s.takes <- n:
	default:
	}
	return s.Store.Take(ctx, now, quotas)
}

func (s *spy) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	settled, err := s.Store.Settle(ctx, outcomes...)
	for _, o := range outcomes {
		s.outcomes <- o
	}
	return settled, err
}

// A wired gateway serves under a URL. It delivers after a call of deliver.
type wired struct {
	*gateway.Gateway
	*spy
	url string
}

func wire(t *testing.T, yaml string) *wired {
	t.Helper()
	return wiredTo(t, openStore(t, filepath.Join(t.TempDir(), "gateway.db")), yaml)
}

func wiredTo(t *testing.T, on core.Store, yaml string) *wired {
	t.Helper()
	s := &spy{on, make(chan core.Outcome, 100), make(chan int, 100), nil}
	g := newGateway(t, load(t, yaml), s)
	front := httptest.NewServer(g.Handler())
	t.Cleanup(front.Close)
	return &wired{g, s, front.URL}
}

// billing configures one handler of the source shop.
func billing(url, handler string, sections ...string) string {
	return strings.Join(append(sections, "server: {allow_private_urls: true}", "sources: {shop: {type: event}}",
		"handlers: {billing: {source: shop, url: '"+url+"', "+handler+"}}"), "\n")
}

// deliver starts the worker. It stops at the end of the test.
func (w *wired) deliver(t *testing.T) {
	t.Helper()
	_, stop := serve(t, w.Gateway)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	})
}

// send sends an event to the source shop and delivers it.
func (w *wired) send(t *testing.T) {
	t.Helper()
	w.accept202(t, "order.created")
	w.deliver(t)
}

func (w *wired) accept202(t *testing.T, eventType string) core.ID {
	t.Helper()
	resp := post(t, w.url+"/events/shop/"+eventType, `{"total": 42}`)
	if resp.StatusCode != 202 {
		t.Fatalf("POST = %s, want 202", resp.Status)
	}
	return core.ID(resp.Header.Get("x-gateway-event-id"))
}

func (w *wired) jobs(t *testing.T, f core.JobFilter) []core.Job {
	t.Helper()
	page, err := w.spy.Jobs(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// await receives a value within patience, or fails the test.
func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("nothing in %v", patience)
	}
	return v
}

// status posts an empty object, with a header field if field is not empty, and returns the
// status.
func status(t *testing.T, url, field, value string) int {
	t.Helper()
	r, _ := http.NewRequest("POST", url, strings.NewReader("{}"))
	if field != "" {
		r.Header.Set(field, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A held receiver gives no answer until it is released or gets a token for one answer.
type held struct {
	url            string
	arrived, token chan struct{}
	conns          atomic.Int32
	release        func()
}

func holding(t *testing.T) *held {
	t.Helper()
	h := &held{arrived: make(chan struct{}, 100), token: make(chan struct{}, 100)}
	h.release = sync.OnceFunc(func() { close(h.token) })
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			h.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(h.release)
	h.url = s.URL
	return h
}

func (h *held) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	h.arrived <- struct{}{}
	select {
	case <-h.token:
	case <-r.Context().Done():
	}
}

func TestLeaseCoversThresholdAndTimeout(t *testing.T) {
	for _, tt := range []struct {
		name, timeout, threshold string
		want                     time.Duration
	}{
		{"threshold", "20s", "700", 700 * time.Second},
		{"timeout", "90s", "60", 105 * time.Second},
		{"timeout and a margin", "55s", "60", 70 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := holding(t)
			w := wire(t, billing(h.url, "timeout: "+tt.timeout, "worker: {stale_threshold_secs: "+tt.threshold+"}"))
			before := time.Now().Truncate(time.Millisecond)
			w.send(t)
			defer h.release()
			await(t, h.arrived)
			jobs := w.jobs(t, core.JobFilter{Status: core.Running})
			if len(jobs) != 1 {
				t.Fatalf("%d jobs are running, want 1", len(jobs))
			}
			low, high := before.Add(tt.want), time.Now().Add(tt.want)
			if due := jobs[0].DueAt; due.Before(low) || due.After(high) {
				t.Errorf("lease ends %v after the event came in, want %v", due.Sub(before), tt.want)
			}
		})
	}
}

// sha returns the signature of a body in the form of the schemes hmac and github.
func sha(secret, body string) string {
	return "sha256=" + hex.EncodeToString(mac([]byte(secret), body))
}

// shop is a configuration of one source and some settings of the server.
func shop(server, source string) string {
	return "{server: {" + server + "}, sources: {shop: {type: " + source + "}}}"
}

func TestWhatGetsIn(t *testing.T) {
	const (
		event, hook, echo   = "/events/shop/order", "/webhooks/shop", "/_echo"
		peerOnly, otherOnly = "event, allowed_ips: ['::1', 127.0.0.0/8]", "event, allowed_ips: [203.0.113.7]"
		proxies             = "trust_proxy: true, trusted_proxies: [127.0.0.1, 10.0.0.0/8]"
		via, forwarded      = "X-Forwarded-For", "203.0.113.7, 10.0.0.1"
		hmac, own           = "webhook, verify: hmac, secret: [a, b]", "webhook, verify: hmac, secret: a, signature_header: x-shop-sig"
		bearer              = "{api: {auth_token: t0ken}, sources: {shop: {type: event}}}"
	)
	for _, tt := range []struct {
		name, yaml, path, field, value string
		want                           int
	}{
		{"address allowed", shop("", peerOnly), event, via, forwarded, 202},
		{"another allowed", shop("", otherOnly), event, via, forwarded, 403},
		{"proxies without trust", shop("trusted_proxies: [127.0.0.1]", otherOnly), event, via, "203.0.113.7", 403},
		{"one proxy", shop("trust_proxy: true", otherOnly), event, via, "203.0.113.7", 202},
		{"one proxy, two entries", shop("trust_proxy: true", otherOnly), event, via, forwarded, 403},
		{"two proxies", shop(proxies, otherOnly), event, via, forwarded, 202},
		{"not one of the proxies", shop("trust_proxy: true, trusted_proxies: [10.0.0.0/8]", otherOnly), event, via, forwarded, 403},
		{"unsigned", shop("", "webhook"), hook, "", "", 200},
		{"event for a webhook", shop("", "webhook"), event, "", "", 404},
		{"first secret", shop("", hmac), hook, "X-Webhook-Signature", sha("a", "{}"), 200},
		{"second secret", shop("", hmac), hook, "X-Webhook-Signature", sha("b", "{}"), 200},
		{"third secret", shop("", hmac), hook, "X-Webhook-Signature", sha("c", "{}"), 401},
		{"own header", shop("", own), hook, "X-Shop-Sig", sha("a", "{}"), 200},
		{"usual header", shop("", own), hook, "X-Webhook-Signature", sha("a", "{}"), 401},
		{"github", shop("", "webhook, verify: github, secret: a"), hook, "X-Hub-Signature-256", sha("a", "{}"), 200},
		{"body of 2 bytes", shop("max_body_size: 2", "event"), event, "", "", 202},
		{"body too large", shop("max_body_size: 1", "event"), event, "", "", 413},
		{"no echo", shop("", "event"), echo, "", "", 404},
		{"echo", shop("echo: true", "event"), echo, "", "", 200},
		{"no token", bearer, event, "", "", 401},
		{"another token", bearer, event, "Authorization", "Bearer other", 401},
		{"token", bearer, event, "Authorization", "Bearer t0ken", 202},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := status(t, wire(t, tt.yaml).url+tt.path, tt.field, tt.value); got != tt.want {
				t.Errorf("POST = %d, want %d", got, tt.want)
			}
		})
	}
}

func mac(key []byte, parts ...string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join(parts, ".")))
	return m.Sum(nil)
}

// recorder is a receiver that records its requests.
func recorder(t *testing.T) (url string, got chan *http.Request) {
	t.Helper()
	got = make(chan *http.Request, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		got <- r
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func TestMethodAndHeaders(t *testing.T) {
	url, got := recorder(t)
	w := wire(t, billing(url+"/in", "method: PUT, headers: {authorization: Bearer t0ken, X-Team: red}"))
	w.send(t)
	r := await(t, got)
	shown := []string{r.Method, r.URL.Path}
	for _, name := range []string{"Authorization", "X-Team", "X-Gateway-Handler", "User-Agent"} {
		shown = append(shown, r.Header.Get(name))
	}
	want := []string{"PUT", "/in", "Bearer t0ken", "red", "billing", "gateway/test"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestSourceAndEventsSelectHandlers(t *testing.T) {
	w := wire(t, `
delivery: {default_retry: {max: 3}}
sources: {shop: {type: event}, desk: {type: event}}
handlers:
  all: {source: shop, url: 'https://a.example'}
  orders: {source: shop, events: [order.*], url: 'https://b.example', retry: {max: 7}}
  refunds: {source: shop, events: [refund.created, refund.*.late], url: 'https://c.example'}
  tickets: {source: desk, url: 'https://d.example'}`)
	for eventType, want := range map[string]map[core.Lane]int{
		"order.created":  {"handler/all": 3, "handler/orders": 7},
		"refund.created": {"handler/all": 3, "handler/refunds": 3},
		"refund.is.late": {"handler/all": 3, "handler/refunds": 3},
		"refund.denied":  {"handler/all": 3},
	} {
		attempts := map[core.Lane]int{}
		for _, j := range w.jobs(t, core.JobFilter{EventID: w.accept202(t, eventType)}) {
			attempts[j.Lane] = j.MaxAttempts
		}
		if diff := cmp.Diff(want, attempts); diff != "" {
			t.Errorf("jobs of %s and their attempts (-want +got):\n%s", eventType, diff)
		}
	}
}

func TestRetry(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name, delivery, handler string
		want                    []time.Duration // between attempts, ± 20 %
	}{
		{"exponential", "", "{max: 4, interval: 10ms}", []time.Duration{10 * ms, 20 * ms, 40 * ms}},
		{"fixed", "", "{max: 4, interval: 10ms, backoff: fixed}", []time.Duration{10 * ms, 10 * ms, 10 * ms}},
		{"of all", "{max: 3, interval: 20ms, backoff: fixed}", "{}", []time.Duration{20 * ms, 20 * ms}},
		{"its own", "{max: 3, interval: 20ms, backoff: fixed}", "{max: 2, interval: 1h}", []time.Duration{time.Hour}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := receiver(t, 500)
			w := wire(t, billing(url, "retry: "+tt.handler, "delivery: {default_retry: "+tt.delivery+"}"))
			w.send(t)
			for i, want := range tt.want {
				o := await(t, w.outcomes)
				if wait := o.DueAt.Sub(o.At); o.Status != core.Retryable || wait < want*8/10 || wait > want*12/10 {
					t.Fatalf("attempt %d is %s, due after %v, want retryable after %v", i+1, o.Status, wait, want)
				}
			}
			if last := tt.want[len(tt.want)-1]; last > patience {
				return
			}
			if o := await(t, w.outcomes); o.Status != core.Dead {
				t.Errorf("attempt %d is %s, want dead", len(tt.want)+1, o.Status)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	for _, tt := range []struct {
		name, delivery, handler string
		want                    time.Duration
	}{
		{"of all", "timeout: 30ms", "", 30 * time.Millisecond},
		{"its own, shorter", "", "timeout: 30ms", 30 * time.Millisecond},
		{"its own, longer", "timeout: 1ms", "timeout: 150ms", 150 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := holding(t)
			w := wire(t, billing(h.url, tt.handler, "delivery: {"+tt.delivery+"}"))
			w.send(t)
			defer h.release()
			a := await(t, w.outcomes).Attempt
			if !strings.HasPrefix(a.Error, "timeout: ") || a.Duration < tt.want/2 || a.Duration > tt.want+2*time.Second {
				t.Errorf("attempt ended with %q after %v, want a timeout after about %v", a.Error, a.Duration, tt.want)
			}
		})
	}
}

func TestAllowPrivateURLs(t *testing.T) {
	for allow, want := range map[string]string{"false": "blocked", "true": ""} {
		url, _ := receiver(t, 200)
		w := wire(t, `
server: {allow_private_urls: `+allow+`}
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: '`+url+`'}}`)
		w.send(t)
		class, _, _ := strings.Cut(await(t, w.outcomes).Attempt.Error, ":")
		if class != want {
			t.Errorf("allow_private_urls: %s gives %q, want %q", allow, class, want)
		}
	}
}

func TestHandshakes(t *testing.T) {
	for source, want := range map[string]int{
		"webhook, webhook_origins: [a.example, b.example]": 200, "webhook, webhook_origins: ['*']": 200,
		"webhook, webhook_origins: [a.example]": 403, "webhook": 405,
	} {
		w := wire(t, shop("", source))
		req, err := http.NewRequest("OPTIONS", w.url+"/webhooks/shop", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("WebHook-Request-Origin", "b.example")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || (resp.Header.Get("WebHook-Allowed-Origin") != "") != (want == 200) {
			t.Errorf("%s: %d %v, want %d", source, resp.StatusCode, resp.Header, want)
		}
	}
}

func TestIPRateLimit(t *testing.T) {
	count := func(server string) (limited int) {
		w := wire(t, shop(server, "event"))
		for range 12 {
			if post(t, w.url+"/events/shop/order", "{}").StatusCode == 429 {
				limited++
			}
		}
		return limited
	}
	if n := count("ip_rate_limit: 2"); n == 0 {
		t.Error("12 requests at a limit of 2 a second, none refused")
	}
	for _, server := range []string{"ip_rate_limit: 1000", ""} {
		if n := count(server); n != 0 {
			t.Errorf("with {%s}, %d of 12 requests refused, want none", server, n)
		}
	}
}

// A second request arrives while the first is inside the store.
func TestMaxInbound(t *testing.T) {
	for server, want := range map[string]int{"max_inbound: 1": 503, "max_inbound: 2": 202, "": 202} {
		w := wire(t, shop(server, "event"))
		url, calls, second := w.url+"/events/shop/order", atomic.Int32{}, 0
		w.accept = func() {
			if calls.Add(1) > 1 {
				return
			}
			if resp, err := http.Post(url, "", nil); err == nil {
				resp.Body.Close()
				second = resp.StatusCode
			}
		}
		if first := post(t, url, "{}").StatusCode; first != 202 || second != want {
			t.Errorf("with {%s}, first request = %d, second %d, want 202 and %d", server, first, second, want)
		}
	}
}

// Both waves of deliveries use the same connections: the number of idle connections may be as
// large as max_concurrency.
func TestMaxConcurrencyAndBatchSize(t *testing.T) {
	const slots = 3
	h := holding(t)
	w := wire(t, billing(h.url, "", "worker: {max_concurrency: 3, batch_size: 2}"))
	for range slots + 2 {
		w.accept202(t, "order")
	}
	w.deliver(t)
	defer h.release()
	for range slots {
		await(t, h.arrived)
	}
	if got, want := []int{await(t, w.takes), await(t, w.takes)}, []int{2, 1}; !cmp.Equal(got, want) {
		t.Errorf("jobs asked for: %v, want %v", got, want)
	}
	select {
	case <-h.arrived:
		t.Error("more than 3 deliveries at once")
	case <-time.After(100 * time.Millisecond):
	}
	for range slots + 2 {
		h.token <- struct{}{}
	}
	for range slots + 2 {
		await(t, w.outcomes)
	}
	for range slots {
		w.accept202(t, "order")
	}
	for range slots + 2 {
		await(t, h.arrived)
	}
	if n := h.conns.Load(); n != slots {
		t.Errorf("%d connections, want %d", n, slots)
	}
}
