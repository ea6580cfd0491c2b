package telemetry

import (
	"context"
	"log/slog"

	"github.com/eventgateway/gateway/core"
)

// Log is an observer that writes facts as log lines: what went as it should at
// info, what will be tried again at warn, what needs a person at error.
func Log(l *slog.Logger) core.Observer {
	o := logger{intake: l.With(Target, "intake"), worker: l.With(Target, "worker"), store: l.With(Target, "store")}
	return o.observe
}

type logger struct{ intake, worker, store *slog.Logger }

func (o logger) observe(f core.Fact) {
	switch f := f.(type) {
	case core.Accepted:
		if !o.intake.Enabled(context.Background(), slog.LevelInfo) {
			return // before the line is put together: this is the busiest one
		}
		line(o.intake, slog.LevelInfo, "event accepted", slog.String("event", string(f.Event.ID)),
			slog.String("source", f.Event.Source), slog.String("type", f.Event.Type), slog.Int("jobs", f.Jobs))
	case core.Repeated:
		line(o.intake, slog.LevelInfo, "duplicate event ignored", slog.String("first", string(f.First)),
			slog.String("source", f.Source), slog.String("type", f.Type))
	case core.Unverified:
		line(o.intake, slog.LevelWarn, "verification failed", slog.String("source", f.Source),
			slog.String("reason", f.Reason), slog.String("client_ip", f.ClientIP))
	case core.Settled:
		o.settled(f)
	case core.Superseded:
		line(o.worker, slog.LevelWarn, "outcome came after its lease; another attempt stands", slog.String("job", string(f.Job.ID)),
			slog.String("handler", f.Job.Lane.Consumer()), slog.Int("attempt", f.Job.Attempt))
	case core.Released:
		line(o.worker, slog.LevelInfo, "jobs given back", slog.Int("jobs", f.Jobs), slog.String("why", f.Why))
	case core.Recovered:
		line(o.worker, slog.LevelInfo, "jobs of an earlier process recovered", slog.Int("jobs", f.Jobs))
	case core.Troubled:
		line(o.store, slog.LevelWarn, "trying again", slog.String("doing", f.Doing), slog.Any("error", f.Err))
	}
}

func (o logger) settled(f core.Settled) {
	level, message := slog.LevelInfo, "delivered"
	switch f.Outcome.Status {
	case core.Retryable:
		level, message = slog.LevelWarn, "delivery failed, will retry"
	case core.Dead:
		level, message = slog.LevelError, "job is dead"
	}
	if !o.worker.Enabled(context.Background(), level) {
		return
	}
	a := f.Outcome.Attempt
	attrs := []slog.Attr{
		slog.String("event", string(f.Job.EventID)), slog.String("job", string(f.Job.ID)),
		slog.String("handler", f.Job.Lane.Consumer()), slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode), slog.Int64("duration_ms", a.Duration.Milliseconds()),
	}
	if a.Error != "" {
		attrs = append(attrs, slog.String("error", a.Error))
	}
	if !f.Outcome.DueAt.IsZero() {
		attrs = append(attrs, slog.String("due", core.FormatTime(f.Outcome.DueAt)))
	}
	line(o.worker, level, message, attrs...)
}

func line(l *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	l.LogAttrs(context.Background(), level, message, attrs...)
}
