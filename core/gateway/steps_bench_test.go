package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// BenchmarkSteps measures runs of ten http steps, from the event to the end of the run, on
// SQLite, at 32 steps at a time.
func BenchmarkSteps(b *testing.B) {
	const steps = 10
	var left atomic.Int64
	left.Store(int64(b.N * steps))
	ended := make(chan struct{})
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if left.Add(-1) == 0 {
			close(ended)
		}
	}))
	defer sink.Close()
	var list strings.Builder
	for n := range steps {
		fmt.Fprintf(&list, "\n      - {name: s%d, url: '%s'}", n, sink.URL)
	}
	s := openStore(b, filepath.Join(b.TempDir(), "gateway.db"))
	g := newGateway(b, load(b, private+"\nworker: {max_concurrency: 32, batch_size: 32}\nsources: {shop: {type: event}}\nworkflows:\n  flow:\n    source: shop\n    steps:"+list.String()), s)
	body := `{"pad": "` + strings.Repeat("x", 1000) + `"}`
	for range b.N {
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/events/shop/order", strings.NewReader(body)))
		if w.Code != 202 {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.ResetTimer()
	ctx, cancel := context.WithCancel(context.Background())
	ticked := make(chan error)
	go func() {
		_, err := g.Worker.Tick(ctx, core.Budget{Rest: time.Second})
		ticked <- err
	}()
	<-ended
	cancel()
	if err := <-ticked; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "us/step")
}
