package runner

import (
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// takeNext has the transition take the next job of the run, if the worker has room for it. A claim would
// read the job, the event, the step and the run, which are all known here. That holds for a step on the
// workflow's own list: a step in a branch has steps above it, which other branches change.
func (t *turn) takeNext(now time.Time) {
	made := &t.move.Transition
	if len(t.ends) != 1 || t.ends[0].Hold == 0 || len(made.Jobs) != 1 {
		return
	}
	job := made.Jobs[0]
	waits := job.Status != "" && job.Status != core.Available || job.DueAt.After(now)
	if next, isNew := t.newStep(job.ID); isNew && next.ParentID == "" && !waits {
		made.Take = core.Taking{Job: job.ID, Source: t.event.Source, Until: now.Add(t.ends[0].Hold)}
	}
}

// newStep returns a step that the transition makes.
func (t *turn) newStep(id core.ID) (core.Step, bool) {
	made := t.move.Transition.New
	at := slices.IndexFunc(made, func(s core.Step) bool { return s.ID == id })
	if at < 0 {
		return core.Step{}, false
	}
	return made[at], true
}

// takenJob returns the job that the transition took, as a claim would read it; nil if it took none.
func (t *turn) takenJob() *core.TakenJob {
	made := t.move.Transition
	step, isNew := t.newStep(made.Take.Job)
	if !t.result.Taken || !isNew {
		return nil
	}
	step.RunID, step.StateName = made.Run.ID, t.result.StateName
	return &core.TakenJob{
		Job: core.Job{
			ID: step.ID, EventID: t.event.ID, Lane: core.WorkflowLane(made.Run.Workflow), Status: core.Running, Attempt: 1,
			MaxAttempts: core.Unlimited, DueAt: made.Take.Until, ScheduledAt: made.Jobs[0].DueAt, Lease: core.Lease(made.Mark),
			CreatedAt: made.Entries[0].At,
		},
		Event:     t.event,
		Situation: core.Situation{Run: made.Run, Step: step},
	}
}
