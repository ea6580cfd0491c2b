//go:build !skewed

package main

import "github.com/eventgateway/gateway/core"

// machineClock is the clock of this machine.
func machineClock() core.Clock { return core.SystemClock }
