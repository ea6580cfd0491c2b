package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/wire"
)

// An exported event is a line of an export, with the fields that are needed to send the event
// again. A line written by hand needs source, event_type and payload.
type exported struct {
	ID        string            `json:"id"`
	Source    string            `json:"source"`
	EventType string            `json:"event_type"`
	Payload   json.RawMessage   `json:"payload"`
	Encoding  string            `json:"payload_encoding"` // see wire.EventTail
	Headers   map[string]string `json:"headers"`
	CreatedAt string            `json:"created_at"`
	Jobs      []exportedJob     `json:"jobs"`

	line     int       // line number
	received time.Time // CreatedAt; zero if that is missing
}

// An exportedJob has the one field of a job that --status needs.
type exportedJob struct {
	Status core.Status `json:"status"`
}

// A lineReader reads lines of up to most bytes.
type lineReader struct {
	*bufio.Reader
	most   int
	number int // of the last line, from 1
}

// newLineReader returns a reader of lines that ends when ctx ends.
func newLineReader(ctx context.Context, r io.Reader, most int) *lineReader {
	return &lineReader{Reader: bufio.NewReaderSize(interruptible{ctx, r}, 64<<10), most: most}
}

// exportedEvents yields the events of the lines of r, or the error of a line. It skips blank
// lines. A read error has line 0 and ends it.
func exportedEvents(ctx context.Context, r io.Reader, most int) iter.Seq2[exported, error] {
	lines := newLineReader(ctx, r, most)
	return func(yield func(exported, error) bool) {
		for {
			line, tooLong, err := lines.next()
			var e exported
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(exported{}, err)
				return
			case tooLong:
				err = fmt.Errorf("it is longer than %d bytes", most)
			case len(line) == 0:
				continue
			default:
				e, err = parseExported(line)
			}
			if e.line = lines.number; !yield(e, err) {
				return
			}
		}
	}
}

// next returns a line without surrounding space. It skips a line longer than most without
// keeping it. The last line needs no line break. After it, next returns io.EOF.
func (l *lineReader) next() (line []byte, tooLong bool, err error) {
	length := 0
	l.number++
	for {
		// A line that is too long is read to its end in pieces, so that the next line is found
		// and memory stays bounded.
		part, err := l.ReadSlice('\n')
		if length += len(part); length <= l.most {
			line = append(line, part...)
		} else {
			line, tooLong = nil, true
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && length > 0, err == nil:
			return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))), tooLong, nil
		default:
			return nil, false, err
		}
	}
}

// parseExported reads a line that is not blank.
func parseExported(line []byte) (e exported, err error) {
	if line[0] != '{' {
		return e, errors.New("it is no JSON object")
	}
	// The first wrong field is named. A line of a large export is too long to look through.
	var mistyped *json.UnmarshalTypeError
	switch err := json.Unmarshal(line, &e); {
	case errors.As(err, &mistyped):
		return e, fmt.Errorf("%s is not of the right type", mistyped.Field)
	case err != nil:
		return e, fmt.Errorf("it is no JSON object: %w", err)
	case e.Source == "":
		return e, errors.New("source is missing")
	case strings.Trim(e.Source, ".") == "": // in a path, it would lead elsewhere
		return e, fmt.Errorf("source must be a name, not %q", terminal.Clip(e.Source, 40))
	case e.EventType == "":
		return e, errors.New("event_type is missing")
	case !intake.ValidType(e.EventType):
		return e, errors.New(`event_type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without ".."`)
	case e.Payload == nil:
		return e, errors.New("payload is missing")
	}
	if e.CreatedAt != "" {
		if e.received, err = core.ParseTime(e.CreatedAt); err != nil {
			return e, fmt.Errorf("created_at: %w", err)
		}
	}
	e.Payload, err = e.body()
	return e, err
}

// letterHeaders returns the headers that are sent again, under their canonical names.
func (e exported) letterHeaders() http.Header {
	sent := http.Header{}
	for name, value := range e.Headers {
		if name = textproto.CanonicalMIMEHeaderKey(name); name == "Content-Type" || strings.HasPrefix(name, "Ce-") {
			sent.Set(name, value)
		}
	}
	return sent
}

// key returns the idempotency key of an event in a replay with the name run, or "" for none.
// It depends on the sent data, so an edited event has a new key. A CloudEvent needs no key:
// the gateway knows it by its source and id, in any replay.
func (e exported) key(run string) string {
	headers := e.letterHeaders()
	if run == "" || headers.Get("Ce-Source") != "" && headers.Get("Ce-Id") != "" {
		return ""
	}
	which := e.ID
	if _, err := core.ParseID(e.ID); err != nil {
		which = fmt.Sprintf("line-%d", e.line)
	}
	sum := sha256.Sum256(append([]byte(e.EventType+"\n"), e.Payload...))
	return fmt.Sprintf("replay-local/%s/%s/%x", run, which, sum[:8])
}

// checkHeaders refuses headers that a request cannot have.
func checkHeaders(sent http.Header) error {
	for name := range sent {
		if value := sent.Get(name); strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == '\x7f' }) {
			return fmt.Errorf("headers: %s holds a line break or control character, which no request can: %q", strings.ToLower(name), terminal.Clip(value, 80))
		}
	}
	return nil
}

// body returns the payload as bytes to send.
func (e exported) body() ([]byte, error) {
	switch e.Encoding {
	case "":
		return e.Payload, nil
	case wire.PayloadNone:
		return nil, nil
	case wire.PayloadText, wire.PayloadBase64:
	default:
		return nil, fmt.Errorf("payload_encoding must be text, base64 or none, or left out; not %q", terminal.Clip(e.Encoding, 40))
	}
	var text string
	if e.Payload[0] != '"' {
		return nil, fmt.Errorf("payload must be a string, since payload_encoding is %s", e.Encoding)
	}
	if err := json.Unmarshal(e.Payload, &text); err != nil || e.Encoding == wire.PayloadText {
		return []byte(text), err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("payload must be base64, since payload_encoding says so: %w", err)
	}
	return raw, nil
}

// A picker picks events out of an export.
type picker struct {
	core.EventFilter // its Type may end in *, for a prefix
	status           core.Status
}

// all reports whether it picks every event.
func (p picker) all() bool { return p == picker{} }

// picks reports whether an event of the export is selected. An event without a time is never
// before --until, since it may have come later.
func (p picker) picks(e exported) bool {
	switch {
	case p.Source != "" && e.Source != p.Source:
	case !matchesType(p.Type, e.EventType):
	case !p.Since.IsZero() && e.received.Before(p.Since):
	case !p.Until.IsZero() && (e.received.IsZero() || !e.received.Before(p.Until)):
	case p.status != "" && !slices.ContainsFunc(e.Jobs, p.wants):
	default:
		return true
	}
	return false
}

// wants reports whether a job has the wanted status.
func (p picker) wants(job exportedJob) bool { return job.Status == p.status }

// matchesType reports whether a type matches a pattern: the type itself, a prefix that ends in
// *, or "" for all.
func matchesType(pattern, eventType string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(eventType, prefix)
	}
	return pattern == "" || pattern == eventType
}

// interruptible reads like its reader, but returns when ctx ends, although a read from a
// terminal or a pipe cannot be interrupted. Data of a read that ends later is lost.
type interruptible struct {
	ctx context.Context
	io.Reader
}

// Read reads on a goroutine of its own, into a buffer of its own: a read that ends after ctx
// must not write into b, which the caller uses again.
func (p interruptible) Read(b []byte) (int, error) {
	got, err := unlessDone(p.ctx, func() ([]byte, error) {
		own := make([]byte, len(b))
		n, err := p.Reader.Read(own)
		return own[:n], err
	})
	return copy(b, got), err
}
