package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/units"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newQueues makes "gateway queues", which only holds other commands.
func newQueues(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "queues",
		Short: "Look into queues, retry dead messages, empty a queue",
		Long: `A queue holds messages until consumers fetch them. A message is pending (visible, or
waiting to be), processing (in flight: a consumer has it) or dead (given up on).`,
		Example: `  gateway queues list
  gateway queues dlq orders
  gateway queues retry orders`,
		GroupID: groupInspect,
	}, newQueuesList(a), newQueuesInspect(a), newQueuesPeek(a), newQueuesDLQ(a), newQueuesRetry(a), newQueuesDrain(a))
}

// newQueuesList makes "gateway queues list": the configured queues with their counts of
// messages. It asks GET /api/queues with --url, and manage.Queues.List otherwise. A
// configuration without queues is not an error (exit code 0).
func newQueuesList(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "list",
		Short: "List queues, and how many messages they have",
		Long: `List the configured queues with their numbers of messages that are pending,
processing and dead.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway queues list
  gateway queues list --json | jq '.queues[] | select(.dead > 0) | .name'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.queuesList(c.Context()) },
	})
}

// queuesList prints all queues. There are no pages: a configuration has a few queues.
func (a *app) queuesList(ctx context.Context) error {
	return a.ask(ctx, func(op *operator) error {
		queues, err := op.queues.List(ctx)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.Queues{Queues: wire.List(queues, wire.QueueOf)})
		case len(queues) == 0:
			a.Notef("no queues are configured")
			return nil
		}
		a.PrintGrid(queueGrid(queues))
		return nil
	})
}

// queueGrid returns the table of queues.
func queueGrid(queues []manage.Listed) terminal.Grid {
	g := terminal.Grid{Heading: []string{"QUEUE", "SOURCE", "EVENTS", "VISIBILITY", "PENDING", "PROCESSING", "DEAD"}}
	for _, q := range queues {
		g.Add(terminal.Visible(q.Name), terminal.Visible(q.Source), eventTypes(q.Events), visibility(q.Queue),
			tally(q.Pending), tally(q.Processing), tally(q.Dead))
	}
	return g
}

// eventTypes writes the types that a queue accepts; an empty list means all.
func eventTypes(types []string) string {
	if len(types) == 0 {
		return "all"
	}
	return terminal.Visible(strings.Join(types, ", "))
}

// visibility writes a visibility timeout as the configuration does.
func visibility(q manage.Queue) string { return units.Duration{Duration: q.Visibility}.String() }

// tally writes a number. The count stops at core.MaxDepth, so that number stands for "or
// more".
// Counting stops there since a count reads each row: a queue with millions of messages would
// hold each command for seconds.
func tally(n int) string {
	if n >= core.MaxDepth {
		return strconv.Itoa(n) + " or more"
	}
	return strconv.Itoa(n)
}

// askQueue calls ask with an operator. If the queue does not exist, the error lists the
// queues.
func (a *app) askQueue(ctx context.Context, name string, ask func(*operator) error) error {
	return a.ask(ctx, func(op *operator) error {
		err := ask(op)
		var left *remote.LeftQueueError
		switch {
		// The error of the client names no commands; its messages can still be listed and
		// deleted.
		case errors.As(err, &left):
			return core.Refuse(core.NotFound, "%v; its messages lists: gateway jobs list --handler queue/%s; and deletes: gateway queues drain %s --force", err, name, name)
		case !errors.Is(err, manage.ErrQueue):
			return err
		}
		queues, listing := op.queues.List(ctx)
		if listing != nil {
			return err
		}
		names := wire.List(queues, func(q manage.Listed) string { return q.Name })
		return config.Unknown("queue", name, names)
	})
}

// queueCommand makes a command about one queue. It calls run with the queue's name.
func (a *app) queueCommand(c *cobra.Command, run func(c *cobra.Command, queue string) error) *cobra.Command {
	// Each command about a queue takes its name as the only argument.
	c.Args = arguments(1, 1, "the queue")
	c.ValidArgsFunction = a.completeArgument(a.queueNames)
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, args[0]) }
	return remotely(c)
}
