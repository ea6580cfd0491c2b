package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
)

// Serve answers on the listener and delivers, until ctx is done. Then it takes
// no new requests, lets those under way and the deliveries under way finish for
// at most the drain time, and returns nil. An error means that listening failed.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := web.NewServer(g.handler, g.Log.With(telemetry.Target, "http"))

	var work sync.WaitGroup
	work.Go(func() { g.deliver(ctx) })
	work.Go(func() { g.Alerts.Run(ctx) })
	if g.Cron != nil {
		work.Go(func() { g.fire(ctx) })
	}
	work.Go(func() { g.purge(ctx) })
	failed := make(chan error, 1)
	work.Go(func() {
		defer cancel() // a gateway that cannot be reached must not go on half alive
		failed <- server.Serve(web.Limit(listener, web.MaxConnections))
	})

	<-ctx.Done()
	g.Puller.Close() // answers who waits for messages; the server would wait for them
	g.shutdown(server)
	work.Wait()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdown lets requests under way finish, and cuts off what takes longer than
// the drain time.
func (g *Gateway) shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), max(g.drain, time.Second))
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
}

// deliver runs the worker. Before it takes anything, jobs that an earlier process
// left running are made due: nobody holds them any more.
func (g *Gateway) deliver(ctx context.Context) {
	if g.SoleTaker {
		g.recover(ctx)
	}
	report, err := g.Worker.Tick(ctx, core.Budget{Rest: g.Rest})
	if err != nil {
		g.Log.Error("worker stopped", "error", err)
	}
	g.Log.Info("worker stopped", "completed", report.Completed, "failed", report.Failed,
		"dead", report.Dead, "released", report.Released, "lost", report.Lost)
}

// fire runs the schedules.
func (g *Gateway) fire(ctx context.Context) {
	if err := g.Cron.Tick(ctx, core.Budget{Rest: g.Rest}); err != nil && ctx.Err() == nil {
		g.Log.Error("schedules stopped", "error", err)
	}
}

func (g *Gateway) recover(ctx context.Context) {
	for {
		n, err := g.Store.Recover(ctx, g.Clock(), g.Worker.Lanes())
		if err == nil {
			if n > 0 {
				g.observe(core.Recovered{Jobs: n})
			}
			return
		}
		g.observe(core.Troubled{Doing: "recover", Err: err})
		select {
		case <-time.After(g.Rest):
		case <-ctx.Done():
			return
		}
	}
}
