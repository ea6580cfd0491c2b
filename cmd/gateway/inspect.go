package main

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/spf13/cobra"
)

func newInspect(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect <event id>",
		Short: "Show an event, its jobs and every attempt",
		Long: `Show all that is known about an event: what was received, which handlers got a
job for it, how each attempt went, what became of it in queues, and the workflow runs
it started. "gateway workflow-runs inspect" shows one of those.

Reads the configured database, beside the running gateway.`,
		Example: `  gateway inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV
  gateway inspect 01JB2Q8Z1TN5W3C4E7G9HKMRSV --json | jq .payload`,
		GroupID:           groupInspect,
		Args:              arguments(1, 1, "the event id"),
		ValidArgsFunction: a.completeArgument(a.recentEvents),
		RunE: func(c *cobra.Command, args []string) error {
			return a.inspect(c.Context(), args[0])
		},
	}
}

func (a *app) inspect(ctx context.Context, arg string) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	runs, s, err := a.openRuns(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	event, err := s.Event(ctx, id)
	if err != nil {
		return err
	}
	stories, err := storiesOf(ctx, s, id)
	if err != nil {
		return err
	}
	started, err := runs.OfEvent(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(eventRecord(event, records(stories, jobStory.record), records(started, runRecord)))
	}
	a.printEvent(event)
	a.printStories(stories)
	a.printRuns(started)
	return nil
}

// A jobStory is a job with what became of its attempts.
type jobStory struct {
	job      core.Job
	attempts []core.Attempt
}

func (s jobStory) record() jobStoryJSON {
	return jobStoryJSON{jobRecord(s.job), records(s.attempts, attemptRecord)}
}

// storiesOf reads all jobs of an event, the one created first first.
func storiesOf(ctx context.Context, s core.Ledger, event core.ID) ([]jobStory, error) {
	var stories []jobStory
	filter := core.JobFilter{EventID: event, Limit: core.MaxPage}
	for more := true; more; {
		page, err := s.Jobs(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, j := range page.Items {
			attempts, err := s.Attempts(ctx, j.ID)
			if err != nil {
				return nil, err
			}
			stories = append([]jobStory{{j, attempts}}, stories...)
			filter.After = j.ID
		}
		more = page.More
	}
	return stories, nil
}

func (a *app) printStories(stories []jobStory) {
	if len(stories) == 0 {
		a.printf("\nno jobs: no handler, queue or workflow wanted this event")
	}
	for _, s := range stories {
		j := s.job
		a.printf("\njob %s for %s: %s", visible(string(j.ID)), visible(consumer(j)), a.paintStatus(string(j.Status)))
		a.field("  ", "attempt", attemptText(j, " of "))
		a.printTimes(j)
		a.field("  ", "last error", visible(j.LastError))
		if g := attemptGrid(s); len(g.rows) > 0 {
			a.printf("")
			a.printGrid(g)
		}
	}
}

// printTimes tells when the job was done with, or what it waits for.
func (a *app) printTimes(j core.Job) {
	switch {
	case j.Status.Finished():
		a.field("  ", "finished", moment(j.FinishedAt))
	case j.Status == core.Running:
		a.field("  ", "lease ends", moment(j.DueAt))
	default:
		a.field("  ", "next", moment(j.DueAt))
	}
}

// field prints a name and its value, and nothing if there is no value.
func (a *app) field(indent, name, value string) {
	if value != "" {
		a.printf("%s%-14s%s", indent, name, value)
	}
}
