// Command pull is the function that serves the HTTP API: to the consumers of queues and to
// operators.
package main

import (
	"github.com/eventgateway/gateway/cmd/gateway/manual"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/functions/internal/boot"
)

func main() { boot.Serve(routes, nil) }

// routes adds the routes of the API. Only this function serves the console, so only it has the
// manual.
func routes(g *gateway.Gateway) error {
	g.Manual = manual.JSON
	return gateway.APIRoutes(g)
}
