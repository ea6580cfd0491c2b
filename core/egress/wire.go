package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"
)

// A wire is a connection of a direct. It has one user at a time.
type wire struct {
	net.Conn
	home  *direct
	host  string          // of the URLs that it is for
	raw   syscall.RawConn // nil for a connection that the system does not know, as in tests
	in    *bufio.Reader   // of the wire
	room  int64           // how many bytes may be read
	since time.Time       // when its last reply ended
}

func newWire(conn net.Conn, home *direct, host string) *wire {
	w := &wire{Conn: conn, home: home, host: host}
	if c, ok := conn.(syscall.Conn); ok {
		w.raw, _ = c.SyscallConn()
	}
	w.in = bufio.NewReader(w)
	return w
}

// isUseful reports whether an idle connection can have another request: it was used not long ago,
// and the receiver has neither closed it nor sent bytes without a request.
func (w *wire) isUseful() bool {
	return time.Since(w.since) < idleTimeout && w.isQuiet()
}

// isQuiet reports whether there is nothing to read on an idle connection, not even its end.
func (w *wire) isQuiet() bool {
	if w.raw == nil {
		return true
	}
	var state error
	err := w.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, state = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err == nil && (state == syscall.EAGAIN || state == syscall.EWOULDBLOCK)
}

var errHeaders = errors.New("server response headers exceeded 65536 bytes; aborted") // maxReplyHeaders

// Read reads at most as many bytes as there is room for.
func (w *wire) Read(b []byte) (int, error) {
	if w.room <= 0 {
		return 0, errHeaders
	}
	n, err := w.Conn.Read(b[:min(int64(len(b)), w.room)])
	w.room -= int64(n)
	return n, err
}

// exchange sends message, which is the request of m, and reads the head of the reply. The body of the
// reply gives the connection back or closes it. If there is no reply, the connection is closed, and
// again reports whether the request may be sent on another one.
func (w *wire) exchange(ctx context.Context, m *delivery, message []byte) (resp *http.Response, again bool, err error) {
	stop := context.AfterFunc(ctx, func() { w.SetDeadline(time.Unix(1, 0)) }) // long ago
	w.room = maxReplyHeaders
	n, unwritten := w.Write(message)
	if n > 0 { // also if not all was written: the receiver may have answered before
		resp, err = w.reply()
	}
	if resp == nil {
		stop()
		w.Close()
		if w.room <= 0 { // the error of the parser may be about a line that was cut
			err = errHeaders
		}
		again = n == 0 || m.method == http.MethodGet && w.room == maxReplyHeaders
		if unwritten != nil {
			err = unwritten
		}
		return nil, again, err
	}
	w.room = math.MaxInt64
	body := &replyBody{ReadCloser: resp.Body, wire: w, stop: stop}
	body.last = resp.Close || unwritten != nil || resp.StatusCode == http.StatusSwitchingProtocols
	if resp.Body == http.NoBody {
		body.end(true)
	}
	resp.Body = body
	return resp, false, nil
}

// reply reads the head of a reply. It skips those before it that only inform (RFC 9110, section
// 15.2).
func (w *wire) reply() (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(w.in, nil)
		if err != nil || resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// A replyBody is the body of a reply. At its end the connection is free for the next request.
// Closed earlier, it closes the connection, since the rest may be long.
type replyBody struct {
	io.ReadCloser
	wire *wire
	stop func() bool // keeps the deadline from ending the connection; false if it is too late
	last bool        // no request may follow on the connection
	over bool
}

func (b *replyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(err == io.EOF)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *replyBody) Close() error {
	b.end(false)
	return nil
}

func (b *replyBody) end(whole bool) {
	if b.over {
		return
	}
	b.over = true
	if b.stop() && whole && !b.last && b.wire.in.Buffered() == 0 {
		b.wire.home.keep(b.wire)
	} else {
		b.wire.Close()
	}
}
