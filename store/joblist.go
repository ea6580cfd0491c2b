package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Jobs lists jobs. See core.Ledger. A listing goes down by the ids, and ids grow with time. So
// a span of time costs nothing: it begins below the first id of its end, as the next page of
// a listing does, and jobs below the first id of its beginning are cut off.
func (s *Store) Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	if end := core.FirstID(f.Until); !f.Until.IsZero() && (f.After == "" || end < f.After) {
		f.After = end
	}
	page, err := s.jobsBelow(ctx, f)
	if err != nil || f.Since.IsZero() {
		return page, err
	}
	first := core.FirstID(f.Since)
	early := func(j core.Job) bool { return j.ID < first }
	if i := slices.IndexFunc(page.Items, early); i >= 0 {
		return core.Page[core.Job]{Items: page.Items[:i]}, nil
	}
	if page.More { // the job below the page may be before Since
		f.After, f.Limit = page.Items[len(page.Items)-1].ID, 1
		next, err := s.jobsBelow(ctx, f)
		page.More = len(next.Items) > 0 && !early(next.Items[0])
		return page, err
	}
	return page, nil
}

// jobsBelow lists jobs below an id. Those of a lane or status are looked for among the
// newest first; if they do not make up a page, in the indexes that have them apart.
func (s *Store) jobsBelow(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	if f.EventID == "" && (f.Status != "" || f.Lane != "") {
		page, err := s.recentJobs(ctx, f)
		if err == nil && !page.More {
			page, err = s.jobsByIndex(ctx, f)
		}
		return page, err
	}
	q := s.sql.jobs.below(f.After)
	q.and("lane = ?", string(f.Lane))
	q.and("event_id = ?", string(f.EventID))
	s.hasStatus(q, f.Status)
	return pageOf(ctx, s, q, f.Limit, s.readJob)
}

func (s *Store) readJob(r *rowReader) core.Job { return s.withShownStatus(r.jobDetail()) }

// hasStatus adds the condition that a job is shown with a status.
func (s *Store) hasStatus(q *query, status core.Status) {
	now := s.clock().UnixMilli()
	switch status {
	case core.Available:
		q.and("(status = 'available' OR (status = 'scheduled' AND due_at <= ?))", now)
	case core.Scheduled:
		q.and("status = 'scheduled' AND due_at > ?", now)
	case core.Running:
		q.and("status = 'running' AND due_at > ?", now)
	case core.Retryable:
		q.and("(status = 'retryable' OR (status = 'running' AND due_at <= ?))", now)
	default:
		q.and("status = ?", string(status))
	}
}

// near and nearEach say among how many of the newest jobs nearJobs looks: so many, and so
// many more for each that is asked for.
const (
	recentRows        = 1500
	recentRowsPerItem = 10
)

// nearJobs is a page of what there is among the newest jobs.
func (s *Store) recentJobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	q := s.sql.jobsNear.begin(pageTop(f.After), int64(recentRows+recentRowsPerItem*pageLimit(f.Limit)))
	q.and("lane = ?", string(f.Lane))
	s.hasStatus(q, f.Status)
	return pageOf(ctx, s, q, f.Limit, s.readJob)
}

// farJobs lists jobs by the indexes of those in which they may be. It looks for their ids
// first. Where the page's jobs all have another status meanwhile, it looks again.
func (s *Store) jobsByIndex(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	limit := pageLimit(f.Limit)
	for {
		ids, err := s.jobIDs(ctx, f, limit+1)
		if err != nil || len(ids) == 0 {
			return core.Page[core.Job]{}, err
		}
		page := core.Page[core.Job]{More: len(ids) > limit}
		page.Items, err = s.jobsWith(ctx, ids[:min(limit, len(ids))], f.Status)
		if err != nil || len(page.Items) > 0 {
			return page, err
		}
	}
}

// jobIDs are the ids of jobs of a lane, or of a status, the newest first.
func (s *Store) jobIDs(ctx context.Context, f core.JobFilter, limit int) ([][]any, error) {
	var stmts []Stmt
	for _, kind := range s.indexesOf(f.Status) {
		lanes := []string{string(f.Lane)}
		if f.Lane == "" {
			var err error
			if lanes, err = s.distinct(ctx, kind.lanes); err != nil {
				return nil, fmt.Errorf("list jobs: %w", err)
			}
		}
		for _, lane := range lanes {
			stmts = append(stmts, s.jobsInIndex(kind, lane, f, limit))
		}
	}
	rows, err := s.mergedOf(ctx, stmts, " DESC", limit)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return rows, nil
}

// jobsWith are the jobs of some ids that still have a status, in the order of the ids.
func (s *Store) jobsWith(ctx context.Context, ids [][]any, status core.Status) (jobs []core.Job, err error) {
	results, err := s.readBatch(ctx, s.sql.readJobs.on(ids...))
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	for _, row := range results[0].Rows {
		if j := s.readJob(&rowReader{row}); status == "" || j.Status == status {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b core.Job) int { return cmp.Compare(b.ID, a.ID) })
	return jobs, nil
}

// A jobKind is jobs that an index has to itself: what finds those of a lane in it, and its
// lanes. Those that wait are in another order there.
type jobIndex struct {
	ids      listing
	lanes    statement
	dueOrder bool
}

// kindsOf are those in which jobs with a status are.
func (s *Store) indexesOf(status core.Status) []jobIndex {
	waiting := jobIndex{s.sql.jobsWaiting, s.sql.lanesWaiting, true}
	dead := jobIndex{s.sql.jobsDead, s.sql.lanesDead, false}
	done := jobIndex{s.sql.jobsDone, s.sql.lanesDone, false}
	switch status {
	case "":
		return []jobIndex{waiting, dead, done}
	case core.Dead:
		return []jobIndex{dead}
	case core.Completed:
		return []jobIndex{done}
	}
	return []jobIndex{waiting}
}

// jobsOfKind lists jobs of a lane.
func (s *Store) jobsInIndex(kind jobIndex, lane string, f core.JobFilter, limit int) Stmt {
	top := pageTop(f.After)
	if !kind.dueOrder {
		return kind.ids.begin(lane, "", lane, top).finish("", limit)
	}
	q := kind.ids.begin(lane)
	s.hasStatus(q, f.Status)
	q.and("COALESCE(id, '') < ?", top)
	return q.finish(" ORDER BY job DESC LIMIT "+s.dialect.limitParam, limit)
}
