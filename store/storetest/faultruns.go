package storetest

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of runs that need a particular moment: a write of another caller between two statements,
// a batch that arrives twice, or reads that lag behind writes.

// takesRunsLater makes the reads of the claiming batch and of the next one return no rows. D1 may
// answer reads from a replica. A job without its situation would not be executable.
func takesRunsLater(r *rig, f *Fault) {
	want := r.newRun()
	f.blindFor(2)
	r.equal("Take: situation", r.takeOnly(want.Step.ID, r.runQuota(1)).Situation, want)
}

// redrivenMeanwhile redrives one of two runs after Purge selected both. The purge must delete the
// other run, and keep all rows of the redriven one, also the new ones.
func redrivenMeanwhile(r *rig, f *Fault) {
	run, dead := r.failedRun()
	other, job := r.failedRun()
	r.now = r.now.Add(time.Second)
	again := r.transitionOf(run, core.EntryRedriven)
	again.Run.Status, again.Run.FinishedAt = core.RunPending, time.Time{}
	again.Tokens = []core.Token{{Hash: tokenOf(dead.ID), StepID: dead.ID, ExpiresAt: r.now.Add(leaseTime)}}
	again.New = []core.Step{r.step(run, "again", core.StepReady)}
	f.justBefore("purge_runs", func() { r.mustTransit(again) })
	r.equal("Purge", r.purge(10), 4) // both jobs, and the two other rows of the other run
	r.wantNoRun(other.ID, job.ID)
	got := r.runView(run.ID)
	r.equal("run that was redriven", got.Run, again.Run)
	r.equal("its steps and entries", []int{len(got.Steps), len(got.History)}, []int{2, 2})
	r.equal("its new step", got.Steps[1], again.New[0])
	r.equal("its token", r.awaited(tokenOf(dead.ID)), dead.ID)
	r.storedEvent(run.EventID)
}

// movesMeanwhile makes another transition of a run, and completes its job, after a transition was
// prepared and before it is stored. The lock of a run is the insert of its next history entry.
// This transition reached that insert too late and must leave no step, attempt or alert.
func movesMeanwhile(r *rig, f *Fault) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	f.justBefore("insert_history", func() { r.mustTransit(r.completes(j.Situation)) })
	r.equal("Transit: made", r.transit(t), []bool{false})
	r.equal("steps", len(r.survey(t.Run.ID, 1, core.Wanted{All: true})), 1)
	r.equal("History", len(r.history(t.Run.ID, 0, 10)), 1)
	r.equal("Attempts", r.attempts(j.ID), []core.Attempt{})
	r.wantAbsent(*t.GivesRise)
}

// betweenTwice makes the next transition of a run between the two sendings of the batch of the
// transition before. The second sending finds its mark in the history, though the run has moved
// on. It must not undo the newer transition.
func betweenTwice(r *rig, f *Fault) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	next := r.transitionOf(t.Run, core.EntrySucceeded)
	next.Changed = []core.StepChange{changeOf(ended(t.New[1], r, core.StepSucceeded))}
	next.JobsEnd = []core.JobChange{{ID: t.New[1].ID, Status: core.Completed, FinishedAt: r.now}}
	next.Disarm = []core.ID{t.New[1].ID}
	var want state
	f.twice, f.between = true, func() { r.mustTransit(next); want = r.state() }
	r.mustTransit(t)
	f.twice = false
	r.equal("state after the batch arrived once more", r.state(), want)
	r.equal("Seq", r.run(t.Run.ID).Seq, next.Run.Seq)
}

// oneDefinition counts how often a definition is stored. A process sends the definition of many
// runs once, and a transition never sends it. Definitions may have many kilobytes.
func oneDefinition(r *rig, f *Fault) {
	for range 3 {
		r.newRun()
	}
	r.equal("definitions stored", f.changes("insert_definitions"), int64(1))
}
