package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/spf13/cobra"
)

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

func newQueuesList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List queues, and how many messages they have",
		Long: `List the configured queues with their numbers of messages that are pending,
processing and dead.

Reads the configured database, beside the running gateway.`,
		Example: `  gateway queues list
  gateway queues list --json | jq '.queues[] | select(.dead > 0) | .name'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.queuesList(c.Context()) },
	}
}

func (a *app) queuesList(ctx context.Context) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	s, err := a.openExistingOf(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	queues, err := gateway.Queues(cfg, s, a.clock).List(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Queues []queueJSON `json:"queues"`
		}{records(queues, queueRecord)})
	}
	if len(queues) == 0 {
		a.notef("no queues are configured")
		return nil
	}
	a.printGrid(queueGrid(queues))
	return nil
}

func queueGrid(queues []manage.Listed) grid {
	g := grid{heading: []string{"QUEUE", "SOURCE", "EVENTS", "VISIBILITY", "PENDING", "PROCESSING", "DEAD"}}
	for _, q := range queues {
		g.add(visible(q.Name), visible(q.Source), eventTypes(q.Events), visibility(q.Queue),
			tally(q.Pending), tally(q.Processing), tally(q.Dead))
	}
	return g
}

// eventTypes writes the types that are taken; none means all.
func eventTypes(types []string) string {
	if len(types) == 0 {
		return "all"
	}
	return visible(strings.Join(types, ", "))
}

// visibility writes a visibility timeout as the configuration does.
func visibility(q manage.Queue) string { return config.Duration{Duration: q.Visibility}.String() }

// tally writes a number that counting may have stopped at.
func tally(n int) string {
	if n >= core.MaxDepth {
		return strconv.Itoa(n) + " or more"
	}
	return strconv.Itoa(n)
}

// An openQueue is a queue of the configuration, and the store its messages are in.
type openQueue struct {
	config.Queue
	store   core.Store
	service *manage.Queues
}

// openQueue looks a queue up before it opens the database.
func (a *app) openQueue(ctx context.Context, name string) (*openQueue, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	q, ok := cfg.Queues[name]
	if !ok {
		return nil, noSuchQueue(cfg, name)
	}
	s, err := a.openExistingOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	alone := &config.Config{Queues: map[string]config.Queue{name: q}} // so that no other is counted
	return &openQueue{q, s, gateway.Queues(alone, s, a.clock)}, nil
}

func noSuchQueue(cfg *config.Config, name string) error {
	names := records(cfg.SortedQueues(), func(q config.Queue) string { return q.Name })
	return core.Refuse(core.NotFound, "no queue %q is configured; there %s", name, listed(names))
}

func (q *openQueue) close() { q.store.Close() }

// listed is the queue with its numbers.
func (q *openQueue) listed(ctx context.Context) (manage.Listed, error) {
	queues, err := q.service.List(ctx)
	if err != nil {
		return manage.Listed{}, err
	}
	return queues[0], nil
}

// queueCommand makes a command about one queue, whose name run is given.
func (a *app) queueCommand(c *cobra.Command, run func(c *cobra.Command, queue string) error) *cobra.Command {
	c.Args = arguments(1, 1, "the queue")
	c.ValidArgsFunction = a.completeArgument(a.queueNames)
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, args[0]) }
	return c
}
