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

// maxAnswer bounds the message that a receiver answers with, in bytes.
const maxAnswer = 1 << 20

// A line is the way to one receiver: the channel that calls share, if there is one
// at the moment.
//
// The idea to know: a channel that left a call without an answer is not used
// again; the calls it still has may end on it. So the next attempt makes a
// connection of its own, at once, and a receiver is connected to only when there
// is something to deliver: grpc would go on trying in the background, ever more
// slowly, and fail calls in between without having tried.
type line struct {
	client *Client
	url    *url.URL
	agent  string

	current *channel // guarded by client.channels
}

// channels are the ones that a client has open.
type channels struct {
	sync.Mutex
	open   map[*channel]bool
	closed bool // those in use end with their last call
}

// A channel is a [grpc.ClientConn] that knows who uses it and why it has no
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

// release gives a channel back. It is kept for the next call if it proved good.
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

// expire ends a channel that nobody has used for a while.
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

// done takes out a channel that is to be closed now. Closing may last five seconds
// with a receiver that does not read, so nobody else should wait for it.
func (all *channels) done(ch *channel) bool {
	if !ch.retired || ch.users > 0 || !all.open[ch] {
		return false
	}
	delete(all.open, ch)
	ch.idle.Stop()
	return true
}

// close retires all channels, and closes those that are not in use.
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

// open makes a channel, which connects when the first call needs it. grpc is kept
// from resolving names itself, from proxies, and from what a name's TXT records
// may configure: an address is dialled by our dialer or not at all.
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
		grpc.WithIdleTimeout(0), // expire does it
		grpc.WithConnectParams(grpc.ConnectParams{
			// Between attempts on a channel that is given up but still has calls.
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1, MaxDelay: time.Second},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithMaxHeaderListSize(maxReplyHeaders),
		// grpc's own window grows with what a receiver sends, to 16 MiB for each call.
		grpc.WithStaticStreamWindowSize(maxReply),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), // what is sent is bounded by max_body_size
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

// A link is how the latest attempt to connect a channel went, and how its
// connections ended. grpc reports both as text only, but the class is in the
// error's type.
type link struct {
	mu   sync.Mutex
	ctx  context.Context  // of the attempt
	err  error            // nil: it was connected, as far as TLS
	ends map[string]error // by their text
}

func (l *link) note(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.err = ctx, err
}

// end is the end of a connection that grpc's message is about, nil if it is about
// something else.
func (l *link) end(message string) error {
	if message == "transport is closing" { // had ended when the call came
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

// failure is why there is no connection, nil if that is not known.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.ctx != nil && l.ctx.Err() == context.DeadlineExceeded {
		return l.ctx.Err() // connected, but the other side did not begin to speak HTTP/2 in time
	}
	return l.err
}

// watchedCredentials note how handshakes go.
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

// A watchedConn notes how it ends. Its errors hold no addresses: grpc would quote
// them, and ours are nobody's business.
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
