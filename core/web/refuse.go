package web

import (
	"log/slog"
	"net/http"
)

// Refuse answers any request with an error, as the routes do: for a process that has no
// routes yet, or cannot send what they said.
func Refuse(err error) http.Handler {
	d := &Door{Settings: Settings{Log: slog.New(slog.DiscardHandler)}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setAlways(w.Header())
		d.fail(w, r, err)
	})
}
