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
	p.begin(ctx)
	failed := make(chan error, 1)
	go func() {
		defer cancel() // a gateway that cannot be reached must stop delivering as well
		failed <- server.Serve(p.limit(listener))
	}()

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
	return web.Limit(l, web.Crowd{
		Most:  web.MaxConnections,
		Each:  web.MaxConnectionsEach,
		Proxy: func(a netip.Addr) bool { return p.now.Load().clients.Proxy(a) },
		Closed: func(why core.ClosedFor, client netip.Addr) {
			p.tell(core.ConnectionClosed{Why: why, ClientIP: client.String()})
		},
	})
}

// shutdown lets requests under way finish, and cuts them off after the drain time.
func shutdown(server *http.Server, drain time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), max(drain, time.Second))
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
}
