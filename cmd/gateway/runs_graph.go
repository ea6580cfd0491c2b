package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// runGraph prints the graph of the definition that a run follows, as a table of its steps.
func (a *app) runGraph(ctx context.Context, runs runService, id core.ID) error {
	g, err := runs.Graph(ctx, id)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.PrintJSON(wire.GraphOf(g))
	}
	a.printRun(g.Run)
	a.Printf("")
	if g.Undrawn != "" {
		a.Notef("there is no graph, only the steps that the run has come to: %s", terminal.Visible(g.Undrawn))
	}
	if g.Changed {
		a.Notef("the configuration has another definition of %s by now; this run follows its own", terminal.Visible(g.Workflow))
	}
	a.PrintGrid(a.graphGrid(g))
	return nil
}

// graphGrid returns the table of the steps of a graph. Steps inside of a parallel or map step are
// indented.
func (a *app) graphGrid(g manage.Graph) terminal.Grid {
	table := terminal.Grid{Heading: []string{"STEP", "TYPE", "STATUS", "ATTEMPT", "LEADS TO", "ERROR"}}
	names, depth := map[string]string{}, map[string]int{}
	for _, s := range g.Steps {
		names[s.Key] = s.Name
		if s.Within != "" {
			depth[s.Key] = depth[s.Within] + 1
		}
	}
	for _, s := range g.Steps {
		name := s.Name
		if s.Branch != "" && s.Branch != s.Name {
			name = s.Branch + ": " + name
		}
		status, attempt := "-", "-"
		if s.Status != "" {
			status, attempt = a.paintStatus(string(s.Status)), strconv.Itoa(s.Attempt)
		}
		if total := executionsOf(s); total > 1 {
			status += " " + strconv.Itoa(s.Counts[s.Status]) + " of " + strconv.Itoa(total)
		}
		table.Add(strings.Repeat("  ", depth[s.Key])+terminal.Visible(name), terminal.Visible(s.Type), status, attempt,
			terminal.OrDash(terminal.Visible(leadsTo(g, s, names))), terminal.OrDash(terminal.Clip(terminal.Visible(s.Error), shownError)))
	}
	return table
}

// executionsOf returns how many executions of a step count in its status.
func executionsOf(s manage.GraphStep) (n int) {
	for _, of := range s.Counts {
		n += of
	}
	return n
}

// leadsTo says to which steps a step leads, and when.
func leadsTo(g manage.Graph, s manage.GraphStep, names map[string]string) string {
	var all []string
	for _, w := range g.Ways {
		switch {
		case w.From != s.Key:
		case w.Kind == core.WayNext:
			all = append(all, names[w.To])
		default:
			all = append(all, names[w.To]+" ("+w.Label+")")
		}
	}
	return strings.Join(all, ", ")
}
