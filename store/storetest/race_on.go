//go:build race

package storetest

// raceDetector is true under the race detector. Checks in one goroutine have no races and take
// ten times as long under the detector, so they run with fewer rounds.
const raceDetector = true
