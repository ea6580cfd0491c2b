package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newQueuesInspect makes "gateway queues inspect": the settings of a queue, its counts, and a
// page of its newest messages. It asks GET /api/queues and GET /api/jobs with --url, and
// manage.Queues and manage.Jobs on the database otherwise. Messages are jobs of the queue's
// lane, so the list of jobs has them in every status; peek shows only visible ones. An unknown
// queue exits with 1 and names the queues that exist.
func newQueuesInspect(a *app) *cobra.Command {
	var page pageFlags
	c := &cobra.Command{
		Use:   "inspect <queue>",
		Short: "Show a queue and its newest messages",
		Long: `Show how a queue is configured, how many messages it has, and the newest of them.

A message is available (never received, or brought back), running (in flight: a
consumer has it), retryable (received and not acked), completed (acked) or dead.
VISIBLE is when consumers may receive it, or may again.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway queues inspect orders
  gateway queues inspect orders --limit 200 --json | jq -r '.messages[].last_error'`,
	}
	page.register(c)
	return a.queueCommand(c, func(c *cobra.Command, queue string) error { return a.queuesInspect(c, queue, page) })
}

// queuesInspect prints a queue and one page of its messages.
func (a *app) queuesInspect(c *cobra.Command, name string, flags pageFlags) error {
	after, limit, err := flags.parse()
	if err != nil {
		return err
	}
	ctx := c.Context()
	return a.askQueue(ctx, name, func(op *operator) error {
		queue, err := op.queues.Queue(ctx, name)
		if err != nil {
			return err
		}
		// A queue may have more messages than fit on a page. The counts above the list are of
		// all.
		page, err := op.jobs.List(ctx, core.JobFilter{Lane: core.QueueLane(name), After: after, Limit: limit})
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(struct {
				wire.Queue
				// The record equals an entry of the API's list of queues, with two fields more.
				Messages []wire.Job `json:"messages"`
				HasMore  bool       `json:"has_more"`
			}{wire.QueueOf(queue), wire.List(page.Items, wire.JobOf), page.More})
		}
		a.printQueue(op.cfg, queue)
		if len(page.Items) > 0 {
			a.Printf("")
			a.PrintGrid(a.messageGrid(page.Items))
		}
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// printQueue shows a queue. For a queue of a server it leaves out the fields that only the
// server's configuration has.
func (a *app) printQueue(cfg *config.Config, q manage.Listed) {
	a.PrintField("", "queue", terminal.Visible(q.Name))
	if q.Gone() {
		// Nothing else is known of a queue that left the configuration.
		a.PrintField("", "configured", "no more; its messages wait for that, and become dead after a day of it")
		a.printTally(q)
		return
	}
	a.PrintField("", "source", terminal.Visible(q.Source))
	a.PrintField("", "events", eventTypes(q.Events))
	if cfg != nil {
		a.PrintField("", "filter", terminal.Visible(cfg.Queues[q.Name].Filter.Text))
		a.PrintField("", "key", terminal.Visible(cfg.Queues[q.Name].IdempotencyKey.Text))
	}
	a.PrintField("", "visibility", visibility(q.Queue))
	if cfg != nil {
		a.PrintField("", "max attempts", maxAttempts(q.MaxAttempts))
	}
	a.printTally(q)
}

// printTally prints the counts of a queue's messages.
func (a *app) printTally(q manage.Listed) {
	a.PrintField("", "pending", tally(q.Pending))
	a.PrintField("", "processing", tally(q.Processing))
	a.PrintField("", "dead", tally(q.Dead))
	if q.Canceled > 0 {
		a.PrintField("", "canceled", tally(q.Canceled))
	}
}

// maxAttempts writes the limit of attempts of a message as the configuration means it: 0 is no
// limit.
func maxAttempts(n int) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.Itoa(n)
}

// messageGrid returns the table of a page of messages, of any status.
func (a *app) messageGrid(messages []core.Job) terminal.Grid {
	g := terminal.Grid{Heading: []string{"ID", "EVENT", "STATUS", "ATTEMPT", "VISIBLE", "LAST ERROR"}}
	for _, m := range messages {
		g.Add(terminal.Visible(string(m.ID)), terminal.Visible(string(m.EventID)), a.paintStatus(string(m.Status)), attemptText(m, "/"),
			moment(visibleAt(m)), terminal.OrDash(terminal.Clip(terminal.Visible(m.LastError), listedError)))
	}
	return g
}

// visibleAt returns when a message is visible or will be visible again. It returns the zero
// time for a finished message.
func visibleAt(m core.Job) time.Time {
	if m.Status.Finished() {
		return time.Time{}
	}
	return m.DueAt
}

// newQueuesPeek makes "gateway queues peek": the messages that a consumer would receive next,
// with payloads. It asks GET /api/queues/{name}/peek with --url, and manage.Queues.Peek
// otherwise. It takes no lease and counts no attempt, so looking never delays a consumer.
//
// A server returns at most remote.MaxMessages, since each message has its payload of up to
// server.max_body_size in the reply. The database here has no such limit.
func newQueuesPeek(a *app) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "peek <queue>",
		Short: "Show the next messages of a queue, and leave them there",
		Long: `Show the messages that a consumer would receive next, with their payloads. They stay in
the queue, and their attempts do not change.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway queues peek orders
  gateway queues peek orders --limit 10 --json | jq '.messages[].payload'`,
	}
	limitFlag(c, &limit, 1)
	c.Flags().Lookup("limit").Usage += fmt.Sprintf("; with --url 1 to %d", remote.MaxMessages)
	return a.queueCommand(c, func(c *cobra.Command, queue string) error { return a.queuesPeek(c.Context(), queue, limit) })
}

// queuesPeek prints messages one below the other: payloads do not fit into a table.
func (a *app) queuesPeek(ctx context.Context, name string, limit int) error {
	if err := checkLimit(limit); err != nil {
		return err
	}
	if a.remote() && limit > remote.MaxMessages { // a server returns no more than this, and has no next page
		return usagef("--limit must be 1 to %d with --url, not %d", remote.MaxMessages, limit)
	}
	return a.askQueue(ctx, name, func(op *operator) error {
		messages, err := op.queues.Peek(ctx, name, limit)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.Messages{Messages: wire.List(messages, wire.MessageOf)})
		case len(messages) == 0:
			a.Notef("no visible messages")
		}
		for i, m := range messages {
			if i > 0 {
				a.Printf("")
			}
			a.printMessage(m)
		}
		return nil
	})
}

// printMessage prints a message with its whole event.
func (a *app) printMessage(m core.TakenJob) {
	a.PrintField("", "message", terminal.Visible(string(m.ID)))
	a.PrintField("", "attempt", attemptText(m.Job, " of "))
	a.PrintField("", "visible since", core.FormatTime(m.DueAt)) // a server does not return it
	a.PrintField("", "last error", terminal.Visible(m.LastError))
	a.printEvent(m.Event)
}

// newQueuesDLQ makes "gateway queues dlq": the dead messages of a queue, newest first, a page
// at a time. It asks GET /api/queues/{name}/dlq with --url, and manage.Queues.DeadLetters
// otherwise. No dead message is not an error (exit code 0).
func newQueuesDLQ(a *app) *cobra.Command {
	var page pageFlags
	c := &cobra.Command{
		Use:   "dlq <queue>",
		Short: "List the dead messages of a queue, newest first",
		Long: `List the messages in a queue's dead-letter queue, newest first: messages that
were received max_attempts times and never acked. "gateway inspect" shows their events,
"gateway queues retry" brings them back.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway queues dlq orders
  gateway queues dlq orders --json | jq '.messages[].payload'`,
	}
	page.register(c)
	return a.queueCommand(c, func(c *cobra.Command, queue string) error { return a.queuesDLQ(c, queue, page) })
}

// queuesDLQ prints one page of dead messages. Payloads are in --json only.
func (a *app) queuesDLQ(c *cobra.Command, name string, flags pageFlags) error {
	after, limit, err := flags.parse()
	if err != nil {
		return err
	}
	return a.askQueue(c.Context(), name, func(op *operator) error {
		page, err := op.queues.DeadLetters(c.Context(), name, after, limit)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.DeadLetters{Messages: wire.List(page.Items, wire.MessageOf), More: page.More})
		case len(page.Items) == 0:
			a.Notef("no dead messages")
			return nil
		}
		a.PrintGrid(deadGrid(page.Items))
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// deadGrid returns the table of a page of dead messages.
func deadGrid(messages []core.TakenJob) terminal.Grid {
	g := terminal.Grid{Heading: []string{"ID", "EVENT", "TYPE", "ATTEMPT", "DIED", "LAST ERROR"}}
	for _, m := range messages {
		g.Add(terminal.Visible(string(m.ID)), terminal.Visible(string(m.EventID)), terminal.Visible(m.Event.Type), attemptText(m.Job, "/"),
			moment(m.FinishedAt), terminal.OrDash(terminal.Clip(terminal.Visible(m.LastError), listedError)))
	}
	return g
}
