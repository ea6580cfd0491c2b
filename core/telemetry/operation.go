package telemetry

import (
	"log/slog"

	"github.com/eventgateway/gateway/core"
)

// operationEnded logs that an operation is over.
func (o logger) operationEnded(op core.Operation) {
	attrs := []slog.Attr{
		slog.String("operation", string(op.ID)), slog.String("action", string(op.Action)),
		slog.Int("looked", op.Looked), slog.Int("acted", op.Acted), slog.Int("skipped", op.Skipped),
	}
	level := slog.LevelInfo
	if op.State == core.OperationFailed {
		level, attrs = slog.LevelError, append(attrs, slog.String("error", op.Error))
	}
	line(o.manage, level, "operation "+string(op.State), attrs...)
}
