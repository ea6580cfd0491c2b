package storetest

import (
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of searches for events. An operator who searches for a delivery must see the events of
// all its senders, and no other.

const saysByDelivery = "A filter with a DeliveryID selects at most one event of each source"

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
