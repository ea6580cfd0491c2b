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

// A seedRun is a run of a configured workflow, and what its steps are answered. It goes
// on until it ends, waits for a callback, or nothing is due until a time.
type seedRun struct {
	ID, Job  core.ID // Job is that of the first step
	Workflow string

	// Replies are those to the calls of steps, by the paths of the steps: a status and
	// a body, or of a failure the time it asks to be left alone; an error such as
	// "timeout: no answer within 30s"; or "hang" for none as yet. Without one left it is
	// "200 {}".
	Replies map[string][]string
	Until   stamp // zero for ever
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

// A player answers the calls of a run, on a clock that only it moves.
type player struct {
	seedRun
	now   time.Time
	calls map[string]string // the last body that each step sent; may be nil
}

// callTime is how long each call takes.
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

// waiting are the jobs of the run's workflow that wait, those of other runs included.
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

// next is the run's own job that is due first, if it is in the time that is played.
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

// playStep takes a job, gives back what else was due, and does what the job asks for.
func (s seeder) playStep(p *player, runs *runner.Runner, next core.Job, waiting map[core.ID]core.Job) error {
	const hold = 150 * 365 * 24 * time.Hour // what hangs is still under way when somebody looks
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
