package metrics

import "net/http"

// inTurn has so many requests answered at once, each as it comes. Others wait: whoever
// collects measurements is to have them most of all when many ask.
func inTurn(most int, h http.Handler) http.Handler {
	turns := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			h.ServeHTTP(w, r)
		case <-r.Context().Done(): // nobody reads it
		}
	})
}
