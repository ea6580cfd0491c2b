package storetest

import (
	"context"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestBrokenSearchesFail requires that checks fail on stores that break one sentence about searches
// for events each. See broken_test.go.
func TestBrokenSearchesFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  string
	}{
		{"Events ignores the delivery id", func(m *Model) core.Store { return listsAnyDelivery{m} }, saysByDelivery},
		{"Read ignores the delivery id", func(m *Model) core.Store { return readsAnyDelivery{m} }, saysByDelivery},
		{"Events finds a delivery at one source only", func(m *Model) core.Store { return listsOneDelivery{m} }, saysByDelivery + "/page by page"},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			c := find(t, tc.fails)
			if failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{})) }) == "" {
				t.Errorf("the check %q passes a store whose %s", tc.fails, tc.breaks)
			}
		})
	}
}

// listsAnyDelivery lists the events of all deliveries.
type listsAnyDelivery struct{ *Model }

func (s listsAnyDelivery) Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	f.DeliveryID = ""
	return s.Model.Events(ctx, f)
}

// readsAnyDelivery reads the events of all deliveries.
type readsAnyDelivery struct{ *Model }

func (s readsAnyDelivery) Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error) {
	f.DeliveryID = ""
	return s.Model.Read(ctx, from, f)
}

// listsOneDelivery lists the newest event of a delivery.
type listsOneDelivery struct{ *Model }

func (s listsOneDelivery) Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	p, err := s.Model.Events(ctx, f)
	p.More = p.More && f.DeliveryID == ""
	return p, err
}
