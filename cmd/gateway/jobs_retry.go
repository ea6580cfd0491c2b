package main

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
	"github.com/spf13/cobra"
)

func newJobsRetry(a *app) *cobra.Command {
	var handler string
	c := remotely(&cobra.Command{
		Use:   "retry [job id]",
		Short: "Make dead jobs available again",
		Long: `Make dead jobs available again, with their whole number of attempts: one job, all
of one handler or queue, or all of them. A running gateway picks them up by itself.
Jobs of workflows stay dead: "gateway workflow-runs redrive" begins their runs anew.`,
		Example: `  gateway jobs retry
  gateway jobs retry --handler billing
  gateway jobs retry 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
		Args: arguments(0, 1, "the job id"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.retryAll(c.Context(), handler)
			}
			if handler != "" {
				return usagef("give a job id or --handler, not both")
			}
			return a.retryOne(c, args[0])
		},
	})
	c.Flags().StringVar(&handler, "handler", "", "only jobs of this `handler`, or of queue/<name>")
	a.complete(c, "handler", a.consumerNames)
	c.ValidArgsFunction = a.completeArgument(a.deadJobs)
	return c
}

func (a *app) retryAll(ctx context.Context, handler string) error {
	lane, err := consumerLane(handler)
	if err != nil {
		return err
	}
	if name := lane.Workflow(); name != "" {
		return core.Refuse(core.Invalid, "jobs of workflows are not retried, their runs are redriven; which failed, lists: gateway workflow-runs list --status failed --workflow %s", name)
	}
	return a.ask(ctx, func(op *operator) error {
		n, err := op.jobs.RetryAll(ctx, lane)
		if err != nil {
			return err
		}
		return a.printRetried(n)
	})
}

// retryOne retries a job that must exist and be dead.
func (a *app) retryOne(c *cobra.Command, arg string) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	ctx := c.Context()
	return a.ask(ctx, func(op *operator) error {
		n, err := op.jobs.Retry(ctx, id)
		if err == nil {
			return a.printRetried(n)
		}
		if job, unknown := op.jobs.Job(ctx, id); unknown == nil && job.Status == core.Dead && job.RunID != "" {
			again := fmt.Sprintf("gateway workflow-runs redrive %s --from failed", job.RunID)
			a.notef("redrive the run with: %s", commandLine(again, c.InheritedFlags()))
		}
		return err
	})
}

func (a *app) printRetried(n int) error {
	if a.json {
		return a.printJSON(struct {
			Retried int `json:"retried"`
		}{n})
	}
	if n == 0 {
		a.notef("no dead jobs")
		return nil
	}
	a.printf("%s available again", count(n, "job"))
	return nil
}
