package wire

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Errors are the errors of the newest failed jobs.
type Errors struct {
	Errors  []ErrorGroup `json:"errors"`
	Scanned int          `json:"scanned"`
	More    bool         `json:"has_more"`
}

// An ErrorGroup is the failed jobs of one consumer with errors of one kind.
type ErrorGroup struct {
	Handler  string `json:"handler"`        // or queue/<name> and so on
	Host     string `json:"host,omitempty"` // of the place to which an alert is posted
	Kind     Text   `json:"kind"`           // null: the jobs have no error
	Count    int    `json:"count"`
	Dead     int    `json:"dead"`
	Retrying int    `json:"retrying"`
	Newest   Time   `json:"newest_at"`
	Oldest   Time   `json:"oldest_at"`

	// Example is the newest job of the group, and LastError its error.
	Example   core.ID `json:"example"`
	LastError Text    `json:"last_error"`
}

// ErrorsOf returns the record of an answer.
func ErrorsOf(e manage.Errors) Errors {
	return Errors{List(e.Groups, ErrorGroupOf), e.Scanned, e.More}
}

// ErrorGroupOf returns the record of a group.
func ErrorGroupOf(g manage.ErrorGroup) ErrorGroup {
	return ErrorGroup{
		Handler: g.Lane.Consumer(), Host: g.Host, Kind: Text(g.Kind), Count: g.Dead + g.Retrying, Dead: g.Dead, Retrying: g.Retrying,
		Newest: Time{g.Newest}, Oldest: Time{g.Oldest}, Example: g.Example, LastError: Text(g.Error),
	}
}

// Core returns the answer.
func (e Errors) Core() manage.Errors {
	return manage.Errors{Groups: List(e.Errors, ErrorGroup.Core), Scanned: e.Scanned, More: e.More}
}

// Core returns the group.
func (g ErrorGroup) Core() manage.ErrorGroup {
	return manage.ErrorGroup{
		Lane: LaneOf(g.Handler), Host: g.Host, Kind: string(g.Kind), Dead: g.Dead, Retrying: g.Retrying,
		Newest: g.Newest.Time, Oldest: g.Oldest.Time, Example: g.Example, Error: string(g.LastError),
	}
}
