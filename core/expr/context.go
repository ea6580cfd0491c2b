package expr

import (
	"errors"
	"strings"
	"time"
)

// A Context is the document $$, which an expression can read beside the payload: event.id
// and other members. It is made when an expression first reads it. It is not safe for
// concurrent use.
type Context struct {
	build func() map[string]any
	value any
	built bool
}

// NewContext returns a context whose document is the result of build: a tree of the types
// of [Document.Value], with [encoding/json.Number] for numbers. Build is called at most
// once, and not at all for expressions without $$.
func NewContext(build func() map[string]any) *Context { return &Context{build: build} }

// OfEvent returns the context of an expression about an event: $$.event.id, type, source
// and time, in RFC 3339 with milliseconds, in UTC.
func OfEvent(id, eventType, source string, at time.Time) *Context {
	return NewContext(func() map[string]any {
		return map[string]any{"event": map[string]any{
			"id": id, "type": eventType, "source": source, "time": at.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		}}
	})
}

// tree returns the document, which is empty if there is no context.
func (c *Context) tree() any {
	if c == nil {
		return map[string]any(nil)
	}
	if !c.built {
		c.value, c.built = c.build(), true
	}
	return c.value
}

// A scope has the documents that one evaluation can read.
type scope struct {
	payload *Document
	context *Context
}

// budget returns the budget of the evaluation.
func (s scope) budget() *budget { return &s.payload.budget }

// A reference is a path and the document it begins in.
type reference struct {
	path    *Path
	context bool // in $$, not in $
}

// root returns the tree in which the path begins.
func (r *reference) root(s scope) any {
	if r.context {
		return s.context.tree()
	}
	return s.payload.Value()
}

// one returns the value of a singular path, and whether there is one. An array or object
// may be a *branch.
func (r *reference) one(s scope) (any, bool) {
	if r.context {
		return r.path.one(s.budget(), s.context.tree())
	}
	return s.payload.one(r.path)
}

// all returns the values that the path selects.
func (r *reference) all(s scope) []any {
	if r.path.Singular() {
		// The criteria of a set need the value itself, and not a branch on the tape.
		if v, ok := r.one(s); ok {
			return []any{grown(v)}
		}
		return nil
	}
	return r.path.all(s.budget(), r.root(s))
}

// A Reference is a [Path] that may also begin with $$ and then leads into the
// [Context]. It never changes and is safe for concurrent use.
type Reference struct {
	text string
	to   reference
}

// beginnings is the end of the errors about a wrong beginning.
const beginnings = "a path begins with $ in the payload and with $$ in the context"

// ParseReference parses a path as [ParsePath] does.
func ParseReference(text string) (*Reference, error) {
	rest, doubled := text, strings.HasPrefix(text, "$$")
	switch {
	// The third $ is the mistake, at offset 2.
	case strings.HasPrefix(text, "$$$"):
		return nil, at(text, 2, beginnings)
	case doubled:
		rest = text[1:]
	}
	path, err := ParsePath(rest)
	var f *fault
	// The column counts in the whole text, with both dollars.
	if doubled && errors.As(err, &f) {
		err = at(text, f.offset+1, "%s", f.message)
	}
	if err != nil {
		return nil, err
	}
	return &Reference{text, reference{path, doubled}}, nil
}

// String returns the path as it was written.
func (r *Reference) String() string { return r.text }

// Singular reports whether the path is singular: see [Path.Singular].
func (r *Reference) Singular() bool { return r.to.path.Singular() }

// One returns the value that a singular path leads to, as [Document.One] does. The context
// may be nil, here and below.
func (r *Reference) One(d *Document, c *Context) (any, bool) {
	if !r.Singular() {
		return nil, false
	}
	d.begin()
	v, ok := r.to.one(scope{d, c})
	return grown(v), ok
}

// Select returns all values that the path selects, as [Document.Select] does.
func (r *Reference) Select(d *Document, c *Context) ([]any, error) {
	d.begin()
	all := r.to.all(scope{d, c})
	return all, d.settle()
}
