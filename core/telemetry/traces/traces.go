// Package traces exports the history of events as OpenTelemetry traces, over OTLP/HTTP.
//
// The idea to know: spans are made of facts ([core.Fact]), after the event, and of nothing
// else. Some spans need an id before they end: an intake's is stored with its event, and an
// attempt's is sent to its receiver. Such an id also follows from the fact. So nothing is
// kept between the two, and gateways that share a database need not know of each other: see
// [core.Span]. The decision whether a trace is sampled is made once, at intake, and stored
// with the event.
//
// OpenTelemetry's own variables are the settings: the endpoint and its details
// (OTEL_EXPORTER_OTLP_*), the sampler (OTEL_TRACES_SAMPLER), the queue (OTEL_BSP_*), the
// resource (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES). The SDK reads them from the
// environment of the process.
//
// Export never blocks and never fails: spans that the collector does not accept in time are
// dropped. No span contains a header, a payload or a URL. Errors have the same words as in
// logs.
//
// spans.go defines the spans, sender.go sends them, trouble.go reports failures of that.
// The package imports core and OpenTelemetry's SDK, whose types no other package sees. Only
// cmd/gateway imports it, if it is built with the tag otel.
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

// Wanted reports whether the environment requests traces: it names an endpoint for the
// export and does not turn traces off. An error names an invalid request; then traces are
// off as well.
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

// Options of an Exporter.
type Options struct {
	Version string       // of the gateway
	Clock   core.Clock   // to limit reports of failures
	Log     *slog.Logger // for failures, once a minute
}

// An Exporter makes spans and sends them on. It is safe for concurrent use.
type Exporter struct {
	sender   *sender
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Start makes an exporter from the process's environment; see [Wanted]. It logs invalid
// settings and uses their defaults, unless they permit no connection at all. A process has
// one exporter: messages of OpenTelemetry's parts go to the log of the newest.
func Start(ctx context.Context, o Options) (*Exporter, error) {
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
	provider := sdk.NewTracerProvider(sdk.WithBatcher(to, sdk.WithMaxQueueSize(queueSize())), sdk.WithResource(described), sdk.WithIDGenerator(naming{}))
	return &Exporter{
		sender:   to,
		provider: provider,
		tracer:   provider.Tracer("github.com/eventgateway/gateway", trace.WithInstrumentationVersion(o.Version)),
	}, nil
}

// Begin makes the span of the intake of an event. Its parent is the span that the sender
// named; a zero parent begins a new trace. The sampler decides here whether the trace is
// kept.
func (x *Exporter) Begin(parent core.Span) core.Span {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), contextOf(parent, ""))
	_, s := x.tracer.Start(ctx, "receive") // it is never ended, so it is never exported
	c := s.SpanContext()
	return core.Span{Trace: c.TraceID(), ID: c.SpanID(), Flags: byte(c.TraceFlags())}
}

// Close sends the remaining spans, until ctx is done. An error says that some were not
// sent. Later facts are ignored.
func (x *Exporter) Close(ctx context.Context) error {
	err := x.provider.Shutdown(ctx)
	x.sender.trouble.end()
	_ = x.sender.Shutdown(context.WithoutCancel(ctx)) // cuts off requests under way
	return err
}

// contextOf returns a span in the SDK's form.
func contextOf(s core.Span, state string) trace.SpanContext {
	others, _ := trace.ParseTraceState(state) // empty if it is no list
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: s.Trace, SpanID: s.ID, TraceFlags: trace.TraceFlags(s.Flags), TraceState: others,
	})
}

// naming gives a span the ids that its context holds, and any other span random ones.
type naming struct{}

// A named context holds the core.Span that is begun in it.
type named struct{}

// NewIDs implements the SDK's IDGenerator, for spans without a parent.
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

// NewSpanID implements the SDK's IDGenerator.
func (naming) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if s, ok := ctx.Value(named{}).(core.Span); ok {
		return s.ID
	}
	return randomID()
}

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
