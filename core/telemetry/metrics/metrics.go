// Package metrics measures the gateway and serves the numbers in Prometheus' text format.
//
// The one idea to know: all series of a configuration are made before the gateway follows the
// configuration. A fact, a request or a call of the store then only looks up counters in maps
// that never change. So requests from outside cannot create series, a rate starts from 0, and
// no event costs a memory allocation or the hashing of a label. Names that are not configured
// count as [telemetry.Other]. A new configuration makes new maps. Existing series go on, and
// stay until the process ends.
//
//	facts ───────────────────▶ Observe ─┐
//	requests ────────────────▶ Served ──┤
//	calls of the store ──────▶ Store ───┼─▶ registry ─▶ /metrics
//	statistics, at a scrape ─▶ Watch ───┘
//
// Where to change something: intake.go, deliveries.go, workflows.go, upkeep.go and reloads.go
// count facts, gauges.go has the values read at a scrape, http.go counts requests, and store.go
// measures the store.
//
// The package is separate from telemetry so that a build as a cloud function, which Prometheus
// cannot scrape, does not link Prometheus. metrics imports core, core/telemetry, core/manage
// (for the statistics) and github.com/prometheus/client_golang.
package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

// maxScrapes bounds the scrapes that are answered at once. More scrapes wait for their turn.
const maxScrapes = 8

// Options are the settings of [New].
type Options struct {
	Names telemetry.Names

	Version, Revision, Go string // of this build, for the labels of build_info

	Log *slog.Logger // for scrapes that failed; nil logs nothing
}

// Metrics are all measurements of a process. They are safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	exposition http.Handler

	facts    atomic.Pointer[facts]
	reloads  reloads
	purges   purges
	requests *requests
	closed   words // connections
	ended    operations
	store    *ops
	refusals atomic.Pointer[words] // nil before Clients

	mu    sync.Mutex
	names telemetry.Names // of the newest configuration
}

// facts holds the counters that facts move and that have configured names as labels.
type facts struct {
	intake     intake
	deliveries deliveries
	queues     queues
	workflows  workflows
	schedules  schedules
}

// New makes the metrics of a process, all of them zero.
func New(o Options) *Metrics {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := prometheus.NewRegistry()
	f := factory{r}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// A join with this series adds the version to any other one.
	f.gauge("build_info", "The build that runs, in its labels; always 1.", "version", "revision", "goversion").
		WithLabelValues(o.Version, o.Revision, o.Go).Set(1)
	m := &Metrics{
		registry: r,
		exposition: inTurn(maxScrapes, promhttp.HandlerFor(r, promhttp.HandlerOpts{
			ErrorLog:          complaints{o.Log},
			ErrorHandling:     promhttp.ContinueOnError,
			EnableOpenMetrics: true,
		})),
		reloads:  newReloads(f),
		purges:   newPurges(f),
		requests: newRequests(f),
		closed:   newClosed(f),
		ended:    newOperations(f),
		store:    newOps(f),
	}
	m.Configure(o.Names)
	return m
}

// Configure makes the series of a configuration. Names of the configuration before it keep
// their series, since their deliveries may not have ended. Older names count as
// [telemetry.Other] from now on.
func (m *Metrics) Configure(n telemetry.Names) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The names of two configurations: facts about work of the old one still arrive.
	f, both := factory{m.registry}, n.And(m.names)
	m.facts.Store(&facts{
		intake:     newIntake(f, both),
		deliveries: newDeliveries(f, both),
		queues:     newQueues(f, both),
		workflows:  newWorkflows(f, both),
		schedules:  newSchedules(f, both.Schedules),
	})
	m.names = n
}

// ServeHTTP answers a scrape with all measurements.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.makeAll()
	m.exposition.ServeHTTP(w, r)
}

// Observe counts a fact. It is a [core.Observer]. Some facts move no number: only the log shows
// them.
func (m *Metrics) Observe(f core.Fact) {
	// One load for the whole fact, so that its counts belong to one configuration.
	now := m.facts.Load()
	switch f := f.(type) {
	case core.Accepted:
		now.intake.accepted(f)
	case core.Replayed:
		now.intake.count(f.Asked, len(f.Asked))
	case core.Repeated:
		now.intake.repeated(f)
	case core.FilterFailed:
		now.intake.filterFailed(f)
	case core.Unverified:
		now.intake.unverified(f)
	case core.TurnedAway:
		now.intake.turnedAway(f)
	case core.ConnectionClosed:
		m.closed.count(string(f.Why))
	case core.Settled:
		now.deliveries.settled(f)
	case core.BreakerMoved:
		now.deliveries.moved(f)
	case core.Pulled:
		now.queues.pulled(f)
	case core.StepMoved:
		now.workflows.stepMoved(f)
	case core.RunMoved:
		now.workflows.runMoved(f)
		now.deliveries.runMoved(f)
	case core.CalledIn:
		now.workflows.calledIn(f)
	case core.Skipped:
		now.schedules.passed(f)
	case core.OperationEnded:
		m.ended.over(f)
	case core.Purged:
		m.purges.purged(f)
	case core.Reloaded:
		m.reloads.reloaded(f)
	}
}

// complaints is the log in the form that Prometheus' library calls.
type complaints struct{ log *slog.Logger }

func (c complaints) Println(v ...any) {
	c.log.Error("scrape of metrics", "error", v)
}

// A factory makes and registers metric families. A family that is registered already is
// returned instead of made twice.
type factory struct{ registry *prometheus.Registry }

// prefix begins the names of all metrics of the gateway itself.
const prefix = "gateway"

// counter makes a family of counters.
func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return registered(f, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: prefix, Name: name, Help: help}, labels))
}

// gauge makes a family of gauges.
func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return registered(f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: prefix, Name: name, Help: help}, labels))
}

// seconds makes a family of histograms of durations in seconds. The buckets are upper bounds.
func (f factory) seconds(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	o := prometheus.HistogramOpts{Namespace: prefix, Name: name, Help: help, Buckets: buckets}
	return registered(f, prometheus.NewHistogramVec(o, labels))
}

// registered registers a family and returns it. If an equal family is registered already, it
// returns that one. Any other conflict is a defect of this package, and panics.
func registered[C prometheus.Collector](f factory, family C) C {
	var before prometheus.AlreadyRegisteredError
	switch err := f.registry.Register(family); {
	case errors.As(err, &before):
		return before.ExistingCollector.(C)
	case err != nil:
		panic("metrics: " + err.Error()) // the families are constants
	}
	return family
}

// known holds one value for each configured name, and one for all other names. It never
// changes.
type known[T any] struct {
	named map[string]T
	other T
}

// knowing makes a value for each name, labelled with the name.
func knowing[T any](names []string, of func(label string) T) known[T] {
	k := known[T]{named: make(map[string]T, len(names)), other: of(telemetry.Other)}
	for _, n := range names {
		k.named[n] = of(n)
	}
	return k
}

// of returns the value of a name, or the one for all other names.
func (k known[T]) of(name string) T {
	if t, ok := k.named[name]; ok {
		return t
	}
	return k.other
}

// words holds the counters of a family by the values of its last label, which are few and
// fixed.
type words map[string]prometheus.Counter

// wording makes a counter for each word. before holds the values of the labels before the last.
func wording[W ~string](family *prometheus.CounterVec, all []W, before ...string) words {
	w := make(words, len(all))
	for _, word := range all {
		w[string(word)] = family.WithLabelValues(append(before[:len(before):len(before)], string(word))...)
	}
	return w
}
