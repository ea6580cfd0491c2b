package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Accept. A sender that gets an answer relies on it: the event and its jobs are stored,
// once, however often the sender repeats it. A failure means a lost event, an event handled twice,
// or a duplicate that the sender takes for a new event.

const (
	saysAccept        = "Accept stores an event with its jobs, whole or not at all"
	saysStable        = "When it returns without error, both are on stable storage"
	saysNoJobs        = "An arrival without jobs is stored as well"
	saysAcceptAgain   = "Accepting the same arrival again stores nothing and answers as the first time"
	saysDelayed       = "A delayed job is stored with status Scheduled, and no Take gets it before its time"
	saysDelivery      = "An arrival is a duplicate if its source has already seen its delivery id: nothing is stored, and the receipt names the first event"
	saysKey           = "A job is left out if its lane has already seen its key; if every job of an arrival is left out, the arrival is a duplicate as well"
	saysTogether      = "AcceptAll accepts arrivals as Accept does, one after the other, but in one commit: all of them or none"
	saysTogetherOrder = "The receipts are in the order of the arrivals, and an arrival may repeat an earlier one of the same call"
	saysTogetherNone  = "Without arrivals it stores nothing"
	saysOneAtATime    = "Of simultaneous arrivals with the same delivery id or key, exactly one is stored"
)

// inboxall.go has the checks of AcceptAll, aroundruns.go those of runs.
var inbox = role{name: "Inbox", checks: []check{
	{saysAccept, "the event", acceptEvent},
	{saysAccept, "the jobs", acceptJobs},
	{saysStable, "", acceptStable},
	{saysNoJobs, "", acceptNoJobs},
	// The same arrival once more.
	{saysAcceptAgain, "with jobs", acceptSame},
	{saysAcceptAgain, "without jobs", acceptSameNoJobs},
	{saysAcceptAgain, "after its job changed", acceptSameLater},
	{saysAcceptAgain, "of an arrival stored in part", acceptSamePart},
	{saysAcceptAgain, "of a duplicate", acceptSameDuplicate},
	{saysDelayed, "beside a job that is due", acceptDelayed},
	{saysDelayed, "with a key and a delivery id", acceptDelayedKeyed},
	{saysDelayed, "together", acceptDelayedTogether},
	{saysDelayed, "a run", acceptDelayedRun},
	// Another arrival with a known delivery id.
	{saysDelivery, "", acceptDelivery},
	{saysDelivery, "the keys of a duplicate stay free", acceptDeliveryKeys},
	{saysDelivery, "before the key", acceptDeliveryBeforeKey},
	{saysDelivery, "same id in another source", acceptDeliverySources},
	{saysDelivery, "without a delivery id", acceptDeliveryNone},
	// Jobs with a known key.
	{saysKey, "left out", acceptKeyLeftOut},
	{saysKey, "duplicate", acceptKeyDuplicate},
	{saysKey, "beside a job without a key", acceptKeyPart},
	{saysKey, "same key in another lane", acceptKeyLanes},
	{saysKey, "after the first job finished", acceptKeyFinished},
	{saysKey, "within one arrival", acceptKeyTwice},
	{saysKey, "without a key", acceptKeyNone},
	// Delivery ids and keys from concurrent callers.
	{saysOneAtATime, "delivery id", raceDelivery},
	{saysOneAtATime, "key", raceKey},
	{saysOneAtATime, "two keys in opposite orders", raceKeys},
	// Several arrivals in one call.
	{saysTogether, "as Accept does", acceptAll},
	{saysTogether, "many", acceptAllMany},
	{saysTogether, "with runs", acceptAllRuns},
	{saysTogether, "concurrent callers", raceAcceptAll},
	{saysTogetherOrder, "", acceptAllRepeats},
	{saysTogetherNone, "", acceptAllNone},
	// Arrivals with workflow runs.
	{saysRunsStored, "", acceptRuns},
	{saysRunsStored, "once", acceptRunsAgain},
	{saysRunsStored, "not those of a duplicate", acceptRunsDuplicate},
	{saysRunsStored, "not a run whose job is left out", acceptRunsKeyed},
	{saysRunsStored, "concurrent callers", raceAcceptRuns},
}}

// All fields of an event are read back.
func acceptEvent(r *rig) {
	a := r.delivered("d-1")
	r.accepted(a)
	r.equal("Event", r.storedEvent(a.Event.ID), a.Event)
}

// Jobs in two lanes, with a key and with another budget, are read back with all fields.
func acceptJobs(r *rig) {
	a := r.arrival("handler/a", "queue/b")
	a.Jobs[0].Key, a.Jobs[1].MaxAttempts = "k", 1
	for _, want := range r.accepted(a) {
		r.wantJob(want)
	}
}

// delayed returns an arrival with a job that is due at once and one that is due later.
func (r *rig) delayed(by time.Duration) core.Arrival {
	a := r.arrival(r.lane, r.lane)
	a.Jobs[1].DueAt = a.Event.CreatedAt.Add(by)
	return a
}

// A delayed job waits for its time, to the millisecond, and an operator may have it tried early.
func acceptDelayed(r *rig) {
	a := r.delayed(time.Hour)
	for _, want := range r.accepted(a) {
		r.wantJob(want)
	}
	r.equal("Accept again", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 2})
	r.equal("Scheduled", r.tallies(r.lane)[r.lane].Scheduled, 1)
	d := r.arrival("handler/other", "handler/other")
	d.Jobs[1].DueAt, d.Event.DeliveryID = a.Jobs[1].DueAt, "d"
	r.accepted(d)
	r.equal("Accept a delivery again", r.accept(d), core.Receipt{EventID: d.Event.ID, Jobs: 2})
	first := r.take(1)
	r.equal("Take", ids(first), []core.ID{a.Jobs[0].ID})
	r.settle(r.ended(first[0].Job, core.Completed))
	r.now = a.Jobs[1].DueAt.Add(-time.Millisecond)
	r.takeCount("before its time", 0, r.quota(1))
	r.now = a.Jobs[1].DueAt
	r.equal("Take at its time", r.take(1)[0].ID, a.Jobs[1].ID)
	early := r.delayed(core.MaxDelay)
	r.accepted(early)
	r.take(1)
	r.equal("Retry", r.retry(early.Jobs[1].ID, ""), 1)
	r.equal("Take of a job that is tried early", ids(r.take(1)), []core.ID{early.Jobs[1].ID})
}

// Delivery ids and keys identify repeats of delayed jobs too.
func acceptDelayedKeyed(r *rig) {
	a := r.delayed(time.Hour)
	a.Event.DeliveryID, a.Jobs[1].Key = "d", "k"
	for _, want := range r.accepted(a) {
		r.wantJob(want)
	}
	again := r.delayed(2 * time.Hour)
	again.Event.DeliveryID = "d"
	r.equal("Accept", r.accept(again), core.Receipt{EventID: a.Event.ID, Duplicate: true})
	keyed := r.keyed("k")
	keyed.Jobs[0].DueAt = r.now.Add(time.Minute)
	r.equal("Accept", r.accept(keyed), core.Receipt{EventID: a.Event.ID, Duplicate: true})
}

// Of many arrivals in one call, each job is due at its own time.
func acceptDelayedTogether(r *rig) {
	all := []core.Arrival{r.delayed(time.Hour), r.arrival(r.lane), r.keyed("a"), r.keyed("b"), r.delayed(time.Second)}
	all[3].Jobs[0].DueAt = r.now.Add(time.Minute)
	r.acceptAll(all...)
	for _, a := range all {
		for _, n := range a.Jobs {
			r.wantJob(stored(a.Event.ID, a.Event.CreatedAt, n))
		}
	}
}

// The run of a delayed event is pending until its first step begins.
func acceptDelayedRun(r *rig) {
	a := r.runArrival(defaultWorkflow)
	a.Jobs[0].DueAt = a.Event.CreatedAt.Add(time.Hour)
	r.accept(a)
	run := r.run(a.Runs[0].ID)
	r.equal("status", run.Status, core.RunPending)
	r.equal("deadline", run.DeadlineAt, a.Jobs[0].DueAt.Add(a.Runs[0].Timeout))
	r.lane = a.Jobs[0].Lane
	r.takeCount("before its time", 0, r.quota(1))
	r.now = r.now.Add(time.Hour)
	r.equal("Take at its time", ids(r.take(1)), []core.ID{a.Jobs[0].ID})
}

// Each driver's own tests check that a commit survives a power failure. Here, the next read
// returns it.
func acceptStable(r *rig) {
	for range 10 {
		a := r.arrival(r.lane)
		r.accept(a)
		r.storedEvent(a.Event.ID)
		r.job(a.Jobs[0].ID)
	}
}

// An event that no consumer matches is kept, for a replay to a later consumer.
func acceptNoJobs(r *rig) {
	a := r.arrival()
	r.accepted(a)
	r.equal("Event", r.storedEvent(a.Event.ID), a.Event)
	r.equal("Depth", r.depth(), 0)
}

// A sender repeats an arrival after a lost answer. It must get the first answer, and no second
// row.
func acceptSame(r *rig) {
	a := r.arrival("handler/a", "handler/b")
	a.Event.DeliveryID, a.Jobs[0].Key = "d", "k"
	jobs := r.accepted(a)
	r.equal("Accept again", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 2})
	r.equal("Events", ids(r.events(core.EventFilter{}).Items), []core.ID{a.Event.ID})
	r.equal("Jobs", r.jobs(core.JobFilter{}).Items, []core.Job{jobs[1], jobs[0]})
}

// The arrival has no jobs, so only the id of its event shows the repetition.
func acceptSameNoJobs(r *rig) {
	a := r.arrival()
	r.accepted(a)
	r.equal("Accept again", r.accept(a), core.Receipt{EventID: a.Event.ID})
}

// The job was completed before the repetition. It must not be delivered again.
func acceptSameLater(r *rig) {
	a := r.keyed("k")
	r.accepted(a)
	r.settle(r.ended(r.take(1)[0].Job, core.Completed))
	want := r.job(a.Jobs[0].ID)
	r.equal("Accept again", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 1})
	r.wantJob(want)
}

// One of two jobs was left out the first time. The repetition reports the same number.
func acceptSamePart(r *rig) {
	r.accepted(r.keyed("k"))
	a := r.arrival(r.lane, "handler/b")
	a.Jobs[0].Key = "k"
	want := core.Receipt{EventID: a.Event.ID, Jobs: 1}
	r.equal("Accept", r.accept(a), want)
	r.equal("Accept again", r.accept(a), want)
}

// The repetition of a duplicate names the first event again.
func acceptSameDuplicate(r *rig) {
	first, a := r.delivered("d"), r.delivered("d")
	r.accepted(first)
	want := core.Receipt{EventID: first.Event.ID, Duplicate: true}
	r.equal("Accept", r.accept(a), want)
	r.equal("Accept again", r.accept(a), want)
	r.wantAbsent(a)
}

// A provider sends the same delivery id with another type and payload. The first event stays as it
// is.
func acceptDelivery(r *rig) {
	first := r.delivered("d")
	r.accepted(first)
	second := r.delivered("d")
	second.Event.Type, second.Event.Payload = "order.paid", []byte(`{}`)
	r.equal("Accept", r.accept(second), core.Receipt{EventID: first.Event.ID, Duplicate: true})
	r.wantAbsent(second)
	r.equal("Event", r.storedEvent(first.Event.ID), first.Event)
	r.equal("Depth", r.depth(), 1)
}

// A refused duplicate must not reserve its keys, or the next event with the key would be lost.
func acceptDeliveryKeys(r *rig) {
	r.accepted(r.delivered("d"))
	second := r.delivered("d")
	second.Jobs[0].Key = "k"
	if got := r.accept(second); !got.Duplicate {
		r.Errorf("Accept = %+v, want a duplicate", got)
	}
	r.accepted(r.keyed("k"))
}

// An arrival repeats one event by its delivery id and another by its key. The delivery id decides.
func acceptDeliveryBeforeKey(r *rig) {
	keyed, first := r.keyed("k"), r.delivered("d")
	r.accepted(keyed)
	r.accepted(first)
	both := r.keyed("k")
	both.Event.DeliveryID = "d"
	r.equal("Accept", r.accept(both), core.Receipt{EventID: first.Event.ID, Duplicate: true})
	r.wantAbsent(both)
}

// Delivery ids are chosen by senders, so the same id of two sources names two events.
func acceptDeliverySources(r *rig) {
	a, b := r.delivered("d"), r.delivered("d")
	b.Event.Source = "crm"
	r.accepted(a)
	r.accepted(b)
}

// Arrivals without a delivery id are never equal. The column must not hold two equal empty texts.
func acceptDeliveryNone(r *rig) {
	r.accepted(r.arrival(r.lane))
	r.accepted(r.arrival(r.lane))
	r.equal("Depth", r.depth(), 2)
}

// Of two jobs under the same key, only the one in the lane that has seen the key is left out.
func acceptKeyLeftOut(r *rig) {
	r.accepted(r.keyed("k"))
	a := r.arrival(r.lane, "handler/b")
	a.Jobs[0].Key, a.Jobs[1].Key = "k", "k"
	r.equal("Accept", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 1})
	r.equal("Jobs of the event", ids(r.jobs(core.JobFilter{EventID: a.Event.ID}).Items), []core.ID{a.Jobs[1].ID})
}

// If all jobs are left out, the receipt names the event that has the keys, and no event is stored.
func acceptKeyDuplicate(r *rig) {
	first := r.arrival(r.lane, "handler/b")
	first.Jobs[0].Key, first.Jobs[1].Key = "k", "l"
	r.accepted(first)
	second := r.arrival(r.lane, "handler/b")
	second.Jobs[0].Key, second.Jobs[1].Key = "k", "l"
	r.equal("Accept", r.accept(second), core.Receipt{EventID: first.Event.ID, Duplicate: true})
	r.wantAbsent(second)
}

// A job without a key keeps the arrival.
func acceptKeyPart(r *rig) {
	r.accepted(r.keyed("k"))
	a := r.arrival(r.lane, r.lane)
	a.Jobs[0].Key = "k"
	r.equal("Accept", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 1})
	r.storedEvent(a.Event.ID)
	r.job(a.Jobs[1].ID)
}

// Keys belong to lanes: a handler and a queue of the same name share none.
func acceptKeyLanes(r *rig) {
	a, b := r.keyed("k"), r.keyed("k")
	b.Jobs[0].Lane = "queue/billing"
	r.accepted(a)
	r.accepted(b)
}

// A key stays in use as long as its job is stored, even after the job ended.
func acceptKeyFinished(r *rig) {
	for _, s := range []core.Status{core.Completed, core.Dead} {
		key := string(s)
		first := r.keyed(key)
		r.accepted(first)
		r.settle(r.ended(r.take(1)[0].Job, s))
		r.equal("Accept", r.accept(r.keyed(key)), core.Receipt{EventID: first.Event.ID, Duplicate: true})
	}
}

// Two jobs of one arrival with the same key and lane are one job.
func acceptKeyTwice(r *rig) {
	a := r.arrival(r.lane, r.lane)
	a.Jobs[0].Key, a.Jobs[1].Key = "k", "k"
	want := core.Receipt{EventID: a.Event.ID, Jobs: 1}
	r.equal("Accept", r.accept(a), want)
	r.equal("Accept again", r.accept(a), want)
	r.equal("Jobs", len(r.jobs(core.JobFilter{}).Items), 1)
}

// Jobs without a key are never equal, within an arrival and between arrivals.
func acceptKeyNone(r *rig) {
	a := r.arrival(r.lane, r.lane)
	r.accepted(a)
	r.accepted(r.arrival(r.lane))
	r.equal("Depth", r.depth(), 3)
}

// raceDelivery has many callers deliver the same delivery id at once, each as its own event.
func raceDelivery(r *rig) {
	for range r.scaled(30) {
		id := "d-" + string(r.ids.Next())
		r.acceptConcurrently(func() core.Arrival { return r.delivered(id) })
	}
}

// Many callers accept jobs under the same key at once, each of its own event.
func raceKey(r *rig) {
	for range r.scaled(30) {
		key := "k-" + string(r.ids.Next())
		r.acceptConcurrently(func() core.Arrival { return r.keyed(key) })
	}
}

// callers is the number of simultaneous callers in a race.
const callers = 16

// acceptConcurrently accepts arrivals that repeat each other, all at once. Exactly one must be stored, and
// every receipt must name it.
func (r *rig) acceptConcurrently(next func() core.Arrival) {
	r.Helper()
	arrivals := make([]core.Arrival, callers)
	receipts := make([]core.Receipt, callers)
	for i := range arrivals {
		arrivals[i] = next()
	}
	r.concurrently(callers, func(i int) (err error) {
		receipts[i], err = r.store.Accept(context.Background(), arrivals[i])
		return err
	})
	first, stored := receipts[0].EventID, 0
	for i, got := range receipts {
		if got.EventID != first {
			r.Errorf("Accept #%d names event %s, #0 names %s; want the same", i, got.EventID, first)
		}
		if got.Duplicate {
			r.wantAbsent(arrivals[i])
			continue
		}
		stored++
		r.storedEvent(arrivals[i].Event.ID)
		r.job(arrivals[i].Jobs[0].ID)
	}
	r.equal("arrivals stored", stored, 1)
}

// raceKeys accepts arrivals with the same two keys in opposite orders, so that row locks can
// deadlock. Each key must get exactly one job.
func raceKeys(r *rig) {
	a, b := r.lane, core.Lane("queue/mail")
	for range r.scaled(30) {
		arrivals := make([]core.Arrival, callers)
		for i := range arrivals {
			arrivals[i] = r.arrival(a, b)
			if i%2 == 1 {
				arrivals[i] = r.arrival(b, a)
			}
			for j := range arrivals[i].Jobs {
				arrivals[i].Jobs[j].Key = string(arrivals[0].Event.ID)
			}
		}
		receipts := make([]core.Receipt, callers)
		r.concurrently(callers, func(i int) (err error) {
			receipts[i], err = r.store.Accept(context.Background(), arrivals[i])
			return err
		})
		jobs := 0
		for i, got := range receipts {
			jobs += got.Jobs
			stored := len(r.jobs(core.JobFilter{EventID: arrivals[i].Event.ID}).Items)
			r.equal("jobs stored, by the receipt", got.Jobs, stored)
		}
		r.equal("jobs for two keys", jobs, 2)
	}
}
