package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The fault tests. Each call of a store is one batch that takes effect whole or not at all, and
// may be sent again. RunFaults proves both with a scenario of about a hundred calls
// (scenario.go). One play of the scenario runs without faults and records the content of the
// store after each step. In each later play, a few steps fail at their next statement. Right
// after a fault, the store must show the state before or after the step. After the step is
// repeated, it must show the state after it. If a driver fails here, a crash or a lost connection
// would leave half of an event, a run or a settlement.

// RunFaults checks that each call is atomic and may be sent twice. It plays a scenario again and
// again, until each statement of each step has failed once. It then does the same with lost
// answers. The caller repeats each failed call once. After the fault, after the repetition and at
// the end, the store must show the same as at that point of a run without faults.
//
// open returns a migrated store whose connection is [Faulty] with the fault.
func RunFaults(t *testing.T, open func(t *testing.T, f *Fault) core.Store, opts ...Options) {
	o := options(opts).serial()
	t.Run("Each statement fails in turn", func(t *testing.T) {
		t.Parallel()
		f := &Fault{}
		eachInTurn(newRig(t, open(t, f), o), f, refuseStmt, stride(o))
	})
	t.Run("Each answer is lost in turn", func(t *testing.T) {
		t.Parallel()
		f := &Fault{}
		eachInTurn(newRig(t, open(t, f), o), f, loseAnswer, stride(o))
	})
	for _, c := range statementChecks {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			f := &Fault{}
			c.run(newRig(t, open(t, f), o), f)
		})
	}
}

// stride is n if one of n statements, or batches, of each step fails. Each step begins with
// another of them. With a stride of 5, one call in five of the full test is tried. Statements of
// the same kind appear in many steps, and each step begins with another statement.
func stride(o Options) int {
	switch {
	case raceDetector:
		return 20
	case o.Slow, o.Sampled, testing.Short():
		return 5
	}
	return 1
}

// faultDistance is the distance, in steps, between two faults of one play. The steps between two faults
// show the effects of the first.
const faultDistance = 4

// eachInTurn plays the scenario until each statement, or batch, of each step has failed once, or
// one of each stride. All plays share one store. Each play has its own lanes, source and ids.
// Faults of one play are at least faultDistance steps apart, so a scenario of 100 steps has at
// most 25 faults in a play. The step with the most statements, or batches, needs the most plays.
func eachInTurn(r *rig, f *Fault, how faultKind, stride int) {
	clean := newPlay(r, f, 0)
	clean.record, clean.states = true, []scene{{}}
	scenario(clean)
	turns, struck := make([]int, len(clean.states)), 0
	for step := 1; step < len(turns); step++ {
		turns[step] = 1 + step%stride
	}
	for n := 1; slices.Max(turns) > 0; n++ {
		p := newPlay(r, f, n)
		p.clean, p.how, p.turns, p.stride = clean.states, how, turns, stride
		scenario(p)
		if r.Failed() {
			return // once is enough: many statements break the same promise
		}
		struck += p.faulted
	}
	// A connection that is not Faulty would pass without one fault.
	if struck == 0 {
		r.Errorf("nothing went wrong in a scenario of %d steps: is the connection Faulty?", len(turns)-1)
	}
}

// statementChecks are the checks that must see statements, or stop all of them. Each of them
// injects a condition that no sequence of calls can produce reliably.
var statementChecks = []struct {
	says string
	run  func(r *rig, f *Fault)
}{
	{"Methods that read send no statement that writes", readsOnly},
	{"An unreachable database is a refusal of kind Unavailable", withoutDatabase},
	{"A batch sent twice has the effect of one", eachTwice},
	{"A change that fails leaves no audit entry, and one that is made leaves its entry", faultyAudits},
	{"A Take sent twice, with another Take in between, keeps the interval", takesBetween},
	{"A Take sent twice, with a Hold in between, takes nothing more", holdBetween},
	{"A Take beside a held source, sent twice, takes nothing more", besideHoldTwice},
	{"A Take beside a held source, sent twice, with a Hold in between, takes nothing more", holdBetweenBeside},
	{"A source that is held again while its number is forgotten is held", forgetNumberMeanwhile},
	{"A dead job of a line that is retried twice at a time is retried once", reviveMeanwhile},
	{"A Take of a held lane writes no gate", steadyHold},
	{"A success writes no gate of a lane without failures", steadySuccess},
	{"Take returns the claimed jobs although reads lag", takesLater},
	{"An AcceptAndTake without an answer returns the jobs that it may have taken", unansweredExpress},
	{"An AcceptAndTake without an effect returns no jobs", unsentExpress},
	{"Accept names the stored event although reads lag", answersLater},
	{"Take returns situations although reads lag", takesRunsLater},
	{"A run redriven during its purge stays, with its steps and event", redrivenMeanwhile},
	{"A transition after a concurrent one changes nothing", movesMeanwhile},
	{"A transition sent twice, with the next one in between, takes effect once", betweenTwice},
	{"A definition is stored once", oneDefinition},
	{"An event purged before its Replay gets no jobs", replayedLate},
	{"An event replayed during its purge is deleted, or stays with its jobs", replayedMeanwhile},
	{"A Turn sent twice takes the turn once", turnsTwice},
	{"A large job and a large run revived during their purge keep all rows", purgeMuchMeanwhile},
	{"A gate that counts a failure or is held during its purge stays", forgetMeanwhile},
	{"A job retried during its purge stays, with its attempts and event", purgeMeanwhile},
	{"A job completed during a drain stays, and another job is drained", drainMeanwhile},
	{"A job canceled during a drain stays, and another job is drained", drainBesideCancel},
}

// takesLater makes the reads of the claiming batch and of the next two return no rows. The jobs
// are leased already, so a Take that returned none of them would leave them running without a
// worker until their leases end.
func takesLater(r *rig, f *Fault) {
	r.accepted(r.arrival(r.lane, r.lane, r.lane))
	two := core.Quota{Lane: r.lane, N: 2, Hold: leaseTime}
	for _, want := range []int{2, 1, 0} {
		f.blindFor(3)
		r.equal("Take: jobs", len(r.takeQuotas(two)), want)
	}
}

// answersLater makes reads return no rows after an insert found that its key exists. A duplicate
// must be answered with the first event's id, also by a database that shows it late.
func answersLater(r *rig, f *Fault) {
	first := r.delivered("once")
	r.accepted(first)
	f.blindFor(3)
	receipt, err := r.store.Accept(context.Background(), r.delivered("once"))
	r.equal("Accept: refusal", err, nil)
	r.equal("Accept: receipt", receipt, core.Receipt{EventID: first.Event.ID, Duplicate: true})
}

// Reads go to replicas or read-only connections. A statement that writes would fail there, or take
// a lock on every look. The list has each method that reads.
func readsOnly(r *rig, f *Fault) {
	j, last := r.settled(core.Retryable), r.last()
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	want := f.written()
	r.due(r.lane, "handler/nobody")
	r.marks("a", "nobody")
	r.storedEvent(j.EventID)
	r.job(j.ID)
	r.attempts(j.ID)
	r.events(core.EventFilter{})
	r.jobs(core.JobFilter{})
	r.depth()
	r.now = last.DueAt
	r.held(r.lane, refTo(last.Job), byID(j.ID))
	r.lapsed(9, r.lane)
	r.tallies(r.lane)
	r.countEnded(r.lane)
	r.peek(r.lane, 9)
	r.deadLetters(r.lane, "", 0)
	r.nth(core.EventFilter{Source: "shop"}, 2)
	r.read("", core.EventFilter{Source: "shop"})
	r.jobsOf(j.EventID)
	r.attemptsOf(j.ID)
	r.finishedSince(r.now, 0)
	r.completedJobs()
	r.wantIdempotent("reading methods", func() {}) // which itself reads all of a run
	r.situations(t.New[1].ID)
	r.survey(t.Run.ID, 1, core.Wanted{Open: true, Failed: true, IDs: []core.ID{t.New[0].ID}, Paths: []string{"fan"}, Leaves: []core.ID{t.New[0].ID}})
	r.awaited(t.Tokens[0].Hash)
	r.wantDefinition(definition(defaultWorkflow))
	schema(r)
	if err := r.store.Ping(context.Background()); err != nil {
		r.Errorf("Ping = %v, want none", err)
	}
	r.equal("statements that write", f.written(), want)
}

// eachTwice plays the scenario, and takes from a lane with more jobs, while each batch is sent
// twice. A connection that got no answer sends a batch again, and the first sending may arrive
// late.
func eachTwice(r *rig, f *Fault) {
	clean := newPlay(r, f, 0)
	scenario(clean)
	f.twice = true
	again := newPlay(r, f, 1)
	again.clean = make([]scene, clean.steps+1) // no step fails, so only the end is compared
	again.clean[clean.steps] = clean.scene()
	scenario(again)
	r.accepted(r.arrival(lanes(r.lane, 5)...))
	r.equal("Take: jobs", len(r.takeQuotas(r.quota(2))), 2)
	r.equal("Jobs: running", len(r.jobs(core.JobFilter{Lane: r.lane, Status: core.Running}).Items), 2)
	r.settle(r.ended(r.take(1)[0].Job, core.Dead))
}

// takesBetween has another caller take jobs of the lane between the two sendings of a Take. If the
// gate permits it, the jobs of the first Take start later. If not, they are released, because the
// start times of the first sending no longer hold. If the start times of the first sending held,
// two takers would together exceed the rate of the handler.
func takesBetween(r *rig, f *Fault) {
	const interval = time.Second
	r.putMany(6)
	f.twice = true
	take := func(ahead time.Duration) (first, second []core.TakenJob) {
		f.between = func() { second = r.takeQuotas(r.paced(2, interval, time.Second)) }
		first = r.takeQuotas(core.Quota{Lane: r.lane, N: 1, Hold: leaseTime, Pass: &core.Pass{Interval: interval, Ahead: ahead}})
		return first, second
	}
	first, second := take(5 * time.Second)
	r.equal("starts of the Take in between", starts(second, r.now), []time.Duration{interval, 2 * interval})
	r.equal("starts of the Take that was sent twice", starts(first, r.now), []time.Duration{3 * interval})
	r.equal("NextAt", r.gate().NextAt, r.now.Add(4*interval))

	r.now = r.now.Add(4 * interval)
	first, second = take(0)
	r.equal("starts of the Take in between", starts(second, r.now), []time.Duration{interval, 2 * interval})
	r.equal("starts of the Take whose start is too far ahead", starts(first, r.now), []time.Duration{})
	r.equal("NextAt", r.gate().NextAt, r.now.Add(3*interval))
	r.equal("Take of released jobs: attempt", r.takeCount("of a released job", 1, r.paced(1, interval, 3*interval))[0].Attempt, 1)
}

// holdBetween holds a lane and adds a job between the two sendings of a Take. The gate names the
// lease of the Take since the first sending, so the claim must look at the hold itself. A job that
// the first sending took stays taken.
func holdBetween(r *rig, f *Fault) {
	for _, q := range []core.Quota{r.quota(3), r.paced(3, time.Millisecond, time.Second)} {
		for before := range 2 {
			r.putMany(before)
			f.twice, f.between = true, func() {
				r.putMany(1)
				r.hold(time.Time{}, "")
			}
			jobs := r.takeQuotas(q)
			f.twice = false
			r.equal("jobs taken", len(jobs), before)
			r.unhold(r.lane)
			r.now = r.now.Add(core.RampTime)
			for _, j := range append(jobs, r.take(1)...) {
				r.settle(r.ended(j.Job, core.Completed))
			}
		}
	}
}

// steadyHold checks that a Take writes no gate if its caller does not know of the hold.
func steadyHold(r *rig, f *Fault) {
	r.openBreaker()
	r.hold(time.Time{}, "")
	r.now = r.gate().OpenUntil
	r.nothingTaken("of an open breaker")
	r.lane += "-closed"
	r.putMany(1)
	r.hold(time.Time{}, "")
	r.nothingTaken("of a closed breaker")
	r.equal("gates changed by Takes", f.changes("admit")+f.changes("admit_probe"), int64(0))
}

// steadySuccess checks that successes write to no gate while the lane has no failures. The gate of
// a healthy lane is written once after trouble and then not again: one write less for each
// delivery.
func steadySuccess(r *rig, f *Fault) {
	succeed := func() {
		r.putMany(5)
		var outcomes []core.Outcome
		for _, j := range r.take(5) {
			outcomes = append(outcomes, r.verdict(j, core.Success))
		}
		r.settle(outcomes...)
	}
	succeed()
	r.equal("gates changed while there is none", f.changes("succeed")+f.changes("insert_gates"), int64(0))
	r.settle(r.verdict(r.taken(), core.Failure))
	succeed()
	r.equal("gates changed after a failure", f.changes("succeed"), int64(1))
	succeed()
	r.equal("gates changed after a success", f.changes("succeed"), int64(1))
}

// drainMeanwhile completes the two jobs that Drain selected, before Drain deletes them. Drain then
// selects the next two. Jobs that ended in the meantime stay, and they do not use up the number to
// be drained.
func drainMeanwhile(r *rig, f *Fault) {
	jobs, refs := r.putAndTake(4)
	r.settle(r.ended(jobs[3].Job, core.Retryable))
	f.justBefore("drain_jobs", func() {
		r.settle(r.ended(jobs[0].Job, core.Completed))
		r.equal("Ack", r.ack(r.lane, refs[1]), 1)
	})
	r.equal("Drain of two", r.drainOf(r.lane, newestID, 2), 2)
	r.wantNoJob(jobs[2].Job)
	r.wantNoJob(jobs[3].Job)
	r.wantJob(r.acked(jobs[1].Job))
	r.equal("status", r.job(jobs[0].ID).Status, core.Completed)
	r.equal("Attempts", len(r.attempts(jobs[0].ID)), 1)
}

// Without a database each method must say that it is unavailable, so that senders get 503 and send
// again. Any other error would look like a defect. Afterwards, everything is as before.
func withoutDatabase(r *rig, f *Fault) {
	waiting, j := r.settled(core.Retryable), r.taken().Job
	r.marked(r.mark("a", 0))
	run := r.newRun()
	calls := callsOfEachMethod(r, j, run)
	f.arm(unreachable, 0)
	for name, call := range calls {
		if err := call(); !core.IsKind(err, core.Unavailable) {
			r.Errorf("%s without a database = %v, want a refusal of kind Unavailable", name, err)
		}
	}
	f.disarm()
	r.equal("Run", r.run(run.Run.ID), run.Run)
	r.wantJob(waiting)
	r.wantJob(j)
	r.wantMarks(r.mark("a", 0))
}

// callsOfEachMethod returns a call of each method of a store, by a short name. j is a job that was
// taken.
func callsOfEachMethod(r *rig, j core.Job, run core.Situation) map[string]func() error {
	ctx, s, refs := context.Background(), r.store, []core.Ref{refTo(j)}
	return map[string]func() error{
		"Record":        func() error { return s.Record(changing(core.AuditReload, "unreachable")) },
		"Audited":       func() error { _, err := s.Audited(ctx, core.AuditFilter{}); return err },
		"PurgeAudit":    func() error { _, err := s.PurgeAudit(ctx, r.now, 1); return err },
		"Accept":        func() error { _, err := s.Accept(ctx, r.arrival(r.lane)); return err },
		"AcceptAndTake": func() error { _, _, err := s.AcceptAndTake(ctx, r.now, r.arrival(r.lane), nil); return err },
		"Due":           func() error { _, err := s.Due(ctx, []core.Lane{r.lane}); return err },
		"Take":          func() error { _, err := s.Take(ctx, r.now.Add(time.Hour), []core.Quota{r.quota(1)}); return err },
		"Settle":        func() error { _, err := s.Settle(ctx, r.ended(j, core.Completed)); return err },
		"Strays":        func() error { _, err := s.Strays(ctx, r.now, nil); return err },
		"CloseBreakers": func() error { _, err := s.CloseBreakers(ctx, r.now, r.lane); return err },
		"Hold":          func() error { return s.Hold(ctx, r.now, r.lane, time.Time{}, "") },
		"Unhold":        func() error { _, err := s.Unhold(ctx, r.now, r.lane); return err },
		"Holding":       func() error { _, err := s.Holding(ctx, r.now); return err },
		"Lines":         func() error { _, err := s.Lines(ctx, r.lane, "", 1); return err },
		"LinedLanes":    func() error { _, err := s.LinedLanes(ctx); return err },
		"AckLined":      func() error { _, err := s.AckLined(ctx, r.now, r.lane, 1, refs); return err },
		"Skip":          func() error { _, err := s.Skip(ctx, r.now, j.ID); return err },
		"Fill":          func() error { _, err := s.Fill(ctx, r.now, r.lane, 1, ""); return err },
		"Release":       func() error { return s.Release(ctx, r.now, j) },
		"Recover":       func() error { _, err := s.Recover(ctx, r.now, []core.Lane{r.lane}); return err },
		"Marks":         func() error { _, err := s.Marks(ctx, []string{"a"}); return err },
		"Mark":          func() error { return s.Mark(ctx, r.mark("a", time.Hour)) },
		"Event":         func() error { _, err := s.Event(ctx, j.EventID); return err },
		"Events":        func() error { _, err := s.Events(ctx, core.EventFilter{}); return err },
		"Job":           func() error { _, err := s.Job(ctx, j.ID); return err },
		"Jobs":          func() error { _, err := s.Jobs(ctx, core.JobFilter{}); return err },
		"Attempts":      func() error { _, err := s.Attempts(ctx, j.ID, 0, 1); return err },
		"Depth":         func() error { _, err := s.Depth(ctx); return err },
		"Cancel":        func() error { _, err := s.Cancel(ctx, r.now, j.EventID); return err },
		"Retry":         func() error { _, err := s.Retry(ctx, r.now, "", ""); return err },
		"Purge":         func() error { _, _, err := s.Purge(ctx, r.now, 1); return err },
		"Ack":           func() error { _, err := s.Ack(ctx, r.now, r.lane, refs); return err },
		"Extend":        func() error { _, err := s.Extend(ctx, r.now, r.lane, refs); return err },
		"Held":          func() error { _, err := s.Held(ctx, r.lane, refs); return err },
		"Lapsed":        func() error { _, err := s.Lapsed(ctx, r.now, []core.Lane{r.lane}, 1); return err },
		"Tallies":       func() error { _, err := s.Tallies(ctx, r.now, []core.Lane{r.lane}); return err },
		"Ended":         func() error { _, err := s.Ended(ctx, []core.Lane{r.lane}); return err },
		"Peek":          func() error { _, err := s.Peek(ctx, r.now, r.lane, 1); return err },
		"Dead":          func() error { _, err := s.DeadLetters(ctx, r.lane, "", 1); return err },
		"Drain":         func() error { _, err := s.Drain(ctx, r.lane, newestID, 1); return err },
		"Transit":       func() error { _, err := s.Transit(ctx, r.transitionOf(run.Run, core.EntryStarted)); return err },
		"Steps":         func() error { _, err := s.Situations(ctx, []core.ID{run.Step.ID}); return err },
		"Survey":        func() error { _, err := s.Survey(ctx, run.Run.ID, 1, core.Wanted{All: true}); return err },
		"Awaited":       func() error { _, err := s.Awaited(ctx, r.now, "token", "receipt"); return err },
		"Snapshot":      func() error { _, err := s.Definition(ctx, definition(defaultWorkflow).Hash); return err },
		"Nth":           func() error { _, err := s.Nth(ctx, core.EventFilter{}, 1); return err },
		"Read":          func() error { _, err := s.Read(ctx, "", core.EventFilter{}); return err },
		"JobsOf":        func() error { _, err := s.JobsOf(ctx, []core.ID{j.EventID}); return err },
		"Finished":      func() error { _, err := s.Finished(ctx, r.now, "", 1); return err },
		"Complete":      func() error { _, err := s.Completed(ctx); return err },
		"Replay":        func() error { _, err := s.Replay(ctx, r.now, r.replayOf(j.EventID, []core.Lane{r.lane})); return err },
		"Turn":          func() error { _, err := s.Turn(ctx, r.now, "purge", leaseTime); return err },
		"Run":           func() error { _, err := s.Run(ctx, run.Run.ID); return err },
		"Runs":          func() error { _, err := s.Runs(ctx, core.RunFilter{}); return err },
		"Outline":       func() error { _, err := s.Outline(ctx, run.Run.ID, 1); return err },
		"History":       func() error { _, err := s.History(ctx, run.Run.ID, 0, 1); return err },
		"Migrate":       func() error { return s.Migrate(ctx) },
		"Schema":        func() error { _, _, err := s.Schema(ctx); return err },
		"Ping":          func() error { return s.Ping(ctx) },
	}
}
