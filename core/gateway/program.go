package gateway

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
)

// A Program is a gateway that serves under one configuration after another.
//
// A request is served completely under the configuration that holds when it arrives, and
// the jobs of its event are chosen by that configuration too. A delivery is made completely
// under the configuration that holds when it begins. Work that is under way at a change
// continues beside the new configuration, in at most one earlier generation. Its deliveries
// run to their end, and its waiting consumers get an answer without messages. So for a
// while up to twice worker.max_concurrency deliveries may run. Breakers and delivery rates
// are in the store, and the other counts continue.
//
// now is read without a lock by each request. mu guards the fields below it, and is never held
// while a generation ends.
//
// A second configuration that arrives while an earlier generation ends waits for it: see Reload.
type Program struct {
	Deps
	report core.Observer
	now    atomic.Pointer[generation]

	reloads atomic.Int64  // calls of Reload
	turn    chan struct{} // full while one of them is working

	counting sync.WaitGroup // the goroutine that stores counts of minutes

	mu      sync.Mutex
	serving context.Context // of Serve; nil before
	former  *generation     // the generation before the present one; nil if there was none
}

// NewProgram assembles a program, as [New] does a gateway.
func NewProgram(c *config.Config, d Deps) (*Program, error) {
	g, err := newGateway(c, d, newShared())
	if err != nil {
		return nil, err
	}
	p := newProgram(g, d)
	g.shared.watch(d, p.stats, p.sending)
	return p, nil
}

// newProgram makes a program whose first generation is g.
func newProgram(g *Gateway, d Deps) *Program {
	p := &Program{Deps: d, report: g.observe, turn: make(chan struct{}, 1)}
	p.now.Store(newGeneration(g))
	return p
}

// Handler returns the handler of everything that the program serves over HTTP.
func (p *Program) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.now.Load().handler.ServeHTTP(w, r) })
}

// Reload changes to another configuration. It keeps the present one in three cases: the new
// one is the same, a running program cannot change to it, or it cannot be assembled. The
// result is stated as [core.Reloaded], where from is the place from which the configuration
// was read, and by the reason for reading it. The error is the reason for ignoring it.
//
// If two generations are running already, Reload waits for the older one to end, at most
// for the drain time. If Reload is called again meanwhile, the configuration of that call
// is newer: this call returns an empty result and no error.
func (p *Program) Reload(ctx context.Context, by core.ReloadCause, from string, c *config.Config) (core.ReloadResult, error) {
	// Each call has a number. After each wait a call compares its number with the newest, and
	// makes way for a later one.
	number := p.reloads.Add(1)
	// Reloads are made one at a time. The lock is a channel, since a call gives up with its ctx.
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	// The cheap tests come first: an unchanged or forbidden configuration need not wait for the
	// earlier generation.
	result, err := p.judge(c)
	if result == core.ReloadApplied {
		if err := p.makeRoom(ctx, from); err != nil {
			return "", err
		}
	}
	// A newer configuration waits behind this one. To apply this one first would start a
	// generation for moments.
	if p.reloads.Load() != number {
		return "", nil
	}
	if result == core.ReloadApplied {
		result, err = p.follow(c)
	}
	if result == core.ReloadApplied {
		p.audit(ctx, from)
	}
	if result != "" {
		p.state(core.Reloaded{By: by, From: from, Result: result, Err: err})
	}
	return result, err
}

// auditTime bounds the time in which the audit entry of a reload is stored.
const auditTime = 5 * time.Second

// audit stores the audit entry of a configuration that was applied. A failure is logged, and the
// program keeps the configuration: it must be possible to change it while the database is down.
func (p *Program) audit(ctx context.Context, from string) {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	ctx = core.WithActor(ctx, core.Actor{Name: core.ActorProcess, Via: core.ViaReload})
	if err := p.now.Load().Store.Record(core.WithChange(ctx, core.Change{Action: core.AuditReload, Target: from})); err != nil {
		p.Log.With(telemetry.Target, "config").Error("the audit has no entry of this reload", "from", from, "error", err)
	}
}

// Ignore states that a configuration could not be loaded, and why.
func (p *Program) Ignore(by core.ReloadCause, from string, why core.ReloadResult, err error) {
	p.state(core.Reloaded{By: by, From: from, Result: why, Err: err})
}

// judge returns the result for a configuration before it is assembled.
func (p *Program) judge(c *config.Config) (core.ReloadResult, error) {
	now := p.now.Load().config
	if now.Same(c) {
		return core.ReloadUnchanged, nil
	}
	if problems := now.Forbids(c); len(problems) > 0 {
		return core.ReloadForbidden, problems
	}
	return core.ReloadApplied, nil
}

// makeRoom waits until there is only one generation. It logs the reason of the wait for the
// author of the two changes.
func (p *Program) makeRoom(ctx context.Context, from string) error {
	p.mu.Lock()
	former := p.former
	p.mu.Unlock()
	if former == nil {
		return nil
	}
	// Two generations at a time bound the memory and the deliveries of the process. So the oldest
	// one now gets its drain time, while before it could take as long as its deliveries need.
	former.startDrain()
	select {
	case <-former.gone:
		return nil
	// Only a wait that a person notices is logged.
	case <-time.After(quickEnd):
		p.logWait(from, former)
	case <-ctx.Done():
	}
	select {
	case <-former.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quickEnd is the longest time in which an idle generation ends.
const quickEnd = 200 * time.Millisecond

// logWait logs that a configuration waits for the generation former to end, how many
// deliveries of it are under way, and the longest wait.
func (p *Program) logWait(from string, former *generation) {
	p.Log.With(telemetry.Target, "config").Info("configuration waits for deliveries under an earlier one to end",
		"from", from, "deliveries", former.Worker.Sending(), "at_most", former.drain.String())
}

// follow makes a new generation, which replaces the present one. The result is empty if the
// program is ending.
func (p *Program) follow(c *config.Config) (core.ReloadResult, error) {
	// Everything that can fail happens here, before anything changes.
	g, err := newGateway(c, p.Deps, p.now.Load().shared)
	if err != nil {
		return core.ReloadInvalid, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The program ended while the gateway was being assembled.
	if p.serving != nil && p.serving.Err() != nil {
		g.closeListeners()
		return "", nil
	}
	if p.Metrics != nil {
		p.Metrics.Configure(Names(c))
	}
	next, old := newGeneration(g), p.now.Load()
	// The order of the change: the metrics know the new names, new requests go to the new
	// generation, its work starts, and then the old work stops taking jobs. So no event is
	// without a worker in between.
	c.Follow(old.config)
	p.now.Store(next)
	if p.serving == nil { // nothing of the earlier one runs
		old.closeListeners()
		return core.ReloadApplied, nil
	}
	next.run(p.serving, old)
	old.retire()
	p.former = old
	return core.ReloadApplied, nil
}

// state states the result for a configuration. It does not repeat that one is unreachable.
func (p *Program) state(f core.Reloaded) {
	ignored, last := &p.now.Load().shared.ignored, &p.now.Load().shared.reloaded
	p.mu.Lock()
	last.Store(wire.ReloadOf(p.Clock(), f))
	// Since keeps the time of the first failure while the reason stays the same: the health
	// shows for how long the configuration is ignored.
	was := ignored.Load()
	switch {
	case f.Result == core.ReloadApplied || f.Result == core.ReloadUnchanged:
		ignored.Store(nil)
	case was == nil || was.Why != f.Result:
		ignored.Store(&web.IgnoredConfig{Why: f.Result, Since: p.Clock()})
	}
	p.mu.Unlock()
	if f.Result != core.ReloadUnreachable || was == nil || was.Why != f.Result {
		p.report(f)
	}
}

// begin makes the program run until ctx is done.
func (p *Program) begin(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serving = ctx
	now := p.now.Load()
	now.run(ctx, nil)
	p.counting.Go(func() { now.Minutes.Run(ctx) })
}

// end is called when the program ends. The returned function returns when no work is
// running any more.
// It also makes Reload follow no further configuration, since serving is done by then.
func (p *Program) end() (last *generation, ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	generations := []*generation{p.now.Load()}
	if p.former != nil {
		generations = append(generations, p.former)
	}
	// All generations drain at the same time, so the end takes one drain time and not two.
	for _, g := range generations {
		g.startDrain()
	}
	return generations[0], func() {
		for _, g := range generations {
			<-g.gone
		}
		p.counting.Wait()
		generations[0].writeMinutes() // last, so that it has all that was counted
	}
}

// stats returns the state of all configured entries.
func (p *Program) stats(ctx context.Context) (manage.Stats, error) {
	return p.now.Load().Stats.Lanes(ctx)
}

// sending returns the number of attempts under way.
func (p *Program) sending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.now.Load().Worker.Sending()
	if p.former != nil {
		n += p.former.Worker.Sending()
	}
	return n
}
