package wire

import (
	"encoding/json"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Runs is a page of a listing.
type Runs struct {
	Runs []Run `json:"workflow_runs"`
	More bool  `json:"has_more"`
}

// RunsOf returns the record of a page.
func RunsOf(page core.Page[core.Run]) Runs { return Runs{List(page.Items, RunOf), page.More} }

// A Run is a workflow run as it is listed.
type Run struct {
	ID          core.ID        `json:"id"`
	Workflow    string         `json:"workflow"`
	EventID     core.ID        `json:"event_id"`
	Status      core.RunStatus `json:"status"`
	CurrentStep Text           `json:"current_step"`
	Epoch       int            `json:"epoch"`
	CreatedAt   Time           `json:"created_at"`
	StartedAt   Time           `json:"started_at"`
	CompletedAt Time           `json:"completed_at"`
	Error       Text           `json:"error"`
}

// RunOf returns the record of a run as it is listed.
func RunOf(r core.Run) Run {
	return Run{
		ID:          r.ID,
		Workflow:    r.Workflow,
		EventID:     r.EventID,
		Status:      r.Status,
		CurrentStep: Text(r.Step),
		Epoch:       r.Epoch,
		CreatedAt:   Time{r.CreatedAt},
		StartedAt:   Time{r.StartedAt},
		CompletedAt: Time{r.FinishedAt},
		Error:       Text(r.Error),
	}
}

// A Redriven is a run that was redriven.
//
// Changed says that new runs of the workflow follow another definition than this one, so an
// operator may want to choose between the two.
type Redriven struct {
	Run
	Changed bool `json:"definition_changed"`
}

// RedrivenOf returns the record of a redriven run.
func RedrivenOf(r manage.Redriven) Redriven { return Redriven{RunOf(r.Run), r.Changed} }

// Core returns the redriven run.
func (r Redriven) Core() manage.Redriven {
	return manage.Redriven{Run: r.Run.Core(), Changed: r.Changed}
}

// A RunStory is a run with one page of its steps and history.
//
// A run may have thousands of steps and entries, so it is read in pages.
type RunStory struct {
	Run
	Output  json.RawMessage `json:"output"`
	Steps   []Step          `json:"steps"`
	History []Entry         `json:"history"`
	More    bool            `json:"has_more,omitempty"`
	Next    string          `json:"next,omitempty"` // where the next page begins, if there is one
}

// StoryOfRun returns the record of a run with its steps and history.
func StoryOfRun(r manage.Inspected) RunStory {
	// The place of the next page is opaque text: clients pass it on and do not read it.
	return RunStory{RunOf(r.Run), orNull(r.Output), List(r.Steps, StepOf), List(r.History, EntryOf), !r.Next.Zero(), r.Next.String()}
}

// A Step is one execution of a step in a run.
type Step struct {
	StepHead
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
	StepTail
}

// A StepHead has the fields before the documents.
type StepHead struct {
	Name    string          `json:"name"`
	Path    string          `json:"path"`
	Type    string          `json:"type"`
	Status  core.StepStatus `json:"status"`
	Attempt int             `json:"attempt"`
}

// A StepTail has the fields after the documents.
type StepTail struct {
	Error       Text `json:"error"`
	StartedAt   Time `json:"started_at"`
	CompletedAt Time `json:"completed_at"`
}

// StepOf returns the record of a step.
func StepOf(s core.Step) Step {
	return Step{
		StepHead: StepHead{s.Name, s.Path, s.Type, s.Status, s.Attempt},
		Input:    orNull(s.State),
		Output:   orNull(s.Output),
		StepTail: StepTail{Text(s.Error), Time{s.StartedAt}, Time{s.FinishedAt}},
	}
}

// An Entry is one line of a run's history.
type Entry struct {
	EntryHead
	Data json.RawMessage `json:"data"`
}

// An EntryHead has the fields before the details.
type EntryHead struct {
	Seq   int            `json:"seq"`
	At    Time           `json:"at"`
	Epoch int            `json:"epoch"`
	Type  core.EntryType `json:"type"`
	Step  Text           `json:"step"` // its path
}

// EntryOf returns the record of an entry.
func EntryOf(e core.Entry) Entry {
	return Entry{EntryHead{e.Seq, Time{e.At}, e.Epoch, e.Type, Text(e.Path)}, orNull([]byte(e.Data))}
}
