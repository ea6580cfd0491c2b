package main

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/spf13/cobra"
)

// A completer offers words for the word that the user types. Without a configuration or
// database it offers none: a shell cannot show errors there.
type completer func(*cobra.Command) []cobra.Completion

// complete offers words for the value of a flag.
func (a *app) complete(c *cobra.Command, flag string, words completer) {
	err := c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words(c), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist
	}
}

// completeArgument offers words for the only argument of a command.
func (a *app) completeArgument(words completer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(c), cobra.ShellCompDirectiveNoFileComp
	}
}

// statusNames offers the statuses of jobs.
func statusNames(*cobra.Command) (words []cobra.Completion) {
	for _, s := range core.Statuses() {
		words = append(words, string(s))
	}
	return words
}

// runStatusNames offers the statuses of runs.
func runStatusNames(*cobra.Command) (words []cobra.Completion) {
	for _, s := range core.RunStatuses() {
		words = append(words, string(s))
	}
	return words
}

// offered is the largest number of ids that completion offers.
const offered = 20

// offer gets words from an operator, within offerTimeout. It offers none if there is no
// operator.
func (a *app) offer(c *cobra.Command, words func(ctx context.Context, op *operator) []cobra.Completion) (offer []cobra.Completion) {
	// A server or a database that does not answer must not hold the shell.
	ctx, cancel := context.WithTimeout(c.Context(), offerTimeout)
	defer cancel()
	// Warnings would be mixed into the line that the user types.
	a.completing = true
	_ = a.ask(ctx, func(op *operator) error {
		offer = words(ctx, op)
		return nil
	})
	return offer
}

// offerTimeout bounds the wait after the user has pressed the completion key.
const offerTimeout = 3 * time.Second

// deadMessages offers the dead messages of the queue that the command line names.
func (a *app) deadMessages(c *cobra.Command) []cobra.Completion {
	return a.offer(c, func(ctx context.Context, op *operator) (words []cobra.Completion) {
		page, _ := op.queues.DeadLetters(ctx, c.Flags().Arg(0), "", offered)
		for _, m := range page.Items {
			words = append(words, cobra.CompletionWithDesc(string(m.ID), terminal.Visible(m.Event.Type+" "+m.LastError)))
		}
		return words
	})
}

// recentEvents offers the ids of the newest events. Ids alone mean little, so each has its
// source and type beside it.
func (a *app) recentEvents(c *cobra.Command) []cobra.Completion {
	return a.offer(c, func(ctx context.Context, op *operator) (words []cobra.Completion) {
		page, _ := op.events.List(ctx, core.EventFilter{Limit: offered})
		for _, e := range page.Items {
			words = append(words, cobra.CompletionWithDesc(string(e.ID), terminal.Visible(e.Source+" "+e.Type)))
		}
		return words
	})
}

// deadJobs offers the ids of the newest dead jobs of handlers and queues.
func (a *app) deadJobs(c *cobra.Command) []cobra.Completion {
	return a.offer(c, func(ctx context.Context, op *operator) (words []cobra.Completion) {
		page, _ := op.jobs.List(ctx, core.JobFilter{Status: core.Dead, Limit: offered})
		for _, j := range page.Items {
			if j.Lane.Workflow() == "" { // a workflow's run is redriven instead
				words = append(words, cobra.CompletionWithDesc(string(j.ID), terminal.Visible(consumerText(j)+" "+j.LastError)))
			}
		}
		return words
	})
}

// recentOperations offers the newest operations.
func (a *app) recentOperations(c *cobra.Command) []cobra.Completion {
	return a.offer(c, func(ctx context.Context, op *operator) (words []cobra.Completion) {
		page, _ := op.operations.List(ctx, "", offered)
		for _, o := range page.Items {
			words = append(words, cobra.CompletionWithDesc(string(o.ID), terminal.Visible(string(o.Action)+" "+string(o.State)+" "+filterText(o))))
		}
		return words
	})
}

// runsIn offers the newest runs in the given statuses, or in any status if there are none.
func (a *app) runsIn(statuses ...core.RunStatus) completer {
	return func(c *cobra.Command) []cobra.Completion {
		return a.offer(c, func(ctx context.Context, op *operator) (words []cobra.Completion) {
			for _, status := range statuses {
				page, _ := op.runs.List(ctx, core.RunFilter{Status: status, Limit: offered})
				for _, r := range page.Items {
					words = append(words, cobra.CompletionWithDesc(string(r.ID), terminal.Visible(r.Workflow+" "+string(r.Status)+" "+r.Error)))
				}
			}
			return words
		})
	}
}
