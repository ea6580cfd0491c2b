package manage

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A StatsStore is what of a store the statistics come from.
type StatsStore interface {
	Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error)
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Completed(ctx context.Context) (int, error)
}

// A LaneStats is how a lane stands.
type LaneStats struct {
	Lane core.Lane
	core.Tally
	Gate core.Gate // of a handler or of alerts; the zero Gate is wide open
}

// Stats is how the gateway stands: every configured lane, and in all.
type Stats struct {
	At        time.Time
	Lanes     []LaneStats // handlers, queues, workflows, alerts, each by name
	Completed int         // jobs that are completed and not yet purged, up to core.MaxDepth
}

// A Stats is good for a second. Asking takes at most statsTimeout.
const (
	statsEvery   = time.Second
	statsTimeout = 10 * time.Second
)

// Statistics tell how the gateway stands. What they say is up to a second old, so that
// any number may ask. They are safe for concurrent use.
type Statistics struct {
	store StatsStore
	clock core.Clock
	lanes []core.Lane

	mu   sync.Mutex
	last *survey
}

// A survey is one question to the database. Its results may be read once done is closed.
type survey struct {
	done  chan struct{}
	stats Stats
	err   error
}

// NewStatistics makes the service for these lanes.
func NewStatistics(store StatsStore, clock core.Clock, lanes []core.Lane) *Statistics {
	return &Statistics{store: store, clock: clock, lanes: lanes}
}

// Stats tells how the gateway stands. The caller must not change the lanes. Who asks
// while somebody else does is told the same.
func (s *Statistics) Stats(ctx context.Context) (Stats, error) {
	q := s.latest(ctx)
	select {
	case <-q.done:
		return q.stats, q.err
	case <-ctx.Done():
		return Stats{}, ctx.Err()
	}
}

// latest is the newest survey if it is fresh or still going on, else a new one.
func (s *Statistics) latest(ctx context.Context) *survey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.stale(s.clock()) {
		s.last = &survey{done: make(chan struct{})}
		go s.run(context.WithoutCancel(ctx), s.last)
	}
	return s.last
}

// stale reports whether a survey has ended and says nothing of the present any more. A
// clock that was set back makes it stale as well.
func (q *survey) stale(now time.Time) bool {
	select {
	case <-q.done:
		age := now.Sub(q.stats.At)
		return q.err != nil || age < 0 || age >= statsEvery
	default:
		return false
	}
}

// run has its own goroutine and deadline: the survey belongs to everyone who asks.
func (s *Statistics) run(ctx context.Context, q *survey) {
	defer close(q.done)
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	q.stats, q.err = s.ask(ctx)
}

func (s *Statistics) ask(ctx context.Context) (Stats, error) {
	stats := Stats{At: s.clock(), Lanes: make([]LaneStats, len(s.lanes))}
	tallies, err := s.store.Tallies(ctx, stats.At, s.lanes)
	if err != nil {
		return Stats{}, err
	}
	outlooks, err := s.store.Due(ctx, s.lanes)
	if err != nil {
		return Stats{}, err
	}
	for i, lane := range s.lanes {
		stats.Lanes[i] = LaneStats{lane, tallies[lane], outlooks[lane].Gate}
	}
	stats.Completed, err = s.store.Completed(ctx)
	return stats, err
}
