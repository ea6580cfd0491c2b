package core

import (
	"context"
	"time"
)

// A Line holds the jobs of one lane that have the same key, in the order in which their events
// were committed. At most Limit of them are admitted at a time; the others are [Waiting], and
// have no due time. With a Limit of 1 the jobs are processed strictly one after the other.
//
// When an admitted job ends, the next job of its line is admitted in the same commit. With a
// Limit of 1 a job that is to be retried stays admitted, and the jobs behind it wait. With a
// higher Limit it gives its slot to the next job, and enters the line again at its front once
// its retry is due.
type Line struct {
	// Key is the value that the jobs have in common, 1 to [MaxLineKey] bytes. A job without a
	// key is in no line.
	Key string

	// Limit is how many jobs are admitted at a time, 1 to [MaxLineLimit]. 0 means that all
	// are, as in a lane whose configuration has no lines any more.
	Limit int
}

// Bounds of a [Line].
const (
	MaxLineKey   = 255
	MaxLineLimit = 100
)

// A LineState is a line as an operator sees it.
type LineState struct {
	Key      string
	Admitted int // slots that are taken, also by a dead job that stops the line
	Waiting  int // up to MaxDepth

	// StoppedAt and StoppedBy are the time since which a dead job stops the line, and that job;
	// zero for a line that goes on.
	StoppedAt time.Time
	StoppedBy ID
}

// LineJobs are the jobs of a line.
type LineJobs struct {
	LineState
	Holders []ID // have the slots, in the order of their ids
	Next    []ID // the first of the jobs that wait, in the order of the line
}

// Lines has the calls that only lanes with lines need. See [Line].
type Lines interface {
	// Lines lists the lines of a lane in which jobs have slots, by key; if after is set, only
	// the lines with greater keys. Limit is as in a JobFilter.
	Lines(ctx context.Context, lane Lane, after string, limit int) (Page[LineState], error)

	// LinedLanes returns the lanes in whose lines jobs have slots, in the order of their names.
	LinedLanes(ctx context.Context) ([]Lane, error)

	// LinesOf returns the lines of a lane with these keys, each with the jobs that have its
	// slots and with up to next of the jobs that wait in it. A line without jobs has only its
	// key. LinesOf counts the jobs that wait only up to next.
	LinesOf(ctx context.Context, lane Lane, next int, keys ...string) ([]LineJobs, error)

	// AckLined acks jobs as [Counter.Ack] does, and gives their slots to the next jobs of
	// their lines.
	AckLined(ctx context.Context, now time.Time, lane Lane, limit int, refs []Ref) (int, error)

	// Skip gives the slot of a dead job that stops its line to the next job of the line, and
	// returns true. The job stays dead. For any other job it returns false.
	Skip(ctx context.Context, now time.Time, job ID) (bool, error)

	// Fill gives the free slots of a lane's lines to jobs that wait, after the limit was
	// raised. The slots of jobs that are finished and stop no line become free. Fill looks at
	// some lines with keys greater than after. It returns the last of these keys, or "" if
	// there are no further lines.
	Fill(ctx context.Context, now time.Time, lane Lane, limit int, after string) (next string, err error)
}
