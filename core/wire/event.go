package wire

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Events is a page of a listing.
type Events struct {
	Events []EventSummary `json:"events"`
	More   bool           `json:"has_more"`
}

// EventsOf is the record of a page.
func EventsOf(page core.Page[core.Event]) Events {
	return Events{List(page.Items, SummaryOf), page.More}
}

// An EventSummary is an event as it is listed.
type EventSummary struct {
	ID             core.ID `json:"id"`
	Source         string  `json:"source"`
	EventType      string  `json:"event_type"`
	IdempotencyKey Text    `json:"idempotency_key"`
	CreatedAt      Time    `json:"created_at"`
}

// SummaryOf is the record of an event as it is listed.
func SummaryOf(e core.Event) EventSummary {
	return EventSummary{e.ID, e.Source, e.Type, Text(e.DeliveryID), Time{e.CreatedAt}}
}

// An Event is an event in full, with all that became of it.
type Event struct {
	EventHead
	Payload json.RawMessage `json:"payload"`
	EventTail
}

// An EventHead is what stands before the payload.
type EventHead struct {
	ID        core.ID `json:"id"`
	Source    string  `json:"source"`
	EventType string  `json:"event_type"`
}

// An EventTail is what stands behind the payload.
type EventTail struct {
	// PayloadEncoding is "text" if the payload is no JSON and stands there as a string;
	// else it is absent.
	PayloadEncoding string            `json:"payload_encoding,omitempty"`
	Headers         map[string]string `json:"headers"`
	IdempotencyKey  Text              `json:"idempotency_key"`
	CreatedAt       Time              `json:"created_at"`
	Jobs            []Job             `json:"jobs"`
	WorkflowRuns    []Run             `json:"workflow_runs"`
}

// PayloadText is the PayloadEncoding of a payload that is no JSON.
const PayloadText = "text"

// EventOf is the record of an event, its jobs without their attempts.
func EventOf(t manage.Told) Event {
	jobs := List(t.Jobs, func(j core.Job) Job { return WaitingOf(j, t.Waits[j.ID]) })
	return EventWith(t.Event, jobs, List(t.Runs, RunOf))
}

// EventWith is the record of an event with these jobs and runs.
func EventWith(e core.Event, jobs []Job, runs []Run) Event {
	record := Event{
		EventHead: EventHead{e.ID, e.Source, e.Type},
		Payload:   Document(e.Payload),
		EventTail: EventTail{
			Headers:        Headers(e),
			IdempotencyKey: Text(e.DeliveryID),
			CreatedAt:      Time{e.CreatedAt},
			Jobs:           jobs,
			WorkflowRuns:   runs,
		},
	}
	if !isJSON(e.Payload) {
		record.PayloadEncoding = PayloadText
	}
	return record
}

// Headers is what was kept of an event's headers, its content type included.
func Headers(e core.Event) map[string]string {
	headers := map[string]string{}
	maps.Copy(headers, e.Headers)
	if e.ContentType != "" {
		headers["content-type"] = e.ContentType
	}
	return headers
}

// Line is the record as a line of an export, line feed included. White space between the
// tokens of the payload is gone, nothing else of it is changed. The command line, which
// prints such lines, also writes control and bidirectional characters as escapes.
func (e Event) Line() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// A Replayed is how many events were replayed, and how many jobs that gave.
type Replayed struct {
	Events int  `json:"events"`
	Jobs   int  `json:"jobs"`
	First  Text `json:"first"` // the events that were selected
	Last   Text `json:"last"`
	More   bool `json:"has_more"`
	Next   Text `json:"next"` // where the rest of them begins
}

// ReplayedOf is the record of a replay.
func ReplayedOf(r manage.Replayed) Replayed {
	return Replayed{r.Events, r.Jobs, Text(r.First), Text(r.Last), r.Next != "", Text(r.Next)}
}
