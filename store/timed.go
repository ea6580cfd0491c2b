package store

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// How the database's time is asked for: by one more statement of a batch that is sent
// anyway, about once a minute, or every two seconds while all answers take long. So a function has no round trip for it, and no process needs
// something that asks in the background.
//
// Batches that only read are asked first, since their round trip is short. A process that
// only writes asks with a batch that writes. The answer of that is as exact as the commit is
// short, which is known: see [core.DatabaseClock].

// timeByWrites is for how long a measurement is due before a batch that writes carries it.
const measureOnWriteAfter = 10 * time.Second

// NewTimed makes a store that measures the clock of its database, and goes by it. A SQLite
// file has no clock of its own: there the clock stays that of the machine.
func NewTimed(conn Conn, d Dialect, clock *core.DatabaseClock) *Store {
	s := New(conn, d, clock.Now)
	if d.Name != SQLite.Name {
		s.databaseClock = clock
	}
	return s
}

// MeasureTime measures the database's clock now. The first measurement, which includes making a
// connection, is a rough one.
func (s *Store) MeasureTime(ctx context.Context) error {
	if s.databaseClock == nil {
		return nil
	}
	s.databaseClock.Doubt()
	return s.Ping(ctx)
}

// send runs a batch. All batches go this way, but for those that change the schema.
func (s *Store) send(ctx context.Context, stmts ...Stmt) ([]Result, error) {
	if s.databaseClock == nil {
		return s.conn.Batch(ctx, stmts...)
	}
	if len(stmts) > 0 && s.shouldMeasure(stmts) {
		return s.sendMeasuring(ctx, stmts)
	}
	results, err := s.conn.Batch(ctx, stmts...)
	if core.IsKind(err, core.Unavailable) {
		s.databaseClock.Doubt() // it may come back on a machine with another clock
	}
	return results, err
}

// asksTime tells whether a batch is to carry the question for the time.
func (s *Store) shouldMeasure(stmts []Stmt) bool {
	since, due := s.databaseClock.Due()
	return due && (since >= measureOnWriteAfter || !slices.ContainsFunc(stmts, func(st Stmt) bool { return !st.Reads }))
}

// sendTimed runs a batch that asks for the time at its end. If the batch fails and had no
// effect, it is sent as it is: the question must not be what fails it.
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
		return results, nil // of a server that is none
	}
	if ms, ok := value(results[len(stmts)]).(int64); ok {
		answered(time.UnixMilli(ms))
	}
	return results[:len(stmts)], nil
}
