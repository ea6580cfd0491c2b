package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/telemetry"
)

// patience bounds the wait of a scrape for the statistics. After it the scrape has all other
// metrics, without those of lanes.
const patience = 2 * time.Second

// Watch adds the gauges that are read at each scrape: the states of the lanes from stats (see
// [manage.Statistics.Lanes]), the number of attempts under way from sending, and from ahead how
// far the database's clock is ahead of this machine's. The caller calls it once.
func (m *Metrics) Watch(stats func(context.Context) (manage.Stats, error), sending func() int, ahead func() time.Duration) {
	m.registry.MustRegister(&lanes{
		ask:    stats,
		depth:  description("queue_depth", "Messages of a queue that are visible or in flight, up to 100,000 of each.", "queue"),
		jobs:   description("jobs", "Jobs that are not completed, by the kind of their consumer, up to 100,000 of each consumer.", "kind", "status"),
		oldest: description("oldest_due_seconds", "For how long the job that is due longest is due; 0 if none is.", "target"),
		held:   description("held_seconds", "For how long an operator has held the target; 0 if it is not held.", "target"),
		stops:  description("lines_stopped", "Lines that are stopped by dead jobs, which wait for an operator.", "target"),
		open:   description("circuit_breaker_open", "1 if the circuit breaker of a handler is open.", "handler"),
	}, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: prefix, Name: "inflight_deliveries", Help: "Attempts under way in this process: of deliveries, alerts and steps.",
	}, func() float64 { return float64(sending()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: prefix, Name: "clock_offset_seconds", Help: "How far the database's clock is ahead of this machine's; 0 for a SQLite file.",
	}, func() float64 { return ahead().Seconds() }))
}

// Clients adds gauges, which call the functions at each scrape, and a counter of the requests
// that met a limit, by the names of the limits. The caller calls it once, before Refused.
func (m *Metrics) Clients(unread, polls func() int, reasons []string) {
	gauge := func(name, help string, ask func() int) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: prefix, Name: name, Help: help},
			func() float64 { return float64(ask()) }))
	}
	gauge("unread_reply_bytes", "Bytes of replies that are being made, or wait for their clients to read them.", unread)
	gauge("waiting_polls", "Requests for messages of queues that are being served; most of them wait.", polls)
	family := factory{m.registry}.counter("requests_refused_total", "Requests that were refused because of others, by the limit that they met, or because of the role of their token.", "reason")
	m.refusals.Store(new(wording(family, append(reasons[:len(reasons):len(reasons)], telemetry.Other))))
}

// Refused counts a request that met a limit, or whose token lacks the role of its route.
func (m *Metrics) Refused(reason string) {
	if all := m.refusals.Load(); all != nil {
		all.count(reason)
	}
}

// description returns the description of a metric family of the gateway.
func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(prefix, "", name), help, labels, nil)
}

// lanes collects the states of the lanes. If the statistics fail, the scrape has no numbers of
// lanes instead of wrong ones. The error itself is counted by [Metrics.Store].
type lanes struct {
	ask                                    func(context.Context) (manage.Stats, error)
	depth, jobs, oldest, held, stops, open *prometheus.Desc
}

// Describe sends the descriptions of the families.
func (l *lanes) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.depth, l.jobs, l.oldest, l.held, l.stops, l.open} {
		to <- d
	}
}

// Collect reads the statistics and sends the numbers of all lanes.
func (l *lanes) Collect(to chan<- prometheus.Metric) {
	// Prometheus' library passes no context. The bound keeps a scrape below the usual 10 s.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stats, err := l.ask(ctx)
	if err != nil {
		return
	}
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, s := range stats.Lanes {
		l.collect(send, stats.At, s)
	}
	for _, s := range stats.Sources {
		send(l.held, heldFor(s.Gate, stats.At).Seconds(), core.SourceLane(s.Name).Consumer())
	}
	// Jobs are added up by kind, since a series for each lane and status would be five for each
	// handler.
	for kind, count := range byKind(stats.Lanes) {
		for status, n := range count {
			send(l.jobs, float64(n), kind, string(status))
		}
	}
}

// collect sends the numbers of one lane.
func (l *lanes) collect(send func(*prometheus.Desc, float64, ...string), now time.Time, s manage.LaneStats) {
	due := time.Duration(0)
	if !s.OldestDue.IsZero() {
		due = max(now.Sub(s.OldestDue), 0)
	}
	send(l.oldest, due.Seconds(), s.Lane.Consumer())
	send(l.held, heldFor(s.Gate, now).Seconds(), s.Lane.Consumer())
	switch kindOf(s.Lane) {
	case ofQueue:
		send(l.stops, float64(s.Stopped), s.Lane.Consumer())
		send(l.depth, float64(s.Pending+s.Processing), s.Lane.Queue())
	case ofHandler:
		send(l.stops, float64(s.Stopped), s.Lane.Consumer())
		isOpen := 0.0
		if s.Gate.Open() {
			isOpen = 1
		}
		send(l.open, isOpen, s.Lane.Handler())
	}
}

// heldFor returns for how long a gate has been held; 0 if it is not held.
func heldFor(g core.Gate, now time.Time) time.Duration {
	if !g.Held(now) {
		return 0
	}
	return max(now.Sub(g.HeldSince), 0)
}

// byKind adds up the jobs of all lanes of a kind, by status.
func byKind(all []manage.LaneStats) map[string]map[core.Status]int {
	count := map[string]map[core.Status]int{}
	// Each kind and status has a number, also 0, so that a graph has no gaps.
	for _, kind := range kinds {
		count[kind] = map[core.Status]int{core.Available: 0, core.Scheduled: 0, core.Waiting: 0, core.Running: 0, core.Retryable: 0, core.Dead: 0, core.Canceled: 0}
	}
	for _, s := range all {
		of := count[kindOf(s.Lane)]
		of[core.Available] += s.Available()
		of[core.Scheduled] += s.Scheduled
		of[core.Waiting] += s.Waiting
		of[core.Running] += s.Processing
		of[core.Retryable] += s.Retryable
		of[core.Dead] += s.Dead
		of[core.Canceled] += s.Canceled
	}
	return count
}
