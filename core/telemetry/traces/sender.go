package traces

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/eventgateway/gateway/core"
)

// A sender sends spans to the collector, and reports how many are lost.
//
// A span counts as waiting from admit to the end of its export, in the SDK's queue as well as in a
// request under way.
type sender struct {
	*otlptrace.Exporter
	trouble *trouble
	room    int64        // how many spans may wait or be under way
	waiting atomic.Int64 // spans that wait or are being sent
	closed  atomic.Bool  // takes no more spans
}

// queueSize is how many spans may wait: OTEL_BSP_MAX_QUEUE_SIZE, or the SDK's default.
func queueSize() int {
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return sdk.DefaultMaxQueueSize
}

var errNoRoom = errors.New("the collector is too slow: more spans wait than OTEL_BSP_MAX_QUEUE_SIZE says")

// admit reports whether there is room for another span. The SDK's queue has the same size, but
// it drops further spans silently. admit counts them as lost. Spans of work that ends after
// Close are left out and not counted: the SDK would drop them.
func (s *sender) admit() bool {
	if s.closed.Load() {
		return false
	}
	if s.waiting.Add(1) <= s.room {
		return true
	}
	s.waiting.Add(-1)
	s.trouble.report(errNoRoom, 1)
	return false
}

// ExportSpans implements the SDK's SpanExporter. The SDK calls it on a goroutine of its own,
// where a panic of the client, for instance at a collector's reply, would end the process.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	defer s.waiting.Add(-int64(len(spans)))
	if err := core.Contain(func() error { return s.Exporter.ExportSpans(ctx, spans) }); err != nil {
		s.trouble.report(err, len(spans))
	}
	return nil // it was reported
}
