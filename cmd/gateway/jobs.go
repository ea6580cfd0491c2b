package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newJobs makes "gateway jobs", which only holds other commands.
func newJobs(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "jobs",
		Short: "List jobs, and retry or skip dead ones",
		Long: `A job is one event to be delivered to one handler, a message of one queue, or a step of
a workflow run. It is available, scheduled (it waits for its time: a wait or a callback of a
workflow), waiting (in its line, for the jobs before it), running, completed, retryable
(failed, waiting for its next attempt), dead (given up on) or canceled (ended by an
operator).`,
		Example: `  gateway jobs list --status dead
  gateway jobs errors --since 1d
  gateway jobs retry`,
		GroupID: groupInspect,
	}, newJobsList(a), newJobsErrors(a), newJobsRetry(a), newJobsSkip(a))
}

// newJobsList makes "gateway jobs list": the newest jobs, a page at a time, with the reasons
// why they wait. It asks GET /api/jobs with --url, and manage.Jobs otherwise. No job is
// not an error (exit code 0). A handler that is not configured is accepted: its jobs may still
// be stored.
func newJobsList(a *app) *cobra.Command {
	var (
		page            pageFlags
		made            timeFlags
		status, handler string
		search          manage.JobSearch
	)
	c := remotely(&cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Long: `List jobs, newest first. "gateway inspect" shows the attempts of an event's jobs. NEXT is
when a job that waits is tried at the earliest. WAITS FOR names the hindrance: backoff
(after a failure), its time (it is scheduled), hold (of its handler, queue or workflow),
hold of its source, circuit breaker (deliveries to its handler fail), line (the jobs
before it in its line), rate limit, worker (nothing: a gateway that runs takes it),
consumer (of its queue), or configuration (its handler or queue is not configured).

With --source, --event-type or --error, it scans at most 10,000 jobs or for 2 seconds,
prints the matches, and says where to go on. With --status dead it scans dead jobs only.
--error is a text that the last error of a job contains; upper and lower case differ.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway jobs list --status dead
  gateway jobs list --status dead --error 'connection refused'
  gateway jobs list --status dead --source stripe -t invoice.paid
  gateway jobs list --handler billing --since 1h --limit 10
  gateway jobs list --handler billing --status waiting
  gateway jobs list --handler queue/orders --status running
  gateway jobs list --handler workflow/fulfil-order --status scheduled
  gateway jobs list --json | jq -r '.jobs[].last_error'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if search.JobFilter, err = jobFilter(page, status, handler); err != nil {
				return err
			}
			if search.Since, search.Until, err = made.parse(a.clock()); err != nil {
				return err
			}
			if search.Scans() {
				return a.jobsSearch(c, search)
			}
			return a.jobsList(c, search.JobFilter)
		},
	})
	page.register(c)
	made.register(c, "jobs made")
	c.Flags().StringVar(&status, "status", "", "only jobs with this `status`: available, scheduled, waiting, running, completed, retryable, dead or canceled")
	c.Flags().StringVar(&handler, "handler", "", "only jobs of this `handler`, of queue/<name>, workflow/<name> or alert/<number>")
	registerJobSearch(a, c, &search)
	a.complete(c, "status", statusNames)
	a.complete(c, "handler", a.consumerNames)
	return c
}

// jobFilter returns the filter of the flags, without times. Steps of workflows have lanes of
// their own; a list by step is refused, since it would miss the other steps of the same run.
func jobFilter(page pageFlags, status, handler string) (f core.JobFilter, err error) {
	if f.After, f.Limit, err = page.parse(); err != nil {
		return f, err
	}
	if status != "" {
		if f.Status, err = core.ParseStatus(status); err != nil {
			return f, usageError(err.Error())
		}
	}
	// The name of a lane of a step is "workflow/<name>/<step>", as errors and logs show it, so
	// users copy it.
	if workflow, step, ok := strings.Cut(wire.LaneOf(handler).Workflow(), "/"); ok {
		return f, usagef("jobs are not listed by step (%s); give --handler workflow/%s", step, workflow)
	}
	f.Lane, err = consumerLane(handler)
	return f, err
}

// consumerLane returns the lane of the jobs of a consumer, or "" if handler is "".
func consumerLane(handler string) (core.Lane, error) {
	if handler == "" {
		return "", nil
	}
	if lane, ok := wire.ParseConsumer(handler); ok {
		return lane, nil
	}
	return "", usagef("--handler must be the name of a handler, queue/ or workflow/ and the name of one, or alert/ and a number; not %q", terminal.Clip(handler, 80))
}

// jobsList prints one page of jobs, and on standard error the command for the next page.
func (a *app) jobsList(c *cobra.Command, filter core.JobFilter) error {
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.jobs.List(c.Context(), filter)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.JobsOf(page))
		case len(page.Items) == 0:
			a.Notef("no jobs")
			return nil
		}
		a.PrintGrid(a.jobGrid(page))
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// listedError is the number of characters of an error in a list of jobs.
// The clip is at 60 characters here and at 80 in details of one event: a list has eight
// columns.
const listedError = 60

// jobGrid returns the table of a page of jobs. It has the last error, clipped, since that
// answers the usual question behind a list of failed jobs.
func (a *app) jobGrid(page manage.JobPage) terminal.Grid {
	g := terminal.Grid{Heading: []string{"ID", "EVENT", "HANDLER", "STATUS", "ATTEMPT", "NEXT", "WAITS FOR", "LAST ERROR"}}
	for _, j := range page.Items {
		wait := page.Waits[j.ID]
		g.Add(terminal.Visible(string(j.ID)), terminal.Visible(string(j.EventID)), terminal.Visible(consumerText(j)), a.paintStatus(string(j.Status)),
			attemptText(j, "/"), moment(nextAttempt(j, wait)), terminal.OrDash(waitWord(j, wait)), terminal.OrDash(terminal.Clip(terminal.Visible(j.LastError), listedError)))
	}
	return g
}

// consumerText returns the consumer of a job, with the host if it is a place for alerts.
func consumerText(j core.Job) string { return atHost(wire.Consumer(j), j.Host) }

// atHost returns the name of a consumer, with the host if it is a place for alerts.
func atHost(name, host string) string {
	if host == "" {
		return name
	}
	return name + " (" + host + ")"
}

// nextAttempt returns the earliest time at which a waiting job is tried. It returns the zero
// time for a finished or running job.
func nextAttempt(j core.Job, w manage.Wait) time.Time {
	switch {
	// The due time of a running job is the end of its lease, which is no next attempt unless
	// the worker vanishes.
	case j.Status.Finished() || j.Status == core.Running:
		return time.Time{}
	case w.Until.After(j.DueAt):
		return w.Until
	}
	return j.DueAt
}

// waitWord says in a word or two why a job waits; "" if it does not wait.
func waitWord(j core.Job, w manage.Wait) string {
	switch {
	// Both kinds of jobs wait for a time. After a failure that is the backoff; without one, a
	// time that was asked for.
	case w.For == manage.NotDue && j.Status == core.Retryable && j.LastError != "":
		return "backoff"
	case w.For == manage.NotDue:
		return "its time"
	case w.For == manage.LaneStopped && w.Source != "":
		return "hold of its source"
	}
	return strings.ReplaceAll(terminal.Visible(string(w.For)), "_", " ")
}

// attemptText returns the number of a job's attempts, with the maximum if there is one.
func attemptText(j core.Job, of string) string {
	// A maximum that does not exist has no place in the text: "3/-1" would look like a fault.
	if j.MaxAttempts == core.Unlimited {
		return strconv.Itoa(j.Attempt)
	}
	return strconv.Itoa(j.Number()) + of + strconv.Itoa(j.MaxAttempts)
}
