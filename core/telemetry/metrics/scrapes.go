package metrics

import "net/http"

// inTurn answers at most most requests at once, in the order of arrival. The others wait
// and are not refused: under load the measurements are needed most.
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
