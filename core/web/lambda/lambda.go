// Package lambda answers invocations of a function on AWS Lambda that are HTTP requests,
// by an HTTP API (payload format 2.0) or a function URL, which send the same shape.
//
// The one idea to know: whoever answers is not to notice. What a handler sees of a
// request is what net/http's server would have shown it, and what it says is sent as that
// server would have sent it, as far as the front door lets either through; the transcripts
// of core/web are played both ways. The conversion itself is that of
// aws-lambda-go-api-proxy's package core, repaired where signatures, addresses or routes
// would not survive it: see [request] and [answer].
//
// It imports core, core/web for the replies that it gives itself, and AWS's two libraries
// for the shapes.
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

// answerBefore is what is left of an invocation when its request is given up: the rest is
// for the reply.
const answerBefore = time.Second

var (
	errShape     = gateway.Refuse(gateway.Invalid, "the event is no HTTP request of payload format 2.0; invoke this function by an HTTP API or a function URL")
	errMalformed = gateway.Refuse(gateway.Invalid, "malformed request")
	errAborted   = errors.New("the reply broke off")
	errLarge     = gateway.Refuse(gateway.Invalid, "the reply would be larger than the 6 MB that a function may send; ask for less, with a lower limit or batch")
)

// Answer has a handler answer the request that an invocation's event is, and returns the
// invocation's answer. The request's context ends a second before the invocation does. A
// handler that panics, also to have the connection cut, which is not ours, has not said
// all it had to say: the reply is 500. One that says more than fits into an answer gets
// its caller a 400.
//
// The error is of an event that is no such request, and of no other.
func Answer(ctx context.Context, h http.Handler, event []byte, log *slog.Logger) ([]byte, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	r, err := request(ctx, event)
	if err == errMalformed {
		r, h = &http.Request{URL: &url.URL{}}, web.Refuse(err)
	} else if err != nil {
		return nil, err
	}
	a := newAnswer(r.Method)
	if whole := serve(h, a, r, log); !whole && !a.large {
		a = refused(r, errAborted)
	}
	text, ok := a.json()
	if !ok {
		text, _ = refused(r, errLarge).json()
	}
	return text, nil
}

// within is the context of a request.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-answerBefore))
}

// refused is the answer to a request that nothing else can be said to.
func refused(r *http.Request, err error) *answer {
	a := newAnswer(r.Method)
	web.Refuse(err).ServeHTTP(a, r)
	return a
}

// serve tells whether the handler said all it had to say.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request, log *slog.Logger) (whole bool) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			log.Error("panic while serving a request", "method", r.Method, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	h.ServeHTTP(w, r)
	return true
}
