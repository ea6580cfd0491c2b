package main

import (
	"encoding/json"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The records of the management API, which are what --json prints. A field that
// does not apply is null, never absent: scripts may rely on the names.

type eventSummaryJSON struct {
	ID             core.ID `json:"id"`
	Source         string  `json:"source"`
	EventType      string  `json:"event_type"`
	IdempotencyKey *string `json:"idempotency_key"`
	CreatedAt      *string `json:"created_at"`
}

type eventJSON struct {
	ID             core.ID           `json:"id"`
	Source         string            `json:"source"`
	EventType      string            `json:"event_type"`
	Payload        json.RawMessage   `json:"payload"`
	Headers        map[string]string `json:"headers"`
	IdempotencyKey *string           `json:"idempotency_key"`
	CreatedAt      *string           `json:"created_at"`
	Jobs           []jobStoryJSON    `json:"jobs"`
	WorkflowRuns   []runJSON         `json:"workflow_runs"`
}

type jobJSON struct {
	ID          core.ID     `json:"id"`
	EventID     core.ID     `json:"event_id"`
	Handler     string      `json:"handler"`
	Queue       string      `json:"queue,omitempty"` // of a message only
	Status      core.Status `json:"status"`
	Attempt     int         `json:"attempt"`
	MaxAttempts *int        `json:"max_attempts"` // null: as many as it takes
	ScheduledAt *string     `json:"scheduled_at"`
	CompletedAt *string     `json:"completed_at"`
	LastError   *string     `json:"last_error"`
	CreatedAt   *string     `json:"created_at"`
	RunID       core.ID     `json:"workflow_run_id,omitempty"` // of a step only
	Step        string      `json:"step,omitempty"`
}

type jobStoryJSON struct {
	jobJSON
	Attempts []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	Attempt    int     `json:"attempt"`
	StatusCode *int    `json:"status_code"`
	Error      *string `json:"error"`
	DurationMS int64   `json:"duration_ms"`
	Response   *string `json:"response"`
	CreatedAt  *string `json:"created_at"`
}

func eventSummary(e core.Event) eventSummaryJSON {
	return eventSummaryJSON{
		ID:             e.ID,
		Source:         e.Source,
		EventType:      e.Type,
		IdempotencyKey: orNull(e.DeliveryID),
		CreatedAt:      timeOrNull(e.CreatedAt),
	}
}

// payloadRecord is the document that a payload is, or a string if it is none.
func payloadRecord(e core.Event) json.RawMessage {
	payload := json.RawMessage(e.Payload)
	if !json.Valid(payload) {
		payload, _ = json.Marshal(string(e.Payload)) // a string always marshals
	}
	return payload
}

// headersRecord is what was kept of an event's headers, its content type included.
func headersRecord(e core.Event) map[string]string {
	headers := map[string]string{}
	for name, value := range e.Headers {
		headers[name] = value
	}
	if e.ContentType != "" {
		headers["content-type"] = e.ContentType
	}
	return headers
}

// eventRecord is an event in full.
func eventRecord(e core.Event, jobs []jobStoryJSON, runs []runJSON) eventJSON {
	return eventJSON{
		ID:             e.ID,
		Source:         e.Source,
		EventType:      e.Type,
		Payload:        payloadRecord(e),
		Headers:        headersRecord(e),
		IdempotencyKey: orNull(e.DeliveryID),
		CreatedAt:      timeOrNull(e.CreatedAt),
		Jobs:           jobs,
		WorkflowRuns:   runs,
	}
}

func jobRecord(j core.Job) jobJSON {
	return jobJSON{
		ID:          j.ID,
		EventID:     j.EventID,
		Handler:     consumer(j),
		Queue:       j.Lane.Queue(),
		Status:      j.Status,
		Attempt:     j.Attempt,
		MaxAttempts: budget(j),
		ScheduledAt: timeOrNull(j.DueAt),
		CompletedAt: timeOrNull(j.FinishedAt),
		LastError:   orNull(j.LastError),
		CreatedAt:   timeOrNull(j.CreatedAt),
		RunID:       j.RunID,
		Step:        j.Step,
	}
}

// consumer is whom a job is for: a handler, queue/<name>, or workflow/<name>/<step>.
func consumer(j core.Job) string {
	if j.Step != "" {
		return j.Lane.Consumer() + "/" + j.Step
	}
	return j.Lane.Consumer()
}

// budget is how many attempts a job has, nil if there is no end to them.
func budget(j core.Job) *int {
	if j.MaxAttempts == core.Unlimited {
		return nil
	}
	return &j.MaxAttempts
}

func attemptRecord(a core.Attempt) attemptJSON {
	record := attemptJSON{
		Attempt:    a.Number,
		Error:      orNull(a.Error),
		DurationMS: a.Duration.Milliseconds(),
		Response:   orNull(a.Response),
		CreatedAt:  timeOrNull(a.StartedAt),
	}
	if a.StatusCode != 0 {
		record.StatusCode = &a.StatusCode
	}
	return record
}

// records maps a list, and an empty one to an empty one, not to null.
func records[T, R any](items []T, record func(T) R) []R {
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = record(item)
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *string { return orNull(core.FormatTime(t)) }
