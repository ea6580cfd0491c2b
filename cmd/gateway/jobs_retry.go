package main

import (
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/spf13/cobra"
)

// newJobsRetry makes "gateway jobs retry": dead jobs become available with all their attempts.
// With an id it asks POST /api/jobs/{id}/retry, without one POST /api/jobs/retry, and
// manage.Jobs on the database without --url. A job of a workflow is refused (exit code 1): its
// run has moved on, and only a redrive continues it.
//
// Without an id it begins an operation, which it does at once: see manage.Operations.Do. With a flag that
// selects among the dead jobs, or that is about the pace, the operation has a rate: see newOperationsBegin.
//
// It does not ask the user before. A retry loses nothing, and a receiver that was repaired
// needs it soon.
func newJobsRetry(a *app) *cobra.Command {
	f := operationFlags{yes: true}
	c := remotely(&cobra.Command{
		Use:   "retry [job id]",
		Short: "Make dead jobs available again, or try one now",
		Long: `Make dead jobs available again, with their whole number of attempts: one job, all
of one handler or queue, or all of them. A job that is given by its id is also brought back if
it is canceled, and tried now if it waits for its backoff or its time. A running gateway picks
them up by itself.
Jobs of workflows stay dead: "gateway workflow-runs redrive" begins their runs anew.

A retry of many is an operation, which goes on if this command ends; see "gateway operations". It is
done at once, or at a rate with --source, --event-type, --since, --until, --error, --rate or --detach.`,
		Example: `  gateway jobs retry
  gateway jobs retry --handler billing --error timeout --since 1d --dry-run
  gateway jobs retry --handler billing
  gateway jobs retry 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
		Args: arguments(0, 1, "the job id"),
		RunE: func(c *cobra.Command, args []string) error {
			selects := slices.IndexFunc(commonFlags, c.Flags().Changed)
			switch {
			case len(args) > 0 && f.handler != "":
				return usagef("give a job id or --handler, not both")
			case len(args) > 0 && selects >= 0:
				return usagef("give a job id or --%s, not both", commonFlags[selects])
			case len(args) > 0:
				return a.retryOne(c, args[0])
			case selects >= 0:
				return a.retrySelected(c, f)
			}
			return a.retryAll(c, f.handler)
		},
	})
	c.Flags().StringVar(&f.handler, "handler", "", "only jobs of this `handler`, or of queue/<name>")
	f.registerCommon(a, c, "jobs made")
	a.complete(c, "handler", a.consumerNames)
	c.ValidArgsFunction = a.completeArgument(a.deadJobs)
	return c
}

// retryAll retries the dead jobs of one consumer, or of all consumers if handler is "".
func (a *app) retryAll(c *cobra.Command, handler string) error {
	lane, err := consumerLane(handler)
	if err != nil {
		return err
	}
	// The store would retry nothing, and "no dead jobs" would be a wrong answer.
	if name := lane.Workflow(); name != "" {
		return core.Refuse(core.Invalid, "jobs of workflows are not retried, their runs are redriven; which failed, lists: gateway workflow-runs list --status failed --workflow %s", name)
	}
	return a.ask(c.Context(), func(op *operator) error {
		retried, err := op.jobs.RetryAll(c.Context(), lane)
		a.noteGoing(c, retried)
		if err != nil {
			return err
		}
		if retried.Jobs > 0 {
			a.noteBreakers(c, op, core.Available, lane)
		}
		return a.printRetried(retried.Jobs)
	})
}

// noteGoing says how to see and end the operation that goes on with a retry, if there is one.
func (a *app) noteGoing(c *cobra.Command, r manage.Retried) {
	if r.Going != "" {
		a.noteGoesOn(c, r.Going, terminal.Count(r.Jobs, "job")+" retried")
	}
}

// noteGoesOn says how to see and end an operation that goes on without this command.
func (a *app) noteGoesOn(c *cobra.Command, id core.ID, did string) {
	a.Notef("the operation goes on while a gateway runs; %s until now; to see it: %s; to end it: %s", did,
		a.commandLine("gateway operations watch "+string(id), c.InheritedFlags()), a.commandLine("gateway operations cancel "+string(id), c.InheritedFlags()))
}

// retrySelected retries dead jobs as an operation.
func (a *app) retrySelected(c *cobra.Command, f operationFlags) error {
	f.status = string(core.Dead)
	op, err := f.operation(core.RetryAction, a.clock())
	if err != nil {
		return err
	}
	return a.ask(c.Context(), func(o *operator) error { return a.begin(c, o, op, f) })
}

// retryOne retries a job. The job must be dead or canceled, or wait for its next attempt.
func (a *app) retryOne(c *cobra.Command, arg string) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	ctx := c.Context()
	return a.ask(ctx, func(op *operator) error {
		// The status before the retry decides which text is true after it.
		job, err := op.jobs.Job(ctx, id)
		if err != nil {
			return err
		}
		n, err := op.jobs.Retry(ctx, id)
		switch {
		// The refusal says that a run is redriven; only here is its id known, for a command
		// that can be copied.
		case err != nil && job.Status.Finished() && job.Status != core.Completed && job.RunID != "":
			again := fmt.Sprintf("gateway workflow-runs redrive %s --from failed", job.RunID)
			a.Notef("redrive the run with: %s", a.commandLine(again, c.InheritedFlags()))
			return err
		case err != nil:
			return err
		// A job that waited for its backoff was available, so "available again" would be wrong.
		case !job.Status.Finished() && !a.json:
			a.Printf("%s due now", terminal.Count(n, "job"))
			a.noteBreakers(c, op, job.Status, job.Lane)
			return nil
		}
		a.noteBreakers(c, op, core.Available, job.Lane)
		return a.printRetried(n)
	})
}

// noteBreakers names the open circuit breakers that retried jobs wait for. It looks at the
// newest jobs with the status, in the lane or in any lane if lane is "".
func (a *app) noteBreakers(c *cobra.Command, op *operator, status core.Status, lane core.Lane) {
	if a.json {
		return
	}
	// An error is ignored: the retry itself succeeded, and this is only advice.
	page, _ := op.jobs.List(c.Context(), core.JobFilter{Status: status, Lane: lane, Limit: core.MaxPage})
	told := map[core.Lane]bool{}
	for _, j := range page.Items {
		if w := page.Waits[j.ID]; w.For == manage.BreakerOpen && j.Lane.Handler() != "" && !told[j.Lane] {
			told[j.Lane] = true
			reset := a.commandLine("gateway breaker reset "+j.Lane.Handler(), c.InheritedFlags())
			a.Notef("retried jobs wait for %s; to close it now: %s", waitText(j, w), reset)
		}
	}
}

// printRetried prints the number of retried jobs. Zero is not an error: a script may retry at
// any time.
func (a *app) printRetried(n int) error {
	if a.json {
		return a.PrintJSON(struct {
			Retried int `json:"retried"`
		}{n})
	}
	if n == 0 {
		a.Notef("no dead jobs")
		return nil
	}
	a.Printf("%s available again", terminal.Count(n, "job"))
	return nil
}
