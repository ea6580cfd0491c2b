package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of searches for events. A search for a delivery id must find the events of all senders
// with that id, and no others.

const (
	saysByDelivery = "A filter with a DeliveryID selects at most one event of each source"
	saysReadNewest = "ReadNewest returns events in full, the newest first: the selected events below f.After, or all of them if that is empty, with the bounds of Read"
)

// readNewest returns the newest events below f.After, with their payloads.
func (r *rig) readNewest(f core.EventFilter) core.Page[core.Event] {
	r.Helper()
	p, err := r.store.ReadNewest(context.Background(), f)
	if err != nil {
		r.Fatalf("ReadNewest(%+v) failed: %v", f, err)
	}
	return p
}

// A search begins at the newest event, or below the last event that an earlier search read. The
// id may be of an event that was purged.
func newestEvents(r *rig) {
	events := r.storeEvents(4)
	r.equal("ReadNewest", r.readNewest(core.EventFilter{}), core.Page[core.Event]{Items: newest(events)})
	for i, e := range events {
		r.equal("ReadNewest below", r.readNewest(core.EventFilter{After: e.ID}).Items, newest(events[:i]))
		r.equal("ReadNewest below a missing event", r.readNewest(core.EventFilter{After: e.ID + "!"}).Items, newest(events[:i+1]))
	}
}

// ReadNewest returns the same events as the listing with the filter.
func newestSelected(r *rig) {
	events := r.storeEvents(6)
	for _, f := range someFilters(events) {
		f.After = events[5].ID
		want := newest(filtered(events[:5], func(e core.Event) bool { return selects(f, e) }))
		r.equal(fmt.Sprintf("ReadNewest(%+v)", f), r.readNewest(f), core.Page[core.Event]{Items: want})
	}
}

// The events of a page of ReadNewest have about MaxRead bytes at most, as those of Read.
func newestLarge(r *rig) {
	events := newest(r.storeLarge())
	for _, want := range []struct{ from, to int }{{0, 5}, {1, 6}, {2, 6}, {3, 6}} {
		f := core.EventFilter{}
		if want.from > 0 {
			f.After = events[want.from-1].ID
		}
		p := r.readNewest(f)
		r.equal("ReadNewest: events", ids(p.Items), ids(events[want.from:want.to]))
		r.equal("ReadNewest: More", p.More, want.to < len(events))
	}
}

// A reader that continues below the last id of a page gets each event once, for pages that end
// before, at and after the oldest event.
func newestPages(r *rig) {
	events := r.storeEvents(7)
	for _, limit := range []int{1, 2, 6, 7, 8} {
		var got []core.Event
		f := core.EventFilter{Limit: limit}
		for more := true; more; {
			p := r.readNewest(f)
			if len(p.Items) == 0 || len(p.Items) > limit {
				r.Fatalf("ReadNewest below %q with a limit of %d has %d items", f.After, limit, len(p.Items))
			}
			got, more = append(got, p.Items...), p.More
			f.After = lastID(got)
		}
		r.equal("ReadNewest page by page", got, newest(events))
	}
}

// storeDeliveries stores events of three sources, one a second, and returns them, oldest first.
// Two deliveries have the same id at "shop" and at "crm". An alert has that id too, but is not
// returned. Some events have no delivery id.
func (r *rig) storeDeliveries() (events []core.Event) {
	r.Helper()
	for _, e := range []core.Event{
		{Source: "shop", DeliveryID: "d-1", Type: "order.created"},
		{Source: "crm", DeliveryID: "d-2", Type: "user.created"},
		{Source: "shop", Type: "order.created"},
		{Source: "crm", DeliveryID: "d-1", Type: "order.created"},
		{Source: "shop", DeliveryID: "d-2", Type: "order.deleted"},
		{Source: "app", DeliveryID: "d-3", Type: "order.created"},
		{Source: core.AlertSource, DeliveryID: "d-1", Type: "order.created"},
	} {
		a := r.arrival()
		a.Event.Source, a.Event.Type, a.Event.DeliveryID = e.Source, e.Type, e.DeliveryID
		r.accepted(a)
		if e.Source != core.AlertSource {
			events = append(events, a.Event)
		}
		r.now = r.now.Add(time.Second)
	}
	return events
}

// deliveryFilters select by a delivery id, alone and with each other field.
func deliveryFilters(events []core.Event) (filters []core.EventFilter) {
	for _, id := range []string{"d-1", "d-2", "d-3", "d", "d-12"} {
		for _, f := range []core.EventFilter{
			{}, {Source: "shop"}, {Source: "nobody"}, {Type: "order.created"}, {Type: "nothing"},
			{Source: "crm", Type: "order.created"}, {Source: "crm", Type: "user.deleted"},
			{Since: events[1].CreatedAt}, {Until: events[1].CreatedAt}, {Source: "crm", Since: events[2].CreatedAt, Until: events[4].CreatedAt},
		} {
			f.DeliveryID = id
			filters = append(filters, f)
		}
	}
	return filters
}

// Each way to read events selects the same ones, and the other fields of the filter hold too.
func selectDelivery(r *rig) {
	events := r.storeDeliveries()
	for _, f := range deliveryFilters(events) {
		want := newest(filtered(events, func(e core.Event) bool { return selects(f, e) }))
		r.wantEvents(f, want)
		r.equal(fmt.Sprintf("Read(%+v)", f), ids(r.read("", f).Items), ids(newest(want)))
		r.equal(fmt.Sprintf("ReadNewest(%+v)", f), ids(r.readNewest(f).Items), ids(want))
		for n, id := range append(ids(want), lastID(want)) {
			r.equal(fmt.Sprintf("Nth(%+v, %d)", f, n+1), r.nth(f, n+1), id)
		}
	}
	r.equal("Events of an alert", len(r.events(core.EventFilter{Source: core.AlertSource, DeliveryID: "d-1"}).Items), 1)
}

// lastID returns the id of the last event, "" if there is none.
func lastID(events []core.Event) core.ID {
	if len(events) == 0 {
		return ""
	}
	return events[len(events)-1].ID
}

// Pages of one lead through the events of all sources.
func pageDelivery(r *rig) {
	events := r.storeDeliveries()
	p := r.events(core.EventFilter{DeliveryID: "d-1", Limit: 1})
	r.equal("Events of a delivery", ids(p.Items), []core.ID{events[3].ID})
	r.equal("Events of a delivery: More", p.More, true)
	p = r.events(core.EventFilter{DeliveryID: "d-1", Limit: 1, After: events[3].ID})
	r.equal("Events of a delivery, next page", ids(p.Items), []core.ID{events[0].ID})
	r.equal("Events of a delivery, next page: More", p.More, false)
	r.equal("Read of a delivery from an id", ids(r.read(events[1].ID, core.EventFilter{DeliveryID: "d-1"}).Items), []core.ID{events[3].ID})
}
