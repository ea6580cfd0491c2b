// Package lambda answers invocations of a function on AWS Lambda that are HTTP requests,
// by an HTTP API (payload format 2.0) or a function URL, which send the same shape.
//
// The one idea to know: handlers do not notice the difference. A handler sees the same
// request as from net/http's server, and its reply is sent as that server would send it, as
// far as the front door permits. Tests play the transcripts of core/web both ways. The
// package core of aws-lambda-go-api-proxy does the conversion itself. This package repairs
// it where signatures, addresses or routes would change: see [request] and [answer].
//
// It imports core, core/web for its own replies, and AWS's two libraries for the data
// types.
package lambda

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	gateway "github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
)

// answerBefore is how long before the end of an invocation its request is canceled. The
// rest of the time is for the reply.
const answerBefore = time.Second

var (
	errShape     = gateway.Refuse(gateway.Invalid, "the event is no HTTP request of payload format 2.0; invoke this function by an HTTP API or a function URL")
	errMalformed = gateway.Refuse(gateway.Invalid, "malformed request")
	errAborted   = errors.New("the reply broke off")
	errLarge     = gateway.Refuse(gateway.Invalid, "the reply would be larger than the 6 MB that a function may send; ask for less, with a lower limit or batch")
)

// Answer makes a handler answer the HTTP request in an invocation's event, and returns the
// invocation's answer. The request's context ends a second before the invocation does. If
// the handler panics, its reply is incomplete, and the answer is 500. That includes a panic
// that would cut the connection, since the connection is the front door's. If the reply is
// larger than an answer may be, the caller gets a 400.
//
// The error says that an event is not such a request. There is no other error.
func Answer(ctx context.Context, h http.Handler, event []byte, log *slog.Logger) ([]byte, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	r, err := request(ctx, event)
	if err == errMalformed {
		// A request that net/http would refuse gets the reply that the routes would give.
		r, h = &http.Request{URL: &url.URL{}}, web.Refuse(err)
	} else if err != nil {
		return nil, err
	}
	a := newAnswer(r.Method)
	// A reply is sent whole or not at all: the front door has no way to break one off.
	if complete := serve(h, a, r, log); !complete && !a.large {
		a = refused(r, errAborted)
	}
	text, ok := a.json()
	if !ok {
		text, _ = refused(r, errLarge).json()
	}
	return text, nil
}

// within returns the context of a request.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	// A long poll sees this deadline and returns in time: see inTime of core/web.
	return context.WithDeadline(ctx, deadline.Add(-answerBefore))
}

// refused returns the answer to a request that no handler can answer.
func refused(r *http.Request, err error) *answer {
	a := newAnswer(r.Method)
	web.Refuse(err).ServeHTTP(a, r)
	return a
}

// serve reports whether the handler returned without a panic.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request, log *slog.Logger) (complete bool) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			log.Error("panic while serving a request", "method", r.Method, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	h.ServeHTTP(w, r)
	return true
}
