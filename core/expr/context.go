package expr

import "time"

// A Context is what an expression can ask besides the payload, the document called
// $$: event.id and the like. It is made when it is first asked for. It is not safe
// for concurrent use.
type Context struct {
	build func() map[string]any
	value any
	built bool
}

// NewContext returns a context whose document is what build returns: a tree of the
// types of [Document.Value], numbers being [encoding/json.Number]. Build is called
// once at most, and not at all for expressions without $$.
func NewContext(build func() map[string]any) *Context { return &Context{build: build} }

// OfEvent is the context of an expression about an event: $$.event.id, type, source
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

// A scope is what one evaluation can see.
type scope struct {
	payload *Document
	context *Context
}

// A reference is a path and the document it begins in.
type reference struct {
	path    *Path
	context bool // in $$, not in $
}

func (r *reference) root(s scope) any {
	if r.context {
		return s.context.tree()
	}
	return s.payload.Value()
}

// one returns what a singular path leads to, if it leads anywhere. An array or
// object may be a *branch.
func (r *reference) one(s scope) (any, bool) {
	if r.context {
		return r.path.One(s.context.tree())
	}
	return s.payload.one(r.path)
}

// all returns what the path selects.
func (r *reference) all(s scope) []any {
	if r.path.Singular() {
		if v, ok := r.one(s); ok {
			return []any{grown(v)}
		}
		return nil
	}
	return r.path.Select(r.root(s))
}
