package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
)

// callbackPath is before the tokens of callbacks.
const callbackPath = "/callback/"

// CallbackOptions is what the route of callbacks works with.
type CallbackOptions struct {
	// Resume resumes the step that a token was issued for, with the body as its result.
	// If the token is not, or no longer, good, the error is a [core.NotFound] refusal,
	// unless this callback was recorded before. Refusals of a body are the same for every token.
	Resume func(ctx context.Context, token string, body []byte) error
}

// Callback is the route by which those who were asked to call back do so. The token in
// the path is all that proves who they are. So nothing but Resume looks at it: whatever
// the guards, the method or the body are answered, they are for any token, and one that
// is not good is answered as a route that does not exist.
func Callback(o CallbackOptions) Piece {
	return func(r chi.Router, d *Door) {
		c := &callbackRoute{d, o}
		r.Post(callbackPath+"{token}", d.receiving(&d.budgets.callbacks, c.resume))
	}
}

type callbackRoute struct {
	*Door
	CallbackOptions
}

func (c *callbackRoute) resume(w http.ResponseWriter, r *http.Request) error {
	body, err := c.body(w, r)
	if err != nil {
		return err
	}
	// A callback that has wholly arrived counts, also if its sender has hung up: the
	// token is good once, and the sender cannot know how far it got.
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

type calledBody struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// callingBack reports whether a request is for the route of callbacks, or would be with
// another method.
func callingBack(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, callbackPath) }
