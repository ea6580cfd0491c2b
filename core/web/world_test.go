package web_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/core/verify"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
)

func TestMain(m *testing.M) {
	// net/http lingers for 500 ms when it closes a connection with unread input.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// A world is a gateway with the real routes and intake, and with a store in memory. Its sources:
//
//	app, shop  internal events
//	plain      webhooks without a signature
//	github     webhooks signed with "It's a Secret to Everybody"
//	broken     webhooks whose verifier does not work
//	office     webhooks from 192.0.2.0/24
//	grid       webhooks, whose senders may be eventgrid.azure.net and Other.example
//	bus        internal events, whose senders may have any name
//	slack      webhooks in the format of Slack, without a signature
//	orders     webhooks with an integer "id"
//	topic      notifications of any sender
//	genuine    notifications of Amazon, whose certificates cannot be loaded
//
// One handler takes every event of each source. The queues are kept by counter, the workflow runs
// by clerk, and the events and jobs by archivist.
type world struct {
	t        *testing.T
	settings web.Settings
	tokens   []web.Token
	metrics  http.Handler
	store    *store
	counter  *counter
	clerk    *clerk
	archive  *archivist
	log      *logbook
	echoed   chan web.Echoed
	ignored  *web.IgnoredConfig
	maxReply int
}

func newWorld(t *testing.T, settings ...string) *world {
	w := &world{
		t:        t,
		settings: web.Settings{MaxBodySize: 1 << 20, MaxInbound: 100},
		store:    &store{seen: map[string]core.ID{}},
		log:      &logbook{},
		echoed:   make(chan web.Echoed, 10),
	}
	w.counter, w.clerk, w.archive = &counter{store: w.store}, &clerk{store: w.store}, &archivist{store: w.store}
	for _, s := range settings {
		w.set(s)
	}
	return w
}

// set applies a setting as transcripts write them: "name value".
func (w *world) set(setting string) {
	name, value, _ := strings.Cut(setting, " ")
	number, _ := strconv.Atoi(value)
	switch name {
	case "":
	case "max_body_size":
		w.settings.MaxBodySize = int64(number)
	case "max_inbound":
		w.settings.MaxInbound = number
	case "ip_rate_limit":
		w.settings.IPRateLimit = number
	case "trust_proxy":
		w.settings.Clients.TrustProxy = true
	case "auth_token":
		for text := range strings.SplitSeq(value, ",") {
			w.tokens = append(w.tokens, web.Token{Text: text, Role: core.RoleAdmin})
		}
	case "token": // name role text
		parts := strings.Fields(value)
		w.tokens = append(w.tokens, web.Token{Name: parts[0], Role: core.Role(parts[1]), Text: parts[2]})
	case "config": // invalid, forbidden, unreachable
		w.ignored = &web.IgnoredConfig{Why: core.ReloadResult(value), Since: time.Date(2026, 11, 20, 12, 0, 0, 7e6, time.UTC)}
	case "export": // breaks
		w.archive.breaks = true
	case "store": // works, full, unavailable, broken, late, panics
		w.store.state = value
	default:
		w.t.Fatalf("unknown setting %q", setting)
	}
}

func (w *world) handler() http.Handler {
	w.settings.Log = slog.New(slog.NewTextHandler(w.log, nil))
	if w.settings.Served == nil {
		w.settings.Served = func(string, string, int) {}
	}
	return web.Handler(w.settings,
		web.Intake(web.IntakeOptions{Receiver: w.intake(), Tokens: w.tokens}),
		web.Ops(web.OpsOptions{Depth: w.store.Depth, Writes: w.store.Writes, Ignored: func() *web.IgnoredConfig { return w.ignored }, Metrics: w.metrics}),
		web.Queues(web.QueuesOptions{Puller: w.counter, Manager: w.counter, Tokens: w.tokens, Keys: map[string][]string{"work": nil, "locked": {"k3y", "n3w"}}, MaxReply: w.maxReply}),
		web.Callback(web.CallbackOptions{Resume: w.clerk.Resume}),
		web.Runs(web.RunsOptions{Manager: w.clerk, Tokens: w.tokens}),
		web.Events(web.EventsOptions{Manager: w.archive, Tokens: w.tokens}),
		web.Jobs(web.JobsOptions{Manager: registrar{w.archive}, Tokens: w.tokens}),
		web.Schedules(web.SchedulesOptions{Fire: w.archive.Fire, Tokens: w.tokens}),
		web.Breakers(web.BreakersOptions{Reset: w.archive.Reset, Tokens: w.tokens}),
		web.Lines(web.LinesOptions{Manager: liner{w.archive}, Tokens: w.tokens}),
		web.Operations(web.OperationsOptions{Manager: bulk{w.archive}, Tokens: w.tokens}),
		web.Holds(web.HoldsOptions{Manager: holder{w.archive}, Tokens: w.tokens}),
		web.Audit(web.AuditOptions{List: auditor{w.archive}.List, Tokens: w.tokens}),
		web.Overview(web.OverviewOptions{Stats: w.archive.Stats, Curves: w.archive.Curves, Topology: configured, Look: w.archive.Look, Rules: rules, Loaded: noon, LastReload: w.archive.LastReload, Tokens: w.tokens}),
		web.Echo(func(e web.Echoed) { w.echoed <- e }))
}

func (w *world) intake() *intake.Intake {
	sources := []intake.Source{
		{Name: "app", Kind: intake.Event},
		{Name: "shop", Kind: intake.Event},
		{Name: "plain", Kind: intake.Webhook},
		{Name: "github", Kind: intake.Webhook, Provider: "github", Verify: signed("It's a Secret to Everybody")},
		{Name: "broken", Kind: intake.Webhook, Verify: func(intake.Request) error { return errors.New("no key") }},
		{Name: "slack", Kind: intake.Webhook, Provider: "slack"},
		{Name: "orders", Kind: intake.Webhook, Schema: w.schema(`{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}`)},
		{Name: "topic", Kind: intake.Topic, Topic: sns.NewTopic(sns.Options{SkipVerify: true, Fetch: fetch})},
		{Name: "genuine", Kind: intake.Topic, Topic: sns.NewTopic(sns.Options{
			Certificates: sns.NewCertificates(fetch, core.SystemClock), Fetch: fetch,
		})},
		{Name: "office", Kind: intake.Webhook, Allowed: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Origins: []string{"*"}},
		{Name: "grid", Kind: intake.Webhook, Origins: []string{"eventgrid.azure.net", "Other.example"}},
		{Name: "bus", Kind: intake.Event, Origins: []string{"a.example", "*"}},
	}
	var consumers []intake.Consumer
	for _, s := range sources {
		consumers = append(consumers, intake.Consumer{Lane: "handler/all", Source: s.Name, MaxAttempts: 5})
	}
	return intake.New(intake.Deps{
		Inbox: w.store, IDs: core.NewIDs(core.SystemClock), Clock: core.SystemClock,
		Sources: sources, Consumers: consumers,
	})
}

// fetch finds an empty document at every URL, except certificates and URLs with "away".
func fetch(_ context.Context, url string, _ int64) (int, []byte, error) {
	if strings.Contains(url, "away") || strings.Contains(url, ".pem") {
		return 0, nil, errors.New("connection refused")
	}
	return http.StatusOK, nil, nil
}

func (w *world) schema(text string) *expr.Schema {
	s, err := expr.ParseSchema([]byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// serve starts the gateway and returns its address.
func (w *world) serve(adjust ...func(*http.Server)) string {
	return serveHandler(w.t, w.handler(), adjust...)
}

func serveHandler(t *testing.T, h http.Handler, adjust ...func(*http.Server)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := web.NewServer(h, slog.New(slog.DiscardHandler))
	for _, f := range adjust {
		f(server)
	}
	served := make(chan error)
	go func() { served <- server.Serve(web.Limit(l, web.Crowd{Most: 64, Each: 64})) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve = %v", err)
		}
	})
	return l.Addr().String()
}

// signed is the verification of GitHub.
func signed(secret string) func(intake.Request) error {
	scheme, err := verify.New("github", verify.Options{Secrets: []string{secret}})
	if err != nil {
		panic(err)
	}
	return func(r intake.Request) error {
		return scheme.Verify(verify.Request{Header: http.Header(r.Header).Values, Body: r.Body}, r.At)
	}
}

// store accepts events in memory under ids it counts, as its state lets it.
type store struct {
	state string
	hold  chan struct{} // if set, Accept waits until it is closed
	held  chan struct{} // gets a value for every Accept that waits

	asked func() // if set, called by every query

	mu     sync.Mutex
	seen   map[string]core.ID
	events []core.Event
}

func (s *store) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if s.hold != nil {
		s.held <- struct{}{}
		<-s.hold
	}
	if err := s.moody(ctx); err != nil {
		return core.Receipt{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := a.Event.Source + " " + a.Event.DeliveryID
	if first, ok := s.seen[key]; ok {
		return core.Receipt{EventID: first, Duplicate: true}, nil
	}
	s.events = append(s.events, a.Event)
	id := core.ID(fmt.Sprintf("01J%023d", len(s.events)))
	if a.Event.DeliveryID != "" {
		s.seen[key] = id
	}
	return core.Receipt{EventID: id, Jobs: len(a.Jobs)}, nil
}

func (s *store) Depth(ctx context.Context) (int, error) { return 3, s.moody(ctx) }

func (s *store) Writes(context.Context) error {
	if s.state == "full" {
		return errors.New("no space left on device")
	}
	return nil
}

func (s *store) moody(ctx context.Context) error {
	if s.asked != nil {
		s.asked()
	}
	switch s.state {
	case "unavailable":
		return core.Untouched(&core.Refusal{Kind: core.Unavailable, Message: "database unreachable", Cause: errors.New("dial tcp: refused")})
	case "broken":
		return errors.New(`syntax error at "INSERT"`)
	case "late":
		<-ctx.Done()
		return ctx.Err()
	case "panics":
		panic("store: out of cheese")
	}
	return nil
}

// logbook collects the lines of the log.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (s *store) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := s.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// configured returns an example of a world's configuration.
func configured() wire.Topology {
	return wire.Topology{
		Sources: []wire.ConfiguredSource{
			{Name: "github", Type: "webhook", Path: "/webhooks/github", Verify: "github"},
			{Name: "nightly", Type: "cron", Schedule: "0 3 * * *", Timezone: "Europe/Berlin", Next: []wire.Time{{Time: time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)}}},
		},
		Consumers: []wire.ConfiguredConsumer{
			{Name: "billing", Kind: "handler", Source: "github", Events: []string{"push"}, Filter: "$.total > 10", Delay: 1.5, Lines: &wire.Lined{Key: "$.id", Limit: 1, OnDead: "hold"},
				Attempts: 5, URL: "https://billing.example.com/hooks", Protocol: "http", Method: "POST", Transform: true, RateLimit: 20},
			{Name: "queue/work", Kind: "queue", Source: "github", Events: []string{}, IdempotencyKey: "$.id", VisibilityTimeout: 30},
			{Name: "workflow/fulfil-order", Kind: "workflow", Source: "nightly", Events: []string{}, Steps: []string{"reserve"}},
		},
		Alerts: []wire.ConfiguredAlert{{Name: "1", Host: "hooks.example.com", Type: "generic", On: []string{"dlq"}}},
	}
}

// rules are the rules of the configuration that the world serves.
func rules() config.Rules {
	return config.Rules{Text: "sources:\n    shop:\n        type: event\n", Definitions: map[string]string{"fulfil": "9f86d081"}}
}
