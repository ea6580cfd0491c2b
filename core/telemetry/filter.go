package telemetry

import (
	"context"
	"log/slog"
)

// filtering is a slog.Handler that shows what its filter lets through, and of lines that
// come in floods one a second. The target is known once a logger was made with that
// attribute.
type filtering struct {
	slog.Handler
	filter  filter
	target  string
	limiter *limiter
}

func (h *filtering) Handle(ctx context.Context, r slog.Record) error {
	return h.limiter.handle(ctx, h.Handler, h.target, r)
}

// Flush writes what was left out and not told yet.
func (h *filtering) Flush() { h.limiter.flush() }

func (h *filtering) Enabled(_ context.Context, l slog.Level) bool {
	return l >= h.filter.level(h.target)
}

func (h *filtering) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		if a.Key == Target {
			c.target = a.Value.String()
		}
	}
	c.Handler = h.Handler.WithAttrs(attrs)
	return &c
}

func (h *filtering) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	return &c
}
