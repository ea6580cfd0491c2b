package telemetry

import (
	"context"
	"log/slog"
)

// filtering is a slog.Handler that passes the lines that its filter permits, and one line a
// second of floods. It knows the target from the logger's attribute of that name.
type filtering struct {
	slog.Handler
	filter  filter
	target  string
	limiter *limiter
}

func (h *filtering) Handle(ctx context.Context, r slog.Record) error {
	return h.limiter.handle(ctx, h.Handler, h.target, r)
}

// Flush writes the lines that were left out and not yet reported.
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
