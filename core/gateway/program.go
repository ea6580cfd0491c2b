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
)

// A Program is a gateway that serves, under one configuration after another.
//
// A request is served wholly under the configuration that holds when it comes, and so are
// the jobs of its event chosen; a delivery is made wholly under the one that holds when it
// begins. What is under way when the configuration changes goes on beside the new one, at
// most one generation of it: deliveries to their end, waiting consumers to an answer
// without messages. So for a while up to twice worker.max_concurrency deliveries may run.
// Breakers and rates of deliveries stand in the store; what else is counted goes on
// counting.
type Program struct {
	Deps
	tell core.Observer
	now  atomic.Pointer[generation]

	asked atomic.Int64  // calls of Reload
	turn  chan struct{} // full while one of them is at it

	mu      sync.Mutex
	serving context.Context // of Serve; nil before
	former  *generation     // that was before now; nil if there was none
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

func newProgram(g *Gateway, d Deps) *Program {
	p := &Program{Deps: d, tell: g.observe, turn: make(chan struct{}, 1)}
	p.now.Store(newGeneration(g))
	return p
}

// Handler is everything the program answers over HTTP.
func (p *Program) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.now.Load().handler.ServeHTTP(w, r) })
}

// Reload goes over to another configuration, unless it is the same, or cannot be gone over
// to while the program runs, or nothing can be made of it: then the one before stays. What
// became of it is stated as [core.Reloaded], from being where it was read. The error tells
// why it is ignored.
//
// If two generations are there already, it waits for the older one to end, at most for the
// drain time. When another call comes meanwhile, that one's configuration is the newer
// one: this call returns an empty result and no error.
func (p *Program) Reload(ctx context.Context, from string, c *config.Config) (core.ReloadResult, error) {
	mine := p.asked.Add(1)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	result, err := p.judge(c)
	if result == core.ReloadApplied {
		if err := p.makeRoom(ctx, from); err != nil {
			return "", err
		}
	}
	if p.asked.Load() != mine {
		return "", nil
	}
	if result == core.ReloadApplied {
		result, err = p.follow(c)
	}
	if result != "" {
		p.state(core.Reloaded{From: from, Result: result, Err: err})
	}
	return result, err
}

// Ignore tells of a configuration that could not be loaded, and why.
func (p *Program) Ignore(from string, why core.ReloadResult, err error) {
	p.state(core.Reloaded{From: from, Result: why, Err: err})
}

// judge tells what is to become of a configuration.
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

// makeRoom waits until there is one generation. Who has changed the configuration twice is
// told why nothing happens.
func (p *Program) makeRoom(ctx context.Context, from string) error {
	p.mu.Lock()
	former := p.former
	p.mu.Unlock()
	if former == nil {
		return nil
	}
	former.hasten()
	select {
	case <-former.gone:
		return nil
	case <-time.After(soon):
		p.tellWait(from, former)
	case <-ctx.Done():
	}
	select {
	case <-former.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// soon is how long a generation takes to end at most that has nothing to wait for.
const soon = 200 * time.Millisecond

func (p *Program) tellWait(from string, former *generation) {
	p.Log.With(telemetry.Target, "config").Info("configuration waits for deliveries under an earlier one to end",
		"from", from, "deliveries", former.Worker.Sending(), "at_most", former.drain.String())
}

// follow makes a new generation and has it take the place of the one there is. The result
// is empty if the program is ending.
func (p *Program) follow(c *config.Config) (core.ReloadResult, error) {
	g, err := newGateway(c, p.Deps, p.now.Load().shared)
	if err != nil {
		return core.ReloadInvalid, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.serving != nil && p.serving.Err() != nil {
		g.unhear()
		return "", nil
	}
	if p.Metrics != nil {
		p.Metrics.Configure(Names(c))
	}
	next, old := newGeneration(g), p.now.Load()
	c.Follow(old.config)
	p.now.Store(next)
	if p.serving == nil { // nothing of the old one runs
		old.unhear()
		return core.ReloadApplied, nil
	}
	next.run(p.serving, old)
	old.retire()
	p.former = old
	return core.ReloadApplied, nil
}

// state tells what became of a configuration. That one is still unreachable is no news.
func (p *Program) state(f core.Reloaded) {
	ignored := &p.now.Load().shared.ignored
	p.mu.Lock()
	was := ignored.Load()
	switch {
	case f.Result == core.ReloadApplied || f.Result == core.ReloadUnchanged:
		ignored.Store(nil)
	case was == nil || was.Why != f.Result:
		ignored.Store(&web.IgnoredConfig{Why: f.Result, Since: p.Clock()})
	}
	p.mu.Unlock()
	if f.Result != core.ReloadUnreachable || was == nil || was.Why != f.Result {
		p.tell(f)
	}
}

// begin has the program run until ctx is done.
func (p *Program) begin(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serving = ctx
	p.now.Load().run(ctx, nil)
}

// end is called when the program ends. The function returns when nothing runs any more.
func (p *Program) end() (last *generation, ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	living := []*generation{p.now.Load()}
	if p.former != nil {
		living = append(living, p.former)
	}
	for _, g := range living {
		g.hasten()
	}
	return living[0], func() {
		for _, g := range living {
			<-g.gone
		}
	}
}

// stats tells how all that is configured now stands.
func (p *Program) stats(ctx context.Context) (manage.Stats, error) {
	return p.now.Load().Stats.Lanes(ctx)
}

// sending is how many attempts are under way.
func (p *Program) sending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.now.Load().Worker.Sending()
	if p.former != nil {
		n += p.former.Worker.Sending()
	}
	return n
}
