package store

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// The columns of runs, steps and history entries. See columns.go.
const (
	runColumns = `id, ` + runRest
	runRest    = `workflow, event_id, definition, status, epoch, seq, step, output, error, deadline_at, created_at, started_at, finished_at, written, writers`

	// A run without its output, for listings.
	runSummary = `id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at, created_at, started_at, finished_at, written, writers`
)

// run reads runColumns or runSummary.
func (r *rowReader) run() core.Run {
	id := r.id()
	run := r.runRest()
	run.ID = id
	return run
}

// runRest reads runRest: a run whose id the caller knows.
func (r *rowReader) runRest() core.Run {
	return core.Run{
		Workflow:   r.text(),
		EventID:    r.id(),
		Definition: r.text(),
		Status:     core.RunStatus(r.text()),
		Epoch:      r.number(),
		Seq:        r.number(),
		Step:       r.text(),
		Output:     r.bytes(),
		Error:      r.text(),
		DeadlineAt: r.time(),
		CreatedAt:  r.time(),
		StartedAt:  r.time(),
		FinishedAt: r.time(),
		Written:    r.number(),
		Writers:    r.text(),
	}
}

const (
	stepColumns = `id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output, error, carry, fan, leaf_of, started_at, finished_at, state_in, output_in`
	stepWidth   = 20

	// The positions in stepColumns of a step's texts, and of the names of texts in step_texts.
	stateAt, outputAt, stateInAt, outputInAt = 10, 11, 18, 19
)

// step reads stepColumns. A text in step_texts is nil unless the query read it.
func (r *rowReader) step() core.Step {
	st := core.Step{
		ID:         r.id(),
		RunID:      r.id(),
		Epoch:      r.number(),
		ParentID:   r.id(),
		Branch:     r.text(),
		Path:       r.text(),
		Name:       r.text(),
		Type:       r.text(),
		Status:     core.StepStatus(r.text()),
		Attempt:    r.number(),
		State:      r.bytes(),
		Output:     r.bytes(),
		Error:      r.text(),
		Carry:      r.text(),
		Fan:        decodeFan(r.text()),
		Last:       r.value() != nil,
		StartedAt:  r.time(),
		FinishedAt: r.time(),
		StateName:  r.text(),
		OutputName: r.text(),
	}
	if st.Output != nil && len(st.Output) == 0 { // the output is the state, see stepTextRows.output
		st.Output, st.OutputName = st.State, st.StateName
	}
	return st
}

// stepInFull are the columns of a step with its texts, also those in step_texts. The CASE lets
// the database read step_texts only for a step that has a name for a text, and few steps have
// one. The alternative was to join step_texts twice. PostgreSQL plans the order of at most
// eight tables; with more it began with all steps.
var stepInFull = strings.NewReplacer(
	"steps.state AS", "COALESCE(steps.state, "+textIn("state_in")+") AS",
	"steps.output AS", "COALESCE(steps.output, "+textIn("output_in")+") AS").Replace(qualified("steps", stepColumns))

// textIn is the text that a column of steps names.
func textIn(name string) string {
	return "CASE WHEN steps." + name + " IS NOT NULL THEN (SELECT step_texts.body FROM step_texts{use PRIMARY} WHERE step_texts.run_id = steps.run_id AND step_texts.name = steps." + name + ") END"
}

// stepAndRun are a step and its run. Together with the columns of steps above they are 100, and
// a result of D1 has at most 100 columns.
var stepAndRun = stepInFull + `, ` + qualified("runs", runRest)

// situationWidth is how many columns stepAndRun has.
const situationWidth = stepWidth + 15

// situation reads stepAndRun, and the columns of steps above if the row has them.
func (r *rowReader) situation() core.Situation {
	s := core.Situation{Step: r.step(), Run: r.runRest()}
	s.Run.ID = s.Step.RunID
	s.Above = r.above(s.Step)
	return s
}

// nesting is how many steps may be around a step: a map in a parallel in a map, and so on.
const nesting = 5

const (
	// The columns of a step above. Its id, run and epoch are known from the step below.
	aboveColumns = `parent_id, branch, path, name, type, status, attempt, error, carry, fan, leaf_of, started_at, finished_at`

	// The position of the path in aboveColumns. The path is null if there is no step.
	abovePath = 2 // where aboveColumns have the path, which is null without a step
)

// above returns the columns of all steps above a step, the closest first.
func above() (columns string) {
	for n := range nesting {
		columns += `, ` + qualified(fmt.Sprintf("above%d", n), aboveColumns)
	}
	return columns
}

// above reads these columns, up to the first step that is missing.
func (r *rowReader) above(below core.Step) (above []core.Step) {
	for len(r.row) > 0 && r.row[abovePath] != nil {
		below = r.stepAbove(below)
		above = append(above, below)
	}
	return above
}

// stepAbove reads aboveColumns of the step around another one.
func (r *rowReader) stepAbove(below core.Step) core.Step {
	return core.Step{
		ID:         below.ParentID,
		RunID:      below.RunID,
		Epoch:      below.Epoch,
		ParentID:   r.id(),
		Branch:     r.text(),
		Path:       r.text(),
		Name:       r.text(),
		Type:       r.text(),
		Status:     core.StepStatus(r.text()),
		Attempt:    r.number(),
		Error:      r.text(),
		Carry:      r.text(),
		Fan:        decodeFan(r.text()),
		Last:       r.value() != nil,
		StartedAt:  r.time(),
		FinishedAt: r.time(),
	}
}

// withRun joins steps with their runs.
const withRun = ` JOIN runs{use PRIMARY} ON runs.id = steps.run_id`

// withAbove joins steps with the steps above them: left joins by primary key, each on the
// parent of the step before.
func withAbove() (joins string) {
	below := "steps"
	for n := range nesting {
		above := fmt.Sprintf("above%d", n)
		joins += fmt.Sprintf(` LEFT JOIN steps AS %[1]s{use PRIMARY} ON %[1]s.id = %[2]s.parent_id`, above, below)
		below = above
	}
	return joins
}

// entryColumns are a history entry as it is read.
const entryColumns = `seq, at, epoch, type, path, data`

// entry reads entryColumns.
func (r *rowReader) entry() core.Entry {
	return core.Entry{
		Seq:   r.number(),
		At:    r.time(),
		Epoch: r.number(),
		Type:  core.EntryType(r.text()),
		Path:  r.text(),
		Data:  r.text(),
	}
}
