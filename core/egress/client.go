// Package egress makes all outgoing connections. It is the only place that builds HTTP
// clients, transports and dialers, so that only one place needs a guard. A second place
// would permit server-side request forgery (CVE-2026-33679 was an avatar fetched around the
// webhooks' guard).
//
// The idea to know: the guard stands in the dialer, not before it. It judges the address
// that is about to be dialled, after DNS, at every dial: an earlier result of DNS proves
// nothing. See [Options.AllowPrivate] for the permitted addresses.
//
// # Results of an attempt
//
// A delivery that fails is a [worker.Reply], not an error. Its Error is at most
// 512 bytes and begins with its class:
//
//	blocked   the address is not one we connect to
//	dns       the name did not resolve
//	connect   no connection came about
//	tls       no secure connection came about
//	timeout   the deadline passed before there was a status line
//	protocol  connected, but no HTTP answer came back, or none of gRPC's
//	transform the body could not be made of the payload; it is not tried again
//	data      the transform needs a number where the payload has none; it is not tried again
//	status    an answer other than 2xx; redirects count, they are never followed.
//	          Over gRPC: a status other than OK, or an answer without success
//
// A reply whose status line says 2xx is a success, even if reading its body fails. Over
// gRPC the body has the result, so only a complete answer is a success.
//
// # Dead connections
//
// Connections are kept open between deliveries, so a handler may close one just as it is
// needed. If nothing of the request was written, it is sent again on a new
// connection, without an error. If a part was written, the handler may have acted on it.
// Then the attempt fails as protocol, and the next one is the job's retry, never a hidden
// second send inside the same attempt. The exception is GET, which HTTP defines as safe
// (RFC 9110, section 9.2.1) and which is therefore repeated once. gRPC is treated like POST.
//
// # Two ways
//
// net/http makes the round trips over TLS, and those of long requests. Short requests without TLS,
// as to a handler on the same host or network, are written to their connections by the goroutine
// of the delivery, since that costs less CPU time; see direct. net/http reads the replies of both.
//
// What is said above holds for both, with one exception. net/http does not send a request again whose
// body is larger than its buffer of 4 KB, although nothing was written: it takes the failed write for
// a failure to read the body. Then the attempt fails, too.
//
// # Steps
//
// The calls of workflow steps are deliveries, with the differences that [Client.Steps]
// lists. Their failures have the same classes. For steps, data is also the class of a 2xx
// reply that cannot be a result.
//
// egress imports core, core/endpoint, core/expr, core/worker for the Sender, and
// core/runner and core/workflow for the Caller that it implements. It also imports
// net/http, google.golang.org/grpc, which no other package imports, and code.dny.dev/ssrf
// for the reserved address ranges.
package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// connectTimeout bounds TCP and TLS set-up each. The deadline of the delivery is
	// usually shorter. But net/http lets a dial outlive its request, and a tarpit must not
	// collect such dials.
	connectTimeout = 30 * time.Second

	idleTimeout     = 90 * time.Second
	maxReplyHeaders = 64 << 10 // bytes
)

// Options of a Client.
type Options struct {
	// AllowPrivate is server.allow_private_urls. Without it the client connects to public
	// addresses only: to no loopback, private, shared, link-local, documentation,
	// benchmark, multicast or reserved address, and to none that wraps an IPv4 address
	// (6to4, Teredo, NAT64). An IPv4-mapped address is judged as the IPv4 address. With
	// AllowPrivate, loopback, private (RFC 1918, RFC 4193) and shared addresses (RFC 6598)
	// pass as well, but never a cloud's metadata service.
	AllowPrivate bool

	// Concurrency is worker.max_concurrency. It bounds the idle connections to one host. At
	// least 1.
	Concurrency int

	// Version of the gateway, for the user agent.
	Version string

	// Traced says that this process makes a span of each attempt. Then receivers get that
	// span, as [core.Span.Attempt] and [core.Span.StepAttempt] name it. Otherwise they get
	// the span with which the event came, if there is one.
	Traced bool

	// Clock returns the times of attempts. Nil means the machine's clock.
	Clock core.Clock
}

// A Client makes outgoing connections. It is safe for concurrent use.
type Client struct {
	guard     guard
	dialer    *net.Dialer
	transport *http.Transport
	direct    *direct // for short requests without TLS; transport is for all others
	channels  channels
	idle      time.Duration // after which an unused channel is closed
	agent     string
	traced    bool
	clock     core.Clock
}

// New makes a client.
func New(o Options) *Client {
	c := &Client{guard: guard{allowPrivate: o.AllowPrivate}, agent: "gateway/" + o.Version, traced: o.Traced, clock: o.Clock, idle: idleTimeout}
	if c.clock == nil {
		c.clock = core.SystemClock
	}
	c.dialer = &net.Dialer{Timeout: connectTimeout, ControlContext: c.guard.control}
	c.transport = newTransport(c.dialer, max(o.Concurrency, 1))
	c.direct = &direct{dial: c.dialer.DialContext, perHost: max(o.Concurrency, 1)}
	return c
}

// newTransport makes the only transport of net/http. Proxy stays nil on purpose: with HTTP_PROXY set,
// the guard would judge the proxy's address instead of the handler's (convoy#2706).
func newTransport(d *net.Dialer, idlePerHost int) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            d.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxReplyHeaders,
		ForceAttemptHTTP2:      true, // a custom DialContext turns it off
		HTTP2: &http.HTTP2Config{
			// All requests to a host share one HTTP/2 connection. Without pings, a
			// connection that died silently fails every request for a quarter of an hour
			// (golang/go#59690).
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
			// A handler may send this much of a reply before any of it is read. The
			// default, 4 MiB for each delivery under way, is memory that a handler could
			// fill.
			MaxReceiveBufferPerStream: maxReply,
		},
	}
}

// roundTrip sends a delivery and returns the reply, whose body must be closed.
func (c *Client) roundTrip(ctx context.Context, d *delivery) (*http.Response, error) {
	if c.direct.takes(d) {
		return c.direct.roundTrip(ctx, d)
	}
	return c.transport.RoundTrip(d.request(ctx))
}

// HTTPClient returns a client for calls that are not deliveries, behind the same guard. It
// follows no redirects and keeps no cookies. The timeout includes the reply's body. Its
// errors quote the URL, as http.Client's do.
func (c *Client) HTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: stay, Timeout: timeout}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections. It does not disturb deliveries under way; gRPC deliveries
// close their connections at their end.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.direct.close()
	c.channels.close()
}
