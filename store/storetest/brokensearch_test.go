package storetest

import (
	"context"
	"testing"
	"time"

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
		{"ReadNewest begins at the oldest", func(m *Model) core.Store { return newestIsOldest{m} }, saysReadNewest},
		{"ReadNewest ignores After", func(m *Model) core.Store { return newestAgain{m} }, saysReadNewest},
		{"ReadNewest has no bound", func(m *Model) core.Store { return newestAll{m} }, saysReadNewest + "/at most MaxRead"},
		{"Newest leaves out the jobs", func(m *Model) core.Store { return newestEventOnly{m} }, saysNewestRecord},
		{"Newest leaves out the ends of runs", func(m *Model) core.Store { return newestEventOnly{m} }, saysNewestRecord + "/of jobs and runs"},
		{"Newest has a time if nothing finished", func(m *Model) core.Store { return newestNow{m} }, saysNoRecord},
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

// newestIsOldest reads from the oldest event on.
type newestIsOldest struct{ *Model }

func (s newestIsOldest) ReadNewest(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	return s.Read(ctx, "", f)
}

// newestAgain begins each page at the newest event.
type newestAgain struct{ *Model }

func (s newestAgain) ReadNewest(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	f.After = ""
	return s.Model.ReadNewest(ctx, f)
}

// newestAll returns events of any size on one page.
type newestAll struct{ *Model }

func (s newestAll) ReadNewest(_ context.Context, f core.EventFilter) (p core.Page[core.Event], err error) {
	for _, id := range newest(s.selected(f)) {
		if f.After == "" || id < f.After {
			p.Items = append(p.Items, s.events[id])
		}
	}
	return p, nil
}

// newestEventOnly knows events and their time only.
type newestEventOnly struct{ *Model }

func (s newestEventOnly) Newest(ctx context.Context) (id core.ID, finished time.Time, err error) {
	for id = range s.events {
		finished = s.events[id].CreatedAt
	}
	return id, finished, nil
}

// newestNow takes records that have not finished for finished ones.
type newestNow struct{ *Model }

func (s newestNow) Newest(ctx context.Context) (core.ID, time.Time, error) {
	id, finished, err := s.Model.Newest(ctx)
	if finished.IsZero() {
		finished = s.clock()
	}
	return id, finished, err
}
