package web

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Times and sizes of a reply whose size is not a constant. A client that reads nothing is cut
// off after chunkTime. A slow client has as long as the reply takes at the slowest rate.
const (
	chunkSize    = 64 << 10 // bytes of one write
	chunkTime    = 10 * time.Second
	replyTime    = 20 * time.Second // for any reply, and its size divided by slowestReply in addition
	slowestReply = 64 << 10         // bytes a second
)

// unnoticed is how many bytes of a reply net/http buffers until the handler has returned.
const unnoticed = 4 << 10

// sendBuffer is about how many bytes of a large reply the kernel buffers. These bytes have
// left the budget, but still count against the memory limit of a container. Linux would
// otherwise buffer up to 4 MiB.
const sendBuffer = 128 << 10

// worthReturning is how many written bytes a reply gives back to the budget at once.
const worthReturning = 256 << 10

// A reply writes the answer to one request, within the budget.
//
// Its life: charged or receive makes it with reserved bytes, begin replaces these by the length of
// the body, wrote gives them back as the client reads, and the room is closed at the end.
type reply struct {
	http.ResponseWriter
	request  *http.Request
	room     *room
	patience time.Duration // for each chunk
	end      time.Time     // when the whole reply must be written; zero means no deadline
}

// reply returns the writer of a request whose reply counts. The caller must close its room.
func (d *Door) reply(w http.ResponseWriter, r *http.Request, rec *record) *reply {
	return &reply{ResponseWriter: w, request: r, room: d.Counts.outflow.room(rec.network), patience: chunkTime}
}

// charged serves a route that needs up to about this many bytes to make its reply. As soon as
// the reply is made, only its own bytes count.
func (d *Door) charged(bytes int, serve route) route {
	return func(w http.ResponseWriter, r *http.Request) error {
		p := d.reply(w, r, recordOf(w))
		defer p.room.close()
		if err := p.room.wait(r.Context(), bytes); err != nil {
			return err
		}
		p.room.Hold(bytes) // a poll need not wait for the end of a query, which may be slow
		return serve(p, r)
	}
}

// listBytes is about how many bytes the gateway needs to make a listing: up to some thousand
// records without payloads.
const listBytes = 2 << 20

// beside is about how many bytes a page of payloads has beside them.
const beside = 512 << 10

// recordBytes is about how many bytes the gateway needs to make a reply with one event.
func (d *Door) recordBytes() int { return int(d.MaxBodySize) + 64<<10 }

// pageBytes is about how many bytes the gateway needs to make a page of payloads. A page has
// one payload at least, of any size.
func (d *Door) pageBytes() int { return max(core.MaxRead, int(d.MaxBodySize)) + beside }

// runBytes is about how many bytes the gateway needs to make a page about a run: its states
// and outputs, and the payload of its event.
func (d *Door) runBytes() int { return 2*core.MaxRead + int(d.MaxBodySize) + beside }

// Unwrap is for http.ResponseController.
func (p *reply) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// begin states the length of the body that the caller is about to write.
func (p *reply) begin(bytes int) {
	p.room.Hold(bytes)
	// A shorter reply fits into net/http's buffer. Then no write blocks, and the deadline of the
	// server suffices.
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
		// Each chunk has its own deadline. So a client is cut off when it stops reading, not when a
		// large reply takes long.
		n := min(len(text), chunkSize)
		p.setDeadline(n)
		n, err = p.ResponseWriter.Write(text[:n])
		text, written = text[n:], written+n
	}
	return written, err
}

// setDeadline sets the deadline of a chunk. A short reply keeps the deadline of the server.
func (p *reply) setDeadline(bytes int) {
	// Setting a deadline costs a system call, which short replies do without.
	if p.end.IsZero() && bytes <= unnoticed {
		return
	}
	end := time.Now().Add(p.patience)
	if !p.end.IsZero() && p.end.Before(end) {
		end = p.end
	}
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(end) // a server without deadlines needs none
}

// begin and wrote call the methods of a reply, if the writer is a reply.

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

// connection is the key of a request's connection in its context.
type connection struct{}

// withConnection adds a connection to the context of its requests.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, c)
}

// boundBuffer bounds the kernel's buffer of a connection with a large reply.
func boundBuffer(ctx context.Context) {
	c := ctx.Value(connection{})
	if l, ok := c.(*conn); ok {
		c = l.Conn
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the client gets the reply without it, too
	}
}
