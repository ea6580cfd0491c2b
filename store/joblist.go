package store

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// Jobs lists jobs. See core.Ledger.
func (s *Store) Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	if f.EventID == "" && f.Status != "" && f.Status != core.Completed {
		return s.fewJobs(ctx, f)
	}
	q := listing(s.sql.jobs, f.After)
	q.and("lane = ?", string(f.Lane))
	q.and("event_id = ?", string(f.EventID))
	s.hasStatus(q, f.Status)
	return pageOf(ctx, s, "jobs", q, f.Limit, s.scanListed)
}

func (s *Store) scanListed(row []any) core.Job { return s.shown(scanShown(row)) }

// hasStatus adds the condition that a job is shown with a status.
func (s *Store) hasStatus(q *query, status core.Status) {
	now := s.clock().UnixMilli()
	switch status {
	case core.Running:
		q.and("status = 'running' AND due_at > ?", now)
	case core.Retryable:
		q.and("(status = 'retryable' OR (status = 'running' AND due_at <= ?))", now)
	default:
		q.and("status = ?", string(status))
	}
}

// near is among how many of the newest jobs fewJobs looks first.
const near = 2000

// fewJobs lists jobs that are not completed, of which there are few beside those that
// are: with a million of them it took a fifth of a second to go through. Unless the
// newest jobs make up a page, it looks at all that wait, or at all that are dead, in
// their index, and sorts them. Where those are many, the first look is enough.
func (s *Store) fewJobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	if f.Status == core.Dead && f.Lane != "" { // they are in order there
		return s.indexed(ctx, s.sql.deadLaneIDs, "{dead_lane} = ?", f)
	}
	q := &query{args: []any{pageTop(f.After), int64(near)}}
	q.sql.WriteString(s.sql.jobsNear)
	q.and("lane = ?", string(f.Lane))
	s.hasStatus(q, f.Status)
	p, err := pageOf(ctx, s, "jobs_near", q, f.Limit, s.scanListed)
	switch {
	case err != nil || p.More:
		return p, err
	case f.Status == core.Dead:
		return s.indexed(ctx, s.sql.deadIDs, "{dead_lane} = ?", f)
	}
	return s.indexed(ctx, s.sql.waitingIDs, "{due_lane} = ?", f)
}

// indexed lists jobs whose ids a statement finds in an index.
func (s *Store) indexed(ctx context.Context, ids, ofLane string, f core.JobFilter) (core.Page[core.Job], error) {
	q, limit := listing(ids, f.After), pageLimit(f.Limit)
	q.and(s.dialect.sql(ofLane), string(f.Lane))
	s.hasStatus(q, f.Status)
	text := fmt.Sprintf(s.sql.jobsFew, q.sql.String()+" ORDER BY job DESC LIMIT "+s.dialect.limit)
	rows, err := s.read(ctx, "jobs_few", text, append(q.args, int64(limit+1))...)
	if err != nil {
		return core.Page[core.Job]{}, fmt.Errorf("list jobs: %w", err)
	}
	return paged(rows, limit, s.scanListed), nil
}
