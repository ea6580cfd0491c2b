package storetest

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// Checks of AcceptAll, with which a batch of events is accepted in one commit. A failure means
// that an event of a batch is answered with the receipt of another, or that one duplicate spoils
// the batch.

// acceptAll accepts arrivals in one call and returns the receipts.
func (r *rig) acceptAll(all ...core.Arrival) []core.Receipt {
	r.Helper()
	got, err := r.store.AcceptAll(context.Background(), all)
	if err != nil {
		r.Fatalf("AcceptAll of %d failed: %v", len(all), err)
	}
	return got
}

// acceptAll accepts new arrivals together with arrivals that repeat stored ones, by delivery id
// and by key. The arrivals cover each kind of answer, in one call, which is then repeated.
func acceptAll(r *rig) {
	delivered, keyed := r.delivered("d"), r.keyed("k")
	r.accepted(delivered)
	r.accepted(keyed)
	plain, bare, binary, part := r.arrival("handler/a", "handler/b"), r.arrival(), r.arrival(r.lane), r.arrival(r.lane, "handler/b")
	binary.Event.Payload, binary.Event.Binary = []byte{0, 0xff}, true
	part.Jobs[0].Key = "k"
	fresh := r.delivered("e")
	fresh.Jobs[0].Key = "l"
	repeated, seen := r.delivered("d"), r.keyed("k")
	want := []core.Receipt{
		{EventID: plain.Event.ID, Jobs: 2},
		{EventID: delivered.Event.ID, Duplicate: true},
		{EventID: bare.Event.ID},
		{EventID: keyed.Event.ID, Duplicate: true},
		{EventID: binary.Event.ID, Jobs: 1},
		{EventID: part.Event.ID, Jobs: 1},
		{EventID: fresh.Event.ID, Jobs: 1},
	}
	all := []core.Arrival{plain, repeated, bare, seen, binary, part, fresh}
	r.wantIdempotent("AcceptAll", func() { r.equal("AcceptAll", r.acceptAll(all...), want) })
	r.wantAbsent(repeated)
	r.wantAbsent(seen)
	for _, a := range []core.Arrival{plain, bare, binary, part, fresh} {
		r.equal("Event", r.storedEvent(a.Event.ID), a.Event)
	}
	r.equal("Depth", r.depth(), 7)
}

// acceptAllRepeats accepts arrivals that repeat each other. A repetition within a call cannot be
// found by the rows of earlier commits.
func acceptAllRepeats(r *rig) {
	known := r.keyed("known")
	r.accepted(known)
	a, b, c, d, e := r.delivered("d"), r.delivered("d"), r.keyed("k"), r.keyed("k"), r.delivered("e")
	left := r.keyed("known") // left out, and so is the arrival that repeats its delivery id
	left.Event.DeliveryID = "f"
	again := r.delivered("f")
	r.equal("AcceptAll", r.acceptAll(a, b, c, d, e, left, again), []core.Receipt{
		{EventID: a.Event.ID, Jobs: 1},
		{EventID: a.Event.ID, Duplicate: true},
		{EventID: c.Event.ID, Jobs: 1},
		{EventID: c.Event.ID, Duplicate: true},
		{EventID: e.Event.ID, Jobs: 1},
		{EventID: known.Event.ID, Duplicate: true},
		{EventID: known.Event.ID, Duplicate: true},
	})
	for _, gone := range []core.Arrival{b, d, left, again} {
		r.wantAbsent(gone)
	}
	same := r.arrival(r.lane)
	stored := core.Receipt{EventID: same.Event.ID, Jobs: 1}
	r.equal("AcceptAll of one arrival twice", r.acceptAll(same, same), []core.Receipt{stored, stored})
	r.equal("jobs", len(r.jobsOf(same.Event.ID)[same.Event.ID]), 1)
}

// acceptAllMany accepts as many arrivals as one call may have. Each has a delivery id, a key and
// three jobs. Databases need several statements for them.
func acceptAllMany(r *rig) {
	var all []core.Arrival
	var want []core.Receipt
	for i := range r.scaled(core.MaxTogether) {
		a := r.arrival(r.lane, "handler/b", "queue/c")
		a.Event.DeliveryID, a.Jobs[0].Key = fmt.Sprint("many-", i), fmt.Sprint("key-", i)
		all, want = append(all, a), append(want, core.Receipt{EventID: a.Event.ID, Jobs: 3})
	}
	r.equal("AcceptAll", r.acceptAll(all...), want)
	r.equal("AcceptAll again", r.acceptAll(all...), want)
	r.equal("Depth", r.depth(), 3*len(all))
}

// Runs of several arrivals are stored with their own events.
func acceptAllRuns(r *rig) {
	a, b := r.runArrival(defaultWorkflow), r.runArrival(defaultWorkflow, "billing")
	b.Event.DeliveryID = "d"
	r.equal("AcceptAll", r.acceptAll(a, b), []core.Receipt{{EventID: a.Event.ID, Jobs: len(a.Jobs)}, {EventID: b.Event.ID, Jobs: len(b.Jobs)}})
	for _, arrival := range []core.Arrival{a, b} {
		for _, s := range pending(arrival) {
			r.equal("run and its rows", r.runView(s.Run.ID), runView{Run: s.Run, Steps: []core.Step{s.Step}})
		}
	}
}

// raceAcceptAll has several callers accept arrivals with the same delivery ids and keys, each in
// another order. Each must be stored once, and no call may fail. The orders differ so that two
// calls lock the same rows in opposite orders.
func raceAcceptAll(r *rig) {
	const n = 12
	receipts := make([][]core.Receipt, callers)
	all := make([][]core.Arrival, callers)
	for i := range all {
		for j := range n {
			a := r.delivered(fmt.Sprint("race-", (i*5+j*(1+2*(i%3)))%n))
			if j%2 == 0 {
				a.Jobs[0].Key = "race-key-" + a.Event.DeliveryID
			}
			all[i] = append(all[i], a)
		}
	}
	r.concurrently(callers, func(i int) (err error) {
		receipts[i], err = r.store.AcceptAll(context.Background(), all[i])
		return err
	})
	first := map[string]core.ID{}
	for i := range all {
		for j, a := range all[i] {
			id := receipts[i][j].EventID
			if known, ok := first[a.Event.DeliveryID]; ok && known != id {
				r.Errorf("delivery %s is event %s and event %s", a.Event.DeliveryID, known, id)
			}
			first[a.Event.DeliveryID] = id
		}
	}
	r.equal("Depth", r.depth(), len(first))
}

// An empty batch is no error.
func acceptAllNone(r *rig) {
	r.equal("AcceptAll", len(r.acceptAll()), 0)
	r.equal("Depth", r.depth(), 0)
}
