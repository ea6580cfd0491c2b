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

// Runs are the workflow runs as operators see them. The command line, which works
// beside a running gateway, asks for them too.
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

// compiler makes definitions of what the store keeps of them, with the variables that
// this process has.
func compiler(c *config.Config) func(core.Definition) (*workflow.Definition, error) {
	return func(d core.Definition) (*workflow.Definition, error) {
		w, err := config.ParseDefinition(d, c.Lookup)
		if err != nil {
			return nil, err
		}
		return workflow.Compile(w)
	}
}

// starts are the configured workflows as those who get the events that start them.
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

// stepping is how the worker works for the lane of a workflow.
func stepping(c *config.Config, lane core.Lane, steps worker.Steps) worker.Target {
	timeout := c.Delivery.Timeout.Duration
	return worker.Target{Lane: lane, Steps: steps, Timeout: timeout, Hold: c.Worker.Lease(timeout)}
}

// steppings are the configured workflows as the worker knows them.
func steppings(c *config.Config, steps worker.Steps) []worker.Target {
	var all []worker.Target
	for _, w := range c.SortedWorkflows() {
		all = append(all, stepping(c, core.WorkflowLane(w.Name), steps))
	}
	return all
}

// adopter works for the lanes of workflows that are not configured any more: their
// runs follow what was stored with them.
func adopter(c *config.Config, steps worker.Steps) func(core.Lane) (worker.Target, bool) {
	return func(l core.Lane) (worker.Target, bool) {
		return stepping(c, l, steps), l.Workflow() != ""
	}
}
