package main

import (
	"strconv"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newJobsErrors makes "gateway jobs errors": why jobs failed, in groups. It asks GET
// /api/jobs/errors with --url, and manage.Jobs.Errors otherwise. No failed job is not an error
// (exit code 0).
func newJobsErrors(a *app) *cobra.Command {
	var made timeFlags
	var handler string
	c := remotely(&cobra.Command{
		Use:   "errors",
		Short: "Show how many jobs failed and why, in groups",
		Long: `Group the jobs that are dead or retrying (waiting for another attempt) by their handler and
error, the largest group first. Ids, numbers, addresses, times and durations in an error are
replaced by <id>, <n> and so on, so that errors of the same kind are one group.

Looks at the 8000 newest failed jobs, and shows at most 100 groups.
Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway jobs errors
  gateway jobs errors --since 1d
  gateway jobs errors --handler billing --json | jq '.errors[0]'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			var filter core.FailureFilter
			if filter.Lane, err = consumerLane(handler); err != nil {
				return err
			}
			if filter.Since, filter.Until, err = made.parse(a.clock()); err != nil {
				return err
			}
			return a.jobsErrors(c, filter)
		},
	})
	made.register(c, "jobs made")
	c.Flags().StringVar(&handler, "handler", "", "only jobs of this `handler`, of queue/<name>, workflow/<name> or alert/<number>")
	a.complete(c, "handler", a.consumerNames)
	return c
}

// jobsErrors prints the groups, and on standard error whether there are more.
func (a *app) jobsErrors(c *cobra.Command, filter core.FailureFilter) error {
	return a.ask(c.Context(), func(op *operator) error {
		errs, err := op.jobs.Errors(c.Context(), filter)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.ErrorsOf(errs))
		case len(errs.Groups) == 0 && !errs.More:
			a.Notef("no failed jobs")
			return nil
		}
		a.PrintGrid(errorGrid(errs.Groups))
		if errs.More {
			a.Notef("there are more: these are the largest groups of the %d newest failed jobs; --handler and --until select others", errs.Scanned)
		}
		return nil
	})
}

// errorGrid returns the table of groups.
func errorGrid(groups []manage.ErrorGroup) terminal.Grid {
	g := terminal.Grid{Heading: []string{"COUNT", "DEAD", "RETRYING", "HANDLER", "NEWEST", "EXAMPLE JOB", "ERROR"}}
	for _, e := range groups {
		g.Add(strconv.Itoa(e.Dead+e.Retrying), strconv.Itoa(e.Dead), strconv.Itoa(e.Retrying), terminal.Visible(atHost(e.Lane.Consumer(), e.Host)),
			moment(e.Newest), terminal.Visible(string(e.Example)), terminal.OrDash(terminal.Clip(terminal.Visible(e.Kind), listedError)))
	}
	return g
}
