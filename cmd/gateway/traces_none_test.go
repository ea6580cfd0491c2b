//go:build !otel

package main

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

// A program without trace export logs a warning if the environment asks for traces.
func TestTracesAreNotBuilt(t *testing.T) {
	for endpoint, want := range map[string]string{"": "", "http://localhost:4318": "build it with -tags otel"} {
		a := session{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}}.app(io.Discard)
		var log bytes.Buffer
		tracer, flush := a.startTraces(t.Context(), &config.Config{}, slog.New(slog.NewTextHandler(&log, nil)))
		flush()
		if tracer != nil || !strings.Contains(log.String(), want) || want == "" && log.Len() > 0 {
			t.Errorf("with endpoint %q: tracer %v, log %q, want none and %q", endpoint, tracer, &log, want)
		}
	}
}
