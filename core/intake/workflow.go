package intake

import (
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// maxMisfits is how many lines the refusal of a payload has at most, as that of a
// schema.
const maxMisfits = 10

// fits checks the params of the workflows among those who want an event.
func fits(wanted []target, d *expr.Document) error {
	var misfits []string
	for _, t := range wanted {
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

// lacks is what a payload lacks for one who wants the event.
func (t target) lacks(d *expr.Document) []string {
	if t.workflow == nil || t.workflow.Check == nil {
		return nil
	}
	return t.workflow.Check(d)
}

// run is a new run, whose first step has the id of its job.
func (w *Workflow) run(id, job core.ID) core.NewRun {
	return core.NewRun{ID: id, Workflow: w.Name, Definition: w.Definition, StepID: job, Step: w.Step, StepType: w.StepType, Timeout: w.Timeout}
}
