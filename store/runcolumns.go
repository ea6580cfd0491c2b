package store

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// The columns of runs, steps and entries of histories. See columns.go.

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

	// The places of a step's texts, and of their names, in stepColumns.
	stateAt, outputAt, stateInAt, outputInAt = 10, 11, 18, 19
)

// step reads stepColumns. Texts that are kept apart are nil if the query did not read them.
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
	if st.Output != nil && len(st.Output) == 0 { // see shelf.output
		st.Output, st.OutputName = st.State, st.StateName
	}
	return st
}

// stepInFull are the columns of a step with its texts, including texts that are kept apart.
// The database reads step_texts only for a step that has a name for a text, and few steps
// have one. Joins were the alternative: PostgreSQL chooses the order of at most eight tables,
// and began with all steps.
var stepInFull = strings.NewReplacer(
	"steps.state AS", "COALESCE(steps.state, "+textIn("state_in")+") AS",
	"steps.output AS", "COALESCE(steps.output, "+textIn("output_in")+") AS").Replace(qualified("steps", stepColumns))

func textIn(name string) string {
	return "CASE WHEN steps." + name + " IS NOT NULL THEN (SELECT step_texts.body FROM step_texts{use PRIMARY} WHERE step_texts.run_id = steps.run_id AND step_texts.name = steps." + name + ") END"
}

// stepAndRun are a step and its run. Together with above they are 100 columns, and D1 has at
// most 100 columns in a result.
var stepAndRun = stepInFull + `, ` + qualified("runs", runRest)

const situationWidth = stepWidth + 15

// situation reads stepAndRun, and what there is of the columns of above.
func (r *rowReader) situation() core.Situation {
	s := core.Situation{Step: r.step(), Run: r.runRest()}
	s.Run.ID = s.Step.RunID
	s.Above = r.above(s.Step)
	return s
}

// nesting is how many steps a step may be in.
const nesting = 5

const (
	// What a Situation tells of a step above: the ids are known from those below.
	aboveColumns = `parent_id, branch, path, name, type, status, attempt, error, carry, fan, leaf_of, started_at, finished_at`

	abovePath = 2 // where aboveColumns have the path, which is null without a step
)

// above are the columns of what a step is in, the next one first.
func above() (columns string) {
	for n := range nesting {
		columns += `, ` + qualified(fmt.Sprintf("above%d", n), aboveColumns)
	}
	return columns
}

// above reads the columns of above, of what a step is in.
func (r *rowReader) above(below core.Step) (above []core.Step) {
	for len(r.row) > 0 && r.row[abovePath] != nil {
		below = r.stepAbove(below)
		above = append(above, below)
	}
	return above
}

// oneAbove reads aboveColumns, of the step that another is in.
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

// withRun and withAbove join steps with their runs and with what is above them.
const withRun = ` JOIN runs{use PRIMARY} ON runs.id = steps.run_id`

func withAbove() (joins string) {
	below := "steps"
	for n := range nesting {
		above := fmt.Sprintf("above%d", n)
		joins += fmt.Sprintf(` LEFT JOIN steps AS %[1]s{use PRIMARY} ON %[1]s.id = %[2]s.parent_id`, above, below)
		below = above
	}
	return joins
}

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
