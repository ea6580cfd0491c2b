package egress

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// maxDirect bounds the size of a delivery that a direct sends. Such a request fits in the buffers
	// of a connection. So it is written even if the receiver answers without reading it. Of a
	// longer one net/http may have the error of the write in place of the answer.
	maxDirect = 8 << 10

	// sweepInterval is how often idle connections are closed that the receiver has closed, or that
	// were idle for idleTimeout.
	sweepInterval = 15 * time.Second
)

// A direct makes the round trips of small deliveries over HTTP/1.1 without TLS. It behaves as
// [http.Transport] does, which makes all others, but works on the goroutine of the caller.
// http.Transport has two goroutines for each connection, to which it hands over each request and
// which hand over each reply, and it sorts the headers.
type direct struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	perHost int // idle connections

	mu     sync.Mutex
	idle   map[string][]*wire // by the host of their URL, in the order of their last uses
	sweeps *time.Timer        // nil: there is no idle connection
	closed bool
}

// takes reports whether a delivery is one for a direct.
func (*direct) takes(m *delivery) bool {
	return m.url.Scheme == "http" && m.size() <= maxDirect
}

// roundTrip sends a delivery and returns the reply. Like [http.Transport] it sends a request again
// only if a connection was used before, and nothing of the request was written to it, or the method
// is GET and nothing of a reply came. It does so once, on a new connection.
func (d *direct) roundTrip(ctx context.Context, m *delivery) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	buffer := messages.Get().(*[]byte)
	defer messages.Put(buffer)
	message, err := m.appendTo((*buffer)[:0])
	if err != nil {
		return nil, err
	}
	*buffer = message
	if w := d.take(m.url.Host); w != nil {
		resp, again, err := w.exchange(ctx, m, message)
		if err == nil || !again || ctx.Err() != nil {
			return resp, err
		}
	}
	w, err := d.open(ctx, m.url)
	if err != nil {
		return nil, err
	}
	resp, _, err := w.exchange(ctx, m, message)
	return resp, err
}

var messages = sync.Pool{New: func() any { return new([]byte) }}

// open makes a connection. One that comes after the end of ctx is kept: where it takes longer to
// connect than an attempt may, the next attempt has a connection.
func (d *direct) open(ctx context.Context, u *url.URL) (*wire, error) {
	type result struct {
		wire *wire
		err  error
	}
	results := make(chan result)
	go func() {
		var r result
		conn, err := d.dial(context.WithoutCancel(ctx), "tcp", hostPort(u))
		if r.err = err; err == nil {
			r.wire = newWire(conn, d, u.Host)
		}
		select {
		case results <- r:
		case <-ctx.Done():
			if err == nil {
				d.keep(r.wire)
			}
		}
	}()
	select {
	case r := <-results:
		return r.wire, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take returns an idle connection that is of use, or nil.
func (d *direct) take(host string) *wire {
	for {
		w := d.pop(host)
		if w == nil || w.isUseful() {
			return w
		}
		w.Close()
	}
}

func (d *direct) pop(host string) *wire {
	d.mu.Lock()
	defer d.mu.Unlock()
	idle := d.idle[host]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	w := idle[last]
	idle[last] = nil
	d.idle[host] = idle[:last]
	return w
}

// keep makes a connection idle, or closes it if there are enough.
func (d *direct) keep(w *wire) {
	w.since = time.Now().Round(0) // the monotonic clock may stand still while the machine is frozen
	if !d.add(w) {
		w.Close()
	}
}

func (d *direct) add(w *wire) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.idle[w.host]) >= d.perHost {
		return false
	}
	if d.idle == nil {
		d.idle = map[string][]*wire{}
	}
	d.idle[w.host] = append(d.idle[w.host], w)
	if d.sweeps == nil {
		d.sweeps = time.AfterFunc(sweepInterval, d.sweep)
	}
	return true
}

// sweep closes the idle connections that are of no use.
func (d *direct) sweep() {
	var useless []*wire
	d.mu.Lock()
	for host, idle := range d.idle {
		kept := idle[:0]
		for _, w := range idle {
			if w.isUseful() {
				kept = append(kept, w)
			} else {
				useless = append(useless, w)
			}
		}
		clear(idle[len(kept):])
		if d.idle[host] = kept; len(kept) == 0 {
			delete(d.idle, host)
		}
	}
	d.sweeps = nil
	if len(d.idle) > 0 {
		d.sweeps = time.AfterFunc(sweepInterval, d.sweep)
	}
	d.mu.Unlock()
	for _, w := range useless {
		w.Close()
	}
}

// close closes the idle connections, and those in use at the end of their replies.
func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, idle := range d.idle {
		for _, w := range idle {
			w.Close()
		}
	}
	d.idle, d.closed = nil, true
	if d.sweeps != nil {
		d.sweeps.Stop()
	}
}
