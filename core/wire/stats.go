package wire

import (
	"math"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Stats is the state of the gateway: of every configured entry by name, and in total.
type Stats struct {
	At        Time            `json:"at"`
	Handlers  []HandlerStats  `json:"handlers"`
	Queues    []QueueStats    `json:"queues"`
	Workflows []WorkflowStats `json:"workflows"`
	Alerts    []HandlerStats  `json:"alerts"`
	Sources   []SourceStats   `json:"sources"` // an older server has none
	Jobs      JobStats        `json:"jobs"`
}

// Counts are the numbers of unfinished, dead and canceled jobs, each up to [core.MaxDepth] a lane.
type Counts struct {
	Available int `json:"available"`
	Scheduled int `json:"scheduled"`
	Waiting   int `json:"waiting"` // in their lines
	Running   int `json:"running"`
	Retryable int `json:"retryable"`
	Dead      int `json:"dead"`
	Canceled  int `json:"canceled"`
}

// SourceStats is the state of a source.
type SourceStats struct {
	Name string `json:"name"`

	// HeldSince is when an operator held it, null if it is not held. HeldUntil is when the hold
	// ends by itself; null if it does not.
	HeldSince Time `json:"held_since"`
	HeldUntil Time `json:"held_until"`
}

// WorkflowStats is the state of a workflow's steps.
type WorkflowStats struct {
	Name string `json:"name"`
	Counts

	// OldestDue is for how many seconds the longest due job has been due; null if none is
	// due.
	OldestDue *float64 `json:"oldest_due_seconds"`

	// HeldSince is when an operator held it, null if it is not held. HeldUntil is when the hold
	// ends by itself; null if it does not.
	HeldSince Time `json:"held_since"`
	HeldUntil Time `json:"held_until"`

	// Stopped is the number of its lines that are stopped; absent for entries without lines.
	Stopped int `json:"lines_stopped,omitzero"`
}

// HandlerStats is the state of a handler, or of a place of alerts.
type HandlerStats struct {
	WorkflowStats
	Host    string `json:"host,omitempty"` // of a place
	Breaker string `json:"circuit_breaker"`

	// BreakerUntil is when an open breaker lets one delivery through; null while it is
	// closed. RateUntil is when the next delivery may start; null if it may start at once.
	BreakerUntil Time `json:"circuit_breaker_until"`
	RateUntil    Time `json:"rate_limit_until"`
}

// handlerStats returns the record of a lane with a gate.
func handlerStats(state WorkflowStats, g core.Gate, at time.Time) HandlerStats {
	record := HandlerStats{WorkflowStats: state, Breaker: breaker(g, at)}
	if g.Open() {
		record.BreakerUntil = Time{g.OpenUntil}
	}
	if next := g.StartAt(at); next.After(at) {
		record.RateUntil = Time{next}
	}
	return record
}

// The states of a breaker. In the state half-open the next delivery is a probe.
const (
	BreakerClosed   = "closed"
	BreakerOpen     = "open"
	BreakerHalfOpen = "half-open"
)

// QueueStats is the state of a queue. Pending and Processing are the words of its listing.
type QueueStats struct {
	WorkflowStats
	Pending    int `json:"pending"`
	Processing int `json:"processing"`
}

// JobStats counts the jobs of all configured entries.
type JobStats struct {
	Counts
	Completed int `json:"completed"` // and not yet purged, up to [core.MaxDepth]
}

// StatsOf returns the record of the gateway's state.
func StatsOf(s manage.Stats) Stats {
	stats := Stats{
		At: Time{s.At}, Jobs: JobStats{Completed: s.Completed},
		// Empty lists are [] and not null, so that a script can loop over them.
		Handlers: []HandlerStats{}, Queues: []QueueStats{}, Workflows: []WorkflowStats{}, Alerts: []HandlerStats{}, Sources: []SourceStats{},
	}
	for _, l := range s.Lanes {
		stats.add(l, s.At)
	}
	for _, source := range s.Sources {
		record := SourceStats{Name: source.Name}
		record.HeldSince, record.HeldUntil = heldOf(source.Gate, s.At)
		stats.Sources = append(stats.Sources, record)
	}
	return stats
}

// add adds the state of a lane to the list of its kind, and its jobs to the total.
func (s *Stats) add(l manage.LaneStats, at time.Time) {
	state := WorkflowStats{Counts: Counts{l.Available(), l.Scheduled, l.Waiting, l.Processing, l.Retryable, l.Dead, l.Canceled}, OldestDue: age(l.OldestDue, at), Stopped: l.Stopped}
	state.HeldSince, state.HeldUntil = heldOf(l.Gate, at)
	// A list has entries of one kind, so their names need no prefix.
	_, state.Name, _ = strings.Cut(string(l.Lane), "/")
	switch {
	case l.Lane.Queue() != "":
		s.Queues = append(s.Queues, QueueStats{state, l.Pending, l.Processing})
	case l.Lane.Workflow() != "":
		s.Workflows = append(s.Workflows, state)
	case l.Lane.Alert():
		record := handlerStats(state, l.Gate, at)
		record.Host = l.Host
		s.Alerts = append(s.Alerts, record)
	default:
		s.Handlers = append(s.Handlers, handlerStats(state, l.Gate, at))
	}
	s.Jobs.Available += state.Available
	s.Jobs.Scheduled += state.Scheduled
	s.Jobs.Waiting += state.Waiting
	s.Jobs.Running += state.Running
	s.Jobs.Retryable += state.Retryable
	s.Jobs.Dead += state.Dead
	s.Jobs.Canceled += state.Canceled
}

// heldOf returns the beginning and the end of a gate's hold; zero times if it is not held.
func heldOf(g core.Gate, at time.Time) (since, until Time) {
	if !g.Held(at) {
		return Time{}, Time{}
	}
	return Time{g.HeldSince}, Time{g.HoldEnd()}
}

// age returns the seconds from since to at, in milliseconds precision.
func age(since, at time.Time) *float64 {
	if since.IsZero() {
		return nil
	}
	seconds := math.Round(max(at.Sub(since), 0).Seconds()*1000) / 1000
	return &seconds
}

// breaker returns the state of a breaker. An open breaker is half-open once its time has passed:
// the worker has yet to send the probe.
func breaker(g core.Gate, at time.Time) string {
	switch {
	case !g.Open():
		return BreakerClosed
	case g.OpenUntil.After(at):
		return BreakerOpen
	}
	return BreakerHalfOpen
}
