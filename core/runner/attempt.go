package runner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// begins bounds how often an attempt has to begin its run.
const begins = 10

// Attempt does what the job of a step asks for. False means that the job is stale and to
// be closed: its run has moved on, or is gone. An error means that nothing was called,
// and that the job is to be given back.
func (r *Runner) Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error) {
	if job.Situation.Step.ID == "" {
		return core.StepEnd{}, false, nil
	}
	d, err := r.definition(ctx, job.Situation.Run.Definition)
	if err != nil {
		return core.StepEnd{}, false, err
	}
	for range begins {
		task := d.Task(job, r.Clock())
		if task != workflow.Begin {
			return r.do(ctx, d, task, job)
		}
		current := false
		if job, current, err = r.begin(ctx, job); err != nil || !current {
			return core.StepEnd{}, false, err
		}
	}
	return core.StepEnd{}, false, errors.New("run " + string(job.Situation.Run.ID) + " does not begin")
}

// do does a task of a run that has begun.
func (r *Runner) do(ctx context.Context, d *workflow.Definition, task workflow.Task, job core.TakenJob) (core.StepEnd, bool, error) {
	switch task {
	case workflow.Call:
		request, err := d.Request(job)
		if err != nil {
			return r.uncallable(job, err), true, nil
		}
		return r.call(ctx, request, job), true, nil
	case workflow.Notify:
		return r.notify(ctx, d, job)
	case workflow.Elapse:
		return core.StepEnd{Job: job, Kind: core.Elapsed, At: r.Clock()}, true, nil
	}
	return core.StepEnd{}, false, nil
}

// begin makes a run that is pending a running one. Several of its jobs may be taken at
// once after a redrive; then one of them begins it.
func (r *Runner) begin(ctx context.Context, job core.TakenJob) (core.TakenJob, bool, error) {
	begun := newTurn(core.StepEnd{Job: job, Kind: core.Begun, At: r.Clock()}).seen()
	if err := r.finish(ctx, brief, begun); err != nil {
		return job, false, err
	}
	if begun.made {
		job.Situation = after(job.Situation, begun.move.Transition)
		return job, true, nil
	}
	found, err := r.Store.Situations(ctx, []core.ID{job.Situation.Step.ID})
	if err != nil {
		return job, false, err
	}
	now, ok := found[job.Situation.Step.ID]
	if !ok || now.Step.Attempt != job.Situation.Step.Attempt {
		return job, false, nil // somebody else holds the job
	}
	job.Situation = now
	return job, true, nil
}

// notify has a callback step wait. The token is stored before anybody is told of it: a
// callback may come before the answer of who was told.
func (r *Runner) notify(ctx context.Context, d *workflow.Definition, job core.TakenJob) (core.StepEnd, bool, error) {
	token := newToken()
	notice, err := d.Notice(job, token, r.Address+"/callback/"+token)
	if err != nil {
		return r.uncallable(job, err), true, nil
	}
	now := r.Clock()
	armed := core.StepEnd{Job: job, Kind: core.Armed, At: now, Token: digest(token), Expires: d.Expiry(job, now)}
	if notice.URL == "" {
		return armed, true, nil
	}
	arming := newTurn(armed)
	if job.Situation.Step.ParentID == "" {
		arming.seen()
	}
	if err := r.finish(ctx, brief, arming); err != nil || !arming.made {
		return core.StepEnd{}, false, err
	}
	job.Situation = after(job.Situation, arming.move.Transition)
	return r.call(ctx, notice, job), true, nil
}

// after is a situation as a transition left it that changed nothing above the step.
func after(s core.Situation, t core.Transition) core.Situation {
	s.Run = t.Run
	for _, c := range t.Changed {
		if c.ID == s.Step.ID {
			s.Step = changed(s.Step, c)
		}
	}
	return s
}

func changed(s core.Step, c core.StepChange) core.Step {
	s.Status, s.Attempt, s.Output, s.Error, s.Carry = c.Status, c.Attempt, c.Output, c.Error, c.Carry
	s.Fan, s.Last, s.FinishedAt = c.Fan, c.Last, c.FinishedAt
	return s
}

// call makes a call and says how it ended.
func (r *Runner) call(ctx context.Context, request workflow.Request, job core.TakenJob) core.StepEnd {
	started := r.Clock()
	answer := r.Caller.Call(ctx, request, job)
	end := core.StepEnd{Job: job, At: r.Clock(), Kind: core.Replied, Body: answer.Body, RetryAfter: answer.RetryAfter}
	if answer.Error == "" && answer.TooLarge {
		answer.Error = "data: the reply has more than 1 MiB"
	}
	if answer.Error != "" {
		end.Kind, end.Class, end.Body = core.Refused, classOf(answer), nil
	}
	end.Attempt = core.Attempt{
		Number:     job.Situation.Step.Attempt + 1,
		StatusCode: answer.StatusCode,
		Error:      answer.Error,
		Response:   answer.Response,
		StartedAt:  started,
		Duration:   end.At.Sub(started),
	}
	return end
}

// classOf is the class by which remedies know a failed call. The words of calls are finer:
// whatever kept a reply from coming is the network.
func classOf(a Answer) core.ErrorClass {
	word, _, _ := strings.Cut(a.Error, ":")
	switch {
	case word == "data":
		return core.ClassData
	case word == "timeout":
		return core.ClassTimeout
	case word == "status" && a.StatusCode >= 500 && a.StatusCode <= 599:
		return core.Class5xx
	case word == "status":
		return core.Class4xx
	}
	return core.ClassNetwork
}

// uncallable is the end of an attempt for which there is nothing to send. It is one that
// is recorded, so that whoever looks at the step finds why nobody was called.
func (r *Runner) uncallable(job core.TakenJob, why error) core.StepEnd {
	now := r.Clock()
	return core.StepEnd{
		Job: job, Kind: core.Refused, At: now, Class: core.ClassData, Final: true,
		Attempt: core.Attempt{Number: job.Situation.Step.Attempt + 1, Error: "data: " + why.Error(), StartedAt: now},
	}
}

// newToken makes a callback's token: 256 random bits in 52 characters.
func newToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: see its documentation
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:])
}

// digest is what is stored of a token.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
