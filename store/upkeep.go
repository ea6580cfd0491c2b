package store

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// retryChunk is how many jobs one statement brings back, so that millions of
// them do not keep the writers of events waiting.
const retryChunk = 1000

// Retry brings dead jobs back. See core.Upkeep. It goes on until as many are back
// as were dead when it began; what dies meanwhile is another matter.
func (s *Store) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	if id != "" {
		early := Stmt{Name: "retry_early", SQL: s.sql.retryEarly, Args: []any{millis(now), millis(now), string(id)}, Once: true}
		return s.revive(ctx, now, early, Stmt{Name: "retry", SQL: s.sql.retryOne, Args: []any{millis(now), string(id)}, Once: true})
	}
	count, retry, args := s.sql.countDead, s.sql.retryAll, []any{}
	if lane.Workflow() != "" { // none of these, but strays begin anew all the same
		return s.revive(ctx, now, Stmt{Name: "retry", SQL: s.sql.retryLane, Args: []any{string(lane), int64(0), millis(now)}, Once: true})
	}
	if lane != "" {
		count, retry, args = s.sql.countDeadLane, s.sql.retryLane, []any{string(lane)}
	}
	rows, err := s.read(ctx, "count_dead", count, args...)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	row, err := lone("count_dead", rows)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	total, dead := 0, whole(row[0])
	for ctx.Err() == nil {
		chunk := append(append([]any{}, args...), int64(min(retryChunk, dead-total)), millis(now))
		n, err := s.revive(ctx, now, Stmt{Name: "retry", SQL: retry, Args: chunk, Once: true})
		total += n
		if err != nil || n == 0 || total >= dead {
			return total, err
		}
	}
	return total, ctx.Err()
}

// revive brings jobs back, and forgets since when lanes are strays: what comes back
// would else be ended at once if its lane has been one for long. It returns how many jobs
// the statements changed.
func (s *Store) revive(ctx context.Context, now time.Time, stmts ...Stmt) (int, error) {
	results, err := s.write(ctx, append(stmts, Stmt{Name: "forget_strays", SQL: s.sql.forgetStrays})...)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	s.floors.lower(now)
	n := 0
	for _, r := range results[:len(stmts)] {
		n += int(r.Changed)
	}
	return n, nil
}

// Ping asks the database for an answer. See core.Upkeep.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.read(ctx, "ping", s.sql.answerPing)
	return err
}
