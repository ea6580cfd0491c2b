package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A JobStore is what of a store Jobs uses.
type JobStore interface {
	Job(ctx context.Context, id core.ID) (core.Job, error)
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
	Attempts(ctx context.Context, job core.ID) ([]core.Attempt, error)
	Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error)
}

// Jobs are the stored jobs. They are safe for concurrent use.
type Jobs struct {
	// Bell is rung for a lane that gets jobs back, unless all lanes do; nil rings for
	// nobody.
	Bell *core.Bell

	// Observe is told of what was retried; nil tells nobody.
	Observe core.Observer

	// Waits tell what a job waits for; nil tells nothing.
	Waits *Waits

	store JobStore
	clock core.Clock
}

// NewJobs makes the service.
func NewJobs(store JobStore, clock core.Clock) *Jobs { return &Jobs{store: store, clock: clock} }

// List lists jobs newest first.
func (j *Jobs) List(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	return j.store.Jobs(ctx, f)
}

// Job returns one job. The refusal of one that is not there is "job not found", here
// and below.
func (j *Jobs) Job(ctx context.Context, id core.ID) (core.Job, error) {
	job, err := j.store.Job(ctx, id)
	if core.IsKind(err, core.NotFound) {
		err = ErrJob
	}
	return job, err
}

// Wait tells what a job waits for.
func (j *Jobs) Wait(ctx context.Context, job core.Job) (Wait, error) {
	waits, err := j.Waits.Of(ctx, job)
	return waits[job.ID], err
}

// Attempts lists the attempts of a job, oldest first.
func (j *Jobs) Attempts(ctx context.Context, id core.ID) ([]core.Attempt, error) {
	attempts, err := j.store.Attempts(ctx, id)
	if err != nil || len(attempts) > 0 {
		return attempts, err
	}
	_, err = j.Job(ctx, id) // it may be that there are none, or that there is no job
	return nil, err
}

// Retry makes a dead job available again, and returns 1. One that is not dead is refused,
// with why, as is a step of a workflow, whose run is redriven instead.
func (j *Jobs) Retry(ctx context.Context, id core.ID) (int, error) {
	job, err := j.Job(ctx, id)
	if err != nil {
		return 0, err
	}
	if err := retriable(job); err != nil {
		return 0, err
	}
	n, err := j.store.Retry(ctx, j.clock(), id, "")
	if err != nil {
		return n, err
	}
	if n == 0 { // somebody else was there first
		return 0, j.why(ctx, id)
	}
	j.Bell.Ring(job.Lane)
	tell(j.Observe, core.Revived{ID: id, Lane: job.Lane, Jobs: n})
	return n, nil
}

// why says why a job was not retried.
func (j *Jobs) why(ctx context.Context, id core.ID) error {
	job, err := j.Job(ctx, id)
	if err != nil {
		return err
	}
	return retriable(job)
}

// retriable refuses what is not retried.
func retriable(job core.Job) error {
	switch {
	case job.RunID != "":
		return core.Refuse(core.Invalid, "job %s is a step of workflow run %s; jobs of workflows are not retried, their runs are redriven", job.ID, job.RunID)
	case job.Lane.Workflow() != "":
		return errSteps
	case job.Status != core.Dead:
		return core.Refuse(core.Invalid, "job %s is %s; only dead jobs can be retried", job.ID, job.Status)
	}
	return nil
}

var errSteps = core.Refuse(core.Invalid, "jobs of workflows are not retried, their runs are redriven")

// RetryAll makes all dead jobs available again, those of one lane if lane is set, and
// returns how many. A lane of a workflow is refused.
func (j *Jobs) RetryAll(ctx context.Context, lane core.Lane) (int, error) {
	if lane.Workflow() != "" {
		return 0, errSteps
	}
	n, err := j.store.Retry(ctx, j.clock(), "", lane)
	if n > 0 && lane != "" {
		j.Bell.Ring(lane)
	}
	if n > 0 {
		tell(j.Observe, core.Revived{Lane: lane, Jobs: n})
	}
	return n, err
}
