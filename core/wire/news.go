package wire

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// News is the result of a look, and the cursor of the next one.
type News struct {
	Events []EventSummary `json:"events"`
	Jobs   []Job          `json:"jobs"`
	Cursor Cursor         `json:"cursor"`
	More   bool           `json:"has_more"` // there are more already, which the next look finds

	// Followed is how many of the followed events were looked at.
	Followed int `json:"followed"`
}

// A Cursor is the position of a tail. Its fields are the parameters of the next look,
// except null ones.
//
// A client sends it back unchanged with its next look.
type Cursor struct {
	Event    core.ID `json:"event"`
	Finished Time    `json:"finished"`
	Job      Text    `json:"job"` // the last job that finished at that time and was returned
}

// NewsOf returns the record of a look's result.
func NewsOf(n manage.News) News {
	// The cursor names positions and no time of the client, so clocks need not agree.
	cursor := Cursor{n.Next.Event, Time{n.Next.Finished}, Text(n.Next.Job)}
	return News{List(n.Events, SummaryOf), List(n.Jobs, JobOf), cursor, n.More, n.Followed}
}
