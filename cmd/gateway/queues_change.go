package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/spf13/cobra"
)

// newQueuesRetry makes "gateway queues retry": dead messages become visible again. It asks POST
// /api/queues/{name}/retry with --url, and manage.Queues.Retry otherwise. It exits with 1 if
// the message of --id cannot be retried, with the reason; a queue without dead messages is not
// an error.
func newQueuesRetry(a *app) *cobra.Command {
	var id string
	c := &cobra.Command{
		Use:   "retry <queue>",
		Short: "Make dead messages of a queue visible again",
		Long: `Make dead messages of a queue visible again, with their whole number of attempts:
all of them, or one. With --id also a message that is to be visible later.`,
		Example: `  gateway queues retry orders
  gateway queues retry orders --id 01JB2Q8Z1TN5W3C4E7G9HKMRSV`,
	}
	c.Flags().StringVar(&id, "id", "", "only the message with this `id`")
	a.complete(c, "id", a.deadMessages)
	return a.queueCommand(c, func(c *cobra.Command, queue string) error { return a.queuesRetry(c, queue, id) })
}

// queuesRetry retries all dead messages of a queue, or the message with the id arg.
func (a *app) queuesRetry(c *cobra.Command, name, arg string) (err error) {
	ctx := c.Context()
	var id core.ID
	if arg != "" {
		if id, err = parseID(arg); err != nil {
			return err
		}
	}
	return a.askQueue(ctx, name, func(op *operator) error {
		retried, err := op.queues.Retry(ctx, name, id)
		a.noteGoing(c, retried)
		n := retried.Jobs
		switch {
		case err != nil:
			return err
		// The store only says that no row changed. The reason needs a second look.
		case n == 0 && id != "":
			return a.whyNotRetried(ctx, op.jobs, id)
		case a.json:
			return a.printRetried(n)
		case n == 0:
			a.Notef("no dead messages")
			return nil
		}
		a.Printf("%s visible again", terminal.Count(n, "message"))
		return nil
	})
}

// whyNotRetried returns the reason why a message was not retried. Another caller may have moved
// it between the two requests, so the message may look retryable now.
func (a *app) whyNotRetried(ctx context.Context, jobs jobService, id core.ID) error {
	job, err := jobs.Job(ctx, id)
	if err != nil {
		return err
	}
	if err := manage.NotRetried(job, a.clock()); err != nil {
		return err
	}
	return core.Refuse(core.Invalid, "job %s was just moved by another caller and is %s now; try again", id, job.Status)
}

// newQueuesDrain makes "gateway queues drain": all messages of a queue are deleted. It asks
// POST /api/queues/{name}/drain with --url, and manage.Queues.Drain otherwise. Its effect
// cannot be taken back. So it asks before, with the counts and the server in the question, and
// refuses (exit code 2) if stdin is no terminal and --force is not given.
func newQueuesDrain(a *app) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "drain <queue>",
		Short: "Delete all messages of a queue",
		Long: `Delete all messages of a queue, also dead messages and messages that consumers have.
They cannot be brought back. Events stay, and so do messages that are acked already
or come in meanwhile. Asks before, unless --force is given.`,
		Example: `  gateway queues drain orders
  gateway queues drain orders --force`,
	}
	c.Flags().BoolVar(&force, "force", false, "do not ask")
	return a.queueCommand(c, func(c *cobra.Command, queue string) error { return a.queuesDrain(c.Context(), queue, force) })
}

// queuesDrain deletes the messages of a queue, after a question unless force is true.
func (a *app) queuesDrain(ctx context.Context, name string, force bool) error {
	return a.askQueue(ctx, name, func(op *operator) error {
		if !force {
			queue, err := op.queues.Queue(ctx, name)
			if err != nil {
				return err
			}
			// A question about nothing would only worry the user.
			if queue.Depth()+queue.Dead == 0 {
				return a.printDrained(0)
			}
			if err := a.confirm(ctx, "delete "+a.at(allOf(queue))); err != nil {
				return err
			}
		}
		n, err := op.queues.Drain(ctx, name)
		// A drain is made of several commits. After an error the number shows how far it came.
		if n > 0 && err != nil {
			a.Notef("%s deleted until then", terminal.Count(n, "message"))
		}
		if err != nil {
			return err
		}
		return a.printDrained(n)
	})
}

// at adds the address of the server to a description, if the command works on a server.
func (a *app) at(what string) string {
	if a.remote() {
		return what + " at " + a.urlFlag
	}
	return what
}

// allOf returns the numbers of a queue's messages by kind, in words.
func allOf(q manage.Listed) string {
	// Counts stop at core.MaxDepth. The sum of counts that stopped would be a wrong number, so
	// the text gives a lower bound.
	total := terminal.Count(q.Depth()+q.Dead, "message")
	if most := max(q.Pending, q.Processing, q.Dead); most >= core.MaxDepth {
		total = tally(most) + " messages"
	}
	return fmt.Sprintf("%s of queue %s (%s pending, %s processing, %s dead)", total, q.Name,
		tally(q.Pending), tally(q.Processing), tally(q.Dead))
}

// printDrained prints the number of deleted messages.
func (a *app) printDrained(n int) error {
	if a.json {
		return a.PrintJSON(struct {
			Drained int `json:"drained"`
		}{n})
	}
	if n == 0 {
		a.Notef("no messages")
		return nil
	}
	a.Printf("%s deleted", terminal.Count(n, "message"))
	return nil
}

// confirm asks the user before a change that cannot be undone. An empty answer means no. If
// stdin is no terminal, the user has to give --force instead.
func (a *app) confirm(ctx context.Context, what string) error {
	if !a.attended {
		return usagef("this would %s; say so with --force", what)
	}
	// The question goes to standard error: standard output may be a file, and a user would not
	// see it there.
	fmt.Fprintf(a.stderr, "gateway: %s? [y/N] ", terminal.Visible(what))
	line, err := unlessDone(ctx, func() (string, error) { return readLine(a.stdin) })
	if err != nil {
		fmt.Fprintln(a.stderr)
		return err
	}
	// Everything but a clear yes is a no, the empty line included: a hasty user types it.
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))) {
		return core.Refuse(core.Invalid, "nothing was done")
	}
	return nil
}

// readLine reads up to a line break or the end, and nothing after it.
func readLine(r io.Reader) (string, error) {
	// One byte at a time is slow and right: the next question, or a program that shares
	// standard input, needs the bytes behind the line.
	var line []byte
	for {
		var b [1]byte
		n, err := r.Read(b[:])
		switch {
		case n == 1 && b[0] != '\n':
			line = append(line, b[0])
		case n == 1, err == io.EOF:
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
}
