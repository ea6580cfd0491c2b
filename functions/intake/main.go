// Command intake is the function that accepts events and callbacks. It also serves the health
// check and the metrics.
package main

import (
	"log/slog"
	"runtime"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	"github.com/eventgateway/gateway/functions/internal/boot"
)

func main() { boot.Serve(gateway.IntakeRoutes, measure) }

func measure(c *config.Config, version string, log *slog.Logger) gateway.Metrics {
	return metrics.New(metrics.Options{Names: gateway.Names(c), Version: version, Go: runtime.Version(), Log: log})
}
