package store

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// This file measures the clock of the database. The query for it is one more statement of a
// batch that is sent anyway: about once a minute, and every two seconds while answers are slow.
// So no process needs a background task for it, and a function needs no extra round trip.
//
// Batches that only read carry the query first, since their round trips are short. For a
// process that only writes, a batch that writes carries it. That measurement is as exact as the
// commit is short; see [core.DatabaseClock].

// measureOnWriteAfter is for how long a measurement must be due before a batch that writes
// carries it.
const measureOnWriteAfter = 10 * time.Second

// NewTimed makes a store that measures the clock of its database and uses it. A SQLite file has
// no clock: there the store uses the machine's.
func NewTimed(conn Conn, d Dialect, clock *core.DatabaseClock) *Store {
	s := New(conn, d, clock.Now)
	if d.Name != SQLite.Name {
		s.databaseClock = clock
	}
	return s
}

// askFor is for how long MeasureTime begins to ask for the time, unless an answer takes at most
// quickTrip.
const (
	askFor    = 500 * time.Millisecond
	quickTrip = 4 * time.Millisecond
)

// MeasureTime measures the clock before anything else uses it, by the quickest of at most asks
// answers. The error of an answer is up to half its trip, and the first answer on a new connection
// contains the time of connecting. A process with a clock that is ahead takes messages before
// their leases end. On a busy machine, first answers took up to 230 ms, and messages came 115 ms
// too early.
func (s *Store) MeasureTime(ctx context.Context, asks int) error {
	if s.databaseClock == nil {
		return nil
	}
	began, best := time.Now(), time.Duration(math.MaxInt64)
	for range asks {
		trip, err := s.measureBelow(ctx, best)
		if err != nil {
			return err
		}
		if best = min(best, trip); best <= quickTrip || time.Since(began) >= askFor {
			return nil
		}
	}
	return nil
}

// measureBelow asks for the time once, and returns how long that took. If that is less than
// best, the answer replaces the known time.
func (s *Store) measureBelow(ctx context.Context, best time.Duration) (time.Duration, error) {
	ping := s.sql.answerPing.with()
	answered, asked := s.databaseClock.Measure(), time.Now()
	results, err := s.conn.Batch(ctx, ping, question("clock", questionsOf[s.dialect.Name].clock))
	trip := time.Since(asked)
	if err != nil {
		s.databaseClock.Doubt()
		if core.IsKind(err, core.Unavailable) || ctx.Err() != nil {
			return 0, err
		}
		_, err = s.conn.Batch(ctx, ping) // the query for the time must not keep a process from starting
		return 0, err
	}
	if len(results) > 1 && trip < best {
		if ms, ok := value(results[1]).(int64); ok {
			s.databaseClock.Forget()
			answered(time.UnixMilli(ms))
		}
	}
	return trip, nil
}

// send runs a batch. Only schema steps bypass it.
func (s *Store) send(ctx context.Context, stmts ...Stmt) ([]Result, error) {
	if s.databaseClock == nil {
		return s.conn.Batch(ctx, stmts...)
	}
	if len(stmts) > 0 && s.shouldMeasure(stmts) {
		return s.sendMeasuring(ctx, stmts)
	}
	results, err := s.conn.Batch(ctx, stmts...)
	if core.IsKind(err, core.Unavailable) {
		s.databaseClock.Doubt() // after a failover, another machine with another clock may answer
	}
	return results, err
}

// shouldMeasure reports whether a batch carries the query for the time.
func (s *Store) shouldMeasure(stmts []Stmt) bool {
	since, due := s.databaseClock.Due()
	return due && (since >= measureOnWriteAfter || !slices.ContainsFunc(stmts, func(st Stmt) bool { return !st.Reads }))
}

// sendMeasuring runs a batch with the query for the time at its end, and returns the results
// without it. If the batch had no effect, it is sent once more without the query: the query
// must not make an accept fail.
func (s *Store) sendMeasuring(ctx context.Context, stmts []Stmt) ([]Result, error) {
	asking := append(slices.Clip(stmts), question("clock", questionsOf[s.dialect.Name].clock))
	answered := s.databaseClock.Measure()
	results, err := s.conn.Batch(ctx, asking...)
	if err != nil {
		s.databaseClock.Doubt()
		if core.IsKind(err, core.Unavailable) || ctx.Err() != nil {
			return nil, err
		}
		return s.conn.Batch(ctx, stmts...)
	}
	if len(results) <= len(stmts) {
		return results, nil // a proxy that answers in place of the database
	}
	if ms, ok := value(results[len(stmts)]).(int64); ok {
		answered(time.UnixMilli(ms))
	}
	return results[:len(stmts)], nil
}
