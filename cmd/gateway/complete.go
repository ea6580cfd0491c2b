package main

import (
	"github.com/eventgateway/gateway/core"
	"github.com/spf13/cobra"
)

// A completer offers words for what is being typed. One that cannot, because
// there is no configuration or database yet, offers none: there is nobody to
// tell.
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

// completeArgument offers words for the one argument of a command.
func (a *app) completeArgument(words completer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(c), cobra.ShellCompDirectiveNoFileComp
	}
}

func statusNames(*cobra.Command) (words []cobra.Completion) {
	for _, s := range core.Statuses() {
		words = append(words, string(s))
	}
	return words
}

func (a *app) sourceNames(*cobra.Command) (words []cobra.Completion) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil
	}
	for _, s := range cfg.SortedSources() {
		words = append(words, cobra.CompletionWithDesc(s.Name, s.Type))
	}
	return words
}

func (a *app) handlerNames(*cobra.Command) (words []cobra.Completion) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil
	}
	for _, h := range cfg.SortedHandlers() {
		words = append(words, cobra.CompletionWithDesc(h.Name, "source "+h.Source))
	}
	return words
}

func (a *app) queueNames(*cobra.Command) (words []cobra.Completion) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil
	}
	for _, q := range cfg.SortedQueues() {
		words = append(words, cobra.CompletionWithDesc(q.Name, "source "+q.Source))
	}
	return words
}

func (a *app) workflowNames(*cobra.Command) (words []cobra.Completion) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil
	}
	for _, w := range cfg.SortedWorkflows() {
		words = append(words, cobra.CompletionWithDesc(w.Name, "source "+w.Source))
	}
	return words
}

func runStatusNames(*cobra.Command) (words []cobra.Completion) {
	for _, s := range core.RunStatuses() {
		words = append(words, string(s))
	}
	return words
}

// consumerNames are those of whatever has jobs.
func (a *app) consumerNames(c *cobra.Command) []cobra.Completion {
	words := a.handlerNames(c)
	for _, q := range a.queueNames(c) {
		words = append(words, string(core.QueueLane(q)))
	}
	for _, w := range a.workflowNames(c) {
		words = append(words, string(core.WorkflowLane(w)))
	}
	return words
}

// deadMessages are those of the queue that the command line names.
func (a *app) deadMessages(c *cobra.Command) (words []cobra.Completion) {
	q, err := a.openQueue(c.Context(), c.Flags().Arg(0))
	if err != nil {
		return nil
	}
	defer q.close()
	page, _ := q.service.DeadLetters(c.Context(), q.Name, "", offered)
	for _, m := range page.Items {
		words = append(words, cobra.CompletionWithDesc(string(m.ID), visible(m.Event.Type+" "+m.LastError)))
	}
	return words
}

// offered is how many ids are worth reading through.
const offered = 20

func (a *app) recentEvents(c *cobra.Command) (words []cobra.Completion) {
	s, err := a.openExisting(c.Context())
	if err != nil {
		return nil
	}
	defer s.Close()
	page, _ := s.Events(c.Context(), core.EventFilter{Limit: offered})
	for _, e := range page.Items {
		words = append(words, cobra.CompletionWithDesc(string(e.ID), visible(e.Source+" "+e.Type)))
	}
	return words
}

func (a *app) deadJobs(c *cobra.Command) (words []cobra.Completion) {
	s, err := a.openExisting(c.Context())
	if err != nil {
		return nil
	}
	defer s.Close()
	page, _ := s.Jobs(c.Context(), core.JobFilter{Status: core.Dead, Limit: offered})
	for _, j := range page.Items {
		if j.Lane.Workflow() == "" { // whose run is redriven instead
			words = append(words, cobra.CompletionWithDesc(string(j.ID), visible(consumer(j)+" "+j.LastError)))
		}
	}
	return words
}

// runsIn offers the newest runs in these statuses; in any, if it is empty.
func (a *app) runsIn(statuses ...core.RunStatus) completer {
	return func(c *cobra.Command) (words []cobra.Completion) {
		s, err := a.openExisting(c.Context())
		if err != nil {
			return nil
		}
		defer s.Close()
		for _, status := range statuses {
			page, _ := s.Runs(c.Context(), core.RunFilter{Status: status, Limit: offered})
			for _, r := range page.Items {
				words = append(words, cobra.CompletionWithDesc(string(r.ID), visible(r.Workflow+" "+string(r.Status)+" "+r.Error)))
			}
		}
		return words
	}
}
