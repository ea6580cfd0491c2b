package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// repetition makes every call twice, as a caller does that got no answer to the first. Networks
// lose answers, so every write may arrive twice. If the second one changed anything, a lost answer
// would cost an attempt, a message or a run.
var repetition = role{name: "Repetition", checks: []check{
	{"Accept twice is Accept once", "", repeatAccept},
	{"Take twice returns each job once", "", repeatTake},
	{"Settle twice is Settle once", "", repeatSettle},
	{"Release twice is Release once", "", repeatRelease},
	{"Release under a stale lease changes nothing", "", repeatReleaseLate},
	{"Recover twice is Recover once", "", repeatRecover},
	{"Ack twice is Ack once", "", repeatAck},
	{"Extend twice is Extend once", "", repeatExtend},
	{"Drain twice is Drain once", "", repeatDrain},
	{"Retry twice is Retry once", "", repeatRetry},
	{"Retry of a running job changes nothing", "", repeatRetryLate},
	{"Migrate twice is Migrate once", "", repeatMigrate},
	{"A call with a canceled context is atomic", "", goneCaller},
}}

// A state is everything that a store shows. Two equal states look the same to every user.
type state struct {
	Events   []core.Event
	Jobs     []core.Job
	Attempts map[core.ID][]core.Attempt
	Runs     []runView
	Depth    int
}

// state reads everything, at most MaxPage events, jobs and runs.
func (r *rig) state() state {
	r.Helper()
	s := state{
		Events:   r.events(core.EventFilter{Limit: core.MaxPage}).Items,
		Jobs:     r.jobs(core.JobFilter{Limit: core.MaxPage}).Items,
		Attempts: map[core.ID][]core.Attempt{},
		Depth:    r.depth(),
	}
	for _, j := range s.Jobs {
		s.Attempts[j.ID] = r.attempts(j.ID)
	}
	for _, run := range r.runs(core.RunFilter{Limit: core.MaxPage}).Items {
		s.Runs = append(s.Runs, r.runView(run.ID))
	}
	return s
}

// wantIdempotent calls do two times. The second call must change nothing. The name of the call
// appears in the failure.
func (r *rig) wantIdempotent(call string, do func()) {
	r.Helper()
	do()
	want := r.state()
	do()
	r.equal("state after "+call+" twice", r.state(), want)
}

// Each kind of arrival is repeated: with a delivery id, with a key, without either, and
// duplicates.
func repeatAccept(r *rig) {
	plain, delivered, keyed := r.arrival(r.lane), r.delivered("d"), r.keyed("k")
	again, keyedAgain := r.delivered("d"), r.keyed("k")
	for _, a := range []core.Arrival{r.arrival(), plain, delivered, keyed, again, keyedAgain} {
		var got [2]core.Receipt
		i := 0
		r.wantIdempotent("Accept", func() { got[i] = r.accept(a); i++ })
		r.equal("Accept again", got[1], got[0])
	}
}

// A second Take must not return jobs that the first one leased, although its caller got no answer.
// Their leases end by themselves.
func repeatTake(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, 3)...))
	r.wantIdempotent("Take", func() { r.takeQuotas(r.quota(3)) })
	r.wantIdempotent("Take of nothing", func() { r.takeQuotas(r.quota(3)) })
}

// One outcome and then all outcomes of a call are repeated, with each status.
func repeatSettle(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, 3)...))
	var all []core.Outcome
	for i, j := range r.take(3) {
		all = append(all, r.ended(j.Job, []core.Status{core.Completed, core.Retryable, core.Dead}[i]))
	}
	r.wantIdempotent("Settle of one", func() { r.settle(all[0]) })
	r.wantIdempotent("Settle of all", func() { r.settle(all...) })
}

// A release with a later due time must not move a job that was released before.
func repeatRelease(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, 3)...))
	var jobs []core.Job
	for _, j := range r.take(3) {
		jobs = append(jobs, j.Job)
	}
	r.wantIdempotent("Release of one", func() { r.release(r.now.Add(time.Second), jobs[0]) })
	r.wantIdempotent("Release of all", func() { r.release(r.now.Add(time.Hour), jobs...) })
	r.equal("due time of the one released first", r.job(jobs[0].ID).DueAt, r.now.Add(time.Second))
}

// A job was released, taken again and released once more by the first holder. The second holder
// keeps it.
func repeatReleaseLate(r *rig) {
	j := r.taken().Job
	r.release(r.now, j)
	again := r.take(1)[0].Job
	r.release(r.now, j)
	r.wantJob(again)
}

// repeatRecover checks that a second Recover counts no job: a job whose lease is over is due
// already.
func repeatRecover(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, 3)...))
	r.take(2)
	r.wantIdempotent("Recover", func() { r.recover(r.lane) })
	r.equal("Recover, the third time", r.recover(r.lane), 0)
	r.take(3)
}

// One ack and then all acks are repeated.
func repeatAck(r *rig) {
	_, refs := r.putAndTake(3)
	r.wantIdempotent("Ack of one", func() { r.ack(r.lane, refs[0]) })
	r.wantIdempotent("Ack of all", func() { r.ack(r.lane, refs...) })
}

// Extends are repeated to the same ends.
func repeatExtend(r *rig) {
	_, refs := r.putAndTake(3)
	r.wantIdempotent("Extend of one", func() { r.extend(r.now.Add(2*leaseTime), r.lane, refs[0]) })
	r.wantIdempotent("Extend of all", func() { r.extend(r.now.Add(time.Second), r.lane, refs...) })
}

// A second drain deletes nothing, not even completed jobs.
func repeatDrain(r *rig) {
	r.putEachStatus()
	r.settled(core.Completed)
	r.wantIdempotent("Drain", func() { r.drainOf(r.lane, newestID, 100) })
}

// A second Retry must not count attempts as earlier ones again.
func repeatRetry(r *rig) {
	j := r.settled(core.Dead)
	r.settled(core.Dead)
	r.wantIdempotent("Retry of one", func() { r.retry(j.ID, "") })
	r.wantIdempotent("Retry of all", func() { r.retry("", "") })
	r.equal("Retry of all, the third time", r.retry("", ""), 0)
}

// The job that was revived runs, then waits for its retry. Neither is touched by a Retry of all.
func repeatRetryLate(r *rig) {
	j := r.settled(core.Dead)
	r.retry(j.ID, "")
	want := r.take(1)[0].Job
	r.equal("Retry of a running job", r.retry(j.ID, ""), 0)
	r.wantJob(want)
	r.settle(r.ended(want, core.Retryable))
	want = r.job(j.ID)
	r.equal("Retry of all beside a retryable job", r.retry("", ""), 0)
	r.wantJob(want)
}

// A migration of a store with rows changes no row.
func repeatMigrate(r *rig) {
	r.settled(core.Dead)
	r.wantIdempotent("Migrate", func() {
		if err := r.store.Migrate(context.Background()); err != nil {
			r.Fatalf("Migrate = %v, want none", err)
		}
	})
}

// goneCaller makes calls with a canceled context. A store may choose whether such a call takes
// effect, but it must take effect as a whole or not at all. The repetition by another caller then
// finds either nothing or all of it.
func goneCaller(r *rig) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	a := r.arrival(r.lane, "queue/b")
	_, _ = r.store.Accept(gone, a)
	if jobs := len(r.jobs(core.JobFilter{EventID: a.Event.ID}).Items); jobs == 1 {
		r.Errorf("Accept by a caller that went away stored 1 of 2 jobs, want both or none")
	}
	r.equal("Accept again", r.accept(a), core.Receipt{EventID: a.Event.ID, Jobs: 2})

	j := r.take(1)[0].Job
	o := r.ended(j, core.Completed)
	_, _ = r.store.Settle(gone, o)
	r.settle(o)
	r.wantJob(after(j, o))
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{o.Attempt})
}
