package metrics

import "net/http"

// inTurn limits a handler to most requests at once. Further requests wait instead of being
// refused: many scrapes at once are often the moment when an operator needs the metrics.
func inTurn(most int, h http.Handler) http.Handler {
	turns := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			h.ServeHTTP(w, r)
		case <-r.Context().Done(): // the client does not read it
		}
	})
}
