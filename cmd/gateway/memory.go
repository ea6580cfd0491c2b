package main

import "runtime/debug"

// How the server trades memory for speed, unless GOGC or GOMEMLIMIT say
// otherwise. What it keeps between two requests is a few megabytes, so with Go's
// default the collector runs dozens of times a second under load, for a tenth of
// all CPU. Letting the heap grow to four times what is alive costs about 15 MiB;
// near the limit the collector works as hard as it must.
const (
	gcPercent   = 300
	memoryLimit = 384 << 20 // bytes
)

func (a *app) tuneMemory() {
	if a.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if a.env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
