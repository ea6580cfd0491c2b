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
		n, err := s.revive(ctx, s.sql.retryOne, millis(now), string(id))
		return n, err
	}
	count, retry, args := s.sql.countDead, s.sql.retryAll, []any{}
	if lane != "" {
		count, retry, args = s.sql.countDeadLane, s.sql.retryLane, []any{string(lane)}
	}
	rows, err := s.read(ctx, "count_dead", count, args...)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	total, dead := 0, whole(rows[0][0])
	for total < dead && ctx.Err() == nil {
		chunk := append(append([]any{millis(now)}, args...), int64(min(retryChunk, dead-total)))
		n, err := s.revive(ctx, retry, chunk...)
		if err != nil || n == 0 {
			return total, err
		}
		total += n
	}
	return total, ctx.Err()
}

func (s *Store) revive(ctx context.Context, sql string, args ...any) (int, error) {
	results, err := s.write(ctx, Stmt{Name: "retry", SQL: sql, Args: args})
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	return int(results[0].Changed), nil
}

// Ping asks the database for an answer. See core.Upkeep.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.read(ctx, "ping", s.sql.answerPing)
	return err
}
