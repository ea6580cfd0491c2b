package gateway

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/alert"
	"github.com/eventgateway/gateway/core/series"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/eventgateway/gateway/core/worker"
)

// shared is the state that successive gateways of one process share, beside their Deps:
// state that must not begin again with each.
type shared struct {
	// The bell outlives a generation: an event of the old one may ring for a worker of the new.
	bell    *core.Bell
	express worker.Express // from the intake of any generation to the newest worker
	counts  web.Counts
	pulses  *pulses
	tallies *alert.Tallies
	moves   *alert.Moves
	ignored atomic.Pointer[web.IgnoredConfig] // the newest configuration, if the process does not follow it

	reloaded atomic.Pointer[wire.Reload] // the newest reading of the configuration; nil before the first

	// minutes counts for curves, and writer stores the counts. A part that does not write them has
	// none.
	minutes *series.Counter
	writer  *series.Writer

	naming sync.Once
	ids    *core.IDs // of all rows that this process stores, so that they only grow

	// recovery is held during the recovery, which happens once for each process.
	recovery  sync.Mutex
	recovered bool
}

// newShared makes the state for the first gateway of a process.
func newShared() *shared {
	return &shared{bell: &core.Bell{}, pulses: newPulses(), tallies: alert.NewTallies(), moves: alert.NewMoves()}
}

// ids returns the source of ids that all gateways of the process share.
func (g *Gateway) ids() *core.IDs {
	s := g.shared
	s.naming.Do(func() { s.ids = core.NewIDs(g.Clock) })
	return s.ids
}

// A generation is a gateway that runs until another one replaces it.
//
// Its life: newGeneration makes it, run starts it, retire ends it, and gone is closed when all of
// it has stopped. A generation that serves when the program ends is not retired: it stops with
// the program's context.
type generation struct {
	*Gateway
	stop  context.CancelFunc
	fired chan struct{} // closed when its schedules have stopped
	gone  chan struct{} // closed when all of it has stopped
}

// newGeneration makes a generation that does not run yet.
func newGeneration(g *Gateway) *generation {
	return &generation{Gateway: g, fired: make(chan struct{}), gone: make(chan struct{})}
}

// run starts the background work of a gateway. It ends when the program does, or when the
// generation is retired. Schedules wait for the end of the earlier generation's, if there
// is one: two generations must not move a source's mark at the same time.
func (g *generation) run(program context.Context, before *generation) {
	ctx, stop := context.WithCancel(program)
	g.stop = stop
	var work sync.WaitGroup
	work.Go(func() {
		// deliver returns when the tick has drained, and so after all attempts that it began.
		report := g.deliver(ctx)
		message := "worker stopped"
		if program.Err() == nil {
			message = "deliveries under the configuration before have ended"
		}
		g.Log.Info(message, "completed", report.Completed, "failed", report.Failed,
			"dead", report.Dead, "released", report.Released, "lost", report.Lost)
	})
	work.Go(func() { g.Alerts.Run(ctx) })
	work.Go(func() { g.purge(ctx) })
	work.Go(func() { g.watchHealth(ctx) })
	work.Go(func() { g.fill(ctx) })
	work.Go(func() {
		defer close(g.fired)
		if before != nil {
			<-before.fired
		}
		g.fire(ctx)
	})
	work.Go(func() {
		// A consumer that waits holds a request open. It gets an empty answer at once, so that it
		// comes back to the next generation.
		<-ctx.Done()
		g.Puller.Close() // answers the consumers that wait for messages
	})
	go func() {
		work.Wait()
		close(g.gone)
	}()
}

// retire ends a generation that another one has replaced. Deliveries under way continue
// until they end, or until startDrain is called.
func (g *generation) retire() {
	// Leave comes before stop: a ring from now on goes to the worker of the next generation.
	g.Worker.Leave()
	g.stop()
	// The connections to handlers stay open until the last delivery has ended.
	go func() {
		<-g.gone
		g.client.Close()
	}()
}

// startDrain makes stopped work end within the drain time.
func (g *Gateway) startDrain() { g.drainOnce.Do(func() { close(g.draining) }) }

// closeListeners removes the listeners of a gateway that could not be assembled.
func (g *Gateway) closeListeners() {
	if g.Puller != nil {
		g.Puller.Close()
	}
	if g.Worker != nil {
		g.Worker.Leave()
	}
}

// deliver runs the worker. Before that it makes jobs due that an earlier process left
// running: they have no worker any more.
func (g *Gateway) deliver(ctx context.Context) core.Report {
	if g.SoleTaker {
		g.recover(ctx)
	}
	report, err := g.Worker.Tick(ctx, core.Budget{Rest: g.Rest})
	if err != nil {
		g.Log.Error("worker stopped", "error", err)
	}
	return report
}

// fire runs the schedules, if there are any.
func (g *Gateway) fire(ctx context.Context) {
	if g.Cron == nil {
		return
	}
	if err := g.Cron.Tick(ctx, core.Budget{Rest: g.Rest}); err != nil && ctx.Err() == nil {
		g.Log.Error("schedules stopped", "error", err)
	}
}

// recover is for the first generation only: jobs that are running at the start of a later
// one belong to the earlier one.
func (g *Gateway) recover(ctx context.Context) {
	g.shared.recovery.Lock()
	defer g.shared.recovery.Unlock()
	// The lock is held while the loop waits: a later generation must not take jobs before the
	// jobs of the earlier process are known.
	for !g.shared.recovered && ctx.Err() == nil {
		n, err := g.Store.Recover(ctx, g.Clock(), append(slices.Clone(g.Worker.Lanes()), core.OperationLane))
		if err == nil {
			if g.shared.recovered = true; n > 0 {
				g.observe(core.Recovered{Jobs: n})
			}
			return
		}
		g.observe(core.Troubled{Doing: "recover", Err: err})
		select {
		case <-time.After(g.Rest):
		case <-ctx.Done():
		}
	}
}
