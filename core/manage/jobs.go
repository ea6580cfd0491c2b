package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A JobStore has the methods of a store that Jobs uses.
type JobStore interface {
	AttemptStore
	Job(ctx context.Context, id core.ID) (core.Job, error)
	Event(ctx context.Context, id core.ID) (core.Event, error)
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
	Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error)
	Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
	KindsOf(ctx context.Context, events []core.ID) (map[core.ID]core.EventKind, error)
	Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error)
}

// An AttemptStore reads the attempts of jobs.
type AttemptStore interface {
	Attempts(ctx context.Context, job core.ID, skip, limit int) ([]core.Attempt, error)
	SentBody(ctx context.Context, job core.ID, number int) (string, error)
}

// Jobs are the stored jobs. They are safe for concurrent use.
type Jobs struct {
	// Bell rings for a lane that gets jobs back, unless all lanes do; it may be nil.
	Bell *core.Bell

	// Observe receives a fact for each retry; it may be nil.
	Observe core.Observer

	// Waits returns why a job waits; nil returns nothing.
	Waits *Waits

	// Names are the configured names; nil refuses no name.
	Names *Names

	// Bulk does the operations of RetryAll.
	Bulk Bulk

	store  JobStore
	clock  core.Clock
	errors *keptBy[core.FailureFilter, Errors]
}

// NewJobs makes the service.
func NewJobs(store JobStore, clock core.Clock) *Jobs {
	j := &Jobs{store: store, clock: clock}
	j.errors = newErrors(j)
	return j
}

// A JobPage is a page of a listing of jobs, with the reasons why jobs of it wait.
type JobPage struct {
	core.Page[core.Job]
	Waits map[core.ID]Wait
}

// List lists jobs newest first. It queries the store once for the reasons of their waits. A
// lane that is neither configured nor has jobs is refused with [core.NotFound].
func (j *Jobs) List(ctx context.Context, f core.JobFilter) (JobPage, error) {
	places, asked := j.Names.places(), f.Lane
	f.Lane = places.Stored(asked)
	page, err := j.store.Jobs(ctx, f)
	if err == nil && len(page.Items) == 0 {
		err = j.knownLane(ctx, asked)
	}
	if err != nil {
		return JobPage{}, err
	}
	waits, err := j.Waits.Of(ctx, page.Items...)
	page.Items = places.Jobs(page.Items)
	return JobPage{page, waits}, err
}

// Job returns one job. The refusal of a missing job is "job not found", here and below.
func (j *Jobs) Job(ctx context.Context, id core.ID) (core.Job, error) {
	job, err := j.job(ctx, id)
	return j.Names.places().Job(job), err
}

// job returns one job as it is stored.
func (j *Jobs) job(ctx context.Context, id core.ID) (core.Job, error) {
	job, err := j.store.Job(ctx, id)
	if core.IsKind(err, core.NotFound) {
		err = ErrJob
	}
	return job, err
}

// Wait returns why a job of Job waits.
func (j *Jobs) Wait(ctx context.Context, job core.Job) (Wait, error) {
	job.Lane = j.Names.places().Stored(job.Lane)
	waits, err := j.Waits.Exactly(ctx, job)
	return waits[job.ID], err
}

// AttemptPage is how many attempts one call returns at most. An attempt that keeps its exchange and
// its reply has up to about 16 KiB.
const AttemptPage = 100

// Attempts lists attempts of a job, oldest first: up to AttemptPage of them, behind the first skip
// ones. More says whether there are further ones.
func (j *Jobs) Attempts(ctx context.Context, id core.ID, skip int) (core.Page[core.Attempt], error) {
	attempts, err := j.store.Attempts(ctx, id, skip, AttemptPage+1)
	if err != nil {
		return core.Page[core.Attempt]{}, err
	}
	if len(attempts) == 0 {
		_, err = j.job(ctx, id) // distinguishes a job without attempts from a missing job
	}
	return core.Page[core.Attempt]{Items: attempts[:min(len(attempts), AttemptPage)], More: len(attempts) > AttemptPage}, err
}

// SentBody returns the kept part of the body that an attempt of a job sent. An attempt that kept none
// is refused as [core.NotFound].
func (j *Jobs) SentBody(ctx context.Context, id core.ID, number int) (string, error) {
	body, err := j.store.SentBody(ctx, id, number)
	if err != nil || body != "" {
		return body, err
	}
	if _, err := j.job(ctx, id); err != nil {
		return "", err
	}
	return "", core.Refuse(core.NotFound, "no body is kept of attempt %d of job %s: with delivery.record: all, later attempts keep a body that is not the payload of the event", number, id)
}

// Retry makes a dead or canceled job available again, or makes a job due now that waits for
// its next attempt or its time, and returns 1. It refuses any other job, with the reason. It refuses
// the steps of workflows as well: their runs are redriven instead, and their waits are not
// shortened.
func (j *Jobs) Retry(ctx context.Context, id core.ID) (int, error) {
	job, err := j.job(ctx, id)
	if err != nil {
		return 0, err
	}
	if err := NotRetried(job, j.clock()); err != nil {
		return 0, err
	}
	n, err := j.store.Retry(audited(ctx, core.AuditRetry, string(id), "consumer", j.Names.places().Shown(job.Lane).Consumer()), j.clock(), id, "")
	if err != nil {
		return n, err
	}
	if n == 0 { // another caller was first
		return 0, j.why(ctx, id)
	}
	j.Bell.Ring(job.Lane)
	tell(j.Observe, core.Revived{ID: id, Lane: job.Lane, Jobs: n, Early: !job.Status.Finished(), Canceled: job.Status == core.Canceled})
	return n, nil
}

// why returns the reason why a job was not retried.
func (j *Jobs) why(ctx context.Context, id core.ID) error {
	job, err := j.job(ctx, id)
	if err != nil {
		return err
	}
	if err := NotRetried(job, j.clock()); err != nil {
		return err
	}
	return core.Refuse(core.Invalid, "job %s was just moved by another caller and is %s now; try again", id, job.Status)
}

// NotRetried returns the refusal to retry a job at a time. It returns nil if the job can be
// retried: if it is dead or canceled, or waits for an attempt later than that.
func NotRetried(job core.Job, now time.Time) error {
	switch {
	case job.RunID != "" && job.Status == core.Scheduled:
		return core.Refuse(core.Invalid, "job %s is a step of workflow run %s that waits until %s; a wait is not shortened, but the run can be canceled",
			job.ID, job.RunID, core.FormatTime(job.DueAt))
	case job.RunID != "":
		return core.Refuse(core.Invalid, "job %s is a step of workflow run %s; jobs of workflows are not retried, their runs are redriven", job.ID, job.RunID)
	case job.Lane.Workflow() != "":
		return errSteps
	case job.Status == core.Dead || job.Status == core.Canceled || waiting(job) && job.DueAt.After(now):
		return nil
	case job.Status == core.Waiting:
		return core.Refuse(core.Invalid, "job %s waits in its line for the jobs before it; it is not brought forward", job.ID)
	case waiting(job):
		return core.Refuse(core.Invalid, "job %s is %s and due already; only jobs that are dead or canceled, or wait for a later attempt, can be retried", job.ID, job.Status)
	}
	return core.Refuse(core.Invalid, "job %s is %s; only jobs that are dead or canceled, or wait for a later attempt, can be retried", job.ID, job.Status)
}

var errSteps = core.Refuse(core.Invalid, "jobs of workflows are not retried, their runs are redriven")

// RetryAll makes all dead jobs available again, or all of one lane if lane is set, by an operation: see
// [Operations.Do]. Without a dead job there is none. It refuses the lane of a workflow. It refuses a lane
// that is neither configured nor has jobs with [core.NotFound].
func (j *Jobs) RetryAll(ctx context.Context, lane core.Lane) (Retried, error) {
	if lane.Workflow() != "" {
		return Retried{}, errSteps
	}
	op, err := j.Bulk.Do(ctx, Rush{Operation: retryOf(lane), Change: change(core.AuditRetry, string(lane))})
	if err == nil && op.ID == "" {
		err = j.knownLane(ctx, lane)
	}
	return retriedOf(op, j.Observe, j.Names.places().Stored(lane)), err
}

// retryOf returns the operation that retries the dead jobs of a lane, or of all.
func retryOf(lane core.Lane) core.Operation {
	return core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: lane, Status: string(core.Dead)}}
}
