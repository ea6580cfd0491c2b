package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Express, with which an event goes to a worker without a claim. A failure means that a
// job is delivered although its lane or source is held, that two workers have it, or that none has.

const (
	saysExpress     = "AcceptAndTake accepts an arrival as Accept does, and takes jobs of it in the same commit"
	saysExpressHold = "holds has these jobs, each with how long it is leased from now on"
	saysExpressTake = "They come as from Take"
	saysExpressGate = "A job is taken if a Take without a Pass would take it now"
	saysExpressNot  = "A job with a key, a line or a delay is not taken, and neither is a job of a workflow"
	saysExpressRest = "Jobs that are not taken are stored as by Accept"
	saysExpressOnce = "Nothing is taken of an arrival that is a duplicate, or that was accepted before"
)

var expresses = role{name: "Express", checks: []check{
	{saysExpress, "", expressTakes},
	{saysExpress, "with a delivery id", expressDelivered},
	{saysExpress, "concurrent callers", raceExpress},
	{saysExpressHold, "", expressLeases},
	{saysExpressTake, "", expressAsTake},
	{saysExpressTake, "a binary payload", expressBinary},
	{saysExpressTake, "an event whose id is of another time", expressSetBack},
	{saysExpressGate, "a breaker is open or was", expressBreaker},
	{saysExpressGate, "the breaker closed after the clock was set back", expressFuture},
	{saysExpressGate, "the lane is held or was", expressHeld},
	{saysExpressGate, "the source is held", expressSourceHeld},
	{saysExpressGate, "a queue", expressQueue},
	{saysExpressGate, "before its time", expressDelayed},
	{saysExpressNot, "", expressOthers},
	{saysExpressRest, "", expressRest},
	{saysExpressRest, "none is to be taken", expressNone},
	{saysExpressOnce, "a duplicate", expressDuplicate},
	{saysExpressOnce, "the same arrival", expressAgain},
	{saysExpressOnce, "concurrent callers", raceExpressOnce},
}}

// allHeld are holds for all jobs of an arrival.
func allHeld(a core.Arrival) map[core.ID]time.Duration {
	holds := map[core.ID]time.Duration{}
	for _, j := range a.Jobs {
		holds[j.ID] = leaseTime
	}
	return holds
}

// express accepts an arrival and takes the jobs of holds. It ends the test on an error.
func (r *rig) express(a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob) {
	r.Helper()
	receipt, taken, err := r.store.AcceptAndTake(context.Background(), r.now, a, holds)
	if err != nil {
		r.Fatalf("AcceptAndTake(%s) failed: %v", a.Event.ID, err)
	}
	return receipt, taken
}

// expressed is express for a new arrival, of which all jobs are taken whose lanes are named.
func (r *rig) expressed(a core.Arrival, want ...core.Lane) []core.TakenJob {
	r.Helper()
	receipt, taken := r.express(a, allHeld(a))
	r.equal("AcceptAndTake", receipt, core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)})
	var lanes []core.Lane
	for _, j := range taken {
		lanes = append(lanes, j.Lane)
	}
	r.equal("lanes of taken jobs", lanes, want)
	return taken
}

// takenOf is a job as it must be once it was taken from an arrival.
func (r *rig) takenOf(a core.Arrival, n core.NewJob, lease core.Lease) core.TakenJob {
	j := stored(a.Event.ID, a.Event.CreatedAt, n)
	j.Status, j.Attempt, j.Lease = core.Running, 1, lease
	j.ScheduledAt, j.DueAt = j.DueAt, r.now.Add(leaseTime)
	return core.TakenJob{Job: j, Event: a.Event}
}

// Both jobs are returned and stored as taken, under one lease, which settles them.
func expressTakes(r *rig) {
	a := r.arrival(r.lane, "handler/b")
	taken := r.expressed(a, r.lane, "handler/b")
	for i, n := range a.Jobs {
		want := r.takenOf(a, n, taken[i].Lease)
		r.equal("taken job", taken[i], want)
		r.wantJob(want.Job)
	}
	r.equal("Event", r.storedEvent(a.Event.ID), a.Event)
	r.nothingDue()
	if taken[0].Lease == "" {
		r.Errorf("the lease is empty")
	}
	r.settle(r.ended(taken[0].Job, core.Completed))
	r.equal("status", r.job(taken[0].ID).Status, core.Completed)
	r.equal("attempts", len(r.attempts(taken[0].ID)), 1)
}

// A new arrival with a delivery id is no duplicate.
func expressDelivered(r *rig) {
	a := r.delivered("d")
	r.equal("taken job", r.expressed(a, r.lane)[0], r.takenOf(a, a.Jobs[0], r.job(a.Jobs[0].ID).Lease))
}

// A lease holds for its own time. When it is over any worker may take the job, and the first one's
// outcome is lost.
func expressLeases(r *rig) {
	a := r.arrival(r.lane, r.lane)
	_, taken := r.express(a, map[core.ID]time.Duration{a.Jobs[0].ID: time.Second, a.Jobs[1].ID: time.Minute})
	began := r.now
	r.now = began.Add(time.Second - time.Millisecond)
	r.nothingDue()
	r.now = began.Add(time.Second)
	again := r.takeOnly(a.Jobs[0].ID, r.quota(9))
	r.equal("attempt", again.Attempt, 2)
	r.equal("Lost", r.lost(r.ended(taken[0].Job, core.Completed)), []core.ID{a.Jobs[0].ID})
	r.now = began.Add(time.Minute)
	r.equal("Take", slices.Contains(ids(r.takeQuotas(r.quota(9))), a.Jobs[1].ID), true)
}

// wantAsTake compares the job of an arrival with what a Take returns once its lease is over.
func (r *rig) wantAsTake(a core.Arrival) {
	r.Helper()
	first := r.expressed(a, r.lane)[0]
	r.now = first.DueAt
	second := r.takeOnly(first.ID, r.quota(1))
	first.Attempt, first.Lease, first.ScheduledAt, first.DueAt = second.Attempt, second.Lease, second.ScheduledAt, second.DueAt
	r.equal("taken job", first, second)
	r.settle(r.ended(second.Job, core.Completed))
}

// A time has milliseconds, and an event without headers has none.
func expressAsTake(r *rig) {
	a := r.delivered("d")
	a.Event.CreatedAt = r.now.Add(-time.Second + 345*time.Microsecond)
	r.wantAsTake(a)
	bare := r.arrival(r.lane)
	bare.Event.Headers, bare.Event.Payload, bare.Event.ContentType = map[string]string{}, []byte{}, ""
	r.wantAsTake(bare)
}

func expressBinary(r *rig) {
	a := r.arrival(r.lane)
	a.Event.Payload, a.Event.Binary = []byte{0, 0xff}, true
	r.wantAsTake(a)
}

// The event counts as received at the time in its id.
func expressSetBack(r *rig) {
	a := r.arrival(r.lane)
	a.Event.CreatedAt = r.now.Add(-time.Hour)
	r.wantAsTake(a)
}

// wantNotTaken accepts an arrival of which nothing is taken. It returns the job.
func (r *rig) wantNotTaken(when string) core.Job {
	r.Helper()
	a := r.arrival(r.lane)
	if _, taken := r.express(a, allHeld(a)); len(taken) > 0 {
		r.Errorf("AcceptAndTake %s took %v", when, ids(taken))
	}
	want := stored(a.Event.ID, a.Event.CreatedAt, a.Jobs[0])
	r.wantJob(want)
	return want
}

// Behind an open breaker, and in the ramp after it closed, jobs need a Pass.
func expressBreaker(r *rig) {
	r.openBreaker()
	r.wantNotTaken("behind an open breaker")
	r.closeBreakers(r.lane)
	r.wantNotTaken("in the ramp")
	r.now = r.now.Add(core.RampTime - time.Millisecond)
	r.wantNotTaken("at the end of the ramp")
	r.now = r.now.Add(time.Millisecond)
	r.expressed(r.arrival(r.lane), r.lane)
}

// The ramp holds for a clock that is behind, within the horizon. A gate that was closed later shows a
// clock that was set back.
func expressFuture(r *rig) {
	g := r.closeBreaker()
	r.now = g.ClosedAt.Add(-core.GateHorizon)
	r.wantNotTaken("by a clock that is behind")
	r.now = r.now.Add(-time.Millisecond)
	r.expressed(r.arrival(r.lane), r.lane)
}

// A hold ends with a ramp too.
func expressHeld(r *rig) {
	r.hold(time.Time{}, "")
	j := r.wantNotTaken("of a held lane")
	r.expressed(r.arrival("handler/b"), "handler/b")
	r.unhold(r.lane)
	r.wantNotTaken("in the ramp")
	r.now = r.now.Add(core.RampTime)
	r.expressed(r.arrival(r.lane), r.lane)
	r.equal("Take", slices.Contains(ids(r.takeQuotas(r.quota(9))), j.ID), true)
}

// The jobs of a held source wait in every lane, and those of other sources do not.
func expressSourceHeld(r *rig) {
	r.holdLane(shop, time.Time{}, "")
	r.wantNotTaken("of a held source")
	other := r.arrival(r.lane)
	other.Event.Source = "billing"
	r.expressed(other, r.lane)
	r.unhold(shop)
	r.expressed(r.arrival(r.lane), r.lane)
}

// A queue has no ramp after a hold.
func expressQueue(r *rig) {
	r.holdLane("queue/q", time.Time{}, "")
	a := r.arrival("queue/q")
	r.expressed(a)
	r.unhold("queue/q")
	r.expressed(r.arrival("queue/q"), "queue/q")
}

// A job with a delay is not due, and neither is one of an event of a moment to come.
func expressDelayed(r *rig) {
	a := r.delayed(time.Hour)
	r.expressed(a, r.lane)
	r.wantJob(stored(a.Event.ID, a.Event.CreatedAt, a.Jobs[1]))
	early := r.arrival(r.lane)
	early.Event.CreatedAt = r.now.Add(time.Second)
	r.expressed(early)
}

// These jobs are stored in ways of their own.
func expressOthers(r *rig) {
	a := r.arrival(r.lane, "handler/keyed", "handler/lined")
	a.Jobs[1].Key = "k"
	a.Jobs[2].Line = core.Line{Key: "l", Limit: 1}
	r.expressed(a, r.lane)
	r.wantJob(stored(a.Event.ID, a.Event.CreatedAt, a.Jobs[1]))
	r.equal("line", r.job(a.Jobs[2].ID).Line, "l")
	again := r.arrival(r.lane, "handler/keyed")
	again.Jobs[1].Key = "k"
	receipt, taken := r.express(again, allHeld(again))
	r.equal("Receipt of an arrival whose other job is left out", receipt, core.Receipt{EventID: again.Event.ID, Jobs: 1})
	r.equal("jobs", len(taken), 1)
	run := r.runArrival(defaultWorkflow)
	_, taken = r.express(run, allHeld(run))
	r.equal("jobs of a run", len(taken), 0)
	r.equal("run", r.run(run.Runs[0].ID).Status, core.RunPending)
}

// Of two jobs in one lane, one is taken.
func expressRest(r *rig) {
	a := r.arrival(r.lane, r.lane)
	_, taken := r.express(a, map[core.ID]time.Duration{a.Jobs[1].ID: leaseTime, "unknown": leaseTime})
	r.equal("jobs", ids(taken), []core.ID{a.Jobs[1].ID})
	r.wantJob(stored(a.Event.ID, a.Event.CreatedAt, a.Jobs[0]))
	r.equal("Take", ids(r.takeQuotas(r.quota(9))), []core.ID{a.Jobs[0].ID})
}

func expressNone(r *rig) {
	a := r.delivered("d")
	receipt, taken := r.express(a, nil)
	r.equal("AcceptAndTake", receipt, core.Receipt{EventID: a.Event.ID, Jobs: 1})
	r.equal("jobs", len(taken), 0)
	r.wantJob(stored(a.Event.ID, a.Event.CreatedAt, a.Jobs[0]))
}

// A duplicate is answered as by Accept, and the first event's job stays as it is.
func expressDuplicate(r *rig) {
	first := r.delivered("d")
	want := r.accepted(first)
	again := r.delivered("d")
	receipt, taken := r.express(again, allHeld(again))
	r.equal("AcceptAndTake", receipt, core.Receipt{EventID: first.Event.ID, Duplicate: true})
	r.equal("jobs", len(taken), 0)
	r.wantAbsent(again)
	r.wantJob(want[0])
}

// Accepted again, an arrival is answered as the first time. Its job stays with its first taker.
func expressAgain(r *rig) {
	for _, a := range []core.Arrival{r.arrival(r.lane), r.delivered("d")} {
		want := r.expressed(a, r.lane)[0]
		r.expressed(a)
		r.wantJob(want.Job)
		r.equal("Accept", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 1})
		r.settle(r.ended(want.Job, core.Completed))
	}
}

// raceExpress has callers accept events while others take from their lanes. Each job is held once, and
// each caller gets its own.
func raceExpress(r *rig) {
	const each = 10
	arrivals := make([][]core.Arrival, callers)
	for i := range arrivals {
		for range each {
			arrivals[i] = append(arrivals[i], r.arrival(r.lane, core.Lane(fmt.Sprint("handler/", i))))
		}
	}
	var mu sync.Mutex
	holders := map[core.ID]int{}
	note := func(jobs []core.TakenJob) {
		mu.Lock()
		defer mu.Unlock()
		for _, j := range jobs {
			holders[j.ID]++
		}
	}
	r.concurrently(callers, func(i int) error {
		for _, a := range arrivals[i] {
			_, taken, err := r.store.AcceptAndTake(context.Background(), r.now, a, allHeld(a))
			if err != nil {
				return err
			}
			note(taken)
			if want := []core.ID{a.Jobs[0].ID, a.Jobs[1].ID}; !slices.Equal(ids(taken), want) {
				return fmt.Errorf("caller %d took %v, want %v", i, ids(taken), want)
			}
			others, err := r.store.Take(context.Background(), r.now, []core.Quota{r.quota(9)})
			if err != nil {
				return err
			}
			note(others)
		}
		return nil
	})
	r.equal("jobs that are held", len(holders), 2*callers*each)
	for id, n := range holders {
		if n != 1 {
			r.Errorf("job %s is held %d times", id, n)
		}
	}
}

// raceExpressOnce has callers accept arrivals with the same delivery ids. Each is stored once, and its
// job is held once.
func raceExpressOnce(r *rig) {
	const n = 8
	all := make([][]core.Arrival, callers)
	for i := range all {
		for j := range n {
			all[i] = append(all[i], r.delivered(fmt.Sprint("race-", (i*3+j)%n)))
		}
	}
	taken := make([]int, callers)
	r.concurrently(callers, func(i int) error {
		for _, a := range all[i] {
			receipt, jobs, err := r.store.AcceptAndTake(context.Background(), r.now, a, allHeld(a))
			if err != nil {
				return err
			}
			if receipt.Duplicate == (len(jobs) > 0) {
				return fmt.Errorf("receipt %+v with jobs %v", receipt, ids(jobs))
			}
			taken[i] += len(jobs)
		}
		return nil
	})
	sum := 0
	for _, some := range taken {
		sum += some
	}
	r.equal("jobs that are held", sum, n)
	r.equal("Depth", r.depth(), n)
	r.nothingDue()
}

// unansweredExpress loses the first answer. The second one is lost too, or the second sending does not
// reach the database: that says nothing of the first.
func unansweredExpress(r *rig, f *Fault) {
	for _, second := range []faultKind{loseAnswer, unreachable} {
		a := r.arrival(r.lane, r.lane, "handler/keyed")
		a.Jobs[2].Key = string(a.Event.ID)
		f.arm(loseAnswer, 1)
		const statement = "insert_taken_jobs"
		f.justBefore(statement, func() { f.justBefore(statement, func() { f.arm(second, 1) }) })
		receipt, taken, err := r.store.AcceptAndTake(context.Background(), r.now, a, allHeld(a))
		f.disarm()
		if !core.IsKind(err, core.Unavailable) || core.NoEffect(err) || receipt != (core.Receipt{}) {
			r.Fatalf("AcceptAndTake = %+v, %v, want a refusal of kind Unavailable that leaves the effect open", receipt, err)
		}
		var want []core.TakenJob
		for _, j := range a.Jobs[:2] {
			want = append(want, r.takenOf(a, j, r.job(j.ID).Lease))
		}
		r.equal("jobs that may be taken", taken, want)
		r.nothingDue()
		for _, j := range taken {
			if err := r.store.Release(context.Background(), r.now, j.Job); err != nil {
				r.Fatalf("Release = %v", err)
			}
		}
		r.equal("Take", ids(r.takeQuotas(r.quota(9))), []core.ID{a.Jobs[0].ID, a.Jobs[1].ID})
	}
}

func unsentExpress(r *rig, f *Fault) {
	a := r.arrival(r.lane)
	f.arm(unreachable, 0)
	_, taken, err := r.store.AcceptAndTake(context.Background(), r.now, a, allHeld(a))
	f.disarm()
	if !core.NoEffect(err) || len(taken) > 0 {
		r.Errorf("AcceptAndTake = %v, %v, want an error without effect and no jobs", ids(taken), err)
	}
	r.wantAbsent(a)
}
