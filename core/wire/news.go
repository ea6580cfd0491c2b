package wire

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// News is what a look found, and where to go on.
type News struct {
	Events []EventSummary `json:"events"`
	Jobs   []Job          `json:"jobs"`
	Cursor Cursor         `json:"cursor"`
	More   bool           `json:"has_more"` // there is more already, which the next look finds

	// Followed is how many of the events that were to be followed were looked at.
	Followed int `json:"followed"`
}

// A Cursor is where a tail stands. Its fields are the parameters of the next look, but
// for what is null.
type Cursor struct {
	Event    core.ID `json:"event"`
	Finished Time    `json:"finished"`
	Job      Text    `json:"job"` // behind which to go on among what finished then
}

// NewsOf is the record of what a look found.
func NewsOf(n manage.News) News {
	cursor := Cursor{n.Next.Event, Time{n.Next.Finished}, Text(n.Next.Job)}
	return News{List(n.Events, SummaryOf), List(n.Jobs, JobOf), cursor, n.More, n.Followed}
}
