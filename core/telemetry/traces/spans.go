package traces

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/eventgateway/gateway/core"
)

// A piece is finished work, from which a span is made.
//
// It has all data of a span, since the span is started and ended in one call, with the times of the
// work.
type piece struct {
	core.Span
	parent trace.SpanContext
	name   string
	kind   trace.SpanKind
	began  time.Time
	ended  time.Time
	class  string // class of the error; empty if there was none
	wrong  string // the error
	attrs  []attribute.KeyValue
}

// Observe makes spans of facts. It is a [core.Observer].
//
//	span                      the work                                   its parent
//	receive <source>          an event was stored                        the sender's span
//	deliver <handler>         one attempt                                the intake
//	settle <queue>            a message is dead                          the intake
//	run <workflow>            a finished run                             the intake
//	step <workflow>/<step>    one call of a step                         the run
func (x *Exporter) Observe(f core.Fact) {
	switch f := f.(type) {
	case core.Accepted:
		x.accepted(f)
	case core.Settled:
		x.settled(f)
	case core.StepMoved:
		x.stepMoved(f)
	case core.RunMoved:
		x.runMoved(f)
	}
}

// accepted makes the span of an event's intake.
func (x *Exporter) accepted(f core.Accepted) {
	span, ok := intakeOf(f.Event)
	if !ok {
		return
	}
	parent := contextOf(f.Parent, f.Event.Headers[core.Tracestate]).WithRemote(true)
	x.export(piece{
		Span: span, parent: parent, name: "receive " + f.Event.Source, kind: trace.SpanKindServer,
		began: f.Event.CreatedAt, ended: f.Event.CreatedAt.Add(f.Took),
		attrs: append(about(f.Event), attribute.Int("gateway.jobs", f.Jobs)),
	})
}

// settled makes the span of an attempt. Alerts have no spans. A settled job in a workflow's
// lane is a stale job that made no call, so it has none either.
func (x *Exporter) settled(f core.Settled) {
	span, ok := intakeOf(f.Event)
	lane := f.Job.Lane
	if !ok || lane.Alert() || lane.Workflow() != "" {
		return
	}
	p := piece{
		Span: span.Attempt(f.Job), parent: within(span, f.Event), kind: trace.SpanKindClient,
		name: "deliver " + lane.Handler(),
	}
	consumer := attribute.String("gateway.handler", lane.Handler())
	// A message has no call of the gateway, so its span has the kind consumer.
	if queue := lane.Queue(); queue != "" {
		p.kind, p.name, consumer = trace.SpanKindConsumer, "settle "+queue, attribute.String("gateway.queue", queue)
	}
	p.attrs = append(about(f.Event), attribute.String("gateway.job", string(f.Job.ID)), consumer,
		attribute.String("gateway.status", string(f.Outcome.Status)))
	x.export(p.of(f.Outcome.Attempt))
}

// stepMoved makes the span of a step's call. The call and the step may end differently: a reply
// with status 200 may be unusable.
func (x *Exporter) stepMoved(f core.StepMoved) {
	span, ok := intakeOf(f.Event)
	if !ok || f.Attempt.Number == 0 {
		return
	}
	p := piece{
		Span: span.StepAttempt(f.Step.ID, f.Attempt.Number), parent: within(span.Run(f.Run.ID, f.Run.Epoch), f.Event),
		name: "step " + f.Run.Workflow + "/" + f.Step.Name, kind: trace.SpanKindClient,
		attrs: append(append(about(f.Event), aboutRun(f.Run)...),
			attribute.String("gateway.step", f.Step.Path), attribute.String("gateway.status", string(f.Step.Status))),
	}
	x.export(p.of(f.Attempt))
}

// runMoved makes the span of a finished run. A redriven run gets another span when it finishes.
func (x *Exporter) runMoved(f core.RunMoved) {
	span, ok := intakeOf(f.Event)
	if !ok || !f.Run.Status.Finished() {
		return
	}
	// The span of a run covers its steps, so it begins with the first of them.
	began := f.Run.StartedAt
	if began.IsZero() {
		began = f.Run.FinishedAt // the run ended before its first step
	}
	x.export(piece{
		Span: span.Run(f.Run.ID, f.Run.Epoch), parent: within(span, f.Event),
		name: "run " + f.Run.Workflow, kind: trace.SpanKindInternal,
		began: began, ended: f.Run.FinishedAt, wrong: f.Run.Error,
		attrs: append(append(about(f.Event), aboutRun(f.Run)...), attribute.String("gateway.status", string(f.Run.Status))),
	})
}

// intakeOf returns the span of an event's intake, and whether its trace is sampled. An event
// that arrived while traces were off has its sender's span, or none.
func intakeOf(e core.Event) (core.Span, bool) {
	span, ok := core.ParseSpan(e.Headers[core.Traceparent])
	return span, ok && span.Sampled()
}

// within returns a span of an event, as the parent of other spans.
func within(s core.Span, e core.Event) trace.SpanContext {
	return contextOf(s, e.Headers[core.Tracestate])
}

// about returns the attributes of an event.
func about(e core.Event) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gateway.event", string(e.ID)),
		attribute.String("gateway.source", e.Source),
		attribute.String("gateway.type", e.Type),
	}
}

// aboutRun returns the attributes of a run.
func aboutRun(r core.Run) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gateway.workflow", r.Workflow),
		attribute.String("gateway.run", string(r.ID)),
		attribute.Int("gateway.epoch", r.Epoch),
	}
}

// of returns the piece with the times and the result of an attempt.
func (p piece) of(a core.Attempt) piece {
	p.began, p.ended = a.StartedAt, a.StartedAt.Add(a.Duration)
	p.class, _, _ = strings.Cut(a.Error, ":")
	p.wrong = a.Error
	p.attrs = append(p.attrs, attribute.Int("gateway.attempt", a.Number))
	if a.StatusCode != 0 {
		p.attrs = append(p.attrs, attribute.Int("http.response.status_code", a.StatusCode))
	}
	return p
}

// maxWords bounds the error text of a span, in bytes.
const maxWords = 1 << 10

// export hands a span to the SDK. The SDK asks the sampler again and queues the span. A span that
// is never ended is dropped by the SDK.
func (x *Exporter) export(p piece) {
	// The context carries the id that the span must have, for naming, and its parent.
	ctx := trace.ContextWithSpanContext(context.WithValue(context.Background(), named{}, p.Span), p.parent)
	_, s := x.tracer.Start(ctx, p.name, trace.WithTimestamp(p.began), trace.WithSpanKind(p.kind), trace.WithAttributes(p.attrs...))
	if !s.IsRecording() || !x.sender.admit() {
		return
	}
	if p.class != "" {
		s.SetAttributes(attribute.String("error.type", text(p.class)))
	}
	if p.wrong != "" {
		s.SetStatus(codes.Error, text(p.wrong))
	}
	s.End(trace.WithTimestamp(p.ended))
}

// text returns at most [maxWords] bytes of s, as valid UTF-8. The collector would refuse a
// whole batch for one text that is not UTF-8.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWords)], "") }
