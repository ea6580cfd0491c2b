package core

import "time"

// Limits of [Ledger.Failures].
const (
	MaxFailures    = 8000   // how many jobs one call returns
	FailureReach   = 20_000 // how many unfinished jobs of a lane it reads
	MaxFailureText = 512    // how many bytes of an error it returns; the errors of deliveries have no more
)

// A FailureFilter selects failed jobs. Zero fields select everything.
type FailureFilter struct {
	Lane         Lane
	Since, Until time.Time // as in a JobFilter
	Limit        int       // 1 to MaxFailures; 0 means MaxFailures
}

// A FailedJob is a job that is dead, or that waits for another attempt.
type FailedJob struct {
	ID     ID
	Lane   Lane
	Status Status // Dead or Retryable
	Error  string // the beginning of its last error; empty if no attempt failed, as when its worker vanished
}
