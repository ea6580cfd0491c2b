package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
)

// TestScrapesWait: all of many scrapes at once are answered, two at a time. A scrape whose
// client has disconnected is not served.
func TestScrapesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, goOn := make(chan struct{}, 10), make(chan struct{})
		h := inTurn(2, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			begun <- struct{}{}
			<-goOn
			w.WriteHeader(http.StatusOK)
		}))
		hungUp, hangUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		ask := func(ctx context.Context) {
			all.Go(func() {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil)); w.Code != http.StatusOK {
					t.Errorf("status %d, want 200", w.Code)
				}
			})
		}
		for range 4 {
			ask(t.Context())
		}
		synctest.Wait()
		ask(hungUp)
		if synctest.Wait(); len(begun) != 2 {
			t.Errorf("%d answered at once, want 2", len(begun))
		}
		hangUp()
		synctest.Wait()
		close(goOn)
		if all.Wait(); len(begun) != 4 {
			t.Errorf("%d answered, want all but the one that has hung up: 4", len(begun))
		}
	})
}
