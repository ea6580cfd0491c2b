package metrics

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

// workflows counts the statuses that runs and steps reach.
type workflows struct {
	runs      known[words]
	steps     known[known[words]] // of each workflow, by the step's name
	callbacks words
}

var stepStatuses = []core.StepStatus{
	core.StepReady, core.StepRunning, core.StepWaiting, core.StepSucceeded, core.StepFailed, core.StepCanceled, core.StepSkipped,
}

func newWorkflows(f factory, n telemetry.Names) workflows {
	runs := f.counter("workflow_runs_total", "Times that runs of a workflow came to a status; pending counts redriven runs.", "workflow", "status")
	steps := f.counter("workflow_steps_total", "Times that steps of a workflow came to a status.", "workflow", "step", "status")
	callbacks := f.counter("callbacks_total", "Callbacks, by whether they were received, were repeated after that, or had a token that is not good.", "result")
	// The order does not matter, since the exposition is sorted.
	names := make([]string, 0, len(n.Workflows))
	for name := range n.Workflows {
		names = append(names, name)
	}
	return workflows{
		runs: knowing(names, func(label string) words { return wording(runs, core.RunStatuses(), label) }),
		steps: knowing(names, func(workflow string) known[words] {
			return knowing(n.Workflows[workflow], func(step string) words { return wording(steps, stepStatuses, workflow, step) })
		}),
		callbacks: wording(callbacks, []core.Callback{core.CallbackReceived, core.CallbackRepeated, core.CallbackUnknown}),
	}
}

func (w *workflows) runMoved(f core.RunMoved) {
	w.runs.of(f.Run.Workflow).count(string(f.Run.Status))
}

// stepMoved counts the new status of a step. A run follows the definition that it began with,
// so its step may no longer be configured. Such a step counts as [telemetry.Other].
func (w *workflows) stepMoved(f core.StepMoved) {
	w.steps.of(f.Run.Workflow).of(f.Step.Name).count(string(f.Step.Status))
}

func (w *workflows) calledIn(f core.CalledIn) {
	w.callbacks.count(string(f.Result))
}
