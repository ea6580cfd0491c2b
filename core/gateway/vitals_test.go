package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
)

// A stubborn store answers all questions, and writes only what it is allowed to.
type stubborn struct {
	core.Store
	events, turns error        // why they cannot be written
	asked         atomic.Int32 // how many turns there were
}

func (s *stubborn) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if s.events != nil {
		return core.Receipt{}, s.events
	}
	return s.Store.Accept(ctx, a)
}

func (s *stubborn) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	s.asked.Add(1)
	if s.turns != nil {
		return false, s.turns
	}
	return s.Store.Turn(ctx, now, name, hold)
}

// TestHealthOfADatabaseThatTakesNothing: a gateway is ill once something could not be
// written and a try fails too, until one succeeds. As long as all is well it tries
// nothing.
func TestHealthOfADatabaseThatTakesNothing(t *testing.T) {
	full := errors.New("disk full")
	s := &stubborn{Store: openStore(t, filepath.Join(t.TempDir(), "gateway.db"))}
	g, err := gateway.New(load(t, "sources: {shop: {type: event}}"), gateway.Deps{
		Store: s, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler), Rest: time.Nanosecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what          string
		events, turns error
		post, health  int
		tries         int32
	}{
		{"all is well", nil, nil, 202, 200, 0},
		{"nobody knows yet", nil, full, 202, 200, 0},
		{"one event was not written, anything else would be", full, nil, 500, 200, 1},
		{"nothing is written", full, full, 500, 503, 2},
		{"events are, and that is not enough to know", nil, full, 202, 503, 3},
		{"all is well again", nil, nil, 202, 200, 4},
		{"who has gone is no failure", context.Canceled, full, 500, 200, 4},
	} {
		s.events, s.turns = step.events, step.turns
		posted, health := httptest.NewRecorder(), httptest.NewRecorder()
		g.Handler().ServeHTTP(posted, httptest.NewRequest("POST", "/events/shop/order.created", nil))
		g.Handler().ServeHTTP(health, httptest.NewRequest("GET", "/health", nil))
		if posted.Code != step.post || health.Code != step.health || s.asked.Load() != step.tries {
			t.Errorf("%s: POST = %d, GET /health = %d %s after %d tries; want %d and %d after %d",
				step.what, posted.Code, health.Code, health.Body, s.asked.Load(), step.post, step.health, step.tries)
		}
	}
}
