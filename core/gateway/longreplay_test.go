package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	record "github.com/eventgateway/gateway/core/wire"
)

// leaping is a store on whose clock a slice of an operation takes some time.
type leaping struct {
	core.Store
	ahead atomic.Int64
	takes time.Duration
}

func (l *leaping) DoSlice(ctx context.Context, now time.Time, s core.Slice) (core.Operation, error) {
	defer l.ahead.Add(int64(l.takes))
	return l.Store.DoSlice(ctx, now, s)
}

// TestReplayThatIsLong: a replay that takes longer than a request may is answered 202, with the operation
// that goes on, by the binary and by a function. One that takes less is answered 200.
func TestReplayThatIsLong(t *testing.T) {
	for _, maxReply := range []int{0, 1 << 20} { // the binary, and a function
		s := &leaping{Store: openStore(t, filepath.Join(t.TempDir(), "gateway.db"))}
		clock := func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
		c := load(t, `
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: "http://192.0.2.1/"}}
`)
		g, err := gateway.New(c, gateway.Deps{Store: s, Clock: clock, Log: slog.New(slog.DiscardHandler), Version: "test", MaxReply: maxReply,
			Metrics: metrics.New(metrics.Options{Names: gateway.Names(c)})})
		if err != nil {
			t.Fatal(err)
		}
		h := g.Handler()
		const n = 250 // three slices
		var events []string
		for i := range n {
			events = append(events, fmt.Sprintf(`{"specversion": "1.0", "id": "%d", "source": "/", "type": "order", "data": {}}`, i))
		}
		post := httptest.NewRequest("POST", "/events/shop", strings.NewReader("["+strings.Join(events, ",")+"]"))
		post.Header.Set("Content-Type", "application/cloudevents-batch+json")
		got := httptest.NewRecorder()
		if h.ServeHTTP(got, post); got.Code != http.StatusAccepted {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		for _, step := range []struct {
			takes        time.Duration
			code, events int
			state        core.OperationState
		}{
			{5 * time.Second, http.StatusOK, n, core.OperationFinished},
			{11 * time.Second, http.StatusAccepted, 200, core.OperationRunning},
		} {
			s.takes = step.takes
			got := httpAsk(h, "POST /api/events/replay", fmt.Sprintf(`{"limit": %d}`, n))
			var reply record.Replayed
			if err := json.Unmarshal(got.Body.Bytes(), &reply); err != nil || got.Code != step.code || reply.Events != step.events || reply.Jobs != step.events || reply.More {
				t.Fatalf("replay with slices of %s = %d %s, %v; want %d events, and %d", step.takes, got.Code, got.Body, err, step.events, step.code)
			}
			page, err := g.Operations.List(t.Context(), "", 1)
			if err != nil || len(page.Items) != 1 || page.Items[0].State != step.state || page.Items[0].Acted != step.events {
				t.Fatalf("operations %+v, %v; want that it is %s", page.Items, err, step.state)
			}
			if want := string(page.Items[0].ID); (reply.Operation == want) != (step.state == core.OperationRunning) {
				t.Errorf("replay with slices of %s names the operation %q, and the last one is %s", step.takes, reply.Operation, want)
			}
		}
	}
}
