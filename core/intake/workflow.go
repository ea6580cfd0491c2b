package intake

import (
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// maxMisfits is the maximum of lines in the refusal of a payload, as for a schema.
const maxMisfits = 10

// fits checks the params of the workflows that want an event.
// All faults are collected, so that a developer corrects the request once. One workflow
// that cannot run refuses the event for all consumers: the sender is there to correct it.
func fits(wanted []target, d *expr.Document) error {
	var misfits []string
	for _, t := range wanted {
		// A workflow without Check needs the JSON view as well: its steps read the
		// payload through it.
		if t.workflow != nil && d.Err() != nil {
			return unreadable(t.lane, d.Err())
		}
		for _, line := range t.lacks(d) {
			misfits = append(misfits, "workflow "+t.workflow.Name+": "+line)
		}
	}
	if len(misfits) == 0 {
		return nil
	}
	return core.Refuse(core.Invalid, "%s", strings.Join(misfits[:min(len(misfits), maxMisfits)], "\n"))
}

// lacks returns the faults of a payload for a workflow that wants the event.
func (t target) lacks(d *expr.Document) []string {
	if t.workflow == nil || t.workflow.Check == nil {
		return nil
	}
	return t.workflow.Check(d)
}

// run returns a new run. Its first step has the id of its job.
func (w *Workflow) run(id, job core.ID) core.NewRun {
	return core.NewRun{ID: id, Workflow: w.Name, Definition: w.Definition, StepID: job, Step: w.Step, StepType: w.StepType, Timeout: w.Timeout}
}
