package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
)

// callbackPath is the part of the path before the token of a callback.
const callbackPath = "/callback/"

// CallbackOptions are the dependencies of the route of callbacks.
type CallbackOptions struct {
	// Resume resumes the step for which a token was issued, with the body as its result. If
	// the token is not valid, or no longer, the error is a [core.NotFound] refusal, unless
	// this callback was recorded before. Refusals of a body are the same for every token.
	Resume func(ctx context.Context, token string, body []byte) error
}

// Callback returns the route to which external systems post callbacks. The token in the
// path is their only proof, so only Resume looks at the token. The guards, the method and
// the body give the same replies for every token. An invalid token gives the same reply as
// an unknown route.
func Callback(o CallbackOptions) Piece {
	return func(r chi.Router, d *Door) {
		// Callbacks have slots of their own, so that callers with guessed tokens keep no event out.
		c := &callbackRoute{d, o}
		r.Post(callbackPath+"{token}", d.receiving(&d.budgets.callbacks, c.resume))
	}
}

// callbackRoute serves callbacks. It has slots of its own: see budgets.
type callbackRoute struct {
	*Door
	CallbackOptions
}

// resume passes the token and the body on. The body is read before the token is looked up, so the
// time of a refusal is the same for every token.
func (c *callbackRoute) resume(w http.ResponseWriter, r *http.Request) error {
	body, err := c.body(w, r)
	if err != nil {
		return err
	}
	// A callback that has arrived completely counts, also if its sender has disconnected:
	// the token can be used once, and the sender cannot know how far it got.
	err = c.Resume(context.WithoutCancel(r.Context()), segment(r, "token"), body)
	switch {
	case core.IsKind(err, core.NotFound):
		return errNoRoute
	case err != nil:
		return err
	}
	writeJSON(w, http.StatusOK, calledBody{"ok", "callback received"})
	return nil
}

// A calledBody answers a callback that was received, now or before.
type calledBody struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// callingBack reports whether a request is for the route of callbacks, with any method.
func callingBack(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, callbackPath) }
