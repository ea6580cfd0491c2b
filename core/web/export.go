package web

import (
	"net/http"
	"time"

	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

var linesType = []string{"application/x-ndjson"}

// Bounds of an export.
const (
	worthSending = 64 << 10    // bytes of lines in one write
	exportTime   = time.Minute // how long a client may take to read them
)

// export sends events as lines. Its memory is the size of one page, however many events
// there are. If an error occurs after the first lines, export cuts the connection, because
// it has already sent status 200.
func (e *eventRoutes) export(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "source", "event_type", "delivery_id", "since", "until", "limit", "jobs")
	if err != nil {
		return err
	}
	filter, err := eventFilter(query)
	if err != nil {
		return err
	}
	n, err := query.atLeast("limit", 0, 1)
	if err != nil {
		return err
	}
	jobs, err := query.flag("jobs")
	if err != nil {
		return err
	}
	bare := !jobs && len(query["jobs"]) > 0 // an export has the jobs unless the query says otherwise
	// Up to 64 KiB of lines are collected before the head of the reply is sent, so an early error is
	// an ordinary reply.
	out := &lines{w: w}
	if p, ok := w.(*reply); ok {
		// A client may process the lines while it reads them, so it gets a minute for each chunk.
		p.patience = exportTime
		boundBuffer(r.Context())
	}
	for event, err := range e.manager.Export(r.Context(), filter, n, bare) {
		if err == nil {
			err = out.add(event)
		}
		if err != nil {
			return e.breakOff(r, out, err)
		}
	}
	_ = out.send() // a client that has disconnected needs no other reply
	return nil
}

// breakOff ends an export that failed. It sends a reply if none has begun.
func (e *eventRoutes) breakOff(r *http.Request, out *lines, err error) error {
	if !out.begun {
		return err
	}
	if r.Context().Err() == nil {
		e.logFailure(r, err)
	}
	// A chunked reply that ends without its last chunk is an error for every client. A normal end
	// would pass off a part of the events as all.
	panic(http.ErrAbortHandler)
}

// lines collects lines and sends them.
type lines struct {
	w     http.ResponseWriter
	begun bool
	text  []byte
}

// add adds an event, and sends the lines once they are worth a write.
func (l *lines) add(event manage.Told) error {
	line, err := wire.EventOf(event).Line()
	if err != nil {
		return err
	}
	if l.text = append(l.text, line...); len(l.text) < worthSending {
		return nil
	}
	return l.send()
}

// send sends the collected lines, after the head of the reply if that was not sent yet.
func (l *lines) send() error {
	if !l.begun {
		l.begun = true
		l.w.Header()["Content-Type"] = linesType
		l.w.WriteHeader(http.StatusOK)
	}
	_, err := l.w.Write(l.text)
	l.text = l.text[:0]
	return err
}
