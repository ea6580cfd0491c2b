package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Jobs lists jobs, the newest first. See core.Ledger. Ids grow with time, so a span of time is
// a range of ids: the listing begins below the first id of Until and ends at the first id of
// Since.
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
	if page.More { // the next job may be before Since
		f.After, f.Limit = page.Items[len(page.Items)-1].ID, 1
		next, err := s.jobsBelow(ctx, f)
		page.More = len(next.Items) > 0 && !early(next.Items[0])
		return page, err
	}
	return page, nil
}

// jobsBelow lists jobs below an id. Jobs of a lane or status are searched among the newest jobs
// first, which is one short read by the primary key. If that does not fill the page, they are
// listed by the indexes that contain them. Dead and canceled jobs are few among the newest, and
// their indexes are in the order of ids. So a listing of them reads no other jobs.
func (s *Store) jobsBelow(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	if f.EventID != "" {
		return s.jobsOfEvent(ctx, f)
	}
	if f.Status == core.Dead || f.Status == core.Canceled {
		return s.jobsByIndex(ctx, f)
	}
	if f.Status != "" || f.Lane != "" {
		page, err := s.recentJobs(ctx, f)
		if err == nil && !page.More {
			page, err = s.jobsByIndex(ctx, f)
		}
		return page, err
	}
	return pageOf(ctx, s, s.sql.jobs.below(f.After), f.Limit, s.readJob)
}

// jobsOfEvent lists jobs of an event.
func (s *Store) jobsOfEvent(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	var queries []*query
	list := func(l listing, span jobSpan) {
		q := l.begin(string(span.event), span.low, min(span.high, pageTop(f.After)), int64(math.MaxInt64))
		q.and("lane = ?", string(f.Lane))
		s.hasStatus(q, f.Status)
		queries = append(queries, q)
	}
	first, later := s.dialect.spans(f.EventID)
	list(s.sql.jobsOfEvent, first)
	if s.dialect.hasLater() {
		list(s.sql.jobsOfLater, later)
	}
	limit := pageLimit(f.Limit)
	rows, err := s.merged(ctx, queries, " DESC", limit+1)
	if err != nil {
		return core.Page[core.Job]{}, fmt.Errorf("list the jobs of event %s: %w", f.EventID, err)
	}
	return paged(rows, limit, s.readJob), nil
}

// readJob reads a row of jobDetail, with the status that is shown.
func (s *Store) readJob(r *rowReader) core.Job { return s.withShownStatus(r.jobDetail()) }

// hasStatus adds the condition that a job is shown with a status. See shownAs.
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

// recentJobs looks at recentRows of the newest jobs, and at recentRowsPerItem more for each job
// of the page.
const (
	recentRows        = 1500
	recentRowsPerItem = 10
)

// recentJobs is a page of those among the newest jobs that a filter selects.
func (s *Store) recentJobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	q := s.sql.jobsNear.begin(pageTop(f.After), int64(recentRows+recentRowsPerItem*pageLimit(f.Limit)))
	q.and("lane = ?", string(f.Lane))
	s.hasStatus(q, f.Status)
	return pageOf(ctx, s, q, f.Limit, s.readJob)
}

// jobsByIndex lists jobs by the indexes that contain them. It reads the ids first. If all jobs
// of the page have changed their status in between, it begins again.
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

// jobIDs returns the ids of jobs of a lane or of a status, the newest first. It sends one
// statement for each index and lane, and merges their rows.
func (s *Store) jobIDs(ctx context.Context, f core.JobFilter, limit int) ([][]any, error) {
	var stmts []Stmt
	for _, kind := range s.indexesOf(f.Status) {
		if kind.places {
			above, below := linesOf(f.Lane)
			stmts = append(stmts, s.sql.jobsInLines.with(above, below, pageTop(f.After), int64(limit)))
			continue
		}
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

// jobsWith reads jobs by id and leaves out jobs that no longer have the status.
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
	order.Sort(jobs, func(a, b core.Job) int { return cmp.Compare(b.ID, a.ID) })
	return jobs, nil
}

// A jobIndex is one of the partial indexes of jobs: waiting, dead, completed or canceled; or the
// places of lines, which have the jobs that wait without a due time.
type jobIndex struct {
	ids      listing   // lists the jobs of a lane in it
	lanes    statement // lists its lanes
	dueOrder bool      // the index is in the order of due times, so ids have to be sorted
	places   bool      // it is line_places
}

// indexesOf returns the indexes that contain the jobs with a status. All jobs are in one of
// them.
func (s *Store) indexesOf(status core.Status) []jobIndex {
	waiting := jobIndex{ids: s.sql.jobsWaiting, lanes: s.sql.lanesWaiting, dueOrder: true}
	dead := jobIndex{ids: s.sql.jobsDead, lanes: s.sql.lanesDead}
	done := jobIndex{ids: s.sql.jobsDone, lanes: s.sql.lanesDone}
	canceled := jobIndex{ids: s.sql.jobsCanceled, lanes: s.sql.lanesCanceled}
	switch status {
	case "":
		return []jobIndex{waiting, dead, done, canceled, {places: true}}
	case core.Waiting:
		return []jobIndex{{places: true}}
	case core.Dead:
		return []jobIndex{dead}
	case core.Completed:
		return []jobIndex{done}
	case core.Canceled:
		return []jobIndex{canceled}
	}
	return []jobIndex{waiting}
}

// jobsInIndex lists the jobs of one lane in an index.
func (s *Store) jobsInIndex(kind jobIndex, lane string, f core.JobFilter, limit int) Stmt {
	top := pageTop(f.After)
	if !kind.dueOrder {
		return kind.ids.begin(lane, "", lane, top).finish("", limit)
	}
	q := kind.ids.begin(lane)
	s.hasStatus(q, f.Status)
	// The function keeps a planner from choosing the primary key, which is in the right order
	// and would read all jobs.
	q.and("COALESCE(id, '') < ?", top)
	return q.finish(" ORDER BY job DESC LIMIT "+s.dialect.limitParam, limit)
}
