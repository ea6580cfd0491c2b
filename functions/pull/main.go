// Command pull is the function that serves the consumers of queues, and the operators of
// everything.
package main

import (
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/functions/internal/boot"
)

func main() { boot.Serve(gateway.APIRoutes, nil) }
