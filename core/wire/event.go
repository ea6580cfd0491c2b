package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Events is a page of a listing.
type Events struct {
	Events []EventSummary `json:"events"`
	More   bool           `json:"has_more"`
}

// EventsOf returns the record of a page.
func EventsOf(page core.Page[core.Event]) Events {
	return Events{List(page.Items, SummaryOf), page.More}
}

// A Found is a page of a search: see [manage.Found].
type Found struct {
	Events
	Scanned int  `json:"scanned"`
	Next    Text `json:"next"` // the last scanned event
}

// FoundOf returns the record of a page of a search.
func FoundOf(f manage.Found) Found { return Found{EventsOf(f.Page), f.Scanned, Text(f.Next)} }

// An EventSummary is an event as it is listed.
type EventSummary struct {
	ID             core.ID `json:"id"`
	Source         string  `json:"source"`
	EventType      string  `json:"event_type"`
	IdempotencyKey Text    `json:"idempotency_key"`
	CreatedAt      Time    `json:"created_at"`
}

// SummaryOf returns the record of an event as it is listed.
func SummaryOf(e core.Event) EventSummary {
	return EventSummary{e.ID, e.Source, e.Type, Text(e.DeliveryID), Time{e.CreatedAt}}
}

// An Event is an event in full, with its jobs and runs.
type Event struct {
	EventHead
	Payload json.RawMessage `json:"payload"`
	EventTail
}

// An EventHead has the fields before the payload.
//
// The order of the fields is part of the format: people read these records in a terminal.
type EventHead struct {
	ID        core.ID `json:"id"`
	Source    string  `json:"source"`
	EventType string  `json:"event_type"`
}

// An EventTail has the fields after the payload.
type EventTail struct {
	// PayloadEncoding is "text" if the payload is text but not JSON: then it is a string.
	// It is "base64" if the payload is not text: then it is in base64. It is "none" if the
	// event is a CloudEvent without data: then it is null. Otherwise PayloadEncoding is
	// absent.
	PayloadEncoding string            `json:"payload_encoding,omitempty"`
	Headers         map[string]string `json:"headers"`
	IdempotencyKey  Text              `json:"idempotency_key"`
	CreatedAt       Time              `json:"created_at"`
	Jobs            []Job             `json:"jobs"`
	WorkflowRuns    []Run             `json:"workflow_runs"`

	// Declined are the consumers of its source that do not want the event, under the
	// present configuration. It is absent if there are none, or if the request did not ask
	// for it.
	Declined []Declined `json:"declined,omitempty"`
}

// The encodings of a payload.
const (
	PayloadText   = "text"
	PayloadBase64 = "base64"
	PayloadNone   = "none"
)

// PayloadOf returns the payload of an event in JSON, and its PayloadEncoding.
func PayloadOf(e core.Event) (payload json.RawMessage, encoding string) {
	switch {
	// Base64 is appended to the opening quote, so that the payload is copied once.
	case e.Binary:
		quoted := make([]byte, 1, base64.StdEncoding.EncodedLen(len(e.Payload))+2)
		quoted[0] = '"'
		return append(base64.StdEncoding.AppendEncode(quoted, e.Payload), '"'), PayloadBase64
	case e.NoData():
		return json.RawMessage("null"), PayloadNone
	// The sender's own bytes: numbers keep their digits and objects the order of their keys. A
	// reader of the record loses only the white space around the value.
	case isJSON(e.Payload):
		return e.Payload, ""
	}
	return Document(e.Payload), PayloadText
}

// setPayload sets the payload of an event. It undoes PayloadOf.
func setPayload(e *core.Event, payload json.RawMessage, encoding string) error {
	// No encoding means JSON, which is kept as it is.
	if encoding == "" {
		e.Payload = payload
		return nil
	}
	if encoding == PayloadNone {
		return nil
	}
	var text string
	if err := json.Unmarshal(payload, &text); err != nil {
		return fmt.Errorf("payload: it is no string, as payload_encoding %s says: %w", encoding, err)
	}
	// From here on the payload is a JSON string, whose text is the payload in some encoding.
	switch encoding {
	case PayloadText:
		e.Payload = []byte(text)
	case PayloadBase64:
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fmt.Errorf("payload: it is no base64, as payload_encoding says: %w", err)
		}
		e.Payload, e.Binary = decoded, true
	default:
		return fmt.Errorf("payload_encoding: %q is not known; known are %s, %s and %s", encoding, PayloadText, PayloadBase64, PayloadNone)
	}
	return nil
}

// EventOf returns the record of an event, with the attempts of its jobs if they were read.
func EventOf(t manage.Told) Event {
	// Attempts are read only on request, since they hold parts of replies.
	jobs := List(t.Jobs, func(j core.Job) Job {
		if t.Attempts == nil {
			return WaitingOf(j, t.Waits[j.ID])
		}
		return StoryOf(j, t.Waits[j.ID], t.Attempts[j.ID])
	})
	record := EventWith(t.Event, jobs, List(t.Runs, RunOf))
	record.Declined = DeclinedBy(t.Declined)
	return record
}

// A Declined is a consumer that does not want an event.
type Declined struct {
	Handler string `json:"handler"` // by its name, queue/<name>, or workflow/<name>
	Reason  string `json:"reason"`
}

// DeclinedBy returns the records of the consumers that do not want an event; nil if there
// are none.
func DeclinedBy(declined []core.Declined) (records []Declined) {
	for _, d := range declined {
		records = append(records, Declined{d.Lane.Consumer(), d.Why})
	}
	return records
}

// EventWith returns the record of an event with these jobs and runs.
func EventWith(e core.Event, jobs []Job, runs []Run) Event {
	payload, encoding := PayloadOf(e)
	return Event{
		EventHead: EventHead{e.ID, e.Source, e.Type},
		Payload:   payload,
		EventTail: EventTail{
			PayloadEncoding: encoding,
			Headers:         Headers(e),
			IdempotencyKey:  Text(e.DeliveryID),
			CreatedAt:       Time{e.CreatedAt},
			Jobs:            jobs,
			WorkflowRuns:    runs,
		},
	}
}

// Headers returns the kept headers of an event, and its content type.
func Headers(e core.Event) map[string]string {
	headers := map[string]string{}
	maps.Copy(headers, e.Headers)
	if e.ContentType != "" {
		headers["content-type"] = e.ContentType
	}
	return headers
}

// Line returns the event as a line of an export, with the line feed. White space between
// the tokens of the payload is removed; nothing else of the payload changes. The command
// line also prints control and bidirectional characters as escapes.
func (e Event) Line() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	// <, > and & stay, so that a payload is as readable as it was sent.
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// A Replayed counts the events that were looked at, the events that got jobs, and these
// jobs.
//
// A dry run counts a bounded number of events. First and Last let the client continue with the
// same selection, although new events arrive meanwhile. Operation goes on with a replay; it is "" if the
// replay is done.
type Replayed struct {
	Looked int  `json:"looked_at"`
	Events int  `json:"events"`
	Jobs   int  `json:"jobs"`
	First  Text `json:"first"` // the span of the selected events
	Last   Text `json:"last"`
	More   bool `json:"has_more"`
	Next   Text `json:"next"` // the first event of the rest

	Operation string `json:"operation,omitempty"`
}

// A Canceled counts the jobs of an event after a cancel: see [manage.Canceled]. The runs are listed,
// so that a client can cancel the runs under way.
type Canceled struct {
	EventID      core.ID   `json:"event_id"`
	Canceled     int       `json:"canceled"`
	Running      int       `json:"running"`
	Finished     int       `json:"finished"`
	CanceledRuns []core.ID `json:"canceled_workflow_runs"`
	RunningRuns  []core.ID `json:"running_workflow_runs"`
}

// CanceledOf returns the record of a cancel. Empty lists are [] and not null, so that a script can
// loop over them.
func CanceledOf(c manage.Canceled) Canceled {
	return Canceled{c.Event, c.Canceled, c.Running, c.Finished,
		append([]core.ID{}, c.CanceledRuns...), append([]core.ID{}, c.RunningRuns...)}
}

// ReplayedOf returns the record of a replay.
func ReplayedOf(r manage.Replayed) Replayed {
	return Replayed{r.Looked, r.Events, r.Jobs, Text(r.First), Text(r.Last), r.Next != "", Text(r.Next), string(r.Going)}
}
