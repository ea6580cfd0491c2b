package core

import "time"

// A Tally counts the jobs of a lane that are not finished, by state.
type Tally struct {
	Pending    int // due, or waiting for their next attempt
	Processing int // held under a lease that is not over

	// Retryable counts the pending jobs that failed before, or whose lease ended.
	Retryable int

	// Scheduled counts the pending jobs that wait only for their time.
	Scheduled int

	// Waiting counts the pending jobs that wait in their lines.
	Waiting int

	// Stopped counts the lines that dead jobs stop, among those of the first MaxDepth slots.
	Stopped int

	// OldestDue is the due time of the job that is due longest; zero if none is due.
	OldestDue time.Time
}

// An Ended counts the jobs of a lane that ended without being completed.
type Ended struct {
	Dead     int
	Canceled int
}

// Available counts the pending jobs that were not tried yet, or whose time has come.
func (t Tally) Available() int { return t.Pending - t.Retryable - t.Scheduled - t.Waiting }
