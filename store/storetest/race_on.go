//go:build race

package storetest

// raceDetector is on: what runs in one goroutine gives it nothing to find and
// takes ten times as long under it, so there is less of that.
const raceDetector = true
