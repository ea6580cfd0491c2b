package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	"github.com/eventgateway/gateway/infra/test/golden"
)

// A program is a Program under test, with its log.
type program struct {
	*gateway.Program
	t     *testing.T
	store core.Store
	url   string // set by start
	log   *lines
}

// lines are the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the lines since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func newProgram(t *testing.T, yaml string) *program {
	t.Helper()
	p := &program{t: t, store: openStore(t, filepath.Join(t.TempDir(), "gateway.db")), log: &lines{}}
	log, err := telemetry.NewLogger(telemetry.LogOptions{Out: p.log, Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, yaml)
	p.Program, err = gateway.NewProgram(c, gateway.Deps{
		Store: p.store, Clock: time.Now, Log: log, Version: "test", SoleTaker: true,
		Metrics: metrics.New(metrics.Options{Names: gateway.Names(c)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start serves until the test ends.
func (p *program) start() *program {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, l) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Errorf("Serve = %v", err)
		}
	})
	return p
}

// reload reloads a configuration as the command line does.
func (p *program) reload(yaml string) core.ReloadResult {
	c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(yaml)}}, Path: "gateway.yaml"})
	if err != nil {
		p.Ignore(core.BySignal, "gateway.yaml", core.ReloadInvalid, err)
		return core.ReloadInvalid
	}
	result, _ := p.Reload(p.t.Context(), core.BySignal, "gateway.yaml", c)
	return result
}

func (p *program) mustReload(yaml string) {
	p.t.Helper()
	if got := p.reload(yaml); got != core.ReloadApplied {
		p.t.Fatalf("reload: %q\n%s", got, p.log.take())
	}
}

// ask sends a request to the program's handler, without a network.
func (p *program) ask(route, body string) *httptest.ResponseRecorder {
	return httpAsk(p.Handler(), route, body)
}

// TestReloadsAreAudited: a configuration that is applied leaves one entry. One that is the same, or
// refused, leaves none.
func TestReloadsAreAudited(t *testing.T) {
	const yaml = "sources: {app: {type: event}}"
	p := newProgram(t, yaml)
	for _, tt := range []struct {
		yaml string
		want core.ReloadResult
		n    int
	}{
		{yaml, core.ReloadUnchanged, 0},
		{"sources: {", core.ReloadInvalid, 0},
		{yaml + "\nserver: {port: 9999}", core.ReloadForbidden, 0},
		{"sources: {other: {type: event}}", core.ReloadApplied, 1},
		{"sources: {other: {type: event}}", core.ReloadUnchanged, 1},
		{yaml, core.ReloadApplied, 2},
	} {
		if got := p.reload(tt.yaml); got != tt.want {
			t.Fatalf("reload of %q: %s, want %s", tt.yaml, got, tt.want)
		}
		page, err := p.store.Audited(t.Context(), core.AuditFilter{})
		if err != nil || len(page.Items) != tt.n {
			t.Errorf("after the reload of %q: entries %+v, %v; want %d", tt.yaml, page.Items, err, tt.n)
		}
		for _, e := range page.Items {
			want := core.AuditEntry{ID: e.ID, Actor: core.Actor{Name: core.ActorProcess, Via: core.ViaReload}, Change: core.Change{Action: core.AuditReload, Target: "gateway.yaml"}}
			if diff := cmp.Diff(want, e); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		}
	}
}

// TestProgramFollowsRoles: a reload changes the role of a token.
func TestProgramFollowsRoles(t *testing.T) {
	const yaml = "api: {tokens: [{name: ci, token: s3cret, role: ROLE}]}\nsources: {app: {type: event}}"
	as := func(role string) string { return strings.Replace(yaml, "ROLE", role, 1) }
	p := newProgram(t, as("read"))
	for _, tt := range []struct {
		role      string
		get, post int
	}{
		{"operate", 200, 200}, {"send", 403, 403}, {"read", 200, 403},
	} {
		p.mustReload(as(tt.role))
		for route, want := range map[string]int{"GET /api/stats": tt.get, "POST /api/jobs/retry": tt.post} {
			if got := asked(p.Handler(), route, "Bearer s3cret"); got.Code != want {
				t.Errorf("%s with the role %s: %d %s, want %d", route, tt.role, got.Code, got.Body, want)
			}
		}
	}
}

// TestProgramTells plays testdata/reload.txtar. The file has successive configurations, and
// the expected log, /health and metrics after each.
func TestProgramTells(t *testing.T) {
	a, err := txtar.ParseFile("testdata/reload.txtar")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, string(a.Files[0].Data))
		for i := 1; i+1 < len(a.Files); i += 2 {
			time.Sleep(time.Minute)
			step, want := a.Files[i], string(a.Files[i+1].Data)
			if why, ok := strings.CutPrefix(strings.TrimSpace(string(step.Data)), "unreachable: "); ok {
				p.Ignore(core.BySignal, "gateway.yaml", core.ReloadUnreachable, fmt.Errorf("%s", why))
			} else {
				p.reload(string(step.Data))
			}
			got := p.told()
			golden.Compare(t, step.Name, want, got)
			a.Files[i+1].Data = []byte(got)
		}
	})
	if golden.Updating() {
		golden.Write(t, "testdata/reload.txtar", txtar.Format(a))
	}
}

var timed = regexp.MustCompile(`"time":"[^"]*",`)

// told returns the log, /health, what /api/config has of reloads, and their metrics.
func (p *program) told() string {
	var b strings.Builder
	b.WriteString(timed.ReplaceAllString(p.log.take(), ""))
	fmt.Fprintln(&b, p.ask("GET /health", "").Body.String())
	var config map[string]json.RawMessage
	if err := json.Unmarshal(asked(p.Handler(), "GET /api/config", "Bearer a-token-of-twenty-four-b").Body.Bytes(), &config); err != nil {
		p.t.Error(err)
	}
	fmt.Fprintf(&b, "loaded at %s, last reload %s\n", config["loaded_at"], config["last_reload"])
	for line := range strings.Lines(p.ask("GET /metrics", "").Body.String()) {
		if strings.HasPrefix(line, "gateway_config_") && !strings.HasSuffix(line, " 0\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestProgramFollows: events, deliveries and limits follow the newest configuration.
func TestProgramFollows(t *testing.T) {
	url, got := receiver(t, 200)
	with := func(more string) string {
		return "server: {allow_private_urls: true" + more + "}\nsources: {shop: {type: event}}\nhandlers: {billing: {source: shop, url: '" + url + "', transform: '\"before\"'}}\n"
	}
	p := newProgram(t, with("")).start()
	post(t, p.url+"/events/shop/a", "{}")
	if d := next(t, got); d.body != `"before"` {
		t.Fatalf("delivery %+v", d)
	}
	p.mustReload(strings.ReplaceAll(with(", max_body_size: 5"), "before", "after") + "queues: {work: {source: shop}}\n")
	if resp := post(t, p.url+"/events/shop/a", `{"a": 1}`); resp.StatusCode != 413 {
		t.Errorf("8 bytes where 5 are allowed: %s", resp.Status)
	}
	post(t, p.url+"/events/shop/a", "{}")
	if d := next(t, got); d.body != `"after"` {
		t.Errorf("delivery %+v, want that of the newest configuration", d)
	}
	if status, body := call(t, "GET", p.url+"/api/queues/work/messages", "", ""); status != 200 || !strings.Contains(body, "receipt") {
		t.Errorf("a queue that is new: %d %s", status, body)
	}
	var series string
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the last outcome may not be stored yet
		series = p.ask("GET /metrics", "").Body.String()
		if strings.Contains(series, `gateway_queue_messages_total{action="received",queue="work"} 1`) &&
			strings.Contains(series, `gateway_deliveries_total{handler="billing",result="completed"} 2`) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the metrics are not of both configurations:\n%s", series)
		}
	}
}

// TestProgramEndsWhatItBegan: a delivery under way continues to its end under its
// configuration, and is settled once. New deliveries use the new configuration.
func TestProgramEndsWhatItBegan(t *testing.T) {
	type hit struct {
		body    string
		proceed chan struct{}
	}
	hits := make(chan hit)
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := hit{string(body), make(chan struct{})}
		hits <- h
		<-h.proceed
	}))
	defer r.Close()
	with := func(tag string) string {
		return "server: {allow_private_urls: true}\nworker: {max_concurrency: 1}\nsources: {shop: {type: event}}\n" +
			"handlers: {billing: {source: shop, url: '" + r.URL + "', transform: '\"" + tag + "\"'}}\n"
	}
	p := newProgram(t, with("a")).start()
	for range 3 {
		post(t, p.url+"/events/shop/order", "{}")
	}
	first := <-hits
	p.mustReload(with("b"))
	second := <-hits
	if first.body != `"a"` || second.body != `"b"` {
		t.Errorf("deliveries %s and %s, want that of a to go on and b to begin", first.body, second.body)
	}

	// A third configuration waits until the first generation has ended. If several wait, only
	// the newest is applied.
	results := make(chan core.ReloadResult, 2)
	go func() { results <- p.reload(with("c")) }()
	go func() { // comes second; if it is first, it waits all the same
		results <- p.reload(with("d"))
	}()
	select {
	case r := <-results:
		if r != "" {
			t.Errorf("reload: %q while two generations are there", r)
		}
	case <-time.After(50 * time.Millisecond):
	}
	close(first.proceed)
	close(second.proceed)
	third := <-hits
	close(third.proceed)
	var got []core.ReloadResult
	for len(results) > 0 || len(got) < 2 {
		select {
		case r := <-results:
			got = append(got, r)
		case <-time.After(10 * time.Second):
			t.Fatalf("results %q, want two", got)
		}
	}
	if slices.Sort(got); !slices.Equal(got, []core.ReloadResult{"", core.ReloadApplied}) {
		t.Errorf("results %q, want that of the newest alone", got)
	}
	p.settled(3)
}

// settled waits until n jobs are completed, each at its first attempt.
func (p *program) settled(n int) {
	p.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		jobs, err := p.store.Jobs(context.Background(), core.JobFilter{})
		if err != nil {
			p.t.Fatal(err)
		}
		done := 0
		for _, j := range jobs.Items {
			if j.Status == core.Completed && j.Attempt == 1 {
				done++
			}
		}
		if done == n && len(jobs.Items) == n {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("jobs %+v, want %d completed at their first attempt", jobs.Items, n)
		}
	}
}

// TestProgramHurries: a delivery that hangs delays a newer configuration by the drain time
// and no longer.
func TestProgramHurries(t *testing.T) {
	hung := make(chan struct{})
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
		hung <- struct{}{}
		<-r.Context().Done()
	}))
	defer r.Close()
	with := func(body int) string {
		return fmt.Sprintf("server: {allow_private_urls: true, max_body_size: %d}\nworker: {drain_timeout_secs: 1}\nsources: {shop: {type: event}}\n"+
			"handlers: {billing: {source: shop, url: '%s', timeout: 1h}}\n", body, r.URL)
	}
	p := newProgram(t, with(10)).start()
	post(t, p.url+"/events/shop/order", "{}")
	<-hung
	p.mustReload(with(11))
	if got := p.log.take(); strings.Contains(got, "waits") {
		t.Errorf("the first change waits for nothing:\n%s", got)
	}
	p.mustReload(with(12)) // would take an hour
	want := `"msg":"configuration waits for deliveries under an earlier one to end","target":"config","from":"gateway.yaml","deliveries":1,"at_most":"1s"}`
	if got := p.log.take(); strings.Count(got, want) != 1 {
		t.Errorf("the log does not say once what the change waits for:\n%s", got)
	}
	if got := p.reload(with(13)); got != core.ReloadApplied {
		t.Errorf("reload: %q", got)
	}
}

// TestProgramFollowsAtOnce: if a configuration need not wait, the log does not say that it
// waits.
func TestProgramFollowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, "sources: {shop: {type: event}}\n")
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- p.Serve(ctx, silent(make(chan struct{}))) }()
		for i := range 20 {
			p.mustReload(fmt.Sprintf("server: {max_body_size: %d}\nsources: {shop: {type: event}}\n", 1000+i))
		}
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
		if got := p.log.take(); strings.Contains(got, "waits") || strings.Count(got, "applied") != 20 {
			t.Errorf("nothing was under way:\n%s", got)
		}
	})
}

// takes returns how often the store was asked for jobs.
func (p *program) takes() string {
	_, count, _ := strings.Cut(p.ask("GET /metrics", "").Body.String(), `gateway_store_duration_seconds_count{op="take"} `)
	count, _, _ = strings.Cut(count, "\n")
	return count
}

// TestProgramAnswersConsumers: a reload answers the consumers that wait for messages, and no
// message is lost.
func TestProgramAnswersConsumers(t *testing.T) {
	with := func(timeout int) string {
		return fmt.Sprintf("sources: {shop: {type: event}}\nqueues: {work: {source: shop, visibility_timeout: %ds}}\n", timeout)
	}
	p := newProgram(t, with(30)).start()
	for i := range 5 {
		answered, before := make(chan string), p.takes()
		go func() {
			_, body := call(t, "GET", p.url+"/api/queues/work/messages?wait=30s", "", "")
			answered <- body
		}()
		for deadline := time.Now().Add(10 * time.Second); p.takes() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nobody asks for messages")
			}
		}
		began := time.Now()
		p.mustReload(with(31 + i))
		if body := <-answered; !strings.Contains(body, `"messages":[]`) || time.Since(began) > 20*time.Second {
			t.Errorf("a consumer that waited got %s after %v, want no messages at once", body, time.Since(began))
		}
	}
}

// TestProgramKeepsBreakersAndRates: a reload keeps open breakers, and the request counts of
// clients.
func TestProgramKeepsBreakersAndRates(t *testing.T) {
	url, got := receiver(t, 500)
	with := func(n int) string {
		return fmt.Sprintf("server: {allow_private_urls: true, ip_rate_limit: 2, max_body_size: %d}\ndelivery: {default_retry: {interval: 1ms, max: 100}}\n"+
			"sources: {shop: {type: event}}\nhandlers: {billing: {source: shop, url: '%s'}}\n", n, url)
	}
	p := newProgram(t, with(10)).start()
	post(t, p.url+"/events/shop/order", "{}")
	for range core.BreakerThreshold {
		next(t, got)
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(p.log.take(), "circuit breaker is open"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the breaker does not open")
		}
	}
	refused := 0
	for i := range 40 {
		if i%2 == 0 {
			p.mustReload(with(11 + i))
		}
		if resp := post(t, p.url+"/events/shop/order", "{}"); resp.StatusCode == 429 {
			refused++
		}
	}
	if refused == 0 { // a new limiter for each configuration would let two pass each time
		t.Error("40 requests in a moment, two a second are allowed, and none was refused")
	}
	select {
	case d := <-got:
		t.Errorf("delivery %+v while the breaker is open", d)
	default:
	}
	if jobs, err := p.store.Jobs(t.Context(), core.JobFilter{Status: core.Running}); err != nil || len(jobs.Items) > 0 {
		t.Errorf("running jobs %+v, %v, want none", jobs.Items, err)
	}
}

// TestProgramNamesInOrder: ids only grow, in all parts of a process and across reloads, even
// within a millisecond.
func TestProgramNamesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(n int) string {
			return fmt.Sprintf("server: {max_body_size: %d}\nsources: {shop: {type: event}}\nqueues: {work: {source: shop}}\n", n)
		}
		p, last := newProgram(t, with(1000)), ""
		later := func(id string) {
			if id <= last {
				t.Errorf("id %q after %q, want it above", id, last)
			}
			last = id
		}
		for i := range 20 {
			p.mustReload(with(1001 + i))
			event := p.ask("POST /events/shop/order", "{}").Header().Get("X-Gateway-Event-Id")
			later(event)
			p.ask("POST /api/events/"+event+"/replay", "")
			jobs, err := p.store.JobsOf(t.Context(), []core.ID{core.ID(event)})
			if err != nil || len(jobs[core.ID(event)]) != 2 {
				t.Fatalf("JobsOf = %v, %v, want the event's job and that of its replay", jobs, err)
			}
			for _, j := range jobs[core.ID(event)] {
				later(string(j.ID))
			}
		}
	})
}

// TestProgramFiresOnce: each slot of a schedule causes one event, however often the
// configuration changes.
func TestProgramFiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(n int) string {
			return fmt.Sprintf("server: {max_body_size: %d}\nsources: {tick: {type: cron, schedule: '* * * * * *'}, tock: {type: cron, schedule: '*/2 * * * * *'}, n%d: {type: event}}\n"+
				"queues: {work: {source: tick, visibility_timeout: %ds}}\n", n, n, n)
		}
		p := newProgram(t, with(1))
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- p.Serve(ctx, silent(make(chan struct{}))) }()
		time.Sleep(100 * time.Millisecond) // the marks are set by now
		began := time.Now()
		for i := range 300 {
			if i%3 == 0 {
				p.reload("sources: 1")
			} else {
				p.mustReload(with(i + 2))
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second / 2)
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		p.checkSlots("tick", began, time.Second, 30)
		p.checkSlots("tock", began, 2*time.Second, 15)
	})
}

// silent is a listener without connections.
type silent chan struct{}

func (s silent) Accept() (net.Conn, error) { <-s; return nil, net.ErrClosed }
func (s silent) Close() error              { close(s); return nil }
func (silent) Addr() net.Addr              { return &net.TCPAddr{} }

// checkSlots checks that there is one event for each slot.
func (p *program) checkSlots(source string, from time.Time, every time.Duration, n int) {
	p.t.Helper()
	page, err := p.store.Events(context.Background(), core.EventFilter{Source: source, Limit: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	var slots, want []string
	for _, e := range slices.Backward(page.Items) {
		e, err := p.store.Event(context.Background(), e.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		slots = append(slots, e.DeliveryID)
	}
	for i := range n {
		want = append(want, fmt.Sprint(from.Truncate(every).Add(time.Duration(i+1)*every).Unix()))
	}
	if diff := cmp.Diff(want, slots); diff != "" {
		p.t.Errorf("slots of %s (-want +got):\n%s", source, diff)
	}
}
