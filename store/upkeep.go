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
	total, dead := 0, whole(rows[0][0])
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

// Purge deletes what is over. See core.Upkeep. It looks first and deletes by id,
// so that what it deletes is bounded and its batch is one that can be repeated.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	found, err := s.readBatch(ctx,
		Stmt{Name: "over_jobs", SQL: s.sql.overJobs, Args: []any{millis(before), int64(limit)}, Reads: true},
		Stmt{Name: "over_runs", SQL: s.sql.overRuns, Args: []any{millis(before), int64(limit)}, Reads: true},
		Stmt{Name: "over_events", SQL: s.sql.overEvents, Args: []any{string(core.FirstID(before)), millis(before), int64(limit)}, Reads: true})
	if err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	end := millis(before)
	var jobs, attempts, runs, parts, events [][]any
	seen := map[string]bool{}
	event := func(id any) {
		if len(events) < limit && !seen[str(id)] {
			seen[str(id)] = true
			events = append(events, []any{id, end})
		}
	}
	for _, row := range found[0].Rows {
		jobs, attempts = append(jobs, []any{row[0], end}), append(attempts, []any{row[0]})
		event(row[1])
	}
	for _, row := range found[1].Rows {
		runs, parts = append(runs, []any{row[0], end}), append(parts, []any{row[0]})
		event(row[1])
	}
	for _, row := range found[2].Rows {
		event(row[0])
	}
	var stmts []Stmt
	for _, st := range []Stmt{
		{Name: "purge_jobs", SQL: s.sql.deleteJob, Rows: jobs},
		{Name: "purge_attempts", SQL: s.sql.deleteAttempts, Rows: attempts},
		{Name: "purge_runs", SQL: s.sql.deleteRun, Rows: runs},
		{Name: "purge_steps", SQL: s.sql.deleteSteps, Rows: parts},
		{Name: "purge_history", SQL: s.sql.deleteHistory, Rows: parts},
		{Name: "purge_callbacks", SQL: s.sql.deleteCallbacks, Rows: parts},
		{Name: "purge_events", SQL: s.sql.deleteEvent, Rows: events},
	} {
		if len(st.Rows) > 0 {
			stmts = append(stmts, st)
		}
	}
	if len(stmts) == 0 {
		return 0, nil
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	total := 0
	for i, st := range stmts {
		if st.Name == "purge_jobs" || st.Name == "purge_runs" || st.Name == "purge_events" {
			total += int(results[i].Changed)
		}
	}
	return total, nil
}

// Ping asks the database for an answer. See core.Upkeep.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.read(ctx, "ping", s.sql.answerPing)
	return err
}
