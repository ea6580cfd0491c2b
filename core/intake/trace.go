package intake

import "github.com/eventgateway/gateway/core"

// trace puts an event into the span of its intake, and returns the span that the sender
// named. That span is zero if the sender named none, or an invalid one; then a tracestate
// header is dropped as well, since it belongs to no trace.
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
