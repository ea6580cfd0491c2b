package web

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
)

var (
	errTooLarge   = core.Refuse(core.TooLarge, "Payload too large")
	errEncoding   = core.Refuse(core.Unsupported, "Unsupported content encoding")
	errIncomplete = &core.Refusal{Kind: core.Invalid, Message: "request body is incomplete or malformed", Cause: intake.ErrMalformed}
)

// smallBody is the size in bytes up to which a body may arrive before its request takes a
// slot. If [MaxConnections] such bodies arrive at once, they take 64 MiB. Most events are
// smaller.
const smallBody = 16 << 10

// slowestBody is the lowest rate, in bytes a second, at which a client must send a larger
// body after the ReadTimeout of the server.
const slowestBody = 32 << 10

// body reads the body of a request: at most MaxBodySize bytes without a content encoding. A
// signature covers the bytes as sent, and a few bytes of gzip may decode to a thousand
// times as many. When it returns a body, the request has its slots. A route calls it once.
//
//	length known, up to 16 KiB:  small: read, then a slot of serving
//	larger, or not known:        large: a slot of arriving, a slot of serving, then read
//
// So a slow client with a small body holds a connection only, and memory for large bodies is
// bounded by the slots.
func (d *Door) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if encoded(r.Header) {
		return nil, errEncoding
	}
	// The length is refused before any byte is read, so the client may stop sending.
	if r.ContentLength > d.MaxBodySize {
		return nil, errTooLarge
	}
	rec := recordOf(w)
	// Nothing has to arrive, so the request is served like any other from here on.
	if r.Body == nil || r.Body == http.NoBody {
		return nil, rec.enter(r.Context(), rec.budget.serving...)
	}
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		return d.large(rec, r)
	}
	return d.small(rec, r)
}

// small reads a small body. The bound on a client's connections also bounds its small bodies,
// unless a proxy holds the connections.
func (d *Door) small(rec *record, r *http.Request) ([]byte, error) {
	if d.Clients.TrustProxy {
		if err := rec.enter(r.Context(), d.budgets.small); err != nil {
			return nil, err
		}
		defer rec.leave(d.budgets.small)
	}
	// The length is at most 16 KiB, so it may be trusted for an allocation.
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, unread(err)
	}
	return body, rec.enter(r.Context(), rec.budget.serving...)
}

// large reads a body that is large, or whose length is unknown.
func (d *Door) large(rec *record, r *http.Request) ([]byte, error) {
	// The slot of serving is taken before the body, not after it: a body that has arrived would
	// otherwise wait in memory for a slot.
	if err := rec.enter(r.Context(), rec.budget.arriving...); err != nil {
		return nil, err
	}
	defer rec.leave(rec.budget.arriving...)
	if err := rec.enter(r.Context(), rec.budget.serving...); err != nil {
		return nil, err
	}
	// Without a length the body ends where it ends, or where it becomes too large.
	from, most := io.Reader(r.Body), r.ContentLength
	if most < 0 {
		from, most = http.MaxBytesReader(rec, r.Body, d.MaxBodySize), d.MaxBodySize
	}
	body, err := gather(from, int(most), newPacer(rec, r))
	// The connection ended before the announced length.
	if err == nil && int64(len(body)) < r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, unread(err)
	}
	return body, nil
}

// gather reads up to most bytes. It allocates memory as bytes arrive, not by the length that
// the client announces.
func gather(from io.Reader, most int, pace *pacer) ([]byte, error) {
	body := make([]byte, 0, min(most, smallBody))
	for {
		// Growing by four keeps the copies below a third of the bytes, and memory below four times
		// the bytes that have arrived.
		if pace.arrived(len(body)); len(body) == cap(body) {
			if len(body) == most {
				return body, end(from)
			}
			body = append(make([]byte, 0, min(most, 4*len(body))), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// end reads past a complete body. It returns an error of the connection, and ignores further
// bytes.
func end(from io.Reader) error {
	if n, err := io.ReadFull(from, make([]byte, 1)); n == 0 && err != io.EOF {
		return err
	}
	return nil
}

// unread turns an error of reading a body into the refusal of its request.
func unread(err error) error {
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	default:
		return errIncomplete
	}
}

// A pacer extends the deadlines of a request as its body arrives. So a slow client can
// finish, and a client that has stopped is cut off. Without a server there are no deadlines.
//
// A fixed deadline would either cut off large bodies on slow lines, or let a client hold its slot
// for as long as the largest body may take.
type pacer struct {
	control *http.ResponseController
	server  *http.Server
	begun   time.Time
}

// newPacer returns the pacer of a request. Its time begins now.
func newPacer(rec *record, r *http.Request) *pacer {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return &pacer{http.NewResponseController(rec), server, time.Now()}
}

// arrived extends the deadlines for n bytes. An error of a deadline is an error of the
// connection, and the next read returns it as well.
func (p *pacer) arrived(n int) {
	if p.server == nil || p.server.ReadTimeout <= 0 {
		return
	}
	due := p.begun.Add(p.server.ReadTimeout + time.Duration(n)*time.Second/slowestBody)
	_ = p.control.SetReadDeadline(due)
	_ = p.control.SetWriteDeadline(due.Add(p.server.WriteTimeout))
}

// optional reads a body that is missing, or a JSON object of known fields. The request may
// have no parameters beside it.
func (d *Door) optional(w http.ResponseWriter, r *http.Request, known ...string) (fields, error) {
	if err := unasked(r, known); err != nil {
		return nil, err
	}
	body, err := d.body(w, r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	return fieldsOf(body, known...)
}

// encoded reports whether a body has a content encoding other than none.
func encoded(h http.Header) bool {
	for _, e := range h["Content-Encoding"] {
		if e != "" && !strings.EqualFold(e, "identity") {
			return true
		}
	}
	return false
}
