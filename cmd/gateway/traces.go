//go:build otel

package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/telemetry/traces"
)

// Bounds for the time in which the last traces are exported. Between them, the rest of the
// drain time counts.
const (
	minFlush = time.Second
	maxFlush = 5 * time.Second
)

// startTraces starts the export of traces, if the environment asks for it. Otherwise the
// tracer is nil. A mistake in its settings does not stop the server. The returned function
// exports the remaining traces after all work has ended.
func (a *app) startTraces(ctx context.Context, cfg *config.Config, log *slog.Logger) (gateway.Tracer, func()) {
	log = log.With(telemetry.Target, "traces")
	wanted, err := traces.Wanted(func(name string) string { return a.setting(cfg, name) })
	if err != nil {
		log.Warn(err.Error())
	}
	if !wanted {
		return nil, func() {}
	}
	shareDotEnv(cfg)
	x, err := traces.Start(ctx, traces.Options{Version: readBuild().Version, Clock: a.clock, Log: log})
	if err != nil {
		log.Warn(err.Error())
		return nil, func() {}
	}
	left := flushTime(ctx, time.Duration(cfg.Worker.DrainTimeoutSecs)*time.Second)
	return x, func() {
		ctx, cancel := context.WithTimeout(context.Background(), left())
		defer cancel()
		if err := x.Close(ctx); err != nil {
			log.Warn("traces are lost: they could not be exported before the end", "error", err)
		}
	}
}

// shareDotEnv copies the OTEL_ variables of an .env file into the environment, where
// OpenTelemetry's SDK reads them. The file holds no variable that the environment has.
func shareDotEnv(cfg *config.Config) {
	for name, value := range cfg.DotEnv {
		if strings.HasPrefix(name, "OTEL_") {
			_ = os.Setenv(name, value.Reveal()) // fails for names that no .env file can have
		}
	}
}

// flushTime returns the rest of the drain time, which begins when ctx is done.
func flushTime(ctx context.Context, drain time.Duration) func() time.Duration {
	end := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { end <- time.Now().Add(drain) })
	return func() time.Duration {
		select {
		case at := <-end:
			return min(max(time.Until(at), minFlush), maxFlush)
		default: // the program ends without a signal
			return maxFlush
		}
	}
}
