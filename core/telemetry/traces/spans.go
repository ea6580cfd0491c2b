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

// A piece is a finished operation, of which a span is made.
type piece struct {
	core.Span
	parent trace.SpanContext
	name   string
	kind   trace.SpanKind
	began  time.Time
	ended  time.Time
	class  string // class of the error; empty if there was none
	wrong  string // in words
	attrs  []attribute.KeyValue
}

// Observe makes spans of facts. It is a [core.Observer].
//
//	receive <source>          an event was stored; in the sender's span
//	deliver <handler>         one attempt; in that of the intake
//	settle <queue>            a message is dead; in that of the intake
//	run <workflow>            a run, until it completed or failed; in that of the intake
//	step <workflow>/<step>    one call of a step; in that of the run
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

func (x *Exporter) accepted(f core.Accepted) {
	span, ok := intakeOf(f.Event)
	if !ok {
		return
	}
	parent := contextOf(f.Parent, f.Event.Headers[core.Tracestate]).WithRemote(true)
	x.tell(piece{
		Span: span, parent: parent, name: "receive " + f.Event.Source, kind: trace.SpanKindServer,
		began: f.Event.CreatedAt, ended: f.Event.CreatedAt.Add(f.Took),
		attrs: append(about(f.Event), attribute.Int("gateway.jobs", f.Jobs)),
	})
}

// settled makes the spans of attempts. A job of a workflow that is settled like others was
// not needed by its run, and no call was made for it.
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
	who := attribute.String("gateway.handler", lane.Handler())
	if queue := lane.Queue(); queue != "" {
		p.kind, p.name, who = trace.SpanKindConsumer, "settle "+queue, attribute.String("gateway.queue", queue)
	}
	p.attrs = append(about(f.Event), attribute.String("gateway.job", string(f.Job.ID)), who,
		attribute.String("gateway.status", string(f.Outcome.Status)))
	x.tell(p.of(f.Outcome.Attempt))
}

// stepMoved makes the spans of steps' calls. The result of a call and the new status of its
// step may differ: a successful reply may be unusable.
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
	x.tell(p.of(f.Attempt))
}

// runMoved makes the spans of finished runs. A redriven run has another span.
func (x *Exporter) runMoved(f core.RunMoved) {
	span, ok := intakeOf(f.Event)
	if !ok || !f.Run.Status.Finished() {
		return
	}
	began := f.Run.StartedAt
	if began.IsZero() {
		began = f.Run.FinishedAt // it ended before it began
	}
	x.tell(piece{
		Span: span.Run(f.Run.ID, f.Run.Epoch), parent: within(span, f.Event),
		name: "run " + f.Run.Workflow, kind: trace.SpanKindInternal,
		began: began, ended: f.Run.FinishedAt, wrong: f.Run.Error,
		attrs: append(append(about(f.Event), aboutRun(f.Run)...), attribute.String("gateway.status", string(f.Run.Status))),
	})
}

// intakeOf returns the span of the intake of an event, and whether its trace is kept. An
// event that came in while no spans were made has its sender's span, or none.
func intakeOf(e core.Event) (core.Span, bool) {
	span, ok := core.ParseSpan(e.Headers[core.Traceparent])
	return span, ok && span.Sampled()
}

// within returns a span of an event as the parent of others.
func within(s core.Span, e core.Event) trace.SpanContext {
	return contextOf(s, e.Headers[core.Tracestate])
}

func about(e core.Event) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gateway.event", string(e.ID)),
		attribute.String("gateway.source", e.Source),
		attribute.String("gateway.type", e.Type),
	}
}

func aboutRun(r core.Run) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gateway.workflow", r.Workflow),
		attribute.String("gateway.run", string(r.ID)),
		attribute.Int("gateway.epoch", r.Epoch),
	}
}

// of adds the record of an attempt.
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

// maxWords is the largest part of an error in a span, in bytes.
const maxWords = 1 << 10

// tell passes a span to the SDK, which asks the sampler once more and queues the span. A
// span that is not ended would be forgotten.
func (x *Exporter) tell(p piece) {
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

// text returns text that OTLP can carry. A text that is not UTF-8 would lose the whole
// batch.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWords)], "") }
