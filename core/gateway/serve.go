package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web"
)

// Serve serves like a [Program] whose configuration never changes.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	return newProgram(g, g.Deps).Serve(ctx, listener)
}

// Serve answers on the listener and delivers, until ctx is done. Then it accepts no new
// requests, gives requests and deliveries under way the drain time to finish, and returns
// nil. An error means that listening failed. Serve is called once.
func (p *Program) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := web.NewServer(p.Handler(), p.Log.With(telemetry.Target, "http"))
	// Work begins before the listener is served. Events of the time before the start are due
	// already.
	p.begin(ctx)
	failed := make(chan error, 1)
	go func() {
		defer cancel() // a gateway that cannot be reached must stop delivering as well
		failed <- server.Serve(p.limit(listener))
	}()

	// The end, in order: deliveries get their drain time from now on, new connections are refused
	// and requests finish, and then Serve waits for all work.
	<-ctx.Done()
	last, ended := p.end()
	shutdown(server, last.drain)
	ended()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// limit bounds connections. The configured addresses of proxies may have any number of them.
func (p *Program) limit(l net.Listener) net.Listener {
	// The proxies are read at each connection, since a reload may change them.
	return web.Limit(l, web.Crowd{
		Most:  web.MaxConnections,
		Each:  web.MaxConnectionsEach,
		Proxy: func(a netip.Addr) bool { return p.now.Load().clients.Proxy(a) },
		Closed: func(why core.ClosedFor, client netip.Addr) {
			p.report(core.ConnectionClosed{Why: why, ClientIP: client.String()})
		},
	})
}

// shutdown lets requests under way finish, and cuts them off after the drain time.
func shutdown(server *http.Server, drain time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), max(drain, time.Second))
	defer cancel()
	// A request that is still open may be from a slow client. Close cuts it off without a reply,
	// so its sender repeats the event.
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
}
