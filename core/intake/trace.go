package intake

import "github.com/eventgateway/gateway/core"

// trace puts an event into the span of its intake, and returns the span that it was sent
// in: zero if its sender named none that is valid. What others added to a trace that
// nobody can name is of no use to anyone.
func (in *Intake) trace(e *core.Event) (parent core.Span) {
	if in.Trace == nil {
		return core.Span{}
	}
	parent, ok := core.ParseSpan(e.Headers[core.Traceparent])
	if !ok {
		delete(e.Headers, core.Tracestate)
	}
	if e.Headers == nil {
		e.Headers = map[string]string{}
	}
	e.Headers[core.Traceparent] = in.Trace(parent).String()
	return parent
}
