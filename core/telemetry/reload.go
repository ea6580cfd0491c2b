package telemetry

import (
	"log/slog"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// reloadWords are the messages for the results of a reload.
var reloadWords = map[core.ReloadResult]string{
	core.ReloadApplied:     "configuration applied",
	core.ReloadUnchanged:   "configuration is unchanged",
	core.ReloadInvalid:     "configuration ignored: it has errors; the one before stays",
	core.ReloadForbidden:   "configuration ignored: a running gateway does not go over to it; the one before stays",
	core.ReloadUnreachable: "configuration cannot be read; the one before stays",
}

// reloaded logs the result of a reload, with all errors of the configuration on one line.
func (o logger) reloaded(f core.Reloaded) {
	level, attrs := slog.LevelInfo, []slog.Attr{slog.String("from", f.From)}
	if f.Err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", strings.ReplaceAll(f.Err.Error(), "\n", "; ")))
	}
	line(o.config, level, reloadWords[f.Result], attrs...)
}
