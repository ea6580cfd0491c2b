// Package wait waits in tests for conditions of which nothing else tells, such as what another process
// stores. Only tests import the package, and it imports nothing of this module.
//
// The idea to know: a condition is checked again and again, and a check may cost far more than it seems:
// a request, a statement on a database, a whole program. Tests wait most of their time, many at once, so
// checks without a pause take the processors from what they wait for. The pause after a check is a
// multiple of its duration, so a test spends at most a tenth of its waiting on checks.
package wait

import (
	"testing"
	"time"
)

const (
	// shortest is the pause after a check that takes no time, such as one of a counter.
	shortest = 2 * time.Millisecond
	// longest bounds how much later than the condition a wait may end.
	longest = 250 * time.Millisecond
	// share is the pause's length in durations of the check before it.
	share = 9
)

// For waits until cond holds, and fails the test if it does not within limit. What is in the message of the
// failure.
func For(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	if !Until(limit, cond) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// Until waits until cond holds, and reports whether it did within limit. The last check begins when
// limit has passed, so a condition that holds by then counts.
func Until(limit time.Duration, cond func() bool) bool {
	end := time.Now().Add(limit)
	for {
		began := time.Now()
		if cond() {
			return true
		}
		if !began.Before(end) {
			return false
		}
		time.Sleep(min(pause(time.Since(began)), time.Until(end)))
	}
}

// pause returns how long to wait after a check that took d.
func pause(d time.Duration) time.Duration { return min(max(share*d, shortest), longest) }
