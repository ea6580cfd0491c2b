package web

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/core/wire"
)

// A message is written in three parts, since its payload is to come out as it came
// in: encoding/json would rewrite it, and a large one is not to be copied. The last
// part depends on who asks.

// handedTail is what consumers see.
type handedTail struct {
	PayloadEncoding string            `json:"payload_encoding,omitempty"`
	Headers         map[string]string `json:"headers"`
	Attempt         int               `json:"attempt"`
	CreatedAt       wire.Time         `json:"created_at"`
	Receipt         string            `json:"receipt"`
}

func handed(m core.TakenJob, record wire.Message) any {
	return handedTail{record.PayloadEncoding, record.Headers, record.Attempt, record.CreatedAt, pull.Receipt(m)}
}

// shown is what operators see.
func shown(_ core.TakenJob, record wire.Message) any { return record.MessageTail }

// writeMessages answers with messages, and what else the reply has.
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

func piecesOf(m core.TakenJob, tail func(core.TakenJob, wire.Message) any) [][]byte {
	record := wire.MessageOf(m)
	return [][]byte{unclosed(record.MessageHead), []byte(`,"payload":`), record.Payload, rest(tail(m, record))}
}

// fitting is how many of the messages are no longer than most together, as a text in JSON.
func fitting(messages []core.TakenJob, tail func(core.TakenJob, wire.Message) any, most int) int {
	length := 20 // what is around them
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

// sift parts messages that a reply of so many bytes has room for, one by one, from others.
func sift(messages []core.TakenJob, most int) (sendable, large []core.TakenJob) {
	for i, m := range messages {
		if fitting(messages[i:i+1], handed, most) > 0 {
			sendable = append(sendable, m)
		} else {
			large = append(large, m)
		}
	}
	return sendable, large
}

// quotedLength is how many bytes a text has at most as one in JSON: there are longer ways
// to write what is escaped in it, but none that encoding/json takes.
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

// writePieces sends a body of known length, and drops each piece after its write.
func writePieces(w http.ResponseWriter, pieces [][]byte) {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	h := w.Header()
	h["Content-Type"], h["Content-Length"] = jsonType, []string{strconv.Itoa(length)}
	begin(w, length)
	w.WriteHeader(http.StatusOK)
	if length <= worthJoining {
		pieces = [][]byte{bytes.Join(pieces, nil)}
	}
	for i, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return // whoever is gone wants no other reply
		}
		length -= len(p)
		pieces[i] = nil // so that its memory is free when the budget learns of it
		wrote(w, length)
	}
}
