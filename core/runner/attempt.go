package runner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// begins is how many times an attempt tries to begin its run.
const begins = 10

// Attempt executes the job of a step. It returns false if the job is stale and to be
// closed: its run has moved on, or was purged. An error means that nothing was called and
// that the worker is to release the job. If the error is [core.Unavailable], the worker
// releases it for a short time: other processes were moving the run, or the database is
// away.
//
// The work before the call has a time limit of its own. So the call always has its whole
// timeout.
func (r *Runner) Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error) {
	if job.Situation.Step.ID == "" { // its step was purged with the run
		return core.StepEnd{}, false, nil
	}
	before, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	// Everything up to the call is bounded by moveTimeout. The call itself gets ctx, so that time spent
	// waiting for other processes does not shorten it.
	out, end, current, err := r.prepare(before, job)
	if err != nil || out == nil {
		return end, current, busyIfLate(ctx, before, err)
	}
	return r.call(ctx, out.request, out.job), true, nil
}

// An outgoing is a call that is to be made now, with the job as it is by then.
//
// The job differs from the taken job if the attempt has changed the run before its call: then
// its situation is the one after that change.
type outgoing struct {
	request workflow.Request
	job     core.TakenJob
}

// prepare does all of an attempt except its call. If it returns no call (nil), the attempt
// is over.
func (r *Runner) prepare(ctx context.Context, job core.TakenJob) (*outgoing, core.StepEnd, bool, error) {
	d, err := r.definition(ctx, job.Situation.Run.Definition)
	if err != nil {
		return nil, core.StepEnd{}, false, err
	}
	// Each pass either finds the task or makes the run running. Another process may cancel and
	// redrive the run meanwhile, so a pass may find it pending again.
	for range begins {
		task := d.Task(job, r.Clock())
		if task != workflow.Begin {
			return r.doContained(ctx, d, task, job)
		}
		current := false
		if job, current, err = r.begin(ctx, job); err != nil || !current {
			return nil, core.StepEnd{}, false, err
		}
	}
	return nil, core.StepEnd{}, false, errBusy
}

// doContained calls do. A panic of do is the end of the attempt, since another attempt with the
// same data would panic again.
func (r *Runner) doContained(ctx context.Context, d *workflow.Definition, task workflow.Task, job core.TakenJob) (out *outgoing, end core.StepEnd, current bool, err error) {
	err = core.Contain(func() (err error) {
		out, end, current, err = r.do(ctx, d, task, job)
		return err
	})
	if p := (*core.Panic)(nil); errors.As(err, &p) {
		r.Observe(core.Troubled{Doing: "run a workflow", Err: err})
		return nil, r.uncallable(job, err), true, nil
	}
	return out, end, current, err
}

// do executes a task of a running run, except the call.
func (r *Runner) do(ctx context.Context, d *workflow.Definition, task workflow.Task, job core.TakenJob) (*outgoing, core.StepEnd, bool, error) {
	switch task {
	case workflow.Call:
		request, err := d.Request(job)
		if err != nil {
			return nil, r.uncallable(job, err), true, nil
		}
		return &outgoing{request, job}, core.StepEnd{}, true, nil
	case workflow.Notify:
		return r.arm(ctx, d, job)
	case workflow.Elapse:
		return nil, core.StepEnd{Job: job, Kind: core.Elapsed, At: r.Clock()}, true, nil
	}
	return nil, core.StepEnd{}, false, nil
}

// begin makes a pending run running. After a redrive several jobs of the run may be taken
// at once; then one of them begins it.
func (r *Runner) begin(ctx context.Context, job core.TakenJob) (core.TakenJob, bool, error) {
	begun, err := r.storeEnd(ctx, true, core.StepEnd{Job: job, Kind: core.Begun, At: r.Clock()})
	if err != nil {
		return job, false, err
	}
	if !begun.settled(0).Lost {
		job.Situation = after(job.Situation, begun.made(0))
		return job, true, nil
	}
	found, err := r.Store.Situations(ctx, []core.ID{job.Situation.Step.ID})
	if err != nil {
		return job, false, err
	}
	// Another job of the run began it. This job goes on with the run as it is stored now, if its
	// step has had no other attempt since.
	now, ok := found[job.Situation.Step.ID]
	if !ok || now.Step.Attempt != job.Situation.Step.Attempt {
		return job, false, nil // another worker holds the job
	}
	job.Situation = now
	return job, true, nil
}

// arm stores a token before it is sent. The callback may arrive before the reply to the
// notice.
func (r *Runner) arm(ctx context.Context, d *workflow.Definition, job core.TakenJob) (*outgoing, core.StepEnd, bool, error) {
	token := newToken()
	notice, err := d.Notice(job, token, r.Address+"/callback/"+token)
	if err != nil {
		return nil, r.uncallable(job, err), true, nil
	}
	now := r.Clock()
	end := core.StepEnd{Job: job, Kind: core.Armed, At: now, Token: digest(token), Expires: d.Expiry(job, now)}
	// A step without a URL only waits. Its end is stored like that of a call, by Settle.
	if notice.URL == "" {
		return nil, end, true, nil
	}
	armed, err := r.storeEnd(ctx, job.Situation.Step.ParentID == "", end)
	if err != nil || armed.settled(0).Lost {
		return nil, core.StepEnd{}, false, err
	}
	job.Situation = after(job.Situation, armed.made(0))
	if !job.Situation.Step.Status.Open() {
		return nil, core.StepEnd{}, false, nil // other ends in the same turn ended the run
	}
	return &outgoing{notice, job}, core.StepEnd{}, true, nil
}

// after returns a situation after a transition, with the steps above it unchanged.
func after(s core.Situation, t core.Transition) core.Situation {
	s.Run = t.Run
	for _, c := range t.Changed {
		if c.ID == s.Step.ID {
			s.Step = changed(s.Step, c)
		}
	}
	return s
}

// changed returns a step after its change, with the fields that no change has.
func changed(s core.Step, c core.StepChange) core.Step {
	s.Status, s.Attempt, s.Output, s.Error, s.Carry = c.Status, c.Attempt, c.Output, c.Error, c.Carry
	s.Fan, s.Last, s.FinishedAt = c.Fan, c.Last, c.FinishedAt
	return s
}

// call makes a call and returns its end.
func (r *Runner) call(ctx context.Context, request workflow.Request, job core.TakenJob) core.StepEnd {
	// WithLimit also keeps the limit itself, which the error text of a timeout quotes.
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = core.WithLimit(ctx, r.Timeout)
		defer cancel()
	}
	started := r.Clock()
	answer := r.ask(ctx, request, job)
	end := core.StepEnd{Job: job, At: r.Clock(), Kind: core.Replied, Body: answer.Body, RetryAfter: answer.RetryAfter}
	// A 2xx reply that was cut off cannot be a result: the step would go on with half a document.
	if answer.Error == "" && answer.TooLarge {
		answer.Error = "data: the reply has more than 1 MiB"
	}
	if answer.Error != "" {
		end.Kind, end.Class, end.Body = core.Refused, classOf(answer), nil
	}
	end.Attempt = core.Attempt{
		Number:     job.Number(), // attempts of unknown outcome count too, so that no number is used twice
		StatusCode: answer.StatusCode,
		Error:      answer.Error,
		Response:   answer.Response,
		StartedAt:  started,
		Duration:   max(0, end.At.Sub(started)),
		Exchange:   answer.Exchange,
	}
	return end
}

// ask makes the call. A panic fails the call.
func (r *Runner) ask(ctx context.Context, request workflow.Request, job core.TakenJob) (a Answer) {
	err := core.Contain(func() error { a = r.Caller.Call(ctx, request, job); return nil })
	if err == nil {
		return a
	}
	r.Observe(core.Troubled{Doing: "call a step", Err: fmt.Errorf("job %s: %w", job.ID, err)})
	// The text has the class "panic", which classOf counts as the network. So remedies for lost
	// connections apply, and the step may be tried again.
	return Answer{Error: strings.ToValidUTF8(err.Error(), "?")}
}

// classOf returns the class of a failed call, by which remedies match it. Errors of calls
// have finer classes: every reason for a missing reply, except a timeout, is the network.
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

// uncallable returns the end of an attempt that cannot make a call. It has a record, so
// that the step shows why no call was made.
func (r *Runner) uncallable(job core.TakenJob, why error) core.StepEnd {
	now := r.Clock()
	return core.StepEnd{
		Job: job, Kind: core.Refused, At: now, Class: core.ClassData, Final: true,
		Attempt: core.Attempt{Number: job.Number(), Error: "data: " + why.Error(), StartedAt: now},
	}
}

// newToken makes the token of a callback: 256 random bits in 52 characters.
func newToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: see its documentation
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:])
}

// digest returns the stored form of a token: its SHA-256 in hexadecimal.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
