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
	quiet := quietRunner(c, store, clock)
	runs := manage.NewRuns(store, quiet)
	runs.Names, runs.Current, runs.Draw = names(c), c.Definition, quiet.Diagram
	return runs
}

// quietRunner returns the runner of the command line. It moves runs without calling anything: it
// needs neither a client nor facts. A running gateway finds the jobs that the change makes due at its
// next look.
func quietRunner(c *config.Config, store core.Store, clock core.Clock) *runner.Runner {
	return runner.New(runner.Deps{
		Store:   store,
		Clock:   clock,
		IDs:     core.NewIDs(clock),
		Bell:    &core.Bell{},
		Observe: func(core.Fact) {},
		Compile: compiler(c),
	})
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

// workflowConsumers returns the configured workflows as consumers of the events that start them.
func workflowConsumers(c *config.Config) ([]intake.Consumer, error) {
	var all []intake.Consumer
	for _, w := range c.SortedWorkflows() {
		d, err := workflow.Compile(w)
		if err != nil {
			return nil, fmt.Errorf("workflows.%s: %w", w.Name, err)
		}
		all = append(all, intake.Consumer{
			Lane:   core.WorkflowLane(w.Name),
			Source: w.Source,
			Events: w.Events,
			// The step decides when its attempts are used up, not the job.
			MaxAttempts: core.Unlimited,
			Workflow: &intake.Workflow{
				Name: w.Name,
				// The definition is stored with the run, which follows it to its end.
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

// newRunner makes the runner that the worker, callbacks and operators of this process share.
func (g *Gateway) newRunner(c *config.Config, bell *core.Bell, obituary func(core.Run, core.Step, core.Event) *core.Arrival) (*runner.Runner, error) {
	caller, err := g.client.Steps(reveal(c.Delivery.SigningSecret), core.Recording(c.Delivery.Record))
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

// workflowTarget returns the worker's target for the lane of a workflow.
func workflowTarget(c *config.Config, lane core.Lane, steps worker.Steps) worker.Target {
	// Steps bound their calls themselves. The lease is long enough for a call with the default
	// timeout.
	timeout := c.Delivery.Timeout.Duration
	return worker.Target{Lane: lane, Steps: steps, Timeout: timeout, Hold: c.Worker.Lease(timeout)}
}

// workflowTargets returns the configured workflows as targets of the worker.
func workflowTargets(c *config.Config, steps worker.Steps) []worker.Target {
	var all []worker.Target
	for _, w := range c.SortedWorkflows() {
		all = append(all, workflowTarget(c, core.WorkflowLane(w.Name), steps))
	}
	return all
}

// adopter returns the targets of removed workflows: their runs follow their stored
// definitions. It also returns the target of operations. That lane is adopted when it gets a job,
// since the worker keeps room in its slots for each lane that it knows.
func adopter(c *config.Config, steps worker.Steps, operations worker.Target) func(core.Lane) (worker.Target, bool) {
	return func(l core.Lane) (worker.Target, bool) {
		if l.Operation() {
			return operations, true
		}
		return workflowTarget(c, l, steps), l.Workflow() != ""
	}
}
