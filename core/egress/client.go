// Package egress is everything that leaves the process. It is the only place
// that builds HTTP clients, transports and dialers, so that there is one door to
// guard: a second one is where server-side request forgery comes in (CVE-2026-33679
// was an avatar fetched around the webhooks' guard).
//
// The idea to know: the guard stands in the dialer, not before it. It judges the
// address about to be dialled, after DNS, at every dial; what a name resolved to
// a moment ago proves nothing. See [Options.AllowPrivate] for what passes.
//
// # What became of an attempt
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
// A reply whose status line says 2xx is a success whatever becomes of its body.
// Over gRPC the body says how it went, so only a whole answer is a success.
//
// # Dead connections
//
// Connections are kept open between deliveries, so a handler may close one just
// as it is needed. If nothing of the request was written, net/http sends it again
// on a new connection and nobody notices. If something was, nobody can know
// whether the handler acted on it: the attempt fails as protocol, and the next
// one is the job's retry, never a hidden second send inside the same attempt.
// The exception is GET, which HTTP defines as safe (RFC 9110, section 9.2.1) and
// net/http therefore repeats once. gRPC is treated as POST is.
//
// # Steps
//
// The calls of workflow steps are deliveries but for what [Client.Steps] says; their
// failures have the same classes. There data is also the class of a reply that says 2xx and
// is nothing that a result can be made of.
//
// egress imports core, core/endpoint, core/expr, core/worker for the Sender and
// core/runner and core/workflow for the Caller it implements, net/http,
// google.golang.org/grpc, which no other package imports, and code.dny.dev/ssrf for
// what the registries set aside.
package egress

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// connectTimeout bounds TCP and TLS set-up each. The deadline of the delivery
	// is usually shorter, but net/http lets a dial outlive the request that asked
	// for it, and a tarpit must not collect them.
	connectTimeout = 30 * time.Second

	idleTimeout     = 90 * time.Second
	maxReplyHeaders = 64 << 10 // bytes
)

// Options of a Client.
type Options struct {
	// AllowPrivate is server.allow_private_urls. Without it only public addresses
	// are connected to: no loopback, private or shared ones, no link-local,
	// documentation, benchmark, multicast or reserved ones, and none that wrap an
	// IPv4 address (6to4, Teredo, NAT64; an IPv4-mapped address is judged as the
	// IPv4 address it is). With it, loopback, private (RFC 1918, RFC 4193) and
	// shared addresses (RFC 6598) pass as well, but never a cloud's metadata
	// service.
	AllowPrivate bool

	// Concurrency is worker.max_concurrency: how many connections to one host may
	// wait idle for their next delivery. At least 1.
	Concurrency int

	// Version of the gateway, for the user agent.
	Version string

	// Traced says that somebody makes a span of each attempt, so that the span is what
	// receivers are to hear of, as [core.Span.Attempt] and [core.Span.StepAttempt] name
	// it. Without it they hear of the span that the event came with, if any.
	Traced bool

	// Clock tells the time of attempts. Nil means the machine's.
	Clock core.Clock
}

// A Client makes connections to the outside. It is safe for concurrent use.
type Client struct {
	guard     guard
	dialer    *net.Dialer
	transport *http.Transport
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
	return c
}

// newTransport makes the one transport. Proxy stays nil on purpose: with
// HTTP_PROXY set, the guard would judge the proxy's address instead of the
// handler's (convoy#2706).
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
		ForceAttemptHTTP2:      true, // a DialContext of one's own turns it off
		HTTP2: &http.HTTP2Config{
			// All requests to a host share one HTTP/2 connection. Unless it is asked for
			// signs of life, one that died silently fails every request for a quarter of
			// an hour (golang/go#59690).
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
			// A handler may send this much of a reply before any of it is read. The
			// default, 4 MiB, times all deliveries at once is memory that it could fill.
			MaxReceiveBufferPerStream: maxReply,
		},
	}
}

// HTTPClient returns a client for calls that are not deliveries, behind the same
// guard. It follows no redirects, keeps no cookies and gives up after timeout,
// which covers the reply's body. Its errors quote the URL, as http.Client's do.
func (c *Client) HTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: stay, Timeout: timeout}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections. Deliveries under way are not disturbed; those
// over gRPC close theirs when they are done.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.channels.close()
}
