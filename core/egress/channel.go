//go:build !nogrpc

package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// maxAnswer bounds the message of a receiver's answer, in bytes.
const maxAnswer = 1 << 20

// A line is the way to one receiver: the channel that its calls share, if there is one now.
//
// The idea to know: if a channel left a call without an answer, no further call uses that
// channel. Its present calls may end on it. The next attempt opens a new connection at once. The
// gateway connects to a receiver only for a delivery. grpc itself would retry in the background
// with growing pauses, and would fail calls in between without trying.
type line struct {
	client *Client
	url    *url.URL
	agent  string

	current *channel // guarded by client.channels
}

// channels are the open channels of a client.
type channels struct {
	sync.Mutex
	open   map[*channel]bool
	closed bool // channels in use end with their last call
}

// A channel is a [grpc.ClientConn] that counts its users and knows why it has no
// connection.
type channel struct {
	*grpc.ClientConn
	line *line
	link link

	// Guarded by client.channels:
	users   int
	retired bool
	idle    *time.Timer
}

// take returns a channel that must be released.
func (l *line) take() (*channel, error) {
	all := &l.client.channels
	all.Lock()
	defer all.Unlock()
	if l.current == nil {
		ch, err := l.open()
		if err != nil {
			return nil, err
		}
		l.current = ch
		if all.open == nil {
			all.open = map[*channel]bool{}
		}
		all.open[ch] = true
	}
	l.current.idle.Stop()
	l.current.users++
	return l.current, nil
}

// release gives a channel back. It is kept for the next call if good is true.
func (l *line) release(ch *channel, good bool) {
	all := &l.client.channels
	all.Lock()
	defer all.Unlock()
	ch.users--
	if !good || all.closed {
		ch.retire()
	} else if ch.users == 0 && !ch.retired {
		ch.idle.Reset(l.client.idle)
	}
	if all.done(ch) {
		go ch.Close()
	}
}

// expire ends a channel that was unused for a while.
func (ch *channel) expire() {
	all := &ch.line.client.channels
	all.Lock()
	defer all.Unlock()
	if ch.users == 0 {
		ch.retire()
	}
	if all.done(ch) {
		go ch.Close()
	}
}

func (ch *channel) retire() {
	ch.retired = true
	if ch.line.current == ch {
		ch.line.current = nil
	}
}

// done removes a channel that is to be closed now, and reports whether the caller must
// close it. Closing may last five seconds if the receiver does not read, so the lock is not
// held for it.
func (all *channels) done(ch *channel) bool {
	if !ch.retired || ch.users > 0 || !all.open[ch] {
		return false
	}
	delete(all.open, ch)
	ch.idle.Stop()
	return true
}

// close retires all channels, and closes the unused ones.
func (all *channels) close() {
	var unused []*channel
	all.Lock()
	all.closed = true
	for ch := range all.open {
		ch.retire()
		if all.done(ch) {
			unused = append(unused, ch)
		}
	}
	all.Unlock()
	var closing sync.WaitGroup
	for _, ch := range unused {
		closing.Go(func() { ch.Close() })
	}
	closing.Wait()
}

// open makes a channel, which connects when the first call needs it. grpc must not resolve
// names itself, use proxies, or read configuration from TXT records: only the client's
// dialer dials an address.
func (l *line) open() (*channel, error) {
	ch := &channel{line: l}
	conn, err := grpc.NewClient("passthrough:///"+hostPort(l.url),
		grpc.WithContextDialer(ch.dial),
		grpc.WithTransportCredentials(&watchedCredentials{l.credentials(), &ch.link}),
		grpc.WithAuthority(l.url.Host),
		grpc.WithUserAgent(l.agent),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithDisableHealthCheck(),
		grpc.WithIdleTimeout(0), // expire closes idle channels
		grpc.WithConnectParams(grpc.ConnectParams{
			// For retries on a retired channel that still has calls.
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1, MaxDelay: time.Second},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithMaxHeaderListSize(maxReplyHeaders),
		// grpc's own window grows with a receiver's messages, to 16 MiB for each call.
		grpc.WithStaticStreamWindowSize(maxReply),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), // max_body_size bounds the sent messages
		grpc.WithStatsHandler(progressHandler{}),
	)
	if err != nil {
		return nil, err
	}
	ch.ClientConn = conn
	ch.idle = time.AfterFunc(l.client.idle, ch.expire)
	return ch, nil
}

func (l *line) credentials() credentials.TransportCredentials {
	if l.url.Scheme == "http" {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(l.client.receiverTLS())
}

func (ch *channel) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := ch.line.client.dialer.DialContext(ctx, "tcp", address)
	ch.link.note(ctx, err)
	if err != nil {
		return nil, err
	}
	return &watchedConn{conn, &ch.link}, nil
}

// A link is the result of the newest attempt to connect a channel, with the ends of its
// connections. grpc reports both as text only, but the error's type determines the class.
type link struct {
	mu   sync.Mutex
	ctx  context.Context  // of the attempt
	err  error            // nil: it was connected, including TLS
	ends map[string]error // by their text
}

func (l *link) note(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.err = ctx, err
}

// end returns the error of the connection that grpc's message names, or nil for any other
// message.
func (l *link) end(message string) error {
	switch message {
	case "transport is closing", // it had ended before the call came
		io.EOF.Error(): // it ended before the message was sent
		return io.EOF
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for text, err := range l.ends {
		if strings.HasSuffix(message, text) {
			return err
		}
	}
	return nil
}

// failure returns why there is no connection, nil if that is unknown.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.ctx != nil && l.ctx.Err() == context.DeadlineExceeded {
		return l.ctx.Err() // connected, but the other side did not begin to speak HTTP/2 in time
	}
	return l.err
}

// watchedCredentials record the results of handshakes.
type watchedCredentials struct {
	credentials.TransportCredentials
	link *link
}

func (w *watchedCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, conn)
	w.link.note(ctx, handshakeError(err))
	return secured, info, err
}

func (w *watchedCredentials) Clone() credentials.TransportCredentials {
	return &watchedCredentials{w.TransportCredentials.Clone(), w.link}
}

// A watchedConn records how it ends. Its errors contain no addresses, because grpc would
// quote the gateway's own addresses.
type watchedConn struct {
	net.Conn
	link *link
}

func (w *watchedConn) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	return n, w.link.noteEnd(err)
}

func (w *watchedConn) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	return n, w.link.noteEnd(err)
}

func (l *link) noteEnd(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]error{}
	}
	l.ends[err.Error()] = err
	return err
}
