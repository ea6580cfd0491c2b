package gateway

import (
	"net/http"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
)

// allPieces returns all routes. They are in groups, since a function serves one or two
// groups.
func (g *Gateway) allPieces(c *config.Config) []web.Piece {
	pieces := append(g.intakePieces(c), g.opsPieces(c)...)
	pieces = append(pieces, g.apiPieces(c)...)
	// The echo receiver is off unless the configuration asks for it: it accepts any body.
	if c.Server.Echo {
		pieces = append(pieces, web.Echo(g.echoed))
	}
	return pieces
}

// intakePieces returns the routes of events and callbacks.
func (g *Gateway) intakePieces(c *config.Config) []web.Piece {
	return []web.Piece{
		web.Intake(web.IntakeOptions{Receiver: g.Intake, Clock: g.Clock, Tokens: apiTokens(c)}),
		web.Callback(web.CallbackOptions{Resume: g.runner.Callback}),
	}
}

// opsPieces returns the routes about the state of the gateway.
func (g *Gateway) opsPieces(c *config.Config) []web.Piece {
	return []web.Piece{
		web.Ops(web.OpsOptions{
			// Depth shows that the database answers reads, and the vitals that it does the gateway's
			// writes.
			Depth:    g.Store.Depth,
			Writes:   g.vitals.check,
			Doubtful: g.vitals.doubtful,
			// A check is asked for by many probes, but made once in a rest.
			Every:         g.Rest,
			Ignored:       g.shared.ignored.Load,
			Database:      g.Database,
			Tokens:        apiTokens(c),
			Now:           g.Machine,
			Metrics:       g.Metrics,
			MetricsTokens: reveal(c.API.MetricsAuthToken),
		}),
	}
}

// apiPieces returns the routes for the consumers of queues, for the operators of events,
// jobs, queues and runs, and for the overview.
func (g *Gateway) apiPieces(c *config.Config) []web.Piece {
	tokens := apiTokens(c)
	return []web.Piece{
		g.queueRoutes(c),
		web.Events(web.EventsOptions{Manager: g.Events, Tokens: tokens}),
		web.Jobs(web.JobsOptions{Manager: g.Jobs, Tokens: tokens}),
		web.Breakers(web.BreakersOptions{Reset: g.Breakers.Reset, Tokens: tokens}),
		web.Lines(web.LinesOptions{Manager: g.Lines, Tokens: tokens}),
		web.Operations(web.OperationsOptions{Manager: g.Operations, Tokens: tokens}),
		web.Holds(web.HoldsOptions{Manager: g.Holds, Tokens: tokens}),
		web.Schedules(web.SchedulesOptions{Fire: g.Schedules.Fire, Tokens: tokens}),
		web.Overview(web.OverviewOptions{Stats: g.Stats.Stats, Curves: g.Series.Curves, Topology: func() wire.Topology { return Topology(c, g.Clock()) },
			Look: Tail(g.config, g.Store, g.Clock).Look, Rules: g.config.Rules, Loaded: g.loaded, LastReload: g.shared.reloaded.Load, Tokens: tokens}),
		web.Runs(web.RunsOptions{Manager: g.Runs, Tokens: tokens}),
		web.Audit(web.AuditOptions{List: Audit(g.Store).List, Tokens: tokens}),
	}
}

// apiTokens returns the tokens of the API. Those of auth_token have no name, and all rights.
func apiTokens(c *config.Config) (all []web.Token) {
	for _, text := range reveal(c.API.AuthToken) {
		all = append(all, web.Token{Text: text, Role: core.RoleAdmin})
	}
	for _, t := range c.API.Tokens {
		for _, text := range reveal(t.Token) {
			all = append(all, web.Token{Name: t.Name, Text: text, Role: t.Role})
		}
	}
	return all
}

// console returns the options of the console; nil if it is not configured. It is served where the API
// is, which it calls. sends says whether the same process takes events.
func (g *Gateway) console(c *config.Config, sends bool) *web.ConsoleOptions {
	if !c.Console {
		return nil
	}
	return &web.ConsoleOptions{Tokens: apiTokens(c), Now: g.Machine, Manual: g.Manual, Sends: sends}
}

// newHandler returns a handler of some routes with the configured bounds, and of the console if that
// is not nil.
func (g *Gateway) newHandler(c *config.Config, console *web.ConsoleOptions, pieces []web.Piece) http.Handler {
	settings := web.Settings{
		MaxBodySize: int64(c.Server.MaxBodySize),
		MaxInbound:  c.Server.MaxInbound,
		IPRateLimit: c.Server.IPRateLimit,
		Clients:     g.clients,
		Log:         g.Log.With(telemetry.Target, "web"),
		Counts:      &g.shared.counts,
		Console:     console,
		Changed:     g.changed,
	}
	if g.Metrics != nil {
		// Assigned only if there are metrics, since a method value of a nil Metrics would panic.
		settings.Served, settings.Refused = g.Metrics.Served, g.Metrics.Refused
	}
	return web.Handler(settings, pieces...)
}

// maxEchoed is how many bytes of a body the echo receiver logs.
// The echo receiver is for trying things out: 2 KiB show a payload and do not flood the terminal.
const maxEchoed = 2 << 10

// echoed logs a delivery that the gateway made to itself.
func (g *Gateway) echoed(e web.Echoed) {
	body := string(e.Body[:min(len(e.Body), maxEchoed)])
	g.Log.With(telemetry.Target, "echo").Info("echo received a delivery",
		"event", e.Header.Get("X-Gateway-Event-Id"), "job", e.Header.Get("X-Gateway-Job-Id"),
		"type", e.Header.Get("X-Gateway-Event-Type"), "attempt", e.Header.Get("X-Gateway-Attempt"),
		"method", e.Method, "body", body)
}
