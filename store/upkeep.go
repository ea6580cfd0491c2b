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
		n, err := s.revive(ctx, now, s.sql.retryOne, millis(now), string(id))
		return n, err
	}
	count, retry, args := s.sql.countDead, s.sql.retryAll, []any{}
	if lane.Workflow() != "" { // none of these, but strays begin anew all the same
		return s.revive(ctx, now, s.sql.retryLane, string(lane), int64(0), millis(now))
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
		n, err := s.revive(ctx, now, retry, chunk...)
		total += n
		if err != nil || n == 0 || total >= dead {
			return total, err
		}
	}
	return total, ctx.Err()
}

// revive brings jobs back, and forgets since when lanes are strays: what comes back
// would else be ended at once if its lane has been one for long.
func (s *Store) revive(ctx context.Context, now time.Time, sql string, args ...any) (int, error) {
	results, err := s.write(ctx, Stmt{Name: "retry", SQL: sql, Args: args, Once: true},
		Stmt{Name: "forget_strays", SQL: s.sql.forgetStrays})
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	s.floors.lower(now)
	return int(results[0].Changed), nil
}

// Ping asks the database for an answer. See core.Upkeep.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.read(ctx, "ping", s.sql.answerPing)
	return err
}
