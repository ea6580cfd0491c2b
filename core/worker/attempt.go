package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// attempt makes one attempt and returns its outcome.
func (w *Worker) attempt(ctx context.Context, target Target, job *core.TakenJob) core.Outcome {
	// The last attempt of the job ended without an outcome, maybe in a crash. Another attempt
	// would exceed max_attempts, so the job dies here.
	if job.Spent() {
		return w.expired(job, target.Lines)
	}
	ctx, cancel := core.WithLimit(ctx, target.Timeout)
	defer cancel()
	started := w.Clock()
	reply := w.try(ctx, target.Sender, job)
	o := outcome(job, target.Retry, reply, started, w.Clock())
	if b := target.Breaker; b != nil {
		o.Verdict, o.Breaker = b.verdict(reply, job.Probe), b.Breaker
	}
	return w.withObituary(job, target.Lines.Apply(job.Job, o))
}

// withObituary adds to the outcome of a job that died the event that Deps.Obituary makes.
func (w *Worker) withObituary(job *core.TakenJob, o core.Outcome) core.Outcome {
	if o.Status == core.Dead && w.Obituary != nil {
		err := core.Contain(func() error { o.GivesRise = w.Obituary(*job, o); return nil })
		if err != nil {
			w.Observe(core.Troubled{Doing: "report a dead job", Err: err})
		}
	}
	return o
}

// maxPanic is how many bytes of a panic's message an attempt keeps. The log has
// the full message with the stack, so the row needs only enough to recognise the defect.
const maxPanic = 512

// try sends. A panic of the sender fails the attempt, and says nothing about the handler.
func (w *Worker) try(ctx context.Context, s Sender, job *core.TakenJob) (r Reply) {
	err := core.Contain(func() error { r = s.Send(ctx, *job); return nil })
	if err == nil {
		return r
	}
	w.Observe(core.Troubled{Doing: "deliver", Err: fmt.Errorf("job %s: %w", job.ID, err)})
	why := strings.ToValidUTF8(err.Error(), "?")
	return Reply{Error: strings.ToValidUTF8(why[:min(len(why), maxPanic)], ""), Unsent: true}
}

// outcome decides how a reply leaves a job: completed if the handler took it, dead if this was
// the last attempt or another attempt cannot help, else due again after the backoff. A handler
// may ask for a later time.
func outcome(job *core.TakenJob, retry core.Retry, r Reply, started, ended time.Time) core.Outcome {
	o := core.Outcome{
		JobID: job.ID,
		Lease: job.Lease,
		Lane:  job.Lane,
		Probe: job.Probe,
		At:    ended,
		Attempt: core.Attempt{
			Number:     job.Number(),
			StatusCode: r.StatusCode,
			Error:      r.Error,
			Response:   r.Response,
			StartedAt:  started,
			Duration:   max(0, ended.Sub(started)),
			Exchange:   r.Exchange,
		},
	}
	switch {
	case r.OK:
		o.Status = core.Completed
	case job.Attempt >= job.MaxAttempts || r.Final:
		o.Status = core.Dead
	default:
		o.Status = core.Retryable
		// The backoff grows with the attempts since an operator last retried the job, not with
		// all attempts.
		o.DueAt = ended.Add(max(retry.Delay(job.Round()), min(r.RetryAfter, core.MaxBackoff)))
	}
	return o
}

// expired returns the end of a job whose last attempt ended without an outcome. Its record
// stands for that attempt, and not for the claim that found it.
func (w *Worker) expired(job *core.TakenJob, lines core.LineRules) core.Outcome {
	return w.withObituary(job, lines.Apply(job.Job, died(job, job.Number(), job.Expired(), w.Clock())))
}

// died returns the end of a job that dies without an attempt.
func died(job *core.TakenJob, number int, why string, now time.Time) core.Outcome {
	return core.Outcome{
		JobID:   job.ID,
		Lease:   job.Lease,
		Lane:    job.Lane,
		Probe:   job.Probe,
		Status:  core.Dead,
		At:      now,
		Attempt: core.Attempt{Number: number, Error: why, StartedAt: now},
	}
}
