package main

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// remoteJobs are the jobs of a server.
type remoteJobs struct{ *client }

func (j remoteJobs) List(ctx context.Context, f core.JobFilter) (manage.JobPage, error) {
	var page wire.Jobs
	query := parameters("status", string(f.Status), "handler", f.Lane.Consumer(),
		"since", core.FormatTime(f.Since), "until", core.FormatTime(f.Until), "after", string(f.After), "limit", atMost(f.Limit))
	err := j.get(ctx, &page, query, "jobs")
	return page.Core(), err
}

func (j remoteJobs) Job(ctx context.Context, id core.ID) (core.Job, error) {
	var job wire.Job
	err := j.get(ctx, &job, nil, "jobs", string(id))
	return job.Core(), err
}

func (j remoteJobs) Attempts(ctx context.Context, id core.ID) ([]core.Attempt, error) {
	var reply wire.Attempts
	err := j.get(ctx, &reply, nil, "jobs", string(id), "attempts")
	return wire.List(reply.Attempts, wire.Attempt.Core), err
}

func (j remoteJobs) Retry(ctx context.Context, id core.ID) (int, error) {
	var reply wire.Retried
	err := j.post(ctx, &reply, nil, "jobs", string(id), "retry")
	return reply.Retried, err
}

func (j remoteJobs) RetryAll(ctx context.Context, lane core.Lane) (int, error) {
	body := map[string]string{}
	if lane != "" {
		body["handler"] = lane.Consumer()
	}
	var reply wire.Retried
	err := j.post(ctx, &reply, body, "jobs", "retry")
	return reply.Retried, err
}

// remoteRuns are the workflow runs of a server.
type remoteRuns struct{ *client }

func (r remoteRuns) List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	var page wire.Runs
	query := parameters("status", string(f.Status), "workflow", f.Workflow, "event_id", string(f.EventID),
		"after", string(f.After), "limit", atMost(f.Limit))
	err := r.get(ctx, &page, query, "workflow-runs")
	return page.Core(), err
}

func (r remoteRuns) Inspect(ctx context.Context, id core.ID, from manage.Place, limit int) (manage.Inspected, error) {
	var run wire.RunStory
	err := r.get(ctx, &run, parameters("after", from.String(), "limit", atMost(limit)), "workflow-runs", string(id))
	return run.Core(), err
}

func (r remoteRuns) Redrive(ctx context.Context, id core.ID, how manage.Redrive) (manage.Redriven, error) {
	var run wire.Redriven
	wish := map[string]string{"from": string(how.From)}
	if how.Definition == manage.FollowCurrent { // a gateway of an earlier version refuses the field
		wish["definition"] = string(how.Definition)
	}
	err := r.post(ctx, &run, wish, "workflow-runs", string(id), "redrive")
	return run.Core(), err
}

func (r remoteRuns) Cancel(ctx context.Context, id core.ID) (core.Run, error) {
	var run wire.Run
	err := r.post(ctx, &run, nil, "workflow-runs", string(id), "cancel")
	return run.Core(), err
}
