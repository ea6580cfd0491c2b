package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Echoed is a request that the built-in receiver got.
type Echoed struct {
	Method string
	Header http.Header
	Body   []byte
}

// Echo returns a receiver for trials: a handler of the gateway may deliver to the gateway's
// own /_echo. It passes each request to report, and answers 200.
func Echo(report func(Echoed)) Piece {
	return func(r chi.Router, d *Door) {
		r.Handle("/_echo", d.receiving(&d.budgets.intake, func(w http.ResponseWriter, r *http.Request) error {
			body, err := d.body(w, r)
			if err != nil {
				return err
			}
			report(Echoed{r.Method, r.Header, body})
			writeJSON(w, http.StatusOK, echoBody{"ok", len(body)})
			return nil
		}))
	}
}

// An echoBody answers a delivery to the echo receiver.
type echoBody struct {
	Status   string `json:"status"`
	Received int    `json:"bytes_received"`
}
