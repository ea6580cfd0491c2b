package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/runner"
	"github.com/eventgateway/gateway/core/workflow"
)

// A seedRun is a run of a configured workflow, with the answers to the calls of its steps. The
// run goes on until it ends, waits for a callback, or has no due job before Until.
type seedRun struct {
	ID, Job  core.ID // Job is the job of the first step
	Workflow string

	// Replies are the answers to the calls of a step, by the step's path. An answer is a
	// status with a body, or with a Retry-After for a failure; an error such as "timeout: no
	// answer within 30s"; or "hang" for a call without an answer. After the last one each
	// answer is "200 {}".
	Replies map[string][]string
	Until   stamp // zero for no end
}

// begin adds a run to the event that starts it.
func (s seeder) begin(arrival *core.Arrival, r seedRun) {
	w := s.cfg.Workflows[r.Workflow]
	arrival.Jobs = append(arrival.Jobs, core.NewJob{ID: r.Job, Lane: core.WorkflowLane(r.Workflow), MaxAttempts: core.Unlimited})
	arrival.Runs = append(arrival.Runs, core.NewRun{
		ID: r.ID, Workflow: r.Workflow, Definition: s.cfg.Definition(r.Workflow), StepID: r.Job,
		Step: w.Steps[0].Name, StepType: w.Steps[0].Type, Timeout: time.Duration(w.Timeout) * time.Second,
	})
}

// A player answers the calls of a run, and moves its clock.
type player struct {
	seedRun
	now   time.Time
	calls map[string]string // body of the last call of each step; may be nil
}

// callTime is the duration of each call.
const callTime = 20 * time.Millisecond

func (p *player) Call(_ context.Context, r workflow.Request, job core.TakenJob) runner.Answer {
	path, reply := job.Situation.Step.Path, "200 {}"
	if left := p.Replies[path]; len(left) > 0 {
		reply, p.Replies[path] = left[0], left[1:]
	}
	if p.calls != nil {
		p.calls[path] = string(r.Body)
	}
	p.now = p.now.Add(callTime)
	first, rest, _ := strings.Cut(reply, " ")
	code, err := strconv.Atoi(first)
	switch {
	case err != nil:
		return runner.Answer{Error: reply}
	case code/100 == 2:
		return runner.Answer{StatusCode: code, Body: []byte(rest), Response: rest}
	}
	alone, _ := time.ParseDuration(rest)
	return runner.Answer{StatusCode: code, RetryAfter: alone, Error: fmt.Sprintf("status: %d %s", code, http.StatusText(code)), Response: rest}
}

// play takes the jobs of a run one after the other, each when it is due.
func (s seeder) play(e seedEvent, r seedRun) error {
	p := &player{r, e.At.t.Add(10 * time.Millisecond), s.calls}
	clock := func() time.Time { return p.now }
	runs := runner.New(runner.Deps{
		Store: s.Store, Clock: clock, IDs: core.NewIDs(clock), Observe: func(core.Fact) {}, Caller: p,
		Address: "http://localhost:8888",
		Compile: func(d core.Definition) (*workflow.Definition, error) {
			w, err := config.ParseDefinition(d, s.cfg.Lookup)
			if err != nil {
				return nil, err
			}
			return workflow.Compile(w)
		},
	})
	for {
		waiting, err := s.waiting(p)
		if err != nil {
			return err
		}
		next, ok := p.next(waiting)
		if !ok {
			return nil
		}
		p.now = later(p.now, next.DueAt)
		if err := s.playStep(p, runs, next, waiting); err != nil {
			return err
		}
	}
}

// waiting returns the waiting jobs of the run's workflow, including jobs of other runs.
func (s seeder) waiting(p *player) (jobs map[core.ID]core.Job, err error) {
	page, err := s.Jobs(context.Background(), core.JobFilter{Lane: core.WorkflowLane(p.Workflow), Limit: core.MaxPage})
	jobs = map[core.ID]core.Job{}
	for _, j := range page.Items {
		if j.Status == core.Available || j.Status == core.Scheduled || j.Status == core.Retryable {
			jobs[j.ID] = j
		}
	}
	return jobs, err
}

// next returns the run's job that is due first, if it is due before Until.
func (p *player) next(waiting map[core.ID]core.Job) (first core.Job, ok bool) {
	for _, j := range waiting {
		played := p.Until.t.IsZero() || !j.DueAt.After(p.Until.t)
		before := !ok || j.DueAt.Before(first.DueAt) || j.DueAt.Equal(first.DueAt) && j.ID < first.ID
		if j.RunID == p.ID && played && before {
			first, ok = j, true
		}
	}
	return first, ok
}

// playStep takes a job, releases the other due jobs, and answers its call.
func (s seeder) playStep(p *player, runs *runner.Runner, next core.Job, waiting map[core.ID]core.Job) error {
	const hold = 150 * 365 * 24 * time.Hour // a call without an answer is still running when a test looks
	ctx := context.Background()
	taken, err := s.Take(ctx, p.now, []core.Quota{{Lane: core.WorkflowLane(p.Workflow), N: core.MaxPage, Hold: hold}})
	if err != nil {
		return err
	}
	for _, job := range taken {
		if job.ID == next.ID {
			err = p.attempt(ctx, runs, job)
		} else {
			err = s.Release(ctx, waiting[job.ID].DueAt, job.Job)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *player) attempt(ctx context.Context, runs *runner.Runner, job core.TakenJob) error {
	end, ok, err := runs.Attempt(ctx, job)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("job %s is stale", job.ID)
	case end.Attempt.Error == "hang":
		return nil
	}
	_, err = runs.Settle(ctx, end)
	return err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
