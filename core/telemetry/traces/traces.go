// Package traces exports OpenTelemetry traces of events and their jobs, over OTLP/HTTP.
//
// The one idea to know: spans are made of facts ([core.Fact]) alone, after the work is done.
// Some spans need an id earlier: the id of an intake is stored with its event, and the id of an
// attempt is sent to the handler. Such an id can be computed again from the later fact. So
// nothing is remembered between the two, and gateways that share a database need no contact:
// see [core.Span]. The intake decides once whether a trace is sampled, and the decision is
// stored with the event.
//
// All settings are OpenTelemetry's own variables: the endpoint and its options
// (OTEL_EXPORTER_OTLP_*), the sampler (OTEL_TRACES_SAMPLER), the queue (OTEL_BSP_*), and the
// resource (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES). The SDK reads them from the
// environment of the process.
//
// [Exporter.Observe] never waits and never fails. Spans that the collector does not take in
// time are dropped. No span holds a header, a payload or a URL. A span has the same
// error text as the log, cut to 1 KiB.
//
// spans.go defines the spans, sender.go sends them, and trouble.go logs failures to send. The
// package imports core and OpenTelemetry's SDK. No other package sees the SDK's types. Only
// cmd/gateway imports traces, if it is built with the tag otel.
package traces

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/eventgateway/gateway/core"
)

// Wanted reports whether the environment asks for traces: it names an endpoint and does not
// turn traces off. With an error, which names the wrong variable, traces are off.
func Wanted(env func(string) string) (bool, error) {
	name := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	if env(name) == "" {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	endpoint := env(name)
	exporter := strings.ToLower(cmp.Or(env("OTEL_TRACES_EXPORTER"), "otlp"))
	switch {
	case endpoint == "" || exporter == "none" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true"):
		return false, nil
	case exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER must be otlp or none; traces are off")
	}
	u, err := url.Parse(endpoint) // its error quotes text that may contain a password
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false, fmt.Errorf("%s must be a URL such as http://localhost:4318; traces are off", name)
	}
	return true, nil
}

// Options are the settings of an [Exporter].
type Options struct {
	Version string       // the gateway's version, for the resource
	Clock   core.Clock   // to limit reports of failures
	Log     *slog.Logger // for failures, once a minute
}

// An Exporter makes spans and sends them on. It is safe for concurrent use.
//
// It keeps no state of single traces. The SDK's provider holds the queue, and the sender counts.
type Exporter struct {
	sender   *sender
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Start makes an exporter with the settings of the process's environment; see [Wanted]. A wrong
// setting is logged and keeps its default. Start returns an error only if no exporter can be
// made, for instance because a certificate's file cannot be read.
//
// A process has one exporter: OpenTelemetry's error handler is global, so messages go to the
// log of the newest exporter.
func Start(ctx context.Context, o Options) (*Exporter, error) {
	// The handlers are set before the SDK reads its settings, so that wrong settings are logged.
	trouble := &trouble{log: o.Log, clock: o.Clock}
	otel.SetErrorHandler(trouble)
	otel.SetLogger(remarks(o.Log))
	speaker, err := newClient()
	if err != nil {
		return nil, fmt.Errorf("trace export: %w", err)
	}
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithHTTPClient(speaker))
	if err != nil {
		return nil, fmt.Errorf("trace export: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "gateway"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil {
		trouble.Handle(err) // the known attributes are used
	}
	to := &sender{Exporter: client, trouble: trouble, room: int64(queueSize())}
	// The queue of the SDK and the room of the sender have the same size: see admit.
	provider := sdk.NewTracerProvider(sdk.WithBatcher(to, sdk.WithMaxQueueSize(queueSize())), sdk.WithResource(described), sdk.WithIDGenerator(naming{}))
	return &Exporter{
		sender:   to,
		provider: provider,
		tracer:   provider.Tracer("github.com/eventgateway/gateway", trace.WithInstrumentationVersion(o.Version)),
	}, nil
}

// Begin returns a new span for the intake of an event. Its parent is the sender's span; a zero
// parent begins a new trace. The sampler decides here whether the trace is sampled.
func (x *Exporter) Begin(parent core.Span) core.Span {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), contextOf(parent, ""))
	_, s := x.tracer.Start(ctx, "receive") // it is never ended, so it is never exported
	c := s.SpanContext()
	return core.Span{Trace: c.TraceID(), ID: c.SpanID(), Flags: byte(c.TraceFlags())}
}

// Close sends the queued spans, until ctx is done. An error gives the number of lost spans that no
// log line has counted: the unsent spans, and the spans lost since the last line. Facts observed
// later are ignored.
func (x *Exporter) Close(ctx context.Context) error {
	x.sender.closed.Store(true)
	err := x.provider.Shutdown(ctx)
	// The unsent spans are counted before the requests under way are cut off. The SDK hands
	// their batches to the sender all the same, but then each of them fails.
	unsent := int(x.sender.waiting.Swap(0))
	lost := x.sender.trouble.end() + unsent
	_ = x.sender.Shutdown(context.WithoutCancel(ctx)) // cuts off requests under way
	switch {
	case lost == 0:
		return err
	case err == nil:
		return fmt.Errorf("%d spans since the last report were refused, or had no room", lost)
	}
	return fmt.Errorf("%d spans since the last report: %w", lost, err)
}

// contextOf converts a span, and the tracestate header of its event, to the SDK's type.
func contextOf(s core.Span, state string) trace.SpanContext {
	others, _ := trace.ParseTraceState(state) // empty if state is not valid
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: s.Trace, SpanID: s.ID, TraceFlags: trace.TraceFlags(s.Flags), TraceState: others,
	})
}

// naming is the SDK's IDGenerator. A span gets the id that its context holds, or a random one.
type naming struct{}

// named is the context key of the core.Span whose id the new span gets.
type named struct{}

// NewIDs returns the ids of a new trace and its first span.
func (naming) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if s, ok := ctx.Value(named{}).(core.Span); ok {
		return s.Trace, s.ID
	}
	var id trace.TraceID
	for !id.IsValid() {
		fill(id[:])
	}
	return id, randomID()
}

// NewSpanID returns the id of a span that has a parent.
func (naming) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if s, ok := ctx.Value(named{}).(core.Span); ok {
		return s.ID
	}
	return randomID()
}

// randomID returns a random id that is not zero.
func randomID() (id trace.SpanID) {
	for !id.IsValid() {
		fill(id[:])
	}
	return id
}

// fill fills a slice, whose length is a multiple of 8, with random bytes.
func fill(b []byte) {
	for ; len(b) > 0; b = b[8:] {
		for i, r := 0, rand.Uint64(); i < 8; i, r = i+1, r>>8 {
			b[i] = byte(r)
		}
	}
}
