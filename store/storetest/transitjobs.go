package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// What a transition does to jobs, whoever holds them.

// completes is a transition that ends the first step of a run and its job, told by
// nobody who holds it.
func (r *rig) completes(s core.Situation) core.Transition {
	t := r.move(s.Run, core.EntrySucceeded)
	t.Changed = []core.StepChange{changeOf(ended(s.Step, r, core.StepSucceeded))}
	t.JobsEnd = []core.JobChange{{ID: s.Step.ID, Status: core.Completed, FinishedAt: r.now}}
	return t
}

func transitUnheld(r *rig) {
	s := r.started()
	t := r.completes(s)
	t.Attempts = []core.AttemptRecord{{JobID: s.Step.ID, Lease: "nobody's", Attempt: core.Attempt{Number: 1, StartedAt: r.now}}}
	r.makes(t)
	got := r.job(s.Step.ID)
	r.equal("Job", []any{got.Status, got.Attempt, got.DueAt, got.FinishedAt}, []any{core.Completed, 0, time.Time{}, r.now})
	r.equal("Attempts", r.attempts(s.Step.ID), []core.Attempt{t.Attempts[0].Attempt})
	r.equal("Take: jobs", len(r.haul(r.flowing(9))), 0)
}

// transitHeld has whoever took a job first tell of it while another holds it.
func transitHeld(r *rig) {
	first := r.entered()
	r.now = first.DueAt
	second := r.brings(first.ID, r.flowing(1))
	t := r.leap(first)
	r.makes(t)
	got := r.job(first.ID)
	r.equal("Job", []any{got.Status, got.Attempt, got.Lease}, []any{core.Completed, 2, core.Lease("")})
	r.leaves(r.leap(second))
	r.equal("Attempts", r.attempts(first.ID), []core.Attempt{t.Attempts[0].Attempt})
}

func transitThenSettle(r *rig) {
	j := r.entered()
	t := r.completes(j.Situation)
	r.makes(t)
	want := r.state()
	r.equal("Settle: lost", r.lost(r.ended(j.Job, core.Dead)), []core.ID{j.ID})
	r.equal("state after an outcome that is lost", r.state(), want)
}

func transitThenRelease(r *rig) {
	j := r.entered()
	r.makes(r.completes(j.Situation))
	want := r.state()
	r.release(r.now, j.Job)
	r.equal("state after a release that is too late", r.state(), want)
}

// transitRetryable makes a job due again, sooner than whatever was due in its lane.
func transitRetryable(r *rig) {
	j := r.entered()
	t := r.move(j.Situation.Run, core.EntryRetried)
	r.now = r.now.Add(time.Second)
	due := r.now.Add(time.Second)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Retryable, DueAt: due, Error: "network: refused"}}
	r.makes(t)
	r.wantJob(core.Job{ID: j.ID, EventID: j.EventID, Lane: j.Lane, Status: core.Retryable, Attempt: 1, MaxAttempts: core.Unlimited,
		DueAt: due, RunID: t.Run.ID, Step: "first", LastError: "network: refused", CreatedAt: j.CreatedAt})
	r.equal("Due", r.due(j.Lane), map[core.Lane]time.Time{j.Lane: due})
	r.equal("Take before it is due", len(r.haul(r.flowing(1))), 0)
	r.now = due
	again := r.brings(j.ID, r.flowing(1))
	r.equal("Take: attempt, Seq", []int{again.Attempt, again.Situation.Run.Seq}, []int{2, 1})

	sooner := r.move(t.Run, core.EntryRetried)
	sooner.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Retryable, DueAt: due.Add(-time.Minute)}}
	r.makes(sooner)
	got := r.brings(j.ID, r.flowing(1))
	r.equal("last error of a job without", got.LastError, "")
}

func transitDead(r *rig) {
	j := r.entered()
	t := r.finished(j.Situation.Run, core.RunFailed)
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Dead, Error: "status: 500", FinishedAt: r.now}}
	r.makes(t)
	dead := r.jobs(core.JobFilter{Status: core.Dead, Lane: j.Lane}).Items
	r.equal("Jobs: dead", ids(dead), []core.ID{j.ID})
	again := r.move(t.Run, core.EntryRedriven)
	again.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Completed, Error: "status: 500", FinishedAt: r.now}}
	r.makes(again)
	r.equal("Jobs: dead once completed", len(r.jobs(core.JobFilter{Status: core.Dead}).Items), 0)
	r.equal("last error of the completed job", r.job(j.ID).LastError, "status: 500")
}

// transitNewJobs makes a job that is due before anything else in the lane was, and one
// for later.
func transitNewJobs(r *rig) {
	j := r.entered()
	r.now = r.now.Add(time.Second)
	t := r.move(j.Situation.Run, core.EntryFanned)
	soon, later := r.step(t.Run, "soon", core.StepReady), r.step(t.Run, "later", core.StepReady)
	t.New = []core.Step{soon, later}
	t.Jobs = []core.StepJob{{ID: soon.ID, DueAt: r.now.Add(-time.Minute)}, {ID: later.ID, DueAt: r.now.Add(time.Second)}}
	r.makes(t)
	want := core.Job{ID: soon.ID, EventID: j.EventID, Lane: j.Lane, Status: core.Available, MaxAttempts: core.Unlimited,
		DueAt: r.now.Add(-time.Minute), RunID: t.Run.ID, Step: "soon", CreatedAt: r.now}
	r.wantJob(want)
	got := r.brings(soon.ID, r.flowing(9))
	r.equal("Take: event", got.Event, j.Event)
	r.equal("Take: situation", got.Situation, core.Situation{Run: t.Run, Step: soon})
	r.now = r.now.Add(time.Second)
	r.brings(later.ID, r.flowing(9))
}
