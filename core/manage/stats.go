package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A StatsStore has the methods of a store that the statistics use.
type StatsStore interface {
	Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error)
	Ended(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error)
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Completed(ctx context.Context) (int, error)
}

// A LaneStats is the state of a lane.
type LaneStats struct {
	Lane core.Lane // as it is shown
	Host string    // of a place of alerts
	core.Tally
	core.Ended
	Gate core.Gate // of a handler or of alerts; zero if the breaker is closed and never had a failure
}

// A SourceStats is the state of a source.
type SourceStats struct {
	Name string
	Gate core.Gate // with the hold of the source; zero if it was never held
}

// Stats is the state of the gateway: of every configured lane and source, and in total.
type Stats struct {
	At        time.Time
	Lanes     []LaneStats   // handlers, queues and workflows, each by name; places of alerts by number
	Sources   []SourceStats // by name
	Completed int           // jobs that are completed and not yet purged, up to core.MaxDepth
}

// The age and time limits of answers. An answer is used for a second, and longer for each 1000 jobs that
// were counted: by leastFor, and by up to mostFor if counting takes long; see restFor. For 100,000 jobs,
// that is four seconds to half a minute. A query takes at most statsTimeout. An answer that counted more
// than muchCounted is used for up to toldFor, while the next query is under way.
const (
	statsEvery   = time.Second
	statsTimeout = 10 * time.Second
	leastFor     = 30 * time.Millisecond
	mostFor      = 300 * time.Millisecond
	leastLast    = 5 * time.Second
	mostLast     = 30 * time.Second
	muchCounted  = 50_000
	toldFor      = time.Minute
)

// usedFor returns how long an answer is used that counted some jobs, at least and at most. Counting 100,000
// jobs takes 6 to 70 ms on SQLite: each time, their pages of the index are read again.
func usedFor(counted int) (least, most time.Duration) {
	thousands := time.Duration(counted / 1000)
	return min(statsEvery+thousands*leastFor, leastLast), min(statsEvery+thousands*mostFor, mostLast)
}

// Statistics read the state of the gateway. Answers are up to a second old, and up to half a minute where
// many jobs are counted, so that any number of callers may ask. Unfinished jobs, dead and canceled ones,
// and completed ones are counted by three queries, so that many jobs of one kind do not make the numbers
// of another kind older. Counting many unfinished, dead or canceled jobs takes time, a second for a
// million. Then callers do not wait for the count, and get the last one if it is at most a minute old.
// Statistics is safe for concurrent use.
type Statistics struct {
	lanes     kept[Stats] // without dead, canceled and completed jobs
	ended     kept[endings]
	completed kept[int]
}

// endings are the numbers of dead and canceled jobs by lane.
type endings map[core.Lane]core.Ended

// NewStatistics makes the service for these lanes. Some of them are lanes of places, and some are
// lanes of sources.
func NewStatistics(store StatsStore, clock core.Clock, lanes []core.Lane, places core.Places) *Statistics {
	consumers := slices.DeleteFunc(slices.Clone(lanes), func(l core.Lane) bool { return l.Source() != "" })
	return &Statistics{
		lanes: kept[Stats]{
			clock: clock, within: statsTimeout, slow: func(s Stats) bool { return s.counted() >= muchCounted },
			lasts: func(s Stats) (least, most time.Duration) { return usedFor(s.counted()) },
			ask:   func(ctx context.Context) (Stats, error) { return survey(ctx, store, clock(), lanes, consumers, places) },
		},
		ended: kept[endings]{
			clock: clock, within: statsTimeout, slow: func(e endings) bool { return e.counted() >= muchCounted },
			lasts: func(e endings) (least, most time.Duration) { return usedFor(e.counted()) },
			ask: func(ctx context.Context) (endings, error) {
				ended, err := store.Ended(ctx, consumers)
				shown := make(endings, len(ended))
				for lane, n := range ended {
					shown[places.Shown(lane)] = n
				}
				return shown, err
			},
		},
		completed: kept[int]{clock: clock, within: statsTimeout, lasts: usedFor, ask: store.Completed},
	}
}

// Stats returns the state of the gateway. Simultaneous callers share the queries. They run at the same
// time, since each round trip to a database over HTTP takes long.
func (s *Statistics) Stats(ctx context.Context) (Stats, error) {
	completed := s.completed.latest(ctx)
	stats, err := s.Lanes(ctx)
	if err == nil {
		stats.Completed, err = completed.wait(ctx)
	}
	if err != nil {
		return Stats{}, err
	}
	return stats, nil
}

// Lanes is Stats without the completed jobs, whose count takes most of the time.
func (s *Statistics) Lanes(ctx context.Context) (Stats, error) {
	ended := s.ended.latest(ctx)
	stats, err := s.lanes.answer(ctx)
	if err != nil {
		return Stats{}, err
	}
	of, err := ended.wait(ctx)
	if err != nil {
		return Stats{}, err
	}
	stats.Lanes = slices.Clone(stats.Lanes) // other callers have the same ones
	for i := range stats.Lanes {
		stats.Lanes[i].Ended = of[stats.Lanes[i].Lane]
	}
	return stats, nil
}

// Quiet returns when no query is under way, or ctx is done. A query may outlast its callers
// if they got an earlier answer. A process that is stopped between two calls would be
// stopped during that query.
func (s *Statistics) Quiet(ctx context.Context) {
	s.lanes.quiet(ctx)
	s.ended.quiet(ctx)
	s.completed.quiet(ctx)
}

// survey asks the store for the unfinished jobs and the gates of lanes, and for the gates of sources.
func survey(ctx context.Context, store StatsStore, now time.Time, lanes, consumers []core.Lane, places core.Places) (Stats, error) {
	stats := Stats{At: now}
	tallies, err := store.Tallies(ctx, now, consumers)
	if err != nil {
		return Stats{}, err
	}
	outlooks, err := store.Due(ctx, lanes)
	if err != nil {
		return Stats{}, err
	}
	for _, lane := range lanes {
		if name := lane.Source(); name != "" {
			stats.Sources = append(stats.Sources, SourceStats{name, outlooks[lane].Gate})
			continue
		}
		stats.Lanes = append(stats.Lanes, LaneStats{Lane: places.Shown(lane), Host: places[lane].Host, Tally: tallies[lane], Gate: outlooks[lane].Gate})
	}
	return stats, nil
}

// Forget says that an operator changed something. Then the present answers are used for a second at most.
func (s *Statistics) Forget() {
	s.lanes.forget()
	s.ended.forget()
	s.completed.forget()
}

// counted returns how many jobs were counted one by one.
func (s Stats) counted() (n int) {
	for _, l := range s.Lanes {
		n += l.Pending + l.Processing
	}
	return n
}

// counted returns how many jobs were counted one by one.
func (e endings) counted() (n int) {
	for _, of := range e {
		n += of.Dead + of.Canceled
	}
	return n
}
