// Package metrics measures what a gateway does, and tells it to whoever collects
// measurements in the text format of Prometheus.
//
// The idea to know: every series there will ever be is made at the start, from what is
// configured. A fact, a request or a call of the store then moves numbers that it finds
// by a look into maps that never change: nobody outside can make a series, a rate
// knows its zero, and no label is hashed and no memory taken on the way of an event.
// What is not configured is counted as [telemetry.Other].
//
//	facts ───────────────────▶ Observe ─┐
//	requests ────────────────▶ Served ──┤
//	calls of the store ──────▶ Store ───┼─▶ registry ─▶ /metrics
//	statistics, at a scrape ─▶ Watch ───┘
//
// Where to change something: what facts count in intake.go, deliveries.go and
// workflows.go, what is asked at a scrape in gauges.go, requests in http.go.
//
// It is a package of its own so that a function, which nobody can scrape, does not link
// Prometheus. metrics imports core, core/telemetry, core/manage for the statistics, and
// github.com/prometheus/client_golang.
package metrics

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

// maxScrapes is how many scrapes are answered at once; more are answered with 503.
const maxScrapes = 8

// Options is what metrics are made of.
type Options struct {
	Names telemetry.Names

	Version, Revision, Go string // of this build

	Log *slog.Logger // told of scrapes that went wrong; nil logs nothing
}

// Metrics are all measurements of a process. They are safe for concurrent use, once
// every route is expected.
type Metrics struct {
	registry   *prometheus.Registry
	exposition http.Handler

	intake     intake
	deliveries deliveries
	queues     queues
	workflows  workflows
	requests   requests
	store      *ops
}

// New makes the metrics of a process, all of them zero.
func New(o Options) *Metrics {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := prometheus.NewRegistry()
	f := factory{promauto.With(r)}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f.gauge("build_info", "The build that runs, in its labels; always 1.", "version", "revision", "goversion").
		WithLabelValues(o.Version, o.Revision, o.Go).Set(1)
	return &Metrics{
		registry: r,
		exposition: promhttp.HandlerFor(r, promhttp.HandlerOpts{
			ErrorLog:            complaints{o.Log},
			ErrorHandling:       promhttp.ContinueOnError,
			MaxRequestsInFlight: maxScrapes,
			EnableOpenMetrics:   true,
		}),
		intake:     newIntake(f, o.Names),
		deliveries: newDeliveries(f, o.Names),
		queues:     newQueues(f, o.Names),
		workflows:  newWorkflows(f, o.Names),
		requests:   newRequests(f),
		store:      newOps(f),
	}
}

// ServeHTTP answers a scrape with all measurements.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.exposition.ServeHTTP(w, r) }

// Observe counts a fact; it is a [core.Observer]. Facts that count nothing are told in
// the log alone.
func (m *Metrics) Observe(f core.Fact) {
	switch f := f.(type) {
	case core.Accepted:
		m.intake.accepted(f)
	case core.Repeated:
		m.intake.repeated(f)
	case core.Unverified:
		m.intake.unverified(f)
	case core.TurnedAway:
		m.intake.turnedAway(f)
	case core.Settled:
		m.deliveries.settled(f)
	case core.BreakerMoved:
		m.deliveries.moved(f)
	case core.Pulled:
		m.queues.pulled(f)
	case core.StepMoved:
		m.workflows.stepMoved(f)
	case core.RunMoved:
		m.workflows.runMoved(f)
		m.deliveries.runMoved(f)
	case core.CalledIn:
		m.workflows.calledIn(f)
	}
}

// complaints is a log as Prometheus wants one.
type complaints struct{ log *slog.Logger }

func (c complaints) Println(v ...any) {
	c.log.Error("scrape of metrics", "error", v)
}

// A factory makes families of series, and registers them.
type factory struct{ promauto.Factory }

// prefix is before the names of all of the gateway's own.
const prefix = "gateway"

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Namespace: prefix, Name: name, Help: help}, labels)
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: prefix, Name: name, Help: help}, labels)
}

// seconds makes histograms of durations. Buckets are their upper bounds.
func (f factory) seconds(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{Namespace: prefix, Name: name, Help: help, Buckets: buckets}, labels)
}

// known is something for each name that is configured, and one for all others. It never
// changes.
type known[T any] struct {
	named map[string]T
	other T
}

// knowing makes what is known of names, each under its own label.
func knowing[T any](names []string, of func(label string) T) known[T] {
	k := known[T]{named: make(map[string]T, len(names)), other: of(telemetry.Other)}
	for _, n := range names {
		k.named[n] = of(n)
	}
	return k
}

func (k known[T]) of(name string) T {
	if t, ok := k.named[name]; ok {
		return t
	}
	return k.other
}

// words are the counters of a family by one label, whose values are few and fixed.
type words map[string]prometheus.Counter

// wording makes the counters for these words, from what stands before the label.
func wording[W ~string](family *prometheus.CounterVec, all []W, before ...string) words {
	w := make(words, len(all))
	for _, word := range all {
		w[string(word)] = family.WithLabelValues(append(before[:len(before):len(before)], string(word))...)
	}
	return w
}
