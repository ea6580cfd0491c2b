package main

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/spf13/cobra"
)

func newJobsRetry(a *app) *cobra.Command {
	var handler string
	c := &cobra.Command{
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
			return a.retryOne(c.Context(), args[0])
		},
	}
	c.Flags().StringVar(&handler, "handler", "", "only jobs of this `handler`, or of queue/<name>")
	a.complete(c, "handler", a.consumerNames)
	c.ValidArgsFunction = a.completeArgument(a.deadJobs)
	return c
}

func (a *app) retryAll(ctx context.Context, handler string) error {
	var lane core.Lane
	if handler != "" {
		lane = laneOf(handler)
	}
	if name := lane.Workflow(); name != "" {
		return core.Refuse(core.Invalid, "jobs of workflows are not retried, their runs are redriven; which failed, lists: gateway workflow-runs list --status failed --workflow %s", name)
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	n, err := s.Retry(ctx, a.clock(), "", lane)
	if err != nil {
		return err
	}
	return a.printRetried(n)
}

// retryOne retries a job that must exist and be dead.
func (a *app) retryOne(ctx context.Context, arg string) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	n, err := s.Retry(ctx, a.clock(), id, "")
	if err != nil {
		return err
	}
	if n == 0 {
		return whyNotRetried(ctx, s, id)
	}
	return a.printRetried(n)
}

func whyNotRetried(ctx context.Context, s core.Ledger, id core.ID) error {
	job, err := s.Job(ctx, id)
	if err != nil {
		return err
	}
	if job.Status == core.Dead && job.RunID != "" {
		return core.Refuse(core.Invalid, "job %s is a step of workflow run %s, which can be redriven instead: gateway workflow-runs redrive %s --from failed", id, job.RunID, job.RunID)
	}
	return core.Refuse(core.Invalid, "job %s is %s; only dead jobs can be retried", id, job.Status)
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
