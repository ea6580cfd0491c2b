package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// retryChunk is how many jobs one statement makes available again. Each is a commit, so accepts
// do not wait for millions of them.
const retryChunk = 1000

// Retry makes dead jobs available again. See core.Operations. Without an id it counts the dead
// jobs first and stops after as many, so that jobs which die again meanwhile do not keep it
// going.
//
// With an id it also revives a canceled job, and makes a waiting job due now. A workflow's jobs cannot be retried one by
// one: a redrive makes new ones.
func (s *Store) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	if id != "" {
		job, err := s.Job(ctx, id)
		if err != nil && !core.IsKind(err, core.NotFound) {
			return 0, fmt.Errorf("retry: %w", err) // the job may be one of a line
		}
		if err == nil && (job.Status == core.Dead || job.Status == core.Canceled) && job.Line != "" {
			return s.reviveLined(ctx, now, []lineRef{{line: lineOf(job.Lane, job.Line).(string), job: id, status: job.Status}})
		}
		early := s.sql.retryEarly.with(millis(now), millis(now), string(id)).once()
		entry := s.audited(ctx, s.sql.auditRetried, []any{now.UnixMilli(), string(id)})
		return s.revive(ctx, now, entry, early, s.sql.retryOne.with(millis(now), string(id)).once())
	}
	count, retry, args := s.sql.countDead, s.sql.retryAll, []any{}
	if lane.Workflow() != "" { // changes no job, but lanes are no longer marked as strays
		return s.revive(ctx, now, nil, s.sql.retryLane.with(string(lane), int64(0), millis(now)).once())
	}
	if lane != "" {
		count, retry, args = s.sql.countDeadLane, s.sql.retryLane, []any{string(lane)}
	}
	total, err := s.retryLined(ctx, now, lane)
	if err != nil {
		return total, err
	}
	dead, err := s.count(ctx, count, args...)
	if err != nil {
		return total, fmt.Errorf("retry: %w", err)
	}
	var entry []Stmt
	if dead > 0 {
		entry = s.audited(ctx, s.sql.audit) // once: the later chunks have the same id
	}
	dead += total
	for ctx.Err() == nil {
		chunk := append(append([]any{}, args...), int64(min(retryChunk, dead-total)), millis(now))
		n, err := s.revive(ctx, now, entry, retry.with(chunk...).once())
		total += n
		if err != nil || n == 0 || total >= dead {
			return total, err
		}
	}
	return total, ctx.Err()
}

// retryLined makes the dead jobs of lines available again, in a lane or in all.
func (s *Store) retryLined(ctx context.Context, now time.Time, lane core.Lane) (total int, err error) {
	lanes := []string{string(lane)}
	if lane == "" {
		if lanes, err = s.distinct(ctx, s.sql.lanesDead); err != nil {
			return 0, fmt.Errorf("retry: %w", err)
		}
	}
	for _, l := range lanes {
		n, err := s.reviveLinedLane(ctx, now, l)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// revive sends the statements of a Retry, with those of its audit entry, and returns how many jobs
// they changed. It also clears the marks of strays: the jobs of a lane that has been a stray for
// long are ended, and the new ones must get as much time as those of a new stray.
func (s *Store) revive(ctx context.Context, now time.Time, entry []Stmt, stmts ...Stmt) (int, error) {
	results, err := s.write(ctx, slices.Concat(stmts, []Stmt{s.sql.forgetStrays.with()}, entry)...)
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
	// noWorkflow leaves out the jobs of workflows. The range contains all lanes that begin with
	// "workflow/": "0" is the character after "/".
	noWorkflow = `(lane < 'workflow/' OR lane >= 'workflow0')`

	// A revived job gets all its attempts again, max_attempts - earlier, and goes on counting.
	// max_attempts comes before earlier: MySQL evaluates SET from left to right and reads the
	// new values. core.Unlimited stays unlimited.
	revived       = `status = 'available', due_at = ?, ` + revivedBudget
	revivedBudget = `finished_at = NULL,
	max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts END, earlier = attempt`
)

// upkeepSQL are the statements of a Retry and a Ping.
type upkeepSQL struct {
	retryOne, retryEarly, retryLane, retryAll statement
	countDead, countDeadLane                  statement
	forgetStrays, answerPing                  statement
}

func newUpkeepSQL(d Dialect) upkeepSQL {
	t := d.sql
	return upkeepSQL{
		retryOne:   writing("retry", t(`UPDATE jobs SET `+revived+` WHERE status IN ('dead', 'canceled') AND id = ? AND `+noWorkflow)),
		retryEarly: writing("retry_early", t(`UPDATE jobs SET due_at = ? WHERE status IN ('available', 'scheduled', 'retryable') AND due_at > ? AND id = ? AND `+noWorkflow)),
		retryLane:  writing("retry", d.updatePicked("jobs", revived, `FROM jobs{use jobs_dead} WHERE {in_dead} AND lane = ? AND line IS NULL LIMIT {limit}`)),
		retryAll:   writing("retry", d.updatePicked("jobs", revived, `FROM jobs{use jobs_dead} WHERE {in_dead} AND `+noWorkflow+` AND line IS NULL LIMIT {limit}`)),

		countDead:     walking("count_dead", t(`SELECT COUNT(*) FROM jobs{use jobs_dead} WHERE {in_dead} AND `+noWorkflow)),
		countDeadLane: walking("count_dead", t(`SELECT COUNT(*) FROM jobs{use jobs_dead} WHERE {in_dead} AND lane = ?`)),

		// There are as many gates as lanes. The condition on the lane lets the statement go by
		// the primary key.
		forgetStrays: writing("forget_strays", t(`UPDATE gates{use PRIMARY} SET stray_since = NULL WHERE lane > '' AND stray_since IS NOT NULL`)),

		answerPing: reading("ping", t(`SELECT 1`)),
	}
}
