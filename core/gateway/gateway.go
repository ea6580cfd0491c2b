// Package gateway assembles the services into a program: it converts a configuration into
// the settings of each package, and serves. It is the only package under core that knows
// them all. Mains add a store and an environment.
//
// The idea to know: everything is built from one immutable configuration before anything
// starts, so that faults show before the first event is accepted. A changed configuration
// is another [Gateway]. A [Program] builds it beside the serving one, and then swaps one
// pointer. The earlier gateway finishes the work that it has begun.
//
// assemble.go converts, routes.go makes the routes, serve.go runs and stops, program.go
// changes from one configuration to the next, generation.go runs one of them, function.go
// assembles parts.
package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/alert"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/cron"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/lines"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/core/retention"
	"github.com/eventgateway/gateway/core/runner"
	"github.com/eventgateway/gateway/core/series"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/eventgateway/gateway/core/worker"
)

// Deps are the dependencies of a gateway beside its configuration.
type Deps struct {
	Store   core.Store
	Clock   core.Clock // of the database: stored times are compared with it
	Log     *slog.Logger
	Version string

	// Machine is the clock of this machine. Signatures and certificates are verified, and
	// deliveries signed, by it. Nil means Clock.
	Machine core.Clock

	// Ahead is how far Clock is ahead of Machine. Nil means that they are the same.
	Ahead func() time.Duration

	// Database names the database of the Store for commands that work beside this process.
	Database wire.Database

	// SoleTaker says that no other process takes jobs from this store. Then jobs that are
	// running at the start have no worker. It holds for SQLite.
	SoleTaker bool

	// Rest is the mean wait of the worker between two looks, when nothing wakes it and no job
	// is known to be due. Each wait is up to a quarter shorter or longer. An event that another
	// process stored may be delivered so much later. Rest is also for how long the answer to a
	// health check is used. Zero means DefaultRest.
	Rest time.Duration

	// MaxReply bounds replies with messages; see web.QueuesOptions.
	MaxReply int

	// Traces makes spans of events. Nil makes none: the sender's trace is stored and passed
	// on.
	Traces Tracer

	// Metrics measures the gateway, and is served at /metrics. Nil measures nothing, and
	// there is no such route.
	Metrics Metrics

	// Manual returns the chapters of the manual for the console; see web.ConsoleOptions. Nil
	// means that the console has none.
	Manual func() []byte
}

// A Tracer makes spans from facts.
type Tracer interface {
	// Begin makes the span of the intake of an event. Its parent is the span that the
	// sender named. It begins a new trace if parent is zero.
	Begin(parent core.Span) core.Span

	// Observe is a core.Observer.
	Observe(core.Fact)
}

// DefaultRest suits a database for which idle queries cost nothing.
const DefaultRest = time.Second

// A Gateway is the assembled program, or a [Part] of it. Services outside of the part are
// nil.
type Gateway struct {
	Deps
	// The services, as mains and functions use them.
	Intake     *intake.Intake
	Worker     *worker.Worker
	Cron       *cron.Ticker // nil if there are no schedules
	Purger     *retention.Purger
	Filler     *lines.Filler
	Alerts     *alert.Desk   // nil if no place wants alerts; nil is safe to use
	Health     *alert.Health // the same, and for the parts without it
	Puller     *pull.Puller
	Queues     *manage.Queues
	Runs       *manage.Runs
	Events     *manage.Events
	Jobs       *manage.Jobs
	Breakers   *manage.Breakers
	Holds      *manage.Holds
	Operations *manage.Operations
	Schedules  *manage.Schedules
	Lines      *manage.Lines
	Stats      *manage.Statistics
	Series     *manage.Series
	Minutes    *series.Writer // stores the counts of this process
	Census     *series.Census // counts stored events; only functions use it
	// The parts that the services share. A gateway never changes them after it was assembled.
	runner     *runner.Runner
	obituaries *alert.Obituaries
	client     *egress.Client
	observe    core.Observer
	handler    http.Handler
	clients    web.Clients
	drain      time.Duration
	vitals     *vitals
	config     *config.Config
	loaded     time.Time // when it was assembled of its configuration
	shared     *shared

	draining  chan struct{} // closed when stopped work must end within the drain time
	drainOnce sync.Once
}

// New assembles a gateway. The configuration must have been loaded.
func New(c *config.Config, d Deps) (*Gateway, error) {
	g, err := newGateway(c, d, newShared())
	if err != nil {
		return nil, err
	}
	g.startDrain() // no other gateway replaces it
	g.shared.watch(g.Deps, g.Stats.Lanes, g.Worker.Sending)
	return g, nil
}

// newGateway assembles a gateway that shares state with earlier ones.
func newGateway(c *config.Config, d Deps, s *shared) (*Gateway, error) {
	return newPart(c, d, s, everything)
}

// newPart assembles the state of all gateways, and a part of the rest.
func newPart(c *config.Config, d Deps, s *shared, part Part) (*Gateway, error) {
	// The store gets two wrappers. The metrics are the inner one and measure the calls to the
	// database. The vitals are the outer one and record the results that the services get.
	d.Rest = cmp.Or(d.Rest, DefaultRest)
	if d.Machine == nil {
		d.Machine = d.Clock
	}
	if d.Metrics != nil {
		d.Store = d.Metrics.Store(d.Store)
	}
	watched := &vitals{d.Store, s.pulses, d.Rest}
	d.Store = watched
	g := &Gateway{
		Deps:     d,
		vitals:   watched,
		observe:  observer(d, shown(c), s),
		drain:    time.Duration(c.Worker.DrainTimeoutSecs) * time.Second,
		clients:  web.Clients{TrustProxy: c.Server.TrustProxy, Proxies: prefixes(c.Server.TrustedProxies)},
		config:   c,
		loaded:   d.Clock(),
		shared:   s,
		draining: make(chan struct{}),
	}
	g.client = egress.New(egress.Options{
		AllowPrivate: c.Server.AllowPrivateURLs,
		Concurrency:  c.Worker.MaxConcurrency,
		Version:      g.Version,
		Traced:       g.Traces != nil,
		Clock:        g.Machine,
	})
	// Alerts and obituaries come first, since the other services report to them.
	g.Alerts = g.newAlerts(c, s.bell)
	observe := g.observe
	g.observe = func(f core.Fact) {
		observe(f)
		g.Health.Noticed(f)
		if _, ended := f.(core.OperationEnded); ended {
			g.changed()
		}
	}
	g.obituaries = alert.NewObituaries(g.ids(), c.Delivery.DefaultRetry.Max, places(c))
	var err error
	// The part is assembled last. If it fails, its listeners must go, or the bell would keep them
	// for as long as the process runs.
	if g.runner, err = g.newRunner(c, s.bell, g.obituaries.OfRun); err == nil {
		err = part(g)
	}
	if err != nil {
		g.closeListeners()
		return nil, fmt.Errorf("configuration: %w", err)
	}
	g.expect()
	return g, nil
}

// observer returns an observer that passes facts to all observers, with places of alerts as
// they are shown.
func observer(d Deps, places core.Places, s *shared) core.Observer {
	all := []core.Observer{telemetry.Log(d.Log), func(f core.Fact) { s.minutes.Observe(f) }}
	if d.Traces != nil {
		all = append(all, d.Traces.Observe)
	}
	if d.Metrics != nil {
		all = append(all, d.Metrics.Observe)
	}
	// The lane of an alert is a hash of its URL. Operators see a place's number and host instead.
	return func(f core.Fact) {
		f = places.Fact(f)
		for _, observe := range all {
			observe(f)
		}
	}
}

// changed says that an operator's change was made, so that the next answers show it.
func (g *Gateway) changed() {
	if g.Jobs != nil {
		g.Jobs.Forget()
	}
	if g.Stats != nil {
		g.Stats.Forget()
	}
}

// Handler returns the handler of everything that the gateway serves over HTTP.
func (g *Gateway) Handler() http.Handler { return g.handler }

// newIntake makes the intake. It is the only service that gets the configured consumers, so
// every door leads to the same jobs.
func (g *Gateway) newIntake(c *config.Config, bell *core.Bell) (*intake.Intake, error) {
	known, err := g.sources(c)
	if err != nil {
		return nil, err
	}
	consumers, err := Consumers(c)
	if err != nil {
		return nil, err
	}
	var trace func(core.Span) core.Span
	if g.Traces != nil {
		trace = g.Traces.Begin
	}
	return intake.New(intake.Deps{
		Inbox:     g.shared.express.Inbox(g.Store),
		Events:    g.Store,
		IDs:       g.ids(),
		Clock:     g.Clock,
		Bell:      bell,
		Observe:   g.observe,
		Trace:     trace,
		Alarm:     g.Alerts.Unverified,
		Log:       g.Log.With(telemetry.Target, "intake"),
		Sources:   known,
		Consumers: consumers,
	}), nil
}

// newAlerts makes the desk that raises alerts. It is nil if no place wants any.
func (g *Gateway) newAlerts(c *config.Config, bell *core.Bell) *alert.Desk {
	return alert.New(alert.Deps{
		Inbox:       g.Store,
		IDs:         g.ids(),
		Clock:       g.Clock,
		Bell:        bell,
		Observe:     g.observe,
		MaxAttempts: c.Delivery.DefaultRetry.Max,
		Places:      places(c),
		Tallies:     g.shared.tallies,
	})
}

// An obituary makes the alert about a job that died.
type obituary = func(core.TakenJob, core.Outcome) *core.Arrival

// newWorker makes the worker of all lanes except those of queues: handlers, the places of alerts,
// and workflows.
func (g *Gateway) newWorker(c *config.Config, bell *core.Bell, obituary obituary) (*worker.Worker, error) {
	known, err := targets(c, g.client)
	if err != nil {
		return nil, err
	}
	alerts, err := alertTargets(c, g.client)
	if err != nil {
		return nil, err
	}
	// One worker has all of them, so that they share worker.max_concurrency.
	known = append(append(known, alerts...), workflowTargets(c, g.runner)...)
	operations, err := g.operationTarget(c, bell)
	if err != nil {
		return nil, err
	}
	// The same limits hold for each generation, so two of them may use twice the slots.
	limits := worker.Limits{Slots: c.Worker.MaxConcurrency, Batch: c.Worker.BatchSize, Drain: g.drain}
	return worker.New(worker.Deps{
		Worklist:   g.Store,
		Express:    &g.shared.express,
		Bell:       bell,
		Clock:      g.Clock,
		Observe:    g.observe,
		Obituary:   obituary,
		Adopt:      adopter(c, g.runner, operations),
		Queues:     queueLanes(c),
		QueueLines: queueRules(c),
		Draining:   g.draining,
	}, limits, known), nil
}

// newCron makes the service of schedules; nil if there are none. Its events go through the intake
// like those of senders, so they have jobs, duplicates and metrics in the same way.
func (g *Gateway) newCron(c *config.Config) *cron.Ticker {
	known := cronSources(c)
	if len(known) == 0 {
		return nil
	}
	return cron.New(cron.Deps{
		Calendar: g.Store,
		Holding:  g.Store.Holding,
		Clock:    g.Clock,
		Observe:  g.observe,
		Fire: func(ctx context.Context, source string, slot time.Time) error {
			return g.Intake.Fire(ctx, source, slot)
		},
	}, known)
}
