// Command pull is the function that serves the HTTP API: to the consumers of queues and to
// operators.
package main

import (
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/functions/internal/boot"
)

func main() { boot.Serve(gateway.APIRoutes, nil) }
