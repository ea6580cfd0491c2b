package core

import (
	"context"
	"time"
)

// Counts are how much happened in a span of time. Of a source only Accepted counts, and of a
// consumer the others.
type Counts struct {
	Accepted  int // events that were stored; duplicates do not count
	Completed int // jobs or messages that were delivered, and runs that were completed
	Failed    int // attempts that failed, also the last one of a job that died
	Dead      int // jobs or messages that died, and runs that failed
}

// Add returns the sum of two counts.
func (c Counts) Add(other Counts) Counts {
	return Counts{c.Accepted + other.Accepted, c.Completed + other.Completed, c.Failed + other.Failed, c.Dead + other.Dead}
}

// Sub returns the difference of two counts.
func (c Counts) Sub(other Counts) Counts {
	return Counts{c.Accepted - other.Accepted, c.Completed - other.Completed, c.Failed - other.Failed, c.Dead - other.Dead}
}

// LaneCounts are the counts of a lane in a span of time.
type LaneCounts struct {
	At   time.Time // when the span begins
	Lane Lane      // of a consumer or of a source
	Counts
}

// MinutesPurged is how many minutes one PurgeMinutes deletes at most.
const MinutesPurged = 10

// Minutes keeps how much happened in each minute.
type Minutes interface {
	// CountMinutes stores the counts of a process: one row for each minute and lane. Counts of a
	// row that the process has stored before take the place of the earlier ones, unless their sum
	// is lower. So storing the same counts again changes nothing.
	CountMinutes(ctx context.Context, process ID, counts []LaneCounts) error

	// SumMinutes returns the sums over all processes of the minutes from one time until before
	// another, for each lane and each step of time in which something was counted. The rows are
	// sorted by lane and time. Steps are multiples of their length since 1970. Counts of the
	// process "" are complete: their Accepted is not added to that of other processes, and the
	// higher one of a step counts.
	SumMinutes(ctx context.Context, from, until time.Time, step time.Duration) ([]LaneCounts, error)

	// Received counts the stored events of sources with ids from one time until before another.
	// A source without such events is absent.
	Received(ctx context.Context, from, until time.Time, sources []string) (map[string]int, error)

	// PurgeMinutes deletes the counts of minutes before the given time. One call deletes at
	// most MinutesPurged minutes, from the oldest on.
	PurgeMinutes(ctx context.Context, before time.Time) error
}
