package boot

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
)

// countedMinutes returns the sums of all lanes in an hour around now.
func (f *fleet) countedMinutes() map[core.Lane]core.Counts {
	f.t.Helper()
	now := time.Now()
	sums, err := store.New(f.conn, store.SQLite, time.Now).SumMinutes(context.Background(), now.Add(-time.Hour), now.Add(time.Hour), time.Minute)
	if err != nil {
		f.t.Fatal(err)
	}
	all := map[core.Lane]core.Counts{}
	for _, s := range sums {
		all[s.Lane] = all[s.Lane].Add(s.Counts)
	}
	return all
}

func (f *fleet) wantMinutes(when string, want map[core.Lane]core.Counts) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.countedMinutes()); diff != "" {
		f.t.Errorf("counts %s (-want +got):\n%s", when, diff)
	}
}

// TestMinutes: the function that accepts events stores no counts. The worker's function counts its
// deliveries at once. It counts the events of a minute when the minute is over, and only once.
func TestMinutes(t *testing.T) {
	f := newFleet(t, "")
	f.accept()
	f.accept()
	f.wantMinutes("after two events", map[core.Lane]core.Counts{})
	fn, a := f.function(gateway.Deliveries)
	f.status <- 500
	now := a.database.times.Now()
	if _, err := fn.work(context.Background(), a, invocation{began: now, end: now.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	delivered := core.Counts{Completed: 2, Failed: 1}
	f.wantMinutes("after an invocation", map[core.Lane]core.Counts{"handler/billing": delivered})
	// The events were stored in this minute. A process whose clock is two minutes ahead counts them.
	census := gatewayAhead(t, f, 2*time.Minute)
	for range 2 {
		fn.countEvents(context.Background(), &assembly{Gateway: census})
		f.wantMinutes("after the minute", map[core.Lane]core.Counts{"handler/billing": delivered, "source/app": {Accepted: 2}})
	}
}

// gatewayAhead returns the worker's part of a gateway whose clock is ahead.
func gatewayAhead(t *testing.T, f *fleet, by time.Duration) *gateway.Gateway {
	t.Helper()
	clock := func() time.Time { return time.Now().Add(by) }
	fn, _ := newTest(t, gateway.Deliveries, f.yaml, nil)
	c, err := fn.loadConfig(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.NewPart(c, gateway.Deps{Store: store.New(f.conn, store.SQLite, clock), Clock: clock, Log: fn.log}, gateway.Deliveries)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
