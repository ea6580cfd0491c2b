package web

import (
	"log/slog"
	"net/http"
)

// Refuse returns a handler that answers every request with an error, as the routes do. It
// is for a process that has no routes yet, or cannot send their replies.
func Refuse(err error) http.Handler {
	// The caller of Refuse logs the error itself, with the reason why there are no routes.
	d := &Door{Settings: Settings{Log: slog.New(slog.DiscardHandler)}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setAlways(w.Header())
		d.fail(w, r, err)
	})
}
