package gateway

import (
	"context"
	"net/http"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
)

// Metrics measures what a gateway does. That of core/telemetry/metrics is the one there
// is; of the functions intake has it, and the others link none.
type Metrics interface {
	http.Handler // answers /metrics

	// Observe is a core.Observer.
	Observe(core.Fact)

	// Store is the same store, measured.
	Store(core.Store) core.Store

	// Configure is told the names of a configuration that is followed from now on.
	Configure(telemetry.Names)

	// Expect is told each route before the first request to it, Served each request; see
	// web.Settings.
	Expect(method, pattern string)
	Served(pattern, method string, status int)

	// Refused is told of each request that was refused because of others, and why in a word.
	Refused(reason string)

	// Clients is told once whom to ask what the clients have, and all the words for why
	// they are refused: bytes of replies that are being made or written, and requests that
	// wait for messages.
	Clients(unread, polls func() int, reasons []string)

	// Watch is told once whom to ask when somebody collects.
	Watch(stats func(context.Context) (manage.Stats, error), sending func() int)
}

// Names is what is configured, as measurements are told apart by it.
func Names(c *config.Config) telemetry.Names {
	n := telemetry.Names{Workflows: map[string][]string{}, Alerts: map[core.Lane]string{}}
	for _, s := range c.SortedSources() {
		n.Sources = append(n.Sources, s.Name)
		if s.Type == "cron" {
			n.Schedules = append(n.Schedules, s.Name)
		}
	}
	for _, h := range c.SortedHandlers() {
		n.Handlers = append(n.Handlers, h.Name)
	}
	for _, q := range c.SortedQueues() {
		n.Queues = append(n.Queues, q.Name)
	}
	for _, w := range c.SortedWorkflows() {
		n.Workflows[w.Name] = stepNames(w.Steps)
	}
	for i, p := range places(c) {
		n.Alerts[p.Lane] = c.Alerts[i].Type
	}
	return n
}

// stepNames are those of steps and of the steps inside them, as runs call them: a branch
// that is one call by the branch's name, and an item's call by "item".
func stepNames(steps []config.Step) (all []string) {
	for _, s := range steps {
		all = append(all, s.Name)
		for _, b := range s.Branches {
			if all = append(all, stepNames(b.Steps)...); len(b.Steps) == 0 {
				all = append(all, b.Name)
			}
		}
		switch {
		case s.Iterator != nil:
			all = append(all, stepNames([]config.Step{*s.Iterator})...)
		case s.Type == "map":
			all = append(all, "item")
		}
	}
	return all
}

// expect tells the metrics of all routes.
func (g *Gateway) expect() {
	if g.Metrics == nil || g.handler == nil {
		return
	}
	for _, r := range web.Routes(g.handler) {
		g.Metrics.Expect(r.Method, r.Pattern)
	}
}

// watch tells the metrics whom to ask at a scrape.
func (s *shared) watch(m Metrics, stats func(context.Context) (manage.Stats, error), sending func() int) {
	if m == nil {
		return
	}
	m.Watch(stats, sending)
	m.Clients(s.counts.Unwritten, s.counts.Polls, web.Reasons())
}
