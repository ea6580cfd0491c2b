package telemetry

import (
	"context"
	"log/slog"
)

// filtering is a slog.Handler. It passes the lines that its filter allows, and limits floods to
// one line a second. It reads the target from the logger's attribute of that name ([Target]).
//
// A handler never changes. WithAttrs and WithGroup return copies, which share the limiter, so all
// loggers of a process count floods together.
type filtering struct {
	slog.Handler
	filter  filter
	target  string
	limiter *limiter
}

// Handle writes a line, or leaves it out if the limiter says so.
func (h *filtering) Handle(ctx context.Context, r slog.Record) error {
	return h.limiter.handle(ctx, h.Handler, h.target, r)
}

// Flush writes the lines that were left out and not yet reported.
func (h *filtering) Flush() { h.limiter.flush() }

// Enabled reports whether the filter allows lines of this level for the handler's target.
func (h *filtering) Enabled(_ context.Context, l slog.Level) bool {
	return l >= h.filter.level(h.target)
}

// WithAttrs returns a copy of the handler with more attributes. The attribute [Target] sets the
// copy's target.
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

// WithGroup returns a copy of the handler that puts later attributes into a group.
func (h *filtering) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	return &c
}
