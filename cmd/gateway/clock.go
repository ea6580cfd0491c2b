//go:build !skewed

package main

import "github.com/eventgateway/gateway/core"

// machineClock returns the clock of this machine.
func machineClock() core.Clock { return core.SystemClock }
