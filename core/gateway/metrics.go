package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
)

// Metrics measures a gateway. core/telemetry/metrics has the only implementation. Of the
// functions only intake uses it, and the others do not link it.
type Metrics interface {
	http.Handler // answers /metrics

	// Observe is a core.Observer.
	Observe(core.Fact)

	// Store returns the same store, with measurements.
	Store(core.Store) core.Store

	// Configure passes the names of a configuration that is followed from now on.
	Configure(telemetry.Names)

	// Expect is called for each route before the first request, and Served for each
	// request; see web.Settings.
	Expect(method, pattern string)
	Served(pattern, method string, status int)

	// Refused is called for each request that met a limit because of other requests, with the
	// name of the limit, and for each request whose token lacks the role of its route.
	Refused(reason string)

	// Clients is called once, with functions and names. unread returns the bytes of replies
	// that the gateway makes or writes. polls returns the requests that wait for messages.
	// reasons are the names that Refused may get.
	Clients(unread, polls func() int, reasons []string)

	// Watch sets, once, the store that each collection of metrics asks. ahead is how far the database's
	// clock is ahead of the machine's.
	Watch(stats func(context.Context) (manage.Stats, error), sending func() int, ahead func() time.Duration)
}

// Names returns the configured names, by which measurements are distinguished.
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
	// Metrics show places by number, as everything else does: a URL may hold a token.
	lanes := shown(c)
	for i, p := range places(c) {
		n.Alerts[lanes.Shown(p.Lane)] = c.Alerts[i].Type
	}
	return n
}

// stepNames returns the names of steps and of the steps inside them, as runs use them. A
// branch that is one call has the branch's name, and an item's call has the name "item".
func stepNames(steps []config.Step) (all []string) {
	for _, s := range steps {
		all = append(all, s.Name)
		for _, b := range s.Branches {
			if all = append(all, stepNames(b.Steps)...); len(b.Steps) == 0 {
				all = append(all, b.Name)
			}
		}
		// The definition gives calls inside a map and a parallel step names of their own: see
		// core/workflow.
		switch {
		case s.Iterator != nil:
			all = append(all, stepNames([]config.Step{*s.Iterator})...)
		case s.Type == "map":
			all = append(all, "item")
		}
	}
	return all
}

// expect passes all routes to the metrics.
func (g *Gateway) expect() {
	if g.Metrics == nil || g.handler == nil {
		return
	}
	// A series exists from here on, so the first error of a route shows as a step from 0.
	for _, r := range web.Routes(g.handler) {
		g.Metrics.Expect(r.Method, r.Pattern)
	}
}

// watch gives the metrics the functions to call at a scrape.
func (s *shared) watch(d Deps, stats func(context.Context) (manage.Stats, error), sending func() int) {
	if d.Metrics == nil {
		return
	}
	ahead := d.Ahead
	if ahead == nil {
		ahead = func() time.Duration { return 0 }
	}
	// Both are called once in a process. Later generations are reached through the functions.
	d.Metrics.Watch(stats, sending, ahead)
	d.Metrics.Clients(s.counts.Unwritten, s.counts.Polls, web.Reasons())
}
