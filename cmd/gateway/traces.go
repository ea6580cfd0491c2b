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

// How long the last traces may take to be exported: what is left of the drain time, but
// within these.
const (
	minFlush = time.Second
	maxFlush = 5 * time.Second
)

// startTraces starts the export of traces, if the environment asks for it; the tracer is
// nil if not. What is wrong with that is no reason not to serve. The function exports
// what is left when nothing happens any more.
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

// shareDotEnv puts what an .env file says about traces where OpenTelemetry's SDK looks
// for it. It holds nothing that the environment has.
func shareDotEnv(cfg *config.Config) {
	for name, value := range cfg.DotEnv {
		if strings.HasPrefix(name, "OTEL_") {
			_ = os.Setenv(name, value.Reveal()) // fails for names that no .env file can have
		}
	}
}

// flushTime is what is left of the drain time, which begins when ctx is done.
func flushTime(ctx context.Context, drain time.Duration) func() time.Duration {
	end := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { end <- time.Now().Add(drain) })
	return func() time.Duration {
		select {
		case at := <-end:
			return min(max(time.Until(at), minFlush), maxFlush)
		default: // it ends by itself
			return maxFlush
		}
	}
}
