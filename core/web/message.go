package web

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/core/wire"
)

// A message is written in three parts. Its payload must keep its bytes, which encoding/json
// would change, and a large payload should not be copied. The last part differs for
// consumers and operators.

// handedTail is the last part for consumers.
//
//	{"id": ..., "event_id": ..., "event_type": ...   wire.MessageHead, without the brace
//	,"payload": ...                                  the bytes of the event
//	,"payload_encoding": ..., "receipt": ...}        the tail, with a comma for the brace
type handedTail struct {
	PayloadEncoding string            `json:"payload_encoding,omitempty"`
	Headers         map[string]string `json:"headers"`
	Attempt         int               `json:"attempt"`
	CreatedAt       wire.Time         `json:"created_at"`
	Receipt         string            `json:"receipt"`
}

// handed returns the last part of a message for its consumer, with the receipt.
func handed(m core.TakenJob, record wire.Message) any {
	return handedTail{record.PayloadEncoding, record.Headers, record.Attempt, record.CreatedAt, pull.Receipt(m)}
}

// shown is the last part for operators.
func shown(_ core.TakenJob, record wire.Message) any { return record.MessageTail }

// writeMessages answers with messages and the further members of the reply.
func writeMessages(w http.ResponseWriter, messages []core.TakenJob, tail func(core.TakenJob, wire.Message) any, more string) {
	pieces := [][]byte{[]byte(`{"messages":[`)}
	for i, m := range messages {
		if i > 0 {
			pieces = append(pieces, []byte(","))
		}
		pieces = append(pieces, piecesOf(m, tail)...)
	}
	writePieces(w, append(pieces, []byte("]"+more+"}")))
}

// piecesOf returns a message in pieces. The payload is not copied.
func piecesOf(m core.TakenJob, tail func(core.TakenJob, wire.Message) any) [][]byte {
	record := wire.MessageOf(m)
	return [][]byte{unclosed(record.MessageHead), []byte(`,"payload":`), record.Payload, rest(tail(m, record))}
}

// fitting returns how many of the messages together fit into most bytes, as a text in JSON.
func fitting(messages []core.TakenJob, tail func(core.TakenJob, wire.Message) any, most int) int {
	length := 20 // the members around them
	// The pieces are made and dropped again: a second copy of a page costs less than a wrong
	// length.
	for i, m := range messages {
		length++ // a comma
		for _, piece := range piecesOf(m, tail) {
			length += quotedLength(piece)
		}
		if length > most {
			return i
		}
	}
	return len(messages)
}

// sift separates the messages that fit into a reply of most bytes, each by itself, from the
// others.
func sift(messages []core.TakenJob, most int) (sendable, large []core.TakenJob) {
	for i, m := range messages {
		if fitting(messages[i:i+1], handed, most) > 0 {
			// Alone in a reply it fits, so another request can get it if this one has no room.
			sendable = append(sendable, m)
		} else {
			large = append(large, m)
		}
	}
	return sendable, large
}

// quotedLength returns the largest length in bytes of a text as a JSON string that
// encoding/json writes.
//
// It may be a few bytes too large, never too small: a reply that is larger than a function may
// send would be lost with all its messages.
func quotedLength(text []byte) int {
	n := len(text)
	for _, c := range text {
		switch {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			n++
		case c < ' ' || c == 0x7f:
			n += 5
		case c == 0xe2: // may begin a line separator, which is escaped
			n += 3
		}
	}
	return n
}

// unclosed returns the JSON of an object without its closing brace, so that members can
// follow.
func unclosed(object any) []byte {
	text := mustJSON(object)
	return text[:len(text)-1]
}

// rest returns the JSON of an object without its opening brace, after a comma: the members that
// follow a payload.
func rest(object any) []byte {
	text := mustJSON(object)
	text[0] = ','
	return text
}

// worthJoining is the size in bytes up to which the pieces of a body are joined first: one
// write and the copy cost less than many writes.
const worthJoining = 64 << 10

// writePieces sends a body of known length, and drops each piece after its write.
func writePieces(w http.ResponseWriter, pieces [][]byte) {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	h := w.Header()
	h["Content-Type"], h["Content-Length"] = jsonType, []string{strconv.Itoa(length)}
	// The budget learns the exact length now, in place of the estimate.
	begin(w, length)
	w.WriteHeader(http.StatusOK)
	// Most replies: one message of a few KiB.
	if length <= worthJoining {
		pieces = [][]byte{bytes.Join(pieces, nil)}
	}
	for i, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return // a client that has disconnected needs no other reply
		}
		length -= len(p)
		pieces[i] = nil // frees its memory before the budget counts the bytes as free
		wrote(w, length)
	}
}
