package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/pull"
)

// A message is written in three parts, since its payload is to come out as it came
// in: encoding/json would rewrite it, and a large one is not to be copied. The last
// part depends on who asks.

type messageHead struct {
	ID        core.ID `json:"id"`
	EventID   core.ID `json:"event_id"`
	EventType string  `json:"event_type"`
}

// handedTail is what consumers see.
type handedTail struct {
	Headers   map[string]string `json:"headers"`
	Attempt   int               `json:"attempt"`
	CreatedAt string            `json:"created_at"`
	Receipt   string            `json:"receipt"`
}

// shownTail is what operators see. What does not apply is null.
type shownTail struct {
	Headers     map[string]string `json:"headers"`
	Attempt     int               `json:"attempt"`
	MaxAttempts *int              `json:"max_attempts"`
	CreatedAt   string            `json:"created_at"`
	CompletedAt *string           `json:"completed_at"`
	LastError   *string           `json:"last_error"`
}

func handed(m core.TakenJob) any {
	return handedTail{headersOf(m.Event), m.Attempt, core.FormatTime(m.CreatedAt), pull.Receipt(m)}
}

func shown(m core.TakenJob) any {
	tail := shownTail{
		Headers:     headersOf(m.Event),
		Attempt:     m.Attempt,
		CreatedAt:   core.FormatTime(m.CreatedAt),
		CompletedAt: orNull(core.FormatTime(m.FinishedAt)),
		LastError:   orNull(m.LastError),
	}
	if m.MaxAttempts < core.Unlimited {
		tail.MaxAttempts = &m.MaxAttempts
	}
	return tail
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// headersOf are the headers kept with an event. If its sender did not say what the
// payload is, what it looks like.
func headersOf(e core.Event) map[string]string {
	headers := map[string]string{}
	maps.Copy(headers, e.Headers)
	switch {
	case e.ContentType != "":
		headers["content-type"] = e.ContentType
	case isJSON(e.Payload):
		headers["content-type"] = "application/json"
	default:
		headers["content-type"] = "text/plain; charset=utf-8"
	}
	return headers
}

// document is a payload, or what else may be one, as it stands in JSON: the document it
// is, byte for byte, or a string if it is none.
func document(text []byte) []byte {
	if isJSON(text) {
		return text
	}
	return mustJSON(string(text))
}

func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// writeMessages answers with messages, and what else the reply has.
func writeMessages(w http.ResponseWriter, messages []core.TakenJob, tail func(core.TakenJob) any, more string) {
	pieces := [][]byte{[]byte(`{"messages":[`)}
	for i, m := range messages {
		if i > 0 {
			pieces = append(pieces, []byte(","))
		}
		head := unclosed(messageHead{m.ID, m.EventID, m.Event.Type})
		pieces = append(pieces, head, []byte(`,"payload":`), document(m.Event.Payload), rest(tail(m)))
	}
	writePieces(w, append(pieces, []byte("]"+more+"}")))
}

// unclosed is an object that is to go on, rest its end.
func unclosed(object any) []byte {
	text := mustJSON(object)
	return text[:len(text)-1]
}

func rest(object any) []byte {
	text := mustJSON(object)
	text[0] = ','
	return text
}

// worthJoining is how long a body may be to be put together first: one write costs
// less than many, and less than the copy.
const worthJoining = 64 << 10

// writePieces sends a body of known length.
func writePieces(w http.ResponseWriter, pieces [][]byte) {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	h := w.Header()
	h["Content-Type"], h["Content-Length"] = jsonType, []string{strconv.Itoa(length)}
	w.WriteHeader(http.StatusOK)
	if length <= worthJoining {
		pieces = [][]byte{bytes.Join(pieces, nil)}
	}
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return // whoever is gone wants no other reply
		}
	}
}
