package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Calls that make a store send each of its statements at least once. Tests of plans use them: they
// read how a database executes each statement, and refuse scans and sorts. Benchmarks of single
// calls are here as well.

// Watched returns a connection that passes each statement to see before it runs it. Tests of
// plans use it.
func Watched(conn store.Conn, see func(store.Stmt)) store.Conn {
	return watched{conn, func(s *store.Stmt) { see(*s) }}
}

// EachStatement makes a store send every statement at least once. The store must hold due jobs in
// the lane, with events among the oldest.
func EachStatement(t *testing.T, s core.Store, lane core.Lane) {
	t.Helper()
	r := newRig(t, s, Options{})
	r.now, r.lane, r.auditing = core.SystemClock().UTC().Truncate(time.Millisecond), lane, true
	eachArrival(r)
	taken := r.take(7)
	done := r.ended(taken[0].Job, core.Completed)
	recorded := r.ended(taken[4].Job, core.Dead)
	recorded.Attempt.Exchange = exchange("kept")
	r.settle(recorded)
	r.sentBody(taken[4].ID, 1)
	r.settle(done, r.ended(taken[1].Job, core.Retryable), r.ended(taken[2].Job, core.Dead), r.ended(taken[3].Job, core.Dead))
	r.settle(done)
	r.release(r.now, taken[5].Job, taken[6].Job)
	r.due(lane, "handler/nobody")
	r.take(1)
	r.recover(lane)
	r.retry(taken[2].ID, "")
	r.retry("", lane)
	r.retry("", "")
	eachGate(r)
	eachPull(r)
	eachLine(r)
	r.marked(r.mark("each statement", 0), r.mark("another", 0))
	r.marks("each statement", "nobody")
	eachQuestion(r, taken[0])
	eachOperation(r, taken[0])
	eachSlice(r, taken[0])
	eachAudit(r)
	eachMinute(r)
	eachPurge(r)
}

// eachPurge purges a job that seems to have had many attempts, and goes through all tables that
// Purge sweeps. The attempt number makes the purge delete the attempts in batches of their own.
func eachPurge(r *rig) {
	r.lane = "queue/tried"
	o := r.ended(r.taken().Job, core.Dead)
	o.Attempt.Number, o.At = 1_000_000, time.UnixMilli(1)
	r.settle(o)
	r.now = time.UnixMilli(1600)
	for range 5 {
		r.purge(10)
	}
	gatesBeside(r) // in place of the gates that the purge deleted
}

// eachGate opens a breaker, probes, closes it and paces starts, in a busy lane among 1,000 other
// lanes. So a plan that walks through all gates is noticed.
func eachGate(r *rig) {
	gatesBeside(r)
	r.strays("handler/beside-7")
	r.strays(r.lane)
	r.settle(r.verdicts(r.take(core.BreakerThreshold), failures(core.BreakerThreshold)...)...)
	r.now = r.gate().OpenUntil
	silent := r.verdict(r.takeCount("for a probe", 1, r.probe())[0], core.NoVerdict)
	_, rises := r.riseOf(core.TakenJob{})
	silent.GivesRise = &rises
	r.settle(silent)
	r.settle(r.verdict(r.takeCount("for a probe", 1, r.probe())[0], core.Success))
	r.due(r.lane, "handler/beside-7")
	r.closeBreakers(r.lane, "handler/beside-7")
	r.release(r.now, r.takeCount("in the ramp", 2, r.paced(2, time.Millisecond, time.Second))[0].Job)
	r.hold(time.Time{}, "each statement")
	r.equal("Holding", len(r.holding()), 1)
	r.unhold(r.lane, "handler/beside-7")
	r.now = r.now.Add(core.RampTime)
	eachSource(r)
}

// eachSource holds a source and releases it, so that its jobs are parked and return, and takes jobs
// of other sources meanwhile.
func eachSource(r *rig) {
	of := *r
	r = &of
	r.lane += "-sources"
	r.putMany(3)
	other := r.putFrom("another")
	r.holdLane(shop, r.now.Add(time.Hour), "each statement")
	r.peek(r.lane, 1)
	r.takeOnly(other.ID, r.quota(5))
	r.takeQuotas(r.paced(1, time.Millisecond, time.Second))
	r.due(r.lane)
	r.unhold(shop)
	r.nothingDue() // the ramp
	r.takeCount("in the ramp", 1, r.paced(1, time.Second, time.Second))
	r.now = r.now.Add(time.Hour)
	r.takeQuotas(r.quota(5))
	r.drainOf(r.lane, newestID, core.MaxPage)
}

// gatesBeside makes 1,000 gates, or a quarter of them on a slow store. Their
// outcomes are lost, so the gates are in their resting state.
func gatesBeside(r *rig) {
	var beside []core.Outcome
	for i := range r.scaled(1000) {
		l := core.HandlerLane(fmt.Sprintf("beside-%d", i))
		beside = append(beside, core.Outcome{JobID: "nobody", Lease: core.Lease(l), Lane: l, Verdict: core.Failure, Status: core.Dead, At: r.now})
	}
	for some := range slices.Chunk(beside, 100) {
		r.settlement(some...)
	}
}

// eachLine sends each statement of lines, in a lane of its own.
func eachLine(r *rig) {
	of := *r
	r = &of
	r.lane += "-lines"
	some := r.putLined("x", 1, 5)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	r.linesOf(r.lane)
	r.readLines(1, "x")
	r.skip(some[0], true)
	r.equal("retry", r.retry(some[0], ""), 1)
	r.endLined(r.takeLined(1, some[1])[0], core.Dead, 1)
	r.equal("retry", r.retry("", r.lane), 1)
	r.equal("acked", r.ackLined(r.lane, 1, refTo(r.takeLined(1, some[1])[0].Job)), 1)
	wide := r.putLined("y", 2, 4)
	for _, j := range r.takeLined(2, some[2], wide[0], wide[1])[1:] {
		r.endLined(j, core.Retryable, 2)
	}
	r.settle(r.ended(r.takeLined(2, wide[2], wide[3])[0].Job, core.Completed))
	r.putLined("y", 2, 3)
	r.now = r.now.Add(2 * time.Second)
	q := r.quota(10)
	q.Lines = 2
	r.takeQuotas(q)
	r.fill(r.lane, 3)
	r.jobs(core.JobFilter{Status: core.Waiting, Limit: 1})
	r.drainOf(r.lane, newestID, core.MaxPage)
}

// eachPull extends, reads and acks jobs as consumers do, and drains a lane with few jobs.
func eachPull(r *rig) {
	var refs []core.Ref
	for _, j := range r.take(6) {
		refs = append(refs, refTo(j.Job))
	}
	r.equal("Extend", r.extend(r.now.Add(leaseTime), r.lane, refs...), 6)
	r.equal("Held", len(r.held(r.lane, refs...)), 6)
	r.equal("Ack", r.ack(r.lane, append(refs[:3], byID(refs[3].ID))...), 4)
	last := *r
	last.lane = "queue/last"
	j := last.last()
	last.now = j.DueAt
	r.equal("Lapsed", len(last.lapsed(1, r.lane, last.lane)), 1)
	r.peek(r.lane, 10)
	r.deadLetters(r.lane, "", 10)
	r.tallies(r.lane, last.lane)
	r.countEnded(r.lane, last.lane)
	r.equal("Drain", r.drainOf(r.lane, newestID, 3), 3)
	r.equal("Drain", last.drainOf(last.lane, newestID, 3), 1)
}

// eachArrival accepts events with and without jobs, keys and delivery ids.
func eachArrival(r *rig) {
	r.accepted(r.arrival(r.lane))
	r.accepted(r.arrival())
	other := r.arrival()
	other.Event.Source = "crm" // so that two sources have sent this type
	r.accepted(other)
	r.accepted(r.delivered("each statement, without a key"))
	r.accept(r.delivered("each statement, without a key")) // a duplicate
	r.accepted(r.keyed("each statement"))
	both := r.delivered("each statement")
	both.Jobs[0].Key = "each statement, delivered"
	r.accepted(both)
	for _, id := range []string{"", "each statement, delayed"} {
		later := r.delayed(100 * 24 * time.Hour)
		later.Event.DeliveryID = id
		r.accepted(later)
	}
}

// eachOperation makes the calls of operators except those for single rows. It calls them with
// each filter for which a store uses another index.
func eachOperation(r *rig, j core.TakenJob) {
	narrow := core.EventFilter{Source: "shop", Type: "order.created", Since: r.now.Add(-time.Hour), Until: r.now.Add(time.Hour)}
	for _, f := range []core.EventFilter{{}, narrow, {Source: "shop"}, {Type: "order.created"}, {Type: "order"}, {Source: "shop", DeliveryID: "each statement"}, {DeliveryID: "each statement"}} {
		r.nth(f, 3)
		f.Limit = 3
		r.read(j.Event.ID, f)
		r.readNewest(f)
	}
	r.jobsOf(j.Event.ID)
	r.attemptsOf(j.ID)
	r.finishedSince(r.now, 3)
	r.completedJobs()
	r.cancel(j.Event.ID)
	r.equal("Replay", r.replay(r.replayOf(j.Event.ID, []core.Lane{"queue/replayed"})), 1)
	r.turn("each statement", leaseTime)
}

// eachAudit lists and purges the entries of the calls before, and stores some of its own.
func eachAudit(r *rig) {
	r.recordMany(3)
	r.audited(core.AuditFilter{})
	r.audited(core.AuditFilter{Since: r.now.Add(-time.Hour), Actor: "alice", Action: core.AuditReload, Target: "n1"})
	r.equal("PurgeAudit", r.purgeAudit(core.SystemClock().Add(time.Hour), 2), 2)
}

// eachQuestion calls the methods that read, with each filter that leads to another statement.
func eachQuestion(r *rig, j core.TakenJob) {
	r.storedEvent(j.Event.ID)
	r.job(j.ID)
	r.attempts(j.ID)
	r.sourcesOf(j.Event.ID)
	r.depth()
	r.failures(core.FailureFilter{})
	r.failures(core.FailureFilter{Lane: r.lane})
	r.events(core.EventFilter{})
	r.events(core.EventFilter{Source: "shop"})
	r.events(core.EventFilter{Type: "order.created", DeliveryID: "each statement"})
	r.events(core.EventFilter{Source: "shop", Type: "order", Since: r.now.Add(-time.Hour), Until: r.now, After: core.FirstID(r.now)}) // some ids lie between these times
	r.jobs(core.JobFilter{})
	r.jobs(core.JobFilter{EventID: j.Event.ID})
	r.jobs(core.JobFilter{Lane: r.lane, After: j.ID})
	for _, s := range core.Statuses() {
		r.jobs(core.JobFilter{Status: s})
		r.jobs(core.JobFilter{Status: s, Lane: r.lane})
		r.jobs(core.JobFilter{EventID: j.Event.ID, Status: s})
		r.jobs(core.JobFilter{EventID: j.Event.ID, Status: s, Lane: r.lane})
	}
	r.jobs(core.JobFilter{Status: core.Completed, After: j.ID}) // not among the newest
	if err := r.store.Ping(context.Background()); err != nil {
		r.Errorf("Ping = %v, want none", err)
	}
}

// BenchClaim measures taking 10 jobs of a lane that holds more, with the calls of Due between
// them. It releases the jobs unmeasured.
func BenchClaim(b *testing.B, s core.Store, lane core.Lane) {
	r := newRig(b, s, Options{})
	r.now, r.lane = core.SystemClock().UTC().Truncate(time.Millisecond), lane
	bb := bench{B: b, rig: r}
	bb.takeAndRelease()
}

// BenchSettle settles as many jobs of a lane as before says, 100 at a time, and does not measure
// that. Then it measures a worker's calls for 10 jobs: Due, Take and Settle.
func BenchSettle(b *testing.B, s core.Store, lane core.Lane, before int) {
	r := newRig(b, s, Options{})
	r.now, r.lane = core.SystemClock().UTC().Truncate(time.Millisecond), lane
	bb := bench{B: b, rig: r}
	for range before / 100 {
		r.due(lane)
		r.settle(bb.completed(r.take(100))...)
	}
	done := 0
	for b.Loop() {
		r.due(lane)
		r.settle(bb.completed(r.take(10))...)
		done += 10
	}
	bb.rate(done, "jobs")
}

// eachSlice does a slice of each kind, with jobs and events in lines and without.
func eachSlice(r *rig, j core.TakenJob) {
	of := *r
	r = &of
	r.lane = core.Lane("queue/slices-" + string(j.ID)) // it may be called again on the same database
	lined := r.putLined("each slice", 1, 3)
	r.endLined(r.takeLined(1, lined[0])[0], core.Dead, 1)
	r.do(r.slice(r.begun(core.RetryAction), r.settled(core.Dead), r.job(lined[0])))
	op := r.begun(core.CancelAction)
	r.do(r.slice(op, r.put(), r.job(lined[1])))
	s := r.slice(r.begun(core.ReplayAction))
	a := r.replayOf(j.Event.ID, []core.Lane{"queue/replayed", "queue/replayed", "queue/replayed"}, defaultWorkflow)
	a.Jobs[1].DueAt, a.Jobs[2].Line = r.now.Add(time.Hour), core.Line{Key: "each slice", Limit: 1}
	s.Arrivals = []core.Arrival{a}
	r.do(s)
	r.endOperation(op.ID, "")
	r.operation(op.ID)
	for _, status := range []core.Status{core.Dead, core.Canceled} {
		r.walk(core.FinishedWalk{Status: status})
		r.walk(core.FinishedWalk{Status: status, Lane: r.lane, Only: true, After: lined[0], Limit: 3})
	}
	r.kinds(j.Event.ID)
	if _, err := r.store.OperationList(context.Background(), op.ID, 3); err != nil {
		r.Errorf("OperationList failed: %v", err)
	}
	if err := r.store.PurgeOperations(context.Background(), time.UnixMilli(1600)); err != nil {
		r.Errorf("PurgeOperations failed: %v", err)
	}
}

// eachMinute counts minutes and reads them.
func eachMinute(r *rig) {
	r.count("P", counted(0, r.lane, core.Counts{Completed: 1}), counted(1, r.lane, core.Counts{Completed: 1}))
	if _, err := r.store.SumMinutes(context.Background(), first, first.Add(time.Hour), time.Minute); err != nil {
		r.Errorf("SumMinutes failed: %v", err)
	}
	r.received(0, "shop", "other")
	r.purgeAt(1)
}
