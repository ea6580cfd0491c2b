package worker

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// attempt makes one try and says what it leads to.
func (w *Worker) attempt(ctx context.Context, job core.TakenJob) core.Outcome {
	if job.Spent() {
		return w.buried(job)
	}
	target := w.targets[job.Lane]
	ctx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()
	started := w.Clock()
	reply := target.Sender.Send(ctx, job)
	return outcome(job.Job, target.Retry, reply, started, w.Clock())
}

// outcome decides what a reply makes of a job: completed if the handler took it,
// dead if that was the last attempt, else due again after the backoff, or later
// if the handler asked for that.
func outcome(job core.Job, retry core.Retry, r Reply, started, ended time.Time) core.Outcome {
	o := core.Outcome{
		JobID: job.ID,
		Lease: job.Lease,
		At:    ended,
		Attempt: core.Attempt{
			Number:     job.Attempt,
			StatusCode: r.StatusCode,
			Error:      r.Error,
			Response:   r.Response,
			StartedAt:  started,
			Duration:   ended.Sub(started),
		},
	}
	switch {
	case r.OK:
		o.Status = core.Completed
	case job.Attempt >= job.MaxAttempts:
		o.Status = core.Dead
	default:
		o.Status = core.Retryable
		o.DueAt = ended.Add(max(retry.Delay(job.Attempt), min(r.RetryAfter, core.MaxBackoff)))
	}
	return o
}

// buried is the end of a job whose last attempt never reported back. The record
// stands for that attempt, not for the taking that found it.
func (w *Worker) buried(job core.TakenJob) core.Outcome {
	now := w.Clock()
	return core.Outcome{
		JobID:   job.ID,
		Lease:   job.Lease,
		Status:  core.Dead,
		At:      now,
		Attempt: core.Attempt{Number: job.MaxAttempts, Error: core.LeaseExpired, StartedAt: now},
	}
}
