package store

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Due tells when lanes are due. See core.Worklist.
func (s *Store) Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]time.Time, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	rows, err := s.read(ctx, "due", s.sql.due, list(lanes))
	if err != nil {
		return nil, fmt.Errorf("look for due jobs: %w", err)
	}
	due := make(map[core.Lane]time.Time, len(rows))
	for _, row := range rows {
		if row[1] != nil {
			due[core.Lane(str(row[0]))] = instant(row[1])
		}
	}
	return due, nil
}

// Take leases due jobs. See core.Worklist. All it takes is under one new lease,
// by which it is read back in the same batch.
func (s *Store) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	lease := string(s.leases.Next())
	stmts := make([]Stmt, 0, 2*len(quotas))
	for _, q := range quotas {
		if q.N <= 0 {
			continue
		}
		end := millis(now.Add(q.Hold))
		stmts = append(stmts,
			Stmt{Name: "claim", SQL: s.sql.claim, Args: []any{end, lease, string(q.Lane), millis(now), int64(q.N)}},
			Stmt{Name: "claimed", SQL: s.sql.claimed, Args: []any{string(q.Lane), end, lease}, Reads: true})
	}
	if len(stmts) == 0 {
		return nil, nil
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("take: %w", err)
	}
	var jobs []core.TakenJob
	for i := 1; i < len(results); i += 2 {
		for _, row := range results[i].Rows {
			jobs = append(jobs, core.TakenJob{Job: scanJob(row), Event: scanEvent(row[jobWidth:])})
		}
	}
	return jobs, nil
}

// Settle records outcomes. See core.Worklist.
func (s *Store) Settle(ctx context.Context, outcomes ...core.Outcome) ([]core.ID, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	stmts := make([]Stmt, 0, 2*len(outcomes))
	for _, o := range outcomes {
		stmts = append(stmts, s.attemptStmt(o), s.settleStmt(o))
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	var doubtful []core.Outcome
	for i, o := range outcomes {
		if results[2*i+1].Changed == 0 {
			doubtful = append(doubtful, o)
		}
	}
	return s.superseded(ctx, doubtful)
}

// superseded tells, of outcomes that changed nothing, those that came too late
// from those that had been settled already: the latter left their attempt.
func (s *Store) superseded(ctx context.Context, doubtful []core.Outcome) ([]core.ID, error) {
	if len(doubtful) == 0 {
		return nil, nil
	}
	pairs := make([][2]string, len(doubtful))
	for i, o := range doubtful {
		pairs[i] = [2]string{string(o.JobID), string(o.Lease)}
	}
	rows, err := s.read(ctx, "settled", s.sql.settled, list(pairs))
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	settled := map[[2]string]bool{}
	for _, row := range rows {
		settled[[2]string{str(row[0]), str(row[1])}] = true
	}
	var lost []core.ID
	for i, o := range doubtful {
		if !settled[pairs[i]] {
			lost = append(lost, o.JobID)
		}
	}
	return lost, nil
}

func (s *Store) attemptStmt(o core.Outcome) Stmt {
	a := o.Attempt
	return Stmt{Name: "insert_attempt", SQL: s.sql.insertAttempt, Args: []any{
		int64(a.Number), int64(a.StatusCode), a.Error, a.Response,
		a.Duration.Milliseconds(), millis(a.StartedAt), string(o.JobID), string(o.Lease)}}
}

func (s *Store) settleStmt(o core.Outcome) Stmt {
	due, finished := millis(o.DueAt), any(nil)
	if o.Status.Finished() {
		due, finished = nil, millis(o.At)
	}
	return Stmt{Name: "settle", SQL: s.sql.settle, Args: []any{
		string(o.Status), int64(o.Attempt.Number), due, o.Attempt.Error, finished,
		string(o.JobID), string(o.Lease)}}
}

// Release gives jobs back. See core.Worklist.
func (s *Store) Release(ctx context.Context, due time.Time, jobs ...core.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	stmts := make([]Stmt, len(jobs))
	for i, j := range jobs {
		stmts[i] = Stmt{Name: "release", SQL: s.sql.release, Args: []any{millis(due), string(j.ID), string(j.Lease)}}
	}
	if _, err := s.write(ctx, stmts...); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// Recover makes running jobs due. See core.Worklist.
func (s *Store) Recover(ctx context.Context, now time.Time, lanes []core.Lane) (int, error) {
	if len(lanes) == 0 {
		return 0, nil
	}
	stmts := make([]Stmt, len(lanes))
	for i, l := range lanes {
		stmts[i] = Stmt{Name: "recover", SQL: s.sql.recover, Args: []any{millis(now), string(l), millis(now)}}
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	n := 0
	for _, r := range results {
		n += int(r.Changed)
	}
	return n, nil
}
