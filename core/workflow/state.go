package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A failure is the reason why a step cannot go on. Every failed attempt becomes one, whether
// the call, the data or a time caused it.
type failure struct {
	class  core.ErrorClass
	text   string // class and detail, for people
	status int    // of the reply; 0 if there was none
	final  bool   // another attempt cannot help

	// pause is the Retry-After of the reply; zero if there was none.
	pause time.Duration
}

// It is retried only if retry.errors is empty or contains all.
func dataFailure(err error) *failure {
	return &failure{class: core.ClassData, text: "data: " + err.Error()}
}

// maxDepth bounds the nesting of a state. Package expr cannot read deeper JSON.
const maxDepth = 200

// textOf returns the JSON text of a document, unchanged if the document is JSON. JSON without a
// view is an error. Its numbers, blanks and order of members stay as the sender wrote them.
func textOf(d *expr.Document) ([]byte, error) {
	if text, ok := d.JSON(); ok {
		return text, nil
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return encode(d.Value())
}

// encode returns the JSON text of a tree, on one line. Numbers keep their spelling.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// document returns the view of a JSON text. It makes no copy and parses only when an expression
// reads it.
func document(text []byte) *expr.Document { return expr.NewDocument(text, "") }

// checked returns a text that is to be stored or sent, or an error if it exceeds maxState.
// Callers pass the error of the call that made the text, so that one line checks both.
func checked(text []byte, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxState:
		return nil, fmt.Errorf("the JSON has %d bytes; at most %d are kept", len(text), maxState)
	case expr.TooDeep(text):
		return nil, fmt.Errorf("the JSON is nested deeper than %d levels", maxDepth)
	}
	return text, nil
}

// apply makes the JSON of a mapping. A path that can select several values makes an array of
// them. A path that selects no value is an error.
func apply(m *config.Mapping, d *expr.Document, c *expr.Context) ([]byte, error) {
	switch {
	case m.Template != nil:
		return m.Template.Render(d, c)
	case m.Path.Singular():
		v, err := one(m.Path, d, c)
		if err != nil {
			return nil, err
		}
		return encode(v)
	}
	all, err := m.Path.Select(d, c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	case len(all) == 0:
		return nil, nothingAt(m.Path)
	}
	return encode(all)
}

// one returns the value of a singular path. It is an error if there is no value: a step must
// not go on with null by a misspelt path.
func one(p *expr.Reference, d *expr.Document, c *expr.Context) (any, error) {
	v, ok := p.One(d, c)
	if !ok {
		return nil, nothingAt(p)
	}
	return v, nil
}

// nothingAt returns the error for a path without a value.
func nothingAt(p *expr.Reference) error { return fmt.Errorf("there is nothing at %s", p) }

// annotated returns a state with the failure added, if the state is an object and has room.
func annotated(state []byte, problem *caughtFailure) []byte {
	object, ok := document(state).Value().(map[string]any)
	if !ok {
		return state
	}
	// The tree may be shared with other expressions of the move.
	object = maps.Clone(object)
	object["error"], object["failed_step"] = problem.Message, problem.Step
	text, err := checked(encode(object))
	if err != nil {
		return state
	}
	return text
}

// A scope has the data that the expressions of a step can see. It is made for one attempt, so
// that $$.step.attempt is right.
type scope struct {
	event   *core.Event
	run     core.ID
	row     *core.Step
	attempt int   // 1-based
	docs    *docs // known documents; nil: none
}

// docs are the documents that a move has read: the payload, and the newest state. A state is
// usually read several times in a row, so one is enough. Documents are not safe for concurrent
// use, so they last no longer than the move. Its read bytes bound the work of a move: see
// maxWork.
type docs struct {
	payload *expr.Document
	text    []byte // of state
	state   *expr.Document
	read    int // bytes
}

// ofPayload returns the view of the event's payload, and counts its size once.
func (d *docs) ofPayload(e *core.Event) *expr.Document {
	if d.payload == nil {
		d.payload = expr.View(e.Payload, e.ContentType, e.Opaque())
		d.read += len(e.Payload)
	}
	return d.payload
}

// ofState returns the view of a state. It compares states by their address in memory.
func (d *docs) ofState(text []byte) *expr.Document {
	if len(text) == 0 || len(d.text) != len(text) || &d.text[0] != &text[0] {
		d.text, d.state = text, document(text)
		d.read += len(text)
	}
	return d.state
}

// state returns the document that the step received.
func (s scope) state() *expr.Document {
	known := s.docs
	if known == nil {
		known = &docs{}
	}
	if s.row.State == nil {
		return known.ofPayload(s.event)
	}
	return known.ofState(s.row.State)
}

// text returns the JSON that the step received.
func (s scope) text() ([]byte, error) {
	if s.row.State == nil {
		return textOf(s.state())
	}
	return s.row.State, nil
}

// input returns the JSON on which the step works.
func (s scope) input(m *config.Mapping) ([]byte, error) {
	if m == nil {
		return checked(s.text())
	}
	return checked(apply(m, s.state(), s.context()))
}

// inputDocument returns the document on which the step works.
func (s scope) inputDocument(m *config.Mapping) (*expr.Document, error) {
	if m == nil {
		return s.state(), nil
	}
	text, err := s.input(m)
	// The bytes count towards the work of the move.
	if s.docs != nil {
		s.docs.read += len(text)
	}
	return document(text), err
}

// context returns the document with the name $$.
func (s scope) context() *expr.Context {
	return expr.NewContext(func() map[string]any {
		c := readCarry(s.row.Carry)
		tree := map[string]any{
			"event": map[string]any{
				"id": string(s.event.ID), "type": s.event.Type, "source": s.event.Source,
				"time": s.event.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
			},
			"run":  map[string]any{"id": string(s.run)},
			"step": map[string]any{"name": s.row.Name, "attempt": number(s.attempt)},
		}
		// Only steps within a map step have it.
		if c.Index != nil {
			tree["map"] = map[string]any{"index": number(*c.Index)}
		}
		// Only steps after a caught failure have it.
		if e := c.Error; e != nil {
			tree["error"] = map[string]any{
				"class": string(e.Class), "message": e.Message, "status": number(e.Status), "step": e.Step,
			}
		}
		return tree
	})
}
