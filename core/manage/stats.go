package manage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A StatsStore has the methods of a store that the statistics use.
type StatsStore interface {
	Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error)
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Completed(ctx context.Context) (int, error)
}

// A LaneStats is the state of a lane.
type LaneStats struct {
	Lane core.Lane // as it is shown
	Host string    // of a place of alerts
	core.Tally
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

// The age and time limits of answers. An answer is used for a second. A query takes at most
// statsTimeout. An answer that counted more than muchCounted is used for up to toldFor,
// while the next query is under way.
const (
	statsEvery   = time.Second
	statsTimeout = 10 * time.Second
	muchCounted  = 50_000
	toldFor      = time.Minute
)

// Statistics read the state of the gateway. Answers are up to a second old, so that any
// number of callers may ask. Counting many waiting, dead or canceled jobs takes time, a second for a
// million. Then callers do not wait for the count, and get the last one if it is at most a
// minute old. Statistics is safe for concurrent use.
type Statistics struct {
	lanes     kept[Stats]
	completed kept[int]
}

// NewStatistics makes the service for these lanes. Some of them are lanes of places, and some are
// lanes of sources.
func NewStatistics(store StatsStore, clock core.Clock, lanes []core.Lane, places core.Places) *Statistics {
	return &Statistics{
		lanes: kept[Stats]{clock: clock, slow: Stats.much, ask: func(ctx context.Context) (Stats, error) {
			return survey(ctx, store, clock(), lanes, places)
		}},
		completed: kept[int]{clock: clock, ask: store.Completed},
	}
}

// Stats returns the state of the gateway. The caller must not change the lanes.
// Simultaneous callers share one query. Lanes and completed jobs are counted at the same time, since
// each round trip to a database over HTTP takes long.
func (s *Statistics) Stats(ctx context.Context) (Stats, error) {
	completed := s.completed.latest(ctx)
	stats, err := s.lanes.answer(ctx)
	if err == nil {
		stats.Completed, err = completed.wait(ctx)
	}
	if err != nil {
		return Stats{}, err
	}
	return stats, nil
}

// Lanes is Stats without the completed jobs, whose count takes most of the time.
func (s *Statistics) Lanes(ctx context.Context) (Stats, error) { return s.lanes.answer(ctx) }

// Quiet returns when no query is under way, or ctx is done. A query may outlast its callers
// if they got an earlier answer. A process that is stopped between two calls would be
// stopped during that query.
func (s *Statistics) Quiet(ctx context.Context) {
	s.lanes.quiet(ctx)
	s.completed.quiet(ctx)
}

// survey asks the store for the counts and gates of lanes, and for the gates of sources.
func survey(ctx context.Context, store StatsStore, now time.Time, lanes []core.Lane, places core.Places) (Stats, error) {
	stats := Stats{At: now}
	consumers := slices.DeleteFunc(slices.Clone(lanes), func(l core.Lane) bool { return l.Source() != "" })
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
		stats.Lanes = append(stats.Lanes, LaneStats{places.Shown(lane), places[lane].Host, tallies[lane], outlooks[lane].Gate})
	}
	return stats, nil
}

// much reports whether many jobs were counted one by one.
func (s Stats) much() bool {
	n := 0
	for _, l := range s.Lanes {
		n += l.Pending + l.Processing + l.Dead + l.Canceled
	}
	return n >= muchCounted
}

// kept is a query to the database, whose answer is used for a second.
type kept[T any] struct {
	clock core.Clock
	ask   func(context.Context) (T, error)
	slow  func(T) bool // whether an answer is used while the next query is under way; nil means no

	mu   sync.Mutex
	last *asking[T]
}

// An asking is one query to the database. Its results may be read once done is closed.
type asking[T any] struct {
	at   time.Time
	done chan struct{}
	got  T
	err  error

	before *asking[T] // the answer that is used meanwhile; nil for none
}

// answer returns the answer of the database, or the newest one while it is fresh.
func (k *kept[T]) answer(ctx context.Context) (T, error) { return k.latest(ctx).wait(ctx) }

// wait returns the answer to a query.
func (q *asking[T]) wait(ctx context.Context) (none T, _ error) {
	select {
	case <-q.done:
		return q.got, q.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// latest returns the newest query if its answer is fresh or still to come, else a new one.
func (k *kept[T]) latest(ctx context.Context) *asking[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	if k.last == nil || k.last.stale(now) {
		next := &asking[T]{at: now, done: make(chan struct{})}
		if k.tells(k.last, now) {
			k.last.before, next.before = nil, k.last
		}
		k.last = next
		go k.run(context.WithoutCancel(ctx), next)
	}
	if k.last.answered() || !k.tells(k.last.before, now) {
		return k.last
	}
	return k.last.before
}

// quiet returns when no query is under way.
func (k *kept[T]) quiet(ctx context.Context) {
	k.mu.Lock()
	q := k.last
	k.mu.Unlock()
	if q == nil {
		return
	}
	select {
	case <-q.done:
	case <-ctx.Done():
	}
}

// tells reports whether an earlier answer, if there is one, is used while the next query is
// under way.
func (k *kept[T]) tells(q *asking[T], now time.Time) bool {
	return k.slow != nil && q != nil && q.err == nil && k.slow(q.got) && now.Sub(q.at).Abs() <= toldFor
}

func (q *asking[T]) answered() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// stale reports whether a query was answered and the answer is too old. A clock that was
// set back makes it stale as well.
func (q *asking[T]) stale(now time.Time) bool {
	if !q.answered() {
		return false
	}
	age := now.Sub(q.at)
	return q.err != nil || age < 0 || age >= statsEvery
}

// run has its own goroutine and deadline, since many callers share the answer.
func (k *kept[T]) run(ctx context.Context, q *asking[T]) {
	defer close(q.done)
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	q.got, q.err = k.ask(ctx)
}
