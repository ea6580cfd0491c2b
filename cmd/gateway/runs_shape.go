package main

import (
	"encoding/json"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// The records of workflow runs, which are those of the management API as well.

type runJSON struct {
	ID          core.ID        `json:"id"`
	Workflow    string         `json:"workflow"`
	EventID     core.ID        `json:"event_id"`
	Status      core.RunStatus `json:"status"`
	CurrentStep *string        `json:"current_step"`
	Epoch       int            `json:"epoch"`
	CreatedAt   *string        `json:"created_at"`
	StartedAt   *string        `json:"started_at"`
	CompletedAt *string        `json:"completed_at"`
	Error       *string        `json:"error"`
}

// A runStoryJSON is a run with all that became of it.
type runStoryJSON struct {
	runJSON
	Output  json.RawMessage `json:"output"`
	Steps   []stepJSON      `json:"steps"`
	History []entryJSON     `json:"history"`
}

type stepJSON struct {
	Name        string          `json:"name"`
	Path        string          `json:"path"`
	Type        string          `json:"type"`
	Status      core.StepStatus `json:"status"`
	Attempt     int             `json:"attempt"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
	Error       *string         `json:"error"`
	StartedAt   *string         `json:"started_at"`
	CompletedAt *string         `json:"completed_at"`
}

type entryJSON struct {
	Seq   int             `json:"seq"`
	At    *string         `json:"at"`
	Epoch int             `json:"epoch"`
	Type  core.EntryType  `json:"type"`
	Step  *string         `json:"step"`
	Data  json.RawMessage `json:"data"`
}

func runRecord(r core.Run) runJSON {
	return runJSON{
		ID:          r.ID,
		Workflow:    r.Workflow,
		EventID:     r.EventID,
		Status:      r.Status,
		CurrentStep: orNull(r.Step),
		Epoch:       r.Epoch,
		CreatedAt:   timeOrNull(r.CreatedAt),
		StartedAt:   timeOrNull(r.StartedAt),
		CompletedAt: timeOrNull(r.FinishedAt),
		Error:       orNull(r.Error),
	}
}

func runStoryRecord(r manage.Inspected) runStoryJSON {
	return runStoryJSON{runRecord(r.Run), document(r.Output), records(r.Steps, stepRecord), records(r.History, entryRecord)}
}

func stepRecord(s core.Step) stepJSON {
	return stepJSON{
		Name:        s.Name,
		Path:        s.Path,
		Type:        s.Type,
		Status:      s.Status,
		Attempt:     s.Attempt,
		Input:       document(s.State),
		Output:      document(s.Output),
		Error:       orNull(s.Error),
		StartedAt:   timeOrNull(s.StartedAt),
		CompletedAt: timeOrNull(s.FinishedAt),
	}
}

func entryRecord(e core.Entry) entryJSON {
	return entryJSON{Seq: e.Seq, At: timeOrNull(e.At), Epoch: e.Epoch, Type: e.Type, Step: orNull(e.Path), Data: document([]byte(e.Data))}
}

// document is stored JSON, null if there is none.
func document(text []byte) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	return text
}
