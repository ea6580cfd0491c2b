package main

import "runtime/debug"

// Settings of the garbage collector of a server, unless GOGC or GOMEMLIMIT is set. The live
// heap between two requests is a few MB. With Go's default the collector would run dozens of
// times a second under load and take a tenth of all CPU time. A heap of four times the live
// size costs about 15 MiB. Near the limit the collector runs as often as necessary.
const (
	gcPercent   = 300
	memoryLimit = 384 << 20 // bytes
)

// tuneMemory applies the settings. Only a server calls it: other commands end before they
// matter.
func (a *app) tuneMemory() {
	if a.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if a.env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
