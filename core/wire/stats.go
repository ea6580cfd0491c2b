package wire

import (
	"math"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Stats is how the gateway stands: all that is configured, each by name, and in all.
type Stats struct {
	At        Time            `json:"at"`
	Handlers  []HandlerStats  `json:"handlers"`
	Queues    []QueueStats    `json:"queues"`
	Workflows []WorkflowStats `json:"workflows"`
	Alerts    []HandlerStats  `json:"alerts"`
	Jobs      JobStats        `json:"jobs"`
}

// Counts is how many unfinished and dead jobs there are, each number up to
// [core.MaxDepth] a lane.
type Counts struct {
	Available int `json:"available"`
	Scheduled int `json:"scheduled"`
	Running   int `json:"running"`
	Retryable int `json:"retryable"`
	Dead      int `json:"dead"`
}

// WorkflowStats is how a workflow's steps stand.
type WorkflowStats struct {
	Name string `json:"name"`
	Counts

	// OldestDue is since how many seconds the job is due that is due longest; null if
	// none is due.
	OldestDue *float64 `json:"oldest_due_seconds"`
}

// HandlerStats is how a handler, or a place that is told alerts, stands.
type HandlerStats struct {
	WorkflowStats
	Host    string `json:"host,omitempty"` // of a place
	Breaker string `json:"circuit_breaker"`

	// BreakerUntil is when an open breaker lets one delivery through; null of one that is
	// closed. RateUntil is when the next delivery may start; null if it may at once.
	BreakerUntil Time `json:"circuit_breaker_until"`
	RateUntil    Time `json:"rate_limit_until"`
}

// handlerStats is the record of a lane with a gate.
func handlerStats(stands WorkflowStats, g core.Gate, at time.Time) HandlerStats {
	record := HandlerStats{WorkflowStats: stands, Breaker: breaker(g, at)}
	if g.Open() {
		record.BreakerUntil = Time{g.OpenUntil}
	}
	if next := g.StartAt(at); next.After(at) {
		record.RateUntil = Time{next}
	}
	return record
}

// The states of a breaker. Half-open is one whose next delivery is a probe.
const (
	BreakerClosed   = "closed"
	BreakerOpen     = "open"
	BreakerHalfOpen = "half-open"
)

// QueueStats is how a queue stands. Pending and Processing are the words of its listing.
type QueueStats struct {
	WorkflowStats
	Pending    int `json:"pending"`
	Processing int `json:"processing"`
}

// JobStats is the jobs of all that is configured.
type JobStats struct {
	Counts
	Completed int `json:"completed"` // and not yet purged, up to [core.MaxDepth]
}

// StatsOf is the record of how the gateway stands.
func StatsOf(s manage.Stats) Stats {
	stats := Stats{
		At: Time{s.At}, Jobs: JobStats{Completed: s.Completed},
		Handlers: []HandlerStats{}, Queues: []QueueStats{}, Workflows: []WorkflowStats{}, Alerts: []HandlerStats{},
	}
	for _, l := range s.Lanes {
		stats.add(l, s.At)
	}
	return stats
}

func (s *Stats) add(l manage.LaneStats, at time.Time) {
	stands := WorkflowStats{Counts: Counts{l.Available(), l.Scheduled, l.Processing, l.Retryable, l.Dead}, OldestDue: age(l.OldestDue, at)}
	_, stands.Name, _ = strings.Cut(string(l.Lane), "/")
	switch {
	case l.Lane.Queue() != "":
		s.Queues = append(s.Queues, QueueStats{stands, l.Pending, l.Processing})
	case l.Lane.Workflow() != "":
		s.Workflows = append(s.Workflows, stands)
	case l.Lane.Alert():
		record := handlerStats(stands, l.Gate, at)
		record.Host = l.Host
		s.Alerts = append(s.Alerts, record)
	default:
		s.Handlers = append(s.Handlers, handlerStats(stands, l.Gate, at))
	}
	s.Jobs.Available += stands.Available
	s.Jobs.Scheduled += stands.Scheduled
	s.Jobs.Running += stands.Running
	s.Jobs.Retryable += stands.Retryable
	s.Jobs.Dead += stands.Dead
}

// age is the seconds from since to at, to the millisecond.
func age(since, at time.Time) *float64 {
	if since.IsZero() {
		return nil
	}
	seconds := math.Round(max(at.Sub(since), 0).Seconds()*1000) / 1000
	return &seconds
}

func breaker(g core.Gate, at time.Time) string {
	switch {
	case !g.Open():
		return BreakerClosed
	case g.OpenUntil.After(at):
		return BreakerOpen
	}
	return BreakerHalfOpen
}
