package main

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/spf13/cobra"
)

const tailLong = `Look every second for news, and print a line for each event that came in and for each job
that has another status or attempt than before. It begins now, or at --since, and goes on
until it is interrupted. When looking fails it says so, and tries again, after 30 seconds
at the latest.

With --status only jobs are shown. Unfinished jobs are watched until they are finished:
the jobs of the newest 1000 events with such jobs, in each second of 100 of these events.
Of other jobs, and of all but the first 1000 jobs of an event, only the end is shown. An
attempt that begins and ends between two looks is not seen; "gateway inspect" shows every
attempt. With --json each line is an object with "time", "kind", and the "event" or "job".`

// newTail makes "gateway tail": a line for each new event and each changed job, until Ctrl-C
// (exit code 130). It asks GET /api/tail once a second with --url, and manage.Tail.Look on the
// database otherwise. It polls, since a look costs a few indexed queries and works in the same
// way on each database and through each proxy.
//
// It exits with 1 if the first look fails, or a later look for a reason that does not pass.
// Other failures are retried; see [tailing.follow].
func newTail(a *app) *cobra.Command {
	var source, status, since string
	c := &cobra.Command{
		Use:   "tail",
		Short: "Print events and job results as they come",
		Long:  tailLong,
		Example: `  gateway tail
  gateway tail --source shop --status dead
  gateway tail --since 10m --json | jq -r 'select(.kind == "job") | .job.last_error'`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			// The status and the time are checked before a database or a server is asked.
			if source == core.AlertSource { // a look leaves its events out, so the command would wait for ever
				return usagef(`--source %s is not followed: tail shows events that came in; "gateway events list --source %s" lists those of the gateway itself, and tail without --source shows how their jobs end`, source, source)
			}
			t := &tailing{app: a, source: source}
			if status != "" {
				if t.status, err = core.ParseStatus(status); err != nil {
					return usageError(err.Error())
				}
			}
			if t.at, err = cursorAt(since, a.clock()); err != nil {
				return err
			}
			return a.tail(c.Context(), t)
		},
	}
	c.Flags().StringVar(&source, "source", "", "only events of this `source`, and their jobs")
	c.Flags().StringVar(&status, "status", "", "only jobs with this `status`: available, scheduled, waiting, running, completed, retryable, dead or canceled")
	sinceFlag(c, &since, "begin at this `time`")
	a.complete(c, "source", a.sourceNames)
	a.complete(c, "status", statusNames)
	return remotely(c)
}

// cursorAt returns the cursor for --since; the zero Cursor if the flag is not given.
func cursorAt(since string, now time.Time) (manage.Cursor, error) {
	t, err := parseMoment("--since", since, now)
	if err != nil || t.IsZero() {
		return manage.Cursor{}, err
	}
	// A cursor holds an id and a time: events are read by id, finished jobs by the time at
	// which they finished.
	return manage.Cursor{Event: core.FirstID(t), Finished: t}, nil
}

// tail opens the operator for the whole time of the tail, and follows.
func (a *app) tail(ctx context.Context, t *tailing) error {
	return a.ask(ctx, func(op *operator) error {
		t.tail, t.events = op.tail, op.events
		return t.follow(ctx)
	})
}
