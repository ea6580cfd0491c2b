package main

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newInspect makes "gateway inspect": all that is stored about one event. It asks GET
// /api/events/{id} with --url, then GET /api/jobs/{id}/attempts for each job; on the database
// it asks manage.Events and manage.Jobs. It exits with 1 if the event is unknown, for example
// since it was purged.
//
// The attempts are asked for job by job, since the record of an event has its jobs without
// them.
func newInspect(a *app) *cobra.Command {
	var f attemptFlags
	c := remotely(&cobra.Command{
		Use:   "inspect <event id>",
		Short: "Show an event, its jobs and every attempt",
		Long: `Show all that is known about an event: its payload and headers, its jobs with the result
of each attempt, its messages in queues, and the workflow runs that it started. "gateway
workflow-runs inspect" shows one of the runs.

With --attempt it shows one attempt in full: the request, if delivery.record kept
it, and the reply. The id is then the id of a job, or of an event with one job.
With --curl it prints a command that sends the same request again.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV
  gateway inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --json | jq .payload
  gateway inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --attempt 2 --curl`,
		GroupID:           groupInspect,
		Args:              arguments(1, 1, "the event id"),
		ValidArgsFunction: a.completeArgument(a.recentEvents),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("attempt") {
				if f.curl || f.bodyFile != "" {
					return usagef("--curl and --body-file need --attempt and the number of an attempt")
				}
				return a.inspect(c.Context(), args[0])
			}
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			return a.inspectAttempt(c.Context(), id, f)
		},
	})
	c.Flags().IntVar(&f.number, "attempt", 0, "show the attempt with this `number` in full")
	c.Flags().BoolVar(&f.curl, "curl", false, "print a curl command that sends the request of the attempt again")
	c.Flags().StringVar(&f.bodyFile, "body-file", "", "send the body in this `file`, with --curl")
	return c
}

// inspect prints an event with its jobs, their attempts, its runs, and the consumers that
// declined it.
func (a *app) inspect(ctx context.Context, arg string) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	return a.ask(ctx, func(op *operator) error {
		told, err := op.events.Inspect(ctx, id)
		if err != nil {
			return err
		}
		stories, err := storiesOf(ctx, op.jobs, told)
		switch {
		case err != nil:
			return err
		case a.json:
			record := wire.EventWith(told.Event, wire.List(stories, jobStory.record), wire.List(told.Runs, wire.RunOf))
			record.Declined = wire.DeclinedBy(told.Declined)
			return a.PrintJSON(record)
		}
		a.printEvent(told.Event)
		a.printStories(stories)
		a.printRuns(told.Runs)
		a.printDeclined(told.Declined)
		return nil
	})
}

// A jobStory is a job with its attempts.
type jobStory struct {
	job      core.Job
	wait     manage.Wait
	attempts []core.Attempt
}

// record returns the job as --json prints it, with its attempts.
func (s jobStory) record() wire.Job { return wire.StoryOf(s.job, s.wait, s.attempts) }

// storiesOf reads the attempts of an event's jobs.
func storiesOf(ctx context.Context, service jobService, told manage.Told) ([]jobStory, error) {
	stories := make([]jobStory, len(told.Jobs))
	for i, j := range told.Jobs {
		attempts, err := attemptsOf(ctx, service, j.ID)
		if err != nil {
			return nil, err
		}
		stories[i] = jobStory{j, told.Waits[j.ID], attempts}
	}
	return stories, nil
}

// attemptsOf reads all attempts of a job, page by page.
func attemptsOf(ctx context.Context, service jobService, id core.ID) (all []core.Attempt, err error) {
	for {
		page, err := service.Attempts(ctx, id, len(all))
		all = append(all, page.Items...)
		if err != nil || !page.More || len(page.Items) == 0 {
			return all, err
		}
	}
}

// printStories prints each job with the times and reasons of its state, and a table of its
// attempts.
func (a *app) printStories(stories []jobStory) {
	if len(stories) == 0 {
		a.Printf("\nno jobs: no handler, queue or workflow wanted this event")
	}
	for _, s := range stories {
		j := s.job
		a.Printf("\njob %s for %s: %s", terminal.Visible(string(j.ID)), terminal.Visible(consumerText(j)), a.paintStatus(string(j.Status)))
		a.PrintField("  ", "line", terminal.Visible(j.Line))
		a.PrintField("  ", "attempt", attemptText(j, " of ")+earlierText(j))
		a.printTimes(j)
		a.PrintField("  ", "waits for", waitText(j, s.wait))
		a.PrintField("  ", "last error", terminal.Visible(j.LastError))
		if g := attemptGrid(s); len(g.Rows) > 0 {
			a.Printf("")
			a.PrintGrid(g)
		}
	}
}

// earlierText returns the number of attempts before a job was retried, in words; "" if there
// are none.
func earlierText(j core.Job) string {
	if j.Earlier == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d before it was retried)", j.Earlier)
}

// printDeclined prints the consumers that declined an event, and the reasons.
func (a *app) printDeclined(declined []core.Declined) {
	if len(declined) > 0 {
		a.Printf("")
		a.PrintGrid(declinedGrid(declined))
	}
}

// declinedGrid returns the table of the consumers that declined an event. It answers the common
// question why a handler got nothing.
func declinedGrid(declined []core.Declined) terminal.Grid {
	g := terminal.Grid{Heading: []string{"NOT FOR", "BECAUSE"}}
	for _, d := range declined {
		g.Add(terminal.Visible(d.Lane.Consumer()), terminal.Visible(d.Why))
	}
	return g
}

// printTimes prints when the job finished, or the cause of its wait.
func (a *app) printTimes(j core.Job) {
	// The time at which the job became due tells a slow receiver from a job that waited.
	if !j.ScheduledAt.IsZero() && (j.Status.Finished() || j.Status == core.Running) {
		a.PrintField("  ", "was due", moment(j.ScheduledAt))
	}
	switch {
	case j.Status.Finished():
		a.PrintField("  ", "finished", moment(j.FinishedAt))
	case j.Status == core.Running:
		a.PrintField("  ", "lease ends", moment(j.DueAt))
	default:
		a.PrintField("  ", "next", moment(j.DueAt))
	}
}

// waitText says why a job waits; "" if it does not wait.
func waitText(j core.Job, w manage.Wait) string {
	name := terminal.Visible(j.Lane.Consumer())
	switch w.For {
	case manage.NotDue:
		return "its time to come"
	case manage.LaneStopped:
		of := "its release: "
		if w.Source != "" {
			of, name = "the release of its source: ", terminal.Visible(core.SourceLane(w.Source).Consumer())
		}
		return of + holdText(name, w.Since, w.Until, w.Reason)
	case manage.InLine:
		return lineText(j, w)
	case manage.BreakerOpen:
		return fmt.Sprintf("the circuit breaker of %s, which is open; one delivery is tried at %s", name, moment(w.Until))
	case manage.RateReached:
		return fmt.Sprintf("its turn: deliveries to %s are spaced, the next is at %s", name, moment(w.Until))
	case manage.NoWorkerYet:
		return "a worker of a running gateway"
	case manage.NoConsumerYet:
		return "a consumer to receive it"
	case manage.NotConfigured:
		return fmt.Sprintf("%s to be configured: it is not, and jobs that wait so for a day become dead", name)
	}
	return terminal.Visible(string(w.For)) // a newer server may know another reason
}
