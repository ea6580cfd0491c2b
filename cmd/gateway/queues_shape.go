package main

import (
	"encoding/json"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// The records of queues, which are those of the management API as well.

type queueJSON struct {
	Name              string   `json:"name"`
	Source            string   `json:"source"`
	Events            []string `json:"events"`
	VisibilityTimeout string   `json:"visibility_timeout"`
	Depth             int      `json:"depth"`
	Pending           int      `json:"pending"`
	Processing        int      `json:"processing"`
	Dead              int      `json:"dead"`
}

// A messageJSON is a message that nobody receives by looking at it: it has no receipt.
type messageJSON struct {
	ID          core.ID           `json:"id"`
	EventID     core.ID           `json:"event_id"`
	EventType   string            `json:"event_type"`
	Payload     json.RawMessage   `json:"payload"`
	Headers     map[string]string `json:"headers"`
	Attempt     int               `json:"attempt"`
	MaxAttempts *int              `json:"max_attempts"`
	CreatedAt   *string           `json:"created_at"`
	CompletedAt *string           `json:"completed_at"`
	LastError   *string           `json:"last_error"`
}

func queueRecord(q manage.Listed) queueJSON {
	return queueJSON{
		Name:              q.Name,
		Source:            q.Source,
		Events:            append([]string{}, q.Events...),
		VisibilityTimeout: visibility(q.Queue),
		Depth:             q.Depth(),
		Pending:           q.Pending,
		Processing:        q.Processing,
		Dead:              q.Dead,
	}
}

func messageRecord(m core.TakenJob) messageJSON {
	return messageJSON{
		ID:          m.ID,
		EventID:     m.EventID,
		EventType:   m.Event.Type,
		Payload:     payloadRecord(m.Event),
		Headers:     headersRecord(m.Event),
		Attempt:     m.Attempt,
		MaxAttempts: budget(m.Job),
		CreatedAt:   timeOrNull(m.CreatedAt),
		CompletedAt: timeOrNull(m.FinishedAt),
		LastError:   orNull(m.LastError),
	}
}
