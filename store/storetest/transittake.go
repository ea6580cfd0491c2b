package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Transition.Take, with which a worker gets the job of a run's next step without a claim. A
// failure means that a step is executed although its workflow or source is held, that two workers
// execute it, or that none does.

// nextOf returns a transition that ends a step of the workflow's own list and takes the job of the next
// one.
func (r *rig) nextOf(j core.TakenJob) core.Transition {
	t := r.completes(j.Situation)
	next := r.step(t.Run, "next of "+string(j.ID), core.StepReady)
	t.New = []core.Step{next}
	t.Jobs = []core.StepJob{{ID: next.ID, DueAt: r.now}}
	t.Take = core.Taking{Job: next.ID, Source: j.Event.Source, Until: r.now.Add(leaseTime)}
	return t
}

// waitingJob is the job of a transition's only new step as it must be while it waits.
func (r *rig) waitingJob(j core.TakenJob, t core.Transition) core.Job {
	next := t.New[0]
	return core.Job{ID: next.ID, EventID: j.EventID, Lane: j.Lane, Status: core.Available, MaxAttempts: core.Unlimited,
		DueAt: t.Jobs[0].DueAt, RunID: t.Run.ID, Step: next.Name, CreatedAt: t.Entries[0].At}
}

// leasedJob is the same once it is taken.
func (r *rig) leasedJob(j core.TakenJob, t core.Transition) core.Job {
	job := r.waitingJob(j, t)
	job.Status, job.Attempt, job.Lease = core.Running, 1, core.Lease(t.Mark)
	job.ScheduledAt, job.DueAt = job.DueAt, t.Take.Until
	return job
}

// wantTakes makes a transition, which must take its job.
func (r *rig) wantTakes(j core.TakenJob, t core.Transition) {
	r.Helper()
	r.equal("Transit", r.transited(t), []core.Transited{{Made: true, Taken: true}})
	r.wantJob(r.leasedJob(j, t))
}

// wantWaits makes a transition, which must not take its job.
func (r *rig) wantWaits(j core.TakenJob, t core.Transition) {
	r.Helper()
	r.equal("Transit", r.transited(t), []core.Transited{{Made: true}})
	r.wantJob(r.waitingJob(j, t))
}

// The job is due for some time already. It is leased to the end that the transition names. Then another
// worker takes it, with its situation.
func takesNext(r *rig) {
	j := r.takeNewRun()
	t := r.nextOf(j)
	t.Jobs[0].DueAt = r.now.Add(-time.Second)
	result := r.transited(t)[0]
	r.equal("Transit", result, core.Transited{Made: true, Taken: true})
	r.equal("name of the state", result.StateName, r.situation(t.Take.Job).Step.StateName)
	r.wantJob(r.leasedJob(j, t))
	r.now = t.Take.Until.Add(-time.Millisecond)
	r.takeCount("during the lease", 0, r.runQuota(9))
	r.now = t.Take.Until
	again := r.takeOnly(t.Take.Job, r.runQuota(9))
	want := core.TakenJob{Job: r.leasedJob(j, t), Event: j.Event, Situation: core.Situation{Run: t.Run, Step: t.New[0]}}
	want.Attempt, want.Lease, want.DueAt, want.ScheduledAt = 2, again.Lease, again.DueAt, t.Take.Until
	want.RunID, want.Step = "", "" // in the situation
	r.equal("job taken again", again, want)
}

// Each step is taken as the one before ends. The attempts are recorded under their leases.
func takesOn(r *rig) {
	first := r.takeNewRun()
	j := first
	for range 3 {
		t := r.nextOf(j)
		t.Attempts = []core.AttemptRecord{{JobID: j.ID, Lease: j.Lease, Attempt: r.called(j, "ok")}}
		r.wantTakes(j, t)
		r.equal("attempts of the step before", len(r.attempts(j.ID)), 1)
		r.equal("status of the job before", r.job(j.ID).Status, core.Completed)
		j = core.TakenJob{Job: r.leasedJob(j, t), Event: first.Event, Situation: r.situation(t.Take.Job)}
	}
	r.mustTransit(r.completes(j.Situation))
	r.equal("status", r.job(j.ID).Status, core.Completed)
}

// The other job of the transition waits.
func takesOneNext(r *rig) {
	j := r.takeNewRun()
	t := r.nextOf(j)
	other := r.step(t.Run, "other", core.StepReady)
	t.New, t.Jobs = append(t.New, other), append([]core.StepJob{{ID: other.ID, DueAt: r.now}}, t.Jobs...)
	r.equal("Transit", r.transited(t), []core.Transited{{Made: true, Taken: true}})
	r.equal("status", r.job(t.Take.Job).Status, core.Running)
	r.takeOnly(other.ID, r.runQuota(9))
}

// After a lost answer the transition is sent again. The job stays with its taker, until another worker
// has taken it.
func takesNextAgain(r *rig) {
	j := r.takeNewRun()
	t := r.nextOf(j)
	r.wantIdempotent("Transit", func() { r.wantTakes(j, t) })
	r.now = t.Take.Until
	again := r.takeOnly(t.Take.Job, r.runQuota(9))
	r.equal("Transit after another worker has taken the job", r.transited(t), []core.Transited{{Made: true}})
	r.equal("lease", r.job(t.Take.Job).Lease, again.Lease)
}

func takesNextBehind(r *rig) {
	j := r.takeNewRun()
	late := r.nextOf(j)
	r.mustTransit(r.transitionOf(j.Situation.Run, core.EntryStarted))
	r.wantNotMade(late)
	r.equal("Transit", r.transited(late), []core.Transited{{}})
}

// A hold ends with a ramp, in which a worker takes few jobs, by a Pass.
func takesNextHeld(r *rig) {
	lane := core.WorkflowLane(r.workflow)
	during, after, later := r.takeNewRun(), r.takeNewRun(), r.takeNewRun()
	r.holdLane(lane, time.Time{}, "")
	r.wantWaits(during, r.nextOf(during))
	r.unhold(lane)
	r.wantWaits(after, r.nextOf(after))
	r.now = r.now.Add(core.RampTime)
	r.wantTakes(later, r.nextOf(later))
}

// The jobs of a held source wait, and those of others do not.
func takesNextOfSource(r *rig) {
	held, later := r.takeNewRun(), r.takeNewRun()
	a := r.runArrival(r.workflow)
	a.Event.Source = "another"
	r.accept(a)
	other := r.takeOnly(a.Runs[0].StepID, r.runQuota(1))
	r.holdLane(core.SourceLane(held.Event.Source), time.Time{}, "")
	r.wantWaits(held, r.nextOf(held))
	r.wantTakes(other, r.nextOf(other))
	r.unhold(core.SourceLane(held.Event.Source))
	r.wantTakes(later, r.nextOf(later))
}

// One call has transitions that take a job, one that takes none, and one that is stale.
func takesNextOfMany(r *rig) {
	a, b, c, d := r.takeNewRun(), r.takeNewRun(), r.takeNewRun(), r.takeNewRun()
	none, stale := r.nextOf(b), r.nextOf(c)
	none.Take = core.Taking{}
	r.mustTransit(r.transitionOf(c.Situation.Run, core.EntryStarted))
	r.equal("Transit", r.transited(r.nextOf(d), none, stale, r.nextOf(a)), []core.Transited{{Made: true, Taken: true}, {Made: true}, {}, {Made: true, Taken: true}})
	r.equal("status", r.job(none.New[0].ID).Status, core.Available)
}

// One call has two transitions of a run, of which one is made. The job of the other one is not stored.
func takesNextTogether(r *rig) {
	j := r.takeNewRun()
	ts := []core.Transition{r.nextOf(j), r.nextOf(j)}
	for i, got := range r.transited(ts...) {
		r.equal("Taken", got.Taken, got.Made)
		if got.Made {
			r.wantJob(r.leasedJob(j, ts[i]))
		} else if _, err := r.store.Job(context.Background(), ts[i].Take.Job); !core.IsKind(err, core.NotFound) {
			r.Errorf("Job of a transition that is not made = %v, want a refusal of kind NotFound", err)
		}
	}
}

// raceTakeNext has callers end the same step, each to take the next one, while others take from the lane.
// One caller has the job that its transition made, and no other worker has a job.
func raceTakeNext(r *rig) {
	for range r.scaled(20) {
		j := r.takeNewRun()
		ts, results := make([]core.Transition, callers), make([]core.Transited, callers)
		for i := range ts {
			ts[i] = r.nextOf(j)
		}
		var mu sync.Mutex
		others := 0
		r.concurrently(2*callers, func(i int) error {
			if i >= callers {
				got, err := r.store.Take(context.Background(), r.now, []core.Quota{r.runQuota(9)})
				mu.Lock()
				defer mu.Unlock()
				others += len(got)
				return err
			}
			got, err := r.store.Transit(context.Background(), ts[i])
			if err == nil && len(got) != 1 {
				err = errors.New("Transit of one transition has not one result")
			}
			if err == nil {
				results[i] = got[0]
			}
			return err
		})
		takers := 0
		for i, got := range results {
			r.equal("Taken", got.Taken, got.Made)
			if got.Taken {
				takers++
				r.wantJob(r.leasedJob(j, ts[i]))
			}
		}
		r.equal("callers that have the job, and jobs that others have", []int{takers, others}, []int{1, 0})
	}
}
