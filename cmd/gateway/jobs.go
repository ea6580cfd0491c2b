package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

func newJobs(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "jobs",
		Short: "List jobs, and retry dead ones",
		Long: `A job is one event to be delivered to one handler, a message of one queue, or a step of
a workflow run. It is available, running, completed, retryable (failed, waiting for its
next attempt) or dead (given up on).`,
		Example: `  gateway jobs list --status dead
  gateway jobs retry`,
		GroupID: groupInspect,
	}, newJobsList(a), newJobsRetry(a))
}

func newJobsList(a *app) *cobra.Command {
	var (
		page            pageFlags
		status, handler string
	)
	c := remotely(&cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Long: `List jobs, newest first. "gateway inspect" shows the attempts of an event's jobs.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway jobs list --status dead
  gateway jobs list --handler billing --limit 10
  gateway jobs list --handler queue/orders --status running
  gateway jobs list --handler workflow/fulfil-order --status retryable
  gateway jobs list --json | jq -r '.jobs[].last_error'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := jobFilter(page, status, handler)
			if err != nil {
				return err
			}
			return a.jobsList(c, filter)
		},
	})
	page.register(c)
	c.Flags().StringVar(&status, "status", "", "only jobs with this `status`: available, running, completed, retryable or dead")
	c.Flags().StringVar(&handler, "handler", "", "only jobs of this `handler`, of queue/<name> or of workflow/<name>")
	a.complete(c, "status", statusNames)
	a.complete(c, "handler", a.consumerNames)
	return c
}

func jobFilter(page pageFlags, status, handler string) (f core.JobFilter, err error) {
	if f.After, f.Limit, err = page.parse(); err != nil {
		return f, err
	}
	if status != "" {
		if f.Status, err = core.ParseStatus(status); err != nil {
			return f, usageError(err.Error())
		}
	}
	if workflow, step, ok := strings.Cut(wire.LaneOf(handler).Workflow(), "/"); ok {
		return f, usagef("jobs are not listed by step (%s); give --handler workflow/%s", step, workflow)
	}
	f.Lane, err = consumerLane(handler)
	return f, err
}

// consumerLane is the lane of the jobs of one consumer, "" if none is given.
func consumerLane(handler string) (core.Lane, error) {
	if handler == "" {
		return "", nil
	}
	if lane, ok := wire.ParseConsumer(handler); ok {
		return lane, nil
	}
	return "", usagef("--handler must be the name of a handler, or queue/ or workflow/ and the name of one; not %q", clip(handler, 80))
}

func (a *app) jobsList(c *cobra.Command, filter core.JobFilter) error {
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.jobs.List(c.Context(), filter)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.printJSON(wire.JobsOf(page))
		case len(page.Items) == 0:
			a.notef("no jobs")
			return nil
		}
		a.printGrid(a.jobGrid(page.Items))
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// listedError is how much of an error fits beside the rest of a job.
const listedError = 60

func (a *app) jobGrid(jobs []core.Job) grid {
	g := grid{heading: []string{"ID", "EVENT", "HANDLER", "STATUS", "ATTEMPT", "NEXT", "LAST ERROR"}}
	for _, j := range jobs {
		g.add(visible(string(j.ID)), visible(string(j.EventID)), visible(wire.Consumer(j)), a.paintStatus(string(j.Status)),
			attemptText(j, "/"), moment(nextAttempt(j)), orDash(clip(visible(j.LastError), listedError)))
	}
	return g
}

// nextAttempt is when a waiting job is due, zero for any other.
func nextAttempt(j core.Job) time.Time {
	if j.Status.Finished() || j.Status == core.Running {
		return time.Time{}
	}
	return j.DueAt
}

// attemptText writes how many attempts a job has used, and of how many, if there is an
// end to them.
func attemptText(j core.Job, of string) string {
	if j.MaxAttempts == core.Unlimited {
		return strconv.Itoa(j.Attempt)
	}
	return strconv.Itoa(attemptsBegun(j)) + of + strconv.Itoa(j.MaxAttempts)
}

// attemptsBegun is the attempts a job has used, without the take that found it
// with none left.
func attemptsBegun(j core.Job) int { return min(j.Attempt, j.MaxAttempts) }
