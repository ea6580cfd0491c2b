package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/eventgateway/gateway/core"
)

// How a reply is written whose size is not a constant. A client that reads nothing is cut
// off after chunkTime. A slow one has the time that its reply takes at the slowest rate.
const (
	chunkSize    = 64 << 10 // bytes that are written in one go
	chunkTime    = 10 * time.Second
	replyTime    = 20 * time.Second // for any reply
	slowestReply = 64 << 10         // bytes a second, beyond that
)

// unnoticed is how many bytes of a reply net/http writes when the handler has returned.
const unnoticed = 4 << 10

// sendBuffer is how many bytes of a large reply the kernel takes over, about: they have
// left the budget, and are still in the memory that a container is held to. Unless told,
// it takes up to 4 MiB on Linux.
const sendBuffer = 128 << 10

// worthReturning is how many bytes are given back to the budget before a reply is written.
const worthReturning = 256 << 10

// A reply writes what one request is answered, within the budget.
type reply struct {
	http.ResponseWriter
	request  *http.Request
	room     *room
	patience time.Duration // for each chunk
	end      time.Time     // when all must be written; zero is never
}

// reply is the writer for a request whose reply counts. Its room must be closed.
func (d *Door) reply(w http.ResponseWriter, r *http.Request, client netip.Addr) *reply {
	return &reply{ResponseWriter: w, request: r, room: d.Counts.outflow.room(client), patience: chunkTime}
}

// charged serves a route that takes up to about so many bytes to make its reply. Once
// that is made it counts with what it has.
func (d *Door) charged(bytes int, serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		p := d.reply(w, r, recordOf(w).client)
		defer p.room.close()
		if err := p.room.wait(r.Context(), bytes); err != nil {
			return err
		}
		return serve(p, r)
	}
}

// What it takes to make the replies of operators, in bytes, about.
const (
	listBytes = 2 << 20                // a listing: up to some thousand records without payloads
	pageBytes = core.MaxRead + 512<<10 // a page of payloads
)

// recordBytes is what it takes to make a reply with one event.
func (d *Door) recordBytes() int { return int(min(d.MaxBodySize, pageBytes)) + 64<<10 }

// Unwrap is for http.ResponseController.
func (p *reply) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// begin states how long the body is that is about to be written.
func (p *reply) begin(bytes int) {
	p.room.Hold(bytes)
	if bytes > unnoticed {
		p.end = time.Now().Add(replyTime + time.Duration(bytes)*time.Second/slowestReply)
	}
	if bytes > chunkSize {
		boundBuffer(p.request.Context())
	}
}

// wrote states how much of the body is left.
func (p *reply) wrote(left int) {
	if p.room.has.held-left >= worthReturning {
		p.room.Hold(left)
	}
}

// Write writes a body or a part of one, chunk by chunk.
func (p *reply) Write(text []byte) (written int, err error) {
	for more := true; more; more = len(text) > 0 && err == nil {
		n := min(len(text), chunkSize)
		p.hurry(n)
		n, err = p.ResponseWriter.Write(text[:n])
		text, written = text[n:], written+n
	}
	return written, err
}

// hurry sets the time until when a chunk must be written. A short reply has that of the
// server.
func (p *reply) hurry(bytes int) {
	if p.end.IsZero() && bytes <= unnoticed {
		return
	}
	end := time.Now().Add(p.patience)
	if !p.end.IsZero() && p.end.Before(end) {
		end = p.end
	}
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(end) // a server that has none needs none
}

// begin and wrote are those of a reply, if the writer is one.

func begin(w http.ResponseWriter, bytes int) {
	if p, ok := w.(*reply); ok {
		p.begin(bytes)
	}
}

func wrote(w http.ResponseWriter, left int) {
	if p, ok := w.(*reply); ok {
		p.wrote(left)
	}
}

// connection is what a request's connection is called in its context.
type connection struct{}

// withConnection lets the requests of a connection know it.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, c)
}

// boundBuffer bounds what the kernel keeps for a connection that has a large reply.
func boundBuffer(ctx context.Context) {
	c := ctx.Value(connection{})
	if l, ok := c.(*conn); ok {
		c = l.Conn
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the reply comes all the same
	}
}
