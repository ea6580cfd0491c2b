package gateway

import (
	"fmt"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/runner"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/core/workflow"
)

// Runs returns the service of workflow runs for operators. The command line, which works
// beside a running gateway, uses it too.
func Runs(c *config.Config, store core.Store, clock core.Clock) *manage.Runs {
	mover := runner.New(runner.Deps{
		Store:   store,
		Clock:   clock,
		IDs:     core.NewIDs(clock),
		Bell:    &core.Bell{},
		Observe: func(core.Fact) {},
		Compile: compiler(c),
	})
	runs := manage.NewRuns(store, mover)
	runs.Names, runs.Current = names(c), c.Definition
	return runs
}

// compiler returns a function that compiles stored definitions, with the variables of this
// process. The definitions of the present configuration, which most runs follow, are parsed
// already.
func compiler(c *config.Config) func(core.Definition) (*workflow.Definition, error) {
	return func(d core.Definition) (*workflow.Definition, error) {
		for _, w := range c.Workflows {
			if d.Hash != "" && c.Definition(w.Name).Hash == d.Hash {
				return workflow.Compile(w)
			}
		}
		w, err := config.ParseDefinition(d, c.Lookup)
		if err != nil {
			return nil, err
		}
		return workflow.Compile(w)
	}
}

// starts returns the configured workflows as consumers of the events that start them.
func starts(c *config.Config) ([]intake.Consumer, error) {
	var all []intake.Consumer
	for _, w := range c.SortedWorkflows() {
		d, err := workflow.Compile(w)
		if err != nil {
			return nil, fmt.Errorf("workflows.%s: %w", w.Name, err)
		}
		all = append(all, intake.Consumer{
			Lane:        core.WorkflowLane(w.Name),
			Source:      w.Source,
			Events:      w.Events,
			MaxAttempts: core.Unlimited,
			Workflow: &intake.Workflow{
				Name:       w.Name,
				Definition: c.Definition(w.Name),
				Step:       d.First(),
				StepType:   w.Steps[0].Type,
				Timeout:    d.Timeout(),
				Check:      d.Check,
			},
		})
	}
	return all, nil
}

func (g *Gateway) newRunner(c *config.Config, bell *core.Bell, obituary func(core.Run, core.Step, core.Event) *core.Arrival) (*runner.Runner, error) {
	caller, err := g.client.Steps(reveal(c.Delivery.SigningSecret))
	if err != nil {
		return nil, fmt.Errorf("delivery.signing_secret: %w", err)
	}
	return runner.New(runner.Deps{
		Store:    g.Store,
		Clock:    g.Clock,
		IDs:      g.ids(),
		Bell:     bell,
		Observe:  g.observe,
		Caller:   caller,
		Timeout:  c.Delivery.Timeout.Duration,
		Compile:  compiler(c),
		Address:  c.Address(),
		Obituary: obituary,
	}), nil
}

// stepping returns the worker's target for the lane of a workflow.
func stepping(c *config.Config, lane core.Lane, steps worker.Steps) worker.Target {
	timeout := c.Delivery.Timeout.Duration
	return worker.Target{Lane: lane, Steps: steps, Timeout: timeout, Hold: c.Worker.Lease(timeout)}
}

// steppings returns the configured workflows as targets of the worker.
func steppings(c *config.Config, steps worker.Steps) []worker.Target {
	var all []worker.Target
	for _, w := range c.SortedWorkflows() {
		all = append(all, stepping(c, core.WorkflowLane(w.Name), steps))
	}
	return all
}

// adopter returns the targets of removed workflows: their runs follow their stored
// definitions.
func adopter(c *config.Config, steps worker.Steps) func(core.Lane) (worker.Target, bool) {
	return func(l core.Lane) (worker.Target, bool) {
		return stepping(c, l, steps), l.Workflow() != ""
	}
}
