package store

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Retry brings dead jobs back. See core.Upkeep.
func (s *Store) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	st := Stmt{Name: "retry", SQL: s.sql.retryAll, Args: []any{millis(now)}}
	switch {
	case id != "":
		st.SQL, st.Args = s.sql.retryOne, append(st.Args, string(id))
	case lane != "":
		st.SQL, st.Args = s.sql.retryLane, append(st.Args, string(lane))
	}
	results, err := s.write(ctx, st)
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
