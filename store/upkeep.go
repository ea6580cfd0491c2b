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

// Retry brings dead jobs back. See core.Operations. It goes on until as many are back
// as were dead when it began; what dies meanwhile is another matter.
func (s *Store) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	if id != "" {
		early := s.sql.retryEarly.with(millis(now), millis(now), string(id)).once()
		return s.revive(ctx, now, early, s.sql.retryOne.with(millis(now), string(id)).once())
	}
	count, retry, args := s.sql.countDead, s.sql.retryAll, []any{}
	if lane.Workflow() != "" { // none of these, but strays begin anew all the same
		return s.revive(ctx, now, s.sql.retryLane.with(string(lane), int64(0), millis(now)).once())
	}
	if lane != "" {
		count, retry, args = s.sql.countDeadLane, s.sql.retryLane, []any{string(lane)}
	}
	dead, err := s.count(ctx, count, args...)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	total := 0
	for ctx.Err() == nil {
		chunk := append(append([]any{}, args...), int64(min(retryChunk, dead-total)), millis(now))
		n, err := s.revive(ctx, now, retry.with(chunk...).once())
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
	results, err := s.write(ctx, append(stmts, s.sql.forgetStrays.with())...)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	s.floors.jobWritten(now)
	n := 0
	for _, r := range results[:len(stmts)] {
		n += int(r.Changed)
	}
	return n, nil
}

// Ping asks the database for an answer. See core.Upkeep.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.read(ctx, s.sql.answerPing)
	return err
}

const (
	// noWorkflow keeps jobs of workflows out: they are not brought back by themselves. The range
	// is that of all lanes which begin so.
	noWorkflow = `(lane < 'workflow/' OR lane >= 'workflow0')`

	// A job that is brought back has its whole budget again, max_attempts - earlier, and counts
	// its attempts on. max_attempts comes before earlier, since MySQL evaluates SET from left to
	// right with the new values. It stays if it is core.Unlimited.
	revived = `status = 'available', due_at = ?, finished_at = NULL,
	max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts END, earlier = attempt`
)

type upkeepSQL struct {
	retryOne, retryEarly, retryLane, retryAll statement
	countDead, countDeadLane                  statement
	forgetStrays, answerPing                  statement
}

func newUpkeepSQL(d Dialect) upkeepSQL {
	t := d.sql
	return upkeepSQL{
		retryOne:   writing("retry", t(`UPDATE jobs SET `+revived+` WHERE status = 'dead' AND id = ? AND `+noWorkflow)),
		retryEarly: writing("retry_early", t(`UPDATE jobs SET due_at = ? WHERE status IN ('available', 'scheduled', 'retryable') AND due_at > ? AND id = ? AND `+noWorkflow)),
		retryLane:  writing("retry", d.updatePicked("jobs", revived, `FROM jobs{use jobs_dead} WHERE {in_dead} AND {dead_lane} = ? LIMIT {limit}`)),
		retryAll:   writing("retry", d.updatePicked("jobs", revived, `FROM jobs{use jobs_dead} WHERE {in_dead} AND `+noWorkflow+` LIMIT {limit}`)),

		countDead:     reading("count_dead", t(`SELECT COUNT(*) FROM jobs{use jobs_dead} WHERE {in_dead} AND `+noWorkflow)),
		countDeadLane: reading("count_dead", t(`SELECT COUNT(*) FROM jobs WHERE {in_dead} AND {dead_lane} = ?`)),

		// All lanes' gates are few. Named so, they are found by the primary key.
		forgetStrays: writing("forget_strays", t(`UPDATE gates{use PRIMARY} SET stray_since = NULL WHERE lane > '' AND stray_since IS NOT NULL`)),

		answerPing: reading("ping", t(`SELECT 1`)),
	}
}
