//go:build !otel

package main

import (
	"context"
	"log/slog"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry"
)

// startTraces logs a warning if the environment asks for traces: this build has none.
// Without this warning an operator would look for the traces in the collector, where no error
// shows either. The program then runs without traces.
func (a *app) startTraces(_ context.Context, cfg *config.Config, log *slog.Logger) (gateway.Tracer, func()) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if a.setting(cfg, name) != "" {
			log.Warn(name+" is set, but trace export is not built into this binary; build it with -tags otel", telemetry.Target, "traces")
			break
		}
	}
	return nil, func() {}
}
