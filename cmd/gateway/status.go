package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newStatus makes "gateway status": one row for each consumer, with its counts of jobs and the
// reason that holds them up. It asks GET /api/stats with --url, and the same statistics on the
// database otherwise. The exit code says nothing about the state: a script that wants to know
// reads --json, or runs "gateway doctor".
//
// It differs from doctor: status shows the work and costs a few indexed counts, doctor looks
// for faults and calls receivers.
func newStatus(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "status",
		Short: "Show how each handler, queue and workflow stands",
		Long: `Show for each handler, queue, workflow and place for alerts how many jobs it has of each
status, for how long its oldest due job has been due, and the hindrance of its jobs: a
hold, an open circuit breaker, a rate limit or stopped lines. Numbers end at 100000. A
source has a row while it is held.

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway status
  gateway status --json | jq -r '.handlers[] | select(.circuit_breaker != "closed") | .name'`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.status(c.Context()) },
	})
}

// status prints the stats in the form of the API with --json, so that a script works with both.
func (a *app) status(ctx context.Context) error {
	return a.ask(ctx, func(op *operator) error {
		stats, err := op.stats(ctx)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(stats)
		}
		g := statusGrid(stats)
		addHeldSources(&g, stats.Sources)
		if len(g.Rows) == 0 {
			a.Notef("no handler, queue or workflow is configured")
			return nil
		}
		a.PrintGrid(g)
		return nil
	})
}

// waitingColumn is the place of the column of the jobs that wait in lines, behind the scheduled
// ones.
const waitingColumn = 3

// statusGrid returns the table of the stats. Consumers that are no handlers have their kind
// before the name, in the form in which other commands take it with --handler.
func statusGrid(s wire.Stats) terminal.Grid {
	// Most gateways have no lines, and the table is wide: so the column is there only if a job waits
	// in a line.
	lined := s.Jobs.Waiting > 0
	g := terminal.Grid{Heading: []string{"CONSUMER", "AVAILABLE", "SCHEDULED", "RUNNING", "RETRYABLE", "DEAD", "OLDEST DUE", "WAITS FOR"}}
	if lined {
		g.Heading = slices.Insert(g.Heading, waitingColumn, "WAITING")
	}
	// A consumer without a due job has a dash, not 0: 0 s would mean that a job became due now.
	add := func(prefix string, c wire.WorkflowStats, held string) {
		oldest := "-"
		if c.OldestDue != nil {
			oldest = terminal.Span(time.Duration(*c.OldestDue * float64(time.Second)))
		}
		row := []string{terminal.Visible(prefix + c.Name), strconv.Itoa(c.Available), strconv.Itoa(c.Scheduled), strconv.Itoa(c.Running), strconv.Itoa(c.Retryable), strconv.Itoa(c.Dead), oldest, terminal.OrDash(held)}
		if lined {
			row = slices.Insert(row, waitingColumn, strconv.Itoa(c.Waiting))
		}
		g.Add(row...)
	}
	for _, h := range s.Handlers {
		add("", h.WorkflowStats, heldUp(h))
	}
	for _, q := range s.Queues {
		add("queue/", q.WorkflowStats, held(q.WorkflowStats))
	}
	for _, w := range s.Workflows {
		add("workflow/", w, held(w))
	}
	for _, h := range s.Alerts {
		// The number alone does not tell which receiver an alert goes to.
		h.Name = atHost(h.Name, h.Host)
		add("alert/", h.WorkflowStats, heldUp(h))
	}
	return g
}

// addHeldSources adds a row for each source that is held. Its jobs are counted in the rows of their
// consumers.
func addHeldSources(g *terminal.Grid, sources []wire.SourceStats) {
	for _, s := range sources {
		why := held(wire.WorkflowStats{HeldSince: s.HeldSince, HeldUntil: s.HeldUntil})
		if why == "" {
			continue
		}
		row := make([]string, len(g.Heading))
		for i := range row {
			row[i] = "-"
		}
		row[0], row[len(row)-1] = terminal.Visible(core.SourceLane(s.Name).Consumer()), why
		g.Add(row...)
	}
}

// held returns the hold of a consumer; "" if it is not held.
func held(c wire.WorkflowStats) string {
	switch {
	case c.HeldSince.IsZero() && c.Stopped > 0:
		return stoppedText(c.Stopped)
	case c.HeldSince.IsZero():
		return ""
	case c.HeldUntil.IsZero():
		return "release; held since " + core.FormatTime(c.HeldSince.Time)
	}
	return "hold until " + core.FormatTime(c.HeldUntil.Time)
}

// stoppedText says how many lines are stopped.
func stoppedText(n int) string { return terminal.Count(n, "stopped line") }

// heldUp returns why all jobs of a handler wait; "" if they do not.
func heldUp(h wire.HandlerStats) string {
	switch {
	case !h.HeldSince.IsZero():
		return held(h.WorkflowStats)
	case h.Breaker == wire.BreakerClosed && h.RateUntil.IsZero():
		return held(h.WorkflowStats)
	case h.Breaker == wire.BreakerClosed:
		return "rate limit until " + core.FormatTime(h.RateUntil.Time)
	case h.BreakerUntil.IsZero(): // an older server does not return it
		return "circuit breaker"
	}
	return fmt.Sprintf("circuit breaker until %s", core.FormatTime(h.BreakerUntil.Time))
}
