package wire

import (
	"encoding/json"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/units"
)

// Queues is all queues.
type Queues struct {
	Queues []Queue `json:"queues"`
}

// A Queue is a queue with the numbers of its messages. Of a removed queue only the name is
// known, and it is not listed.
type Queue struct {
	Name              string   `json:"name"`
	Source            Text     `json:"source"`
	Events            []string `json:"events"`
	VisibilityTimeout Text     `json:"visibility_timeout"`
	Depth             int      `json:"depth"`
	Pending           int      `json:"pending"`
	Processing        int      `json:"processing"`
	Dead              int      `json:"dead"`
	Canceled          int      `json:"canceled"`
}

// QueueOf returns the record of a queue.
func QueueOf(q manage.Listed) Queue {
	// Depth counts the messages that consumers still have to process, so it leaves dead messages
	// out.
	record := Queue{
		Name:       q.Name,
		Source:     Text(q.Source),
		Events:     append([]string{}, q.Events...), // a list even if it is empty
		Depth:      q.Depth(),
		Pending:    q.Pending,
		Processing: q.Processing,
		Dead:       q.Dead,
		Canceled:   q.Canceled,
	}
	// The timeout of a removed queue is not known, so it is null.
	if !q.Gone() {
		record.VisibilityTimeout = Text(units.Duration{Duration: q.Visibility}.String())
	}
	return record
}

// Messages is the first messages of a queue.
type Messages struct {
	Messages []Message `json:"messages"`
}

// DeadLetters is a page of the dead messages of a queue.
type DeadLetters struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"has_more"`
}

// A Message is a message as operators see it. Reading it is not a receive, so it has no
// receipt.
type Message struct {
	MessageHead
	Payload json.RawMessage `json:"payload"`
	MessageTail
}

// A MessageHead has the fields before the payload, also of a received message.
type MessageHead struct {
	ID        core.ID `json:"id"`
	EventID   core.ID `json:"event_id"`
	EventType string  `json:"event_type"`
}

// A MessageTail has the fields after the payload.
type MessageTail struct {
	// PayloadEncoding is "base64" if the payload is not text: then it is in base64. It is
	// "none" if the event is a CloudEvent without data: then it is null. Otherwise it is
	// absent. The content type among the headers distinguishes text from JSON.
	PayloadEncoding string            `json:"payload_encoding,omitempty"`
	Headers         map[string]string `json:"headers"`
	Attempt         int               `json:"attempt"`
	MaxAttempts     *int              `json:"max_attempts"`
	CreatedAt       Time              `json:"created_at"`
	CompletedAt     Time              `json:"completed_at"`
	LastError       Text              `json:"last_error"`
}

// MessageOf returns the record of a message.
func MessageOf(m core.TakenJob) Message {
	payload, encoding := PayloadOf(m.Event)
	// A consumer decides by the content type, as for the body of a request. Only "base64" must be
	// named, since no content type says that.
	if encoding == PayloadText {
		encoding = ""
	}
	return Message{
		MessageHead: MessageHead{m.ID, m.EventID, m.Event.Type},
		Payload:     payload,
		MessageTail: MessageTail{
			PayloadEncoding: encoding,
			Headers:         MessageHeaders(m.Event),
			Attempt:         m.Number(),
			MaxAttempts:     budget(m.Job),
			CreatedAt:       Time{m.CreatedAt},
			CompletedAt:     Time{m.FinishedAt},
			LastError:       Text(m.LastError),
		},
	}
}

// MessageHeaders returns the headers of a message. If the sender of its event declared no
// content type, they have a guess from the payload.
func MessageHeaders(e core.Event) map[string]string {
	headers := Headers(e)
	switch {
	case e.ContentType != "" || e.NoData():
	case e.Binary:
		headers["content-type"] = "application/octet-stream"
	case isJSON(e.Payload):
		headers["content-type"] = "application/json"
	default:
		headers["content-type"] = "text/plain; charset=utf-8"
	}
	return headers
}
