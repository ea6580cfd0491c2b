package main

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// Names come from the configuration. With --url they come from the server, as far as its API
// returns them.

// named offers the names of the configuration here, or with --url the names there at the
// server.
func (a *app) named(c *cobra.Command, here func(*config.Config) []cobra.Completion, there func(context.Context, *remote.Client) []cobra.Completion) (words []cobra.Completion) {
	ctx, cancel := context.WithTimeout(c.Context(), offerTimeout)
	defer cancel()
	if !a.remote() {
		// Names from the configuration need no database, so completion works before the first
		// start.
		cfg, err := a.loadConfig(ctx)
		if err != nil {
			return nil
		}
		return here(cfg)
	}
	asked, err := a.client(ctx)
	if err != nil {
		return nil
	}
	defer asked.Close()
	return there(ctx, asked)
}

// sourceNames offers the configured sources, or the sources of a server's recent events.
func (a *app) sourceNames(c *cobra.Command) []cobra.Completion {
	return a.named(c, func(cfg *config.Config) []cobra.Completion {
		return wire.List(cfg.SortedSources(), func(s config.Source) cobra.Completion { return cobra.CompletionWithDesc(s.Name, s.Type) })
	}, func(ctx context.Context, asked *remote.Client) []cobra.Completion {
		return recent(ctx, asked.Events(), func(e core.Event) string { return e.Source })
	})
}

// recentTypes offers the types of recent events.
func (a *app) recentTypes(c *cobra.Command) []cobra.Completion {
	return a.offer(c, func(ctx context.Context, op *operator) []cobra.Completion {
		return recent(ctx, op.events, func(e core.Event) string { return e.Type })
	})
}

// lately is the number of recent events in which completion looks for sources and types.
const lately = 200

// recent returns the distinct values of recent events, sorted.
func recent(ctx context.Context, events eventService, value func(core.Event) string) []cobra.Completion {
	// The store has no list of types, and a query for all distinct types would read the whole
	// table. The last 200 events show nearly all types in use.
	page, _ := events.List(ctx, core.EventFilter{Limit: lately})
	seen := map[string]bool{}
	for _, e := range page.Items {
		seen[terminal.Visible(value(e))] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// cronNames offers the sources of type cron, with their schedules.
func (a *app) cronNames(c *cobra.Command) []cobra.Completion {
	ctx, cancel := context.WithTimeout(c.Context(), offerTimeout)
	defer cancel()
	t, _ := a.readTopology(ctx)
	var words []cobra.Completion
	for _, s := range t.Sources {
		if s.Type == "cron" {
			words = append(words, cobra.CompletionWithDesc(terminal.Visible(s.Name), terminal.Visible(s.Schedule+" "+s.Timezone)))
		}
	}
	return words
}

// handlerNames offers the handlers, with the source of each if the configuration is here.
func (a *app) handlerNames(c *cobra.Command) []cobra.Completion {
	return a.named(c, func(cfg *config.Config) []cobra.Completion {
		return wire.List(cfg.SortedHandlers(), func(h config.Handler) cobra.Completion { return ofSource(h.Name, h.Source) })
	}, func(ctx context.Context, asked *remote.Client) []cobra.Completion {
		stats, _ := asked.Glance(ctx)
		return wire.List(stats.Handlers, func(h wire.HandlerStats) cobra.Completion { return terminal.Visible(h.Name) })
	})
}

// queueNames offers the queues, each with its source.
func (a *app) queueNames(c *cobra.Command) []cobra.Completion {
	return a.named(c, func(cfg *config.Config) []cobra.Completion {
		return wire.List(cfg.SortedQueues(), func(q config.Queue) cobra.Completion { return ofSource(q.Name, q.Source) })
	}, func(ctx context.Context, asked *remote.Client) []cobra.Completion {
		queues, _ := asked.Queues().List(ctx)
		return wire.List(queues, func(q manage.Listed) cobra.Completion { return ofSource(q.Name, q.Source) })
	})
}

// workflowNames offers the workflows, with the source of each if the configuration is here.
func (a *app) workflowNames(c *cobra.Command) []cobra.Completion {
	return a.named(c, func(cfg *config.Config) []cobra.Completion {
		return wire.List(cfg.SortedWorkflows(), func(w config.Workflow) cobra.Completion { return ofSource(w.Name, w.Source) })
	}, func(ctx context.Context, asked *remote.Client) []cobra.Completion {
		stats, _ := asked.Glance(ctx)
		return wire.List(stats.Workflows, func(w wire.WorkflowStats) cobra.Completion { return terminal.Visible(w.Name) })
	})
}

// ofSource returns the name of a consumer, described by its source.
func ofSource(name, source string) cobra.Completion {
	return cobra.CompletionWithDesc(terminal.Visible(name), terminal.Visible("source "+source))
}

// consumerNames offers the names of all consumers, as the flag --handler takes them.
func (a *app) consumerNames(c *cobra.Command) []cobra.Completion {
	// The order follows the help text of --handler: names of handlers alone, then the
	// prefixed kinds.
	words := a.handlerNames(c)
	for _, q := range a.queueNames(c) {
		words = append(words, string(core.QueueLane(q)))
	}
	for _, w := range a.workflowNames(c) {
		words = append(words, string(core.WorkflowLane(w)))
	}
	return append(words, a.placeNames(c)...)
}

// holdable offers the names that can be held. The sources are last, since they are held less often.
func (a *app) holdable(c *cobra.Command) []cobra.Completion {
	words := slices.DeleteFunc(a.consumerNames(c), func(w cobra.Completion) bool { return wire.LaneOf(w).Alert() })
	for _, s := range a.heldSourceNames(c) {
		words = append(words, string(core.SourceLane(s)))
	}
	return words
}

// heldSourceNames offers the sources that can be held: all that are configured, here or at the
// server.
func (a *app) heldSourceNames(c *cobra.Command) []cobra.Completion {
	return a.named(c, func(cfg *config.Config) []cobra.Completion {
		return wire.List(cfg.SortedSources(), func(s config.Source) cobra.Completion { return cobra.CompletionWithDesc(s.Name, s.Type) })
	}, func(ctx context.Context, asked *remote.Client) []cobra.Completion {
		stats, _ := asked.Glance(ctx)
		return wire.List(stats.Sources, func(s wire.SourceStats) cobra.Completion { return terminal.Visible(s.Name) })
	})
}

// linedNames offers the names of handlers and queues, as "gateway lines" takes them. A key has no
// completion.
func (a *app) linedNames(c *cobra.Command) []cobra.Completion {
	words := a.handlerNames(c)
	for _, q := range a.queueNames(c) {
		words = append(words, string(core.QueueLane(q)))
	}
	return words
}

// heldNames offers the names that are held.
func (a *app) heldNames(c *cobra.Command) []cobra.Completion {
	return a.offer(c, func(ctx context.Context, op *operator) []cobra.Completion {
		all, _ := op.holds.List(ctx)
		return wire.List(all, func(h core.Hold) cobra.Completion { return terminal.Visible(h.Lane.Consumer()) })
	})
}

// placeNames offers the names of the places for alerts, as lists of jobs show them.
func (a *app) placeNames(c *cobra.Command) []cobra.Completion {
	return a.named(c, func(cfg *config.Config) (words []cobra.Completion) {
		for i := range cfg.Alerts {
			words = append(words, string(core.AlertLane(strconv.Itoa(i+1))))
		}
		return words
	}, func(ctx context.Context, asked *remote.Client) []cobra.Completion {
		stats, _ := asked.Glance(ctx)
		return wire.List(stats.Alerts, func(h wire.HandlerStats) cobra.Completion { return terminal.Visible(string(core.AlertLane(h.Name))) })
	})
}
