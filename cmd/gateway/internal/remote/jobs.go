package remote

import (
	"context"
	"maps"
	"net/url"
	"strconv"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Jobs are the jobs of a server.
type Jobs struct{ c *Client }

// Jobs returns the jobs of a server.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// List reads a page of jobs, newest first, with the reasons why they wait. A limit of 0 leaves
// the size of the page to the server: GET /api/jobs.
func (j Jobs) List(ctx context.Context, f core.JobFilter) (manage.JobPage, error) {
	var page wire.Jobs
	err := j.c.get(ctx, &page, jobQuery(f), "jobs")
	return page.Core(), err
}

// Search reads a page of the jobs that a search selects: GET /api/jobs with source, event_type or
// error.
func (j Jobs) Search(ctx context.Context, s manage.JobSearch) (manage.FoundJobs, error) {
	var found wire.FoundJobs
	query := jobQuery(s.JobFilter)
	maps.Copy(query, parameters("source", s.Source, "event_type", s.Type, "error", s.Error))
	err := j.c.get(ctx, &found, query, "jobs")
	return found.Core(), err
}

// jobQuery returns the parameters of a listing.
func jobQuery(f core.JobFilter) url.Values {
	return parameters("status", string(f.Status), "handler", f.Lane.Consumer(),
		"since", core.FormatTime(f.Since), "until", core.FormatTime(f.Until), "after", string(f.After), "limit", atMost(f.Limit))
}

// Errors reads the errors of failed jobs, in groups: GET /api/jobs/errors. Its Limit has no effect.
func (j Jobs) Errors(ctx context.Context, f core.FailureFilter) (manage.Errors, error) {
	var errs wire.Errors
	query := parameters("handler", f.Lane.Consumer(), "since", core.FormatTime(f.Since), "until", core.FormatTime(f.Until))
	err := j.c.get(ctx, &errs, query, "jobs", "errors")
	return errs.Core(), err
}

// Job reads a job without its attempts: GET /api/jobs/{id}.
func (j Jobs) Job(ctx context.Context, id core.ID) (core.Job, error) {
	var job wire.Job
	err := j.c.get(ctx, &job, nil, "jobs", string(id))
	return job.Core(), err
}

// Attempts reads a page of the recorded attempts of a job, behind the first skip ones: GET
// /api/jobs/{id}/attempts. A gateway of an earlier version returns all of them at once.
func (j Jobs) Attempts(ctx context.Context, id core.ID, skip int) (core.Page[core.Attempt], error) {
	var reply wire.Attempts
	err := j.c.get(ctx, &reply, parameters("after", atMost(skip)), "jobs", string(id), "attempts")
	return core.Page[core.Attempt]{Items: wire.List(reply.Attempts, wire.Attempt.Core), More: reply.More}, err
}

// SentBody reads the kept part of the body of an attempt: GET /api/jobs/{id}/attempts/{number}/body.
func (j Jobs) SentBody(ctx context.Context, id core.ID, number int) (string, error) {
	var reply wire.SentBody
	err := j.c.get(ctx, &reply, nil, "jobs", string(id), "attempts", strconv.Itoa(number), "body")
	return reply.Body, err
}

// Retry makes a dead job available again, or a waiting one due now. It returns the number of
// retried jobs, 0 or 1: POST /api/jobs/{id}/retry.
func (j Jobs) Retry(ctx context.Context, id core.ID) (int, error) {
	var reply wire.Retried
	err := j.c.post(ctx, &reply, nil, "jobs", string(id), "retry")
	return reply.Retried, err
}

// RetryAll makes the dead jobs of a lane available again, or of all lanes if lane is "". It
// returns their number: POST /api/jobs/retry.
func (j Jobs) RetryAll(ctx context.Context, lane core.Lane) (manage.Retried, error) {
	body := map[string]string{}
	if lane != "" {
		body["handler"] = lane.Consumer()
	}
	var reply wire.Retried
	err := j.c.post(ctx, &reply, body, "jobs", "retry")
	return manage.Retried{Jobs: reply.Retried, Going: core.ID(reply.Operation)}, err
}

// Runs are the workflow runs of a server.
type Runs struct{ c *Client }

// Runs returns the workflow runs of a server.
func (c *Client) Runs() Runs { return Runs{c} }

// List reads a page of runs, newest first: GET /api/workflow-runs.
func (r Runs) List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	var page wire.Runs
	query := parameters("status", string(f.Status), "workflow", f.Workflow, "event_id", string(f.EventID),
		"after", string(f.After), "limit", atMost(f.Limit))
	err := r.c.get(ctx, &page, query, "workflow-runs")
	return page.Core(), err
}

// Inspect reads a page about a run: the run, and its steps and history from a place on. The
// field Next of the result is the place of the next page: GET /api/workflow-runs/{id}.
func (r Runs) Inspect(ctx context.Context, id core.ID, from manage.Place, limit int) (manage.Inspected, error) {
	var run wire.RunStory
	err := r.c.get(ctx, &run, parameters("after", from.String(), "limit", atMost(limit)), "workflow-runs", string(id))
	return run.Core(), err
}

// Graph reads the graph of a run: GET /api/workflow-runs/{id}/graph.
func (r Runs) Graph(ctx context.Context, id core.ID) (manage.Graph, error) {
	var g wire.RunGraph
	err := r.c.get(ctx, &g, nil, "workflow-runs", string(id), "graph")
	return g.Core(), err
}

// Redrive continues a failed or canceled run: POST /api/workflow-runs/{id}/redrive.
func (r Runs) Redrive(ctx context.Context, id core.ID, how manage.Redrive) (manage.Redriven, error) {
	var run wire.Redriven
	wish := map[string]string{"from": string(how.From)}
	if how.Definition == manage.FollowCurrent { // a gateway of an earlier version refuses the field
		wish["definition"] = string(how.Definition)
	}
	err := r.c.post(ctx, &run, wish, "workflow-runs", string(id), "redrive")
	return run.Core(), err
}

// Cancel ends a run that is not finished: POST /api/workflow-runs/{id}/cancel.
func (r Runs) Cancel(ctx context.Context, id core.ID) (core.Run, error) {
	var run wire.Run
	err := r.c.post(ctx, &run, nil, "workflow-runs", string(id), "cancel")
	return run.Core(), err
}
