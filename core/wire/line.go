package wire

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// A Line is a line of a handler or queue in which jobs have slots.
type Line struct {
	Key      string `json:"key"`
	Admitted int    `json:"admitted"`
	Waiting  int    `json:"waiting"`

	// StoppedSince and StoppedBy are since when the line is stopped, and the dead job that stops
	// it; null for a line that goes on.
	StoppedSince Time `json:"stopped_since"`
	StoppedBy    Text `json:"stopped_by"`
}

// Lines is a page of a listing.
type Lines struct {
	Lines []Line `json:"lines"`
	More  bool   `json:"has_more"`
}

// LineOf returns the record of a line.
func LineOf(l core.LineState) Line {
	return Line{l.Key, l.Admitted, l.Waiting, Time{l.StoppedAt}, Text(l.StoppedBy)}
}

// LinesOf returns the record of a page.
func LinesOf(page core.Page[core.LineState]) Lines {
	return Lines{List(page.Items, LineOf), page.More}
}

// Core returns the line.
func (l Line) Core() core.LineState {
	return core.LineState{Key: l.Key, Admitted: l.Admitted, Waiting: l.Waiting, StoppedAt: l.StoppedSince.Time, StoppedBy: core.ID(l.StoppedBy)}
}

// Core returns the page of a listing.
func (l Lines) Core() core.Page[core.LineState] {
	return core.Page[core.LineState]{Items: List(l.Lines, Line.Core), More: l.More}
}

// A LineStory is a line with some of its jobs: the first jobs with slots, and the first waiting
// jobs.
type LineStory struct {
	Line
	Jobs []Job `json:"jobs"`
	Next []Job `json:"next"`
}

// StoryOfLine returns the record of a line with its jobs.
func StoryOfLine(l manage.LineStory) LineStory {
	record := func(j core.Job) Job { return WaitingOf(j, l.Waits[j.ID]) }
	return LineStory{LineOf(l.LineState), List(l.Holders, record), List(l.Next, record)}
}

// Core returns the line with its jobs.
func (l LineStory) Core() manage.LineStory {
	return manage.LineStory{LineState: l.Line.Core(), Holders: List(l.Jobs, Job.Core), Next: List(l.Next, Job.Core), Waits: waitsOf(append(l.Jobs[:len(l.Jobs):len(l.Jobs)], l.Next...))}
}

// A Skipped says whether the line of a dead job goes on.
type Skipped struct {
	Skipped bool `json:"skipped"`
}
