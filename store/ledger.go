package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// newestID is above every ULID, whose first character is at most 7.
const newestID = "~"

// Event returns one event. See core.Ledger.
func (s *Store) Event(ctx context.Context, id core.ID) (core.Event, error) {
	rows, err := s.read(ctx, "event", s.sql.event, string(id))
	if err != nil {
		return core.Event{}, fmt.Errorf("event %s: %w", id, err)
	}
	if len(rows) == 0 {
		return core.Event{}, core.Refuse(core.NotFound, "event not found")
	}
	return scanEvent(rows[0]), nil
}

// Job returns one job. See core.Ledger.
func (s *Store) Job(ctx context.Context, id core.ID) (core.Job, error) {
	rows, err := s.read(ctx, "job", s.sql.job, string(id))
	if err != nil {
		return core.Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	if len(rows) == 0 {
		return core.Job{}, core.Refuse(core.NotFound, "job not found")
	}
	return s.shown(scanShown(rows[0])), nil
}

// shown is a job as the ledger presents it.
func (s *Store) shown(j core.Job) core.Job {
	j.Status = shownAs(j, s.clock())
	return j
}

// shownAs is the status that a job is shown with. A job whose lease is over waits to be tried
// again, and a scheduled job whose time has come waits for a worker alone.
func shownAs(j core.Job, now time.Time) core.Status {
	switch due := !j.DueAt.After(now); {
	case due && j.Status == core.Running:
		return core.Retryable
	case due && j.Status == core.Scheduled:
		return core.Available
	}
	return j.Status
}

// A query is a listing's statement under construction: fixed fragments and
// their arguments, never a value inside the text.
type query struct {
	sql  strings.Builder
	args []any

	// by is what the index is called by that the listing goes through, and lead the columns
	// that have one value and stand before the id in it; none for the primary key.
	by   string
	lead []string
}

// pageTop is the id that those of a page are below.
func pageTop(after core.ID) string {
	if after == "" {
		return newestID
	}
	return string(after)
}

func listing(sql string, after core.ID) *query {
	q := &query{args: []any{pageTop(after)}}
	q.sql.WriteString(sql)
	return q
}

// and adds a condition with its one argument, unless that is the empty string.
func (q *query) and(condition string, arg any) {
	if arg == "" {
		return
	}
	q.sql.WriteString(" AND " + condition)
	q.args = append(q.args, arg)
}

// named is the name of the statement.
func (q *query) named(name string) string {
	if q.by != "" {
		name += "_by_" + q.by
	}
	return name
}

// ordered is the whole text, in the order of the ids, up or DESC.
func (q *query) ordered(way, limit string) string {
	by := ""
	for _, column := range q.lead {
		by += column + way + ", "
	}
	return q.sql.String() + " ORDER BY " + by + "id" + way + " LIMIT " + limit
}

// stmt is the whole statement, up to a number of rows.
func (q *query) stmt(name, way, limit string, most int) Stmt {
	return Stmt{Name: q.named(name), SQL: q.ordered(way, limit), Args: append(q.args, int64(most)), Reads: true}
}

// pageOf reads one row more than the page holds, to know whether there are more.
func pageOf[T any](ctx context.Context, s *Store, name string, q *query, limit int, scan func([]any) T) (core.Page[T], error) {
	limit = pageLimit(limit)
	rows, err := s.merged(ctx, name, []*query{q}, " DESC", limit+1)
	if err != nil {
		return core.Page[T]{}, fmt.Errorf("list %s: %w", name, err)
	}
	return paged(rows, limit, scan), nil
}

// merged reads the first rows of what listings list together, all in the order of the id,
// which is their first column.
func (s *Store) merged(ctx context.Context, name string, queries []*query, way string, limit int) ([][]any, error) {
	stmts := make([]Stmt, len(queries))
	for i, q := range queries {
		stmts[i] = q.stmt(name, way, s.dialect.limit, limit)
	}
	return s.mergedOf(ctx, stmts, way, limit)
}

// mergedOf is the same of statements.
func (s *Store) mergedOf(ctx context.Context, stmts []Stmt, way string, limit int) (rows [][]any, err error) {
	results, err := s.readBatch(ctx, stmts...)
	if err != nil || len(results) == 1 {
		return first(results), err
	}
	for _, r := range results {
		rows = append(rows, r.Rows...)
	}
	slices.SortFunc(rows, func(a, b []any) int {
		if way == "" {
			a, b = b, a
		}
		return cmp.Compare(str(b[0]), str(a[0]))
	})
	return rows[:min(limit, len(rows))], nil
}

func first(results []Result) [][]any {
	if len(results) == 0 {
		return nil
	}
	return results[0].Rows
}

// distinct reads the values that statements of [Dialect.distinct] find.
func (s *Store) distinct(ctx context.Context, name, sql string, of ...any) (values []string, err error) {
	for last := ""; ; last = values[len(values)-1] {
		args := append(of[:len(of):len(of)], last)
		args = append(args, of[:min(len(of), strings.Count(sql, "?")-len(args))]...)
		rows, err := s.read(ctx, name, sql, args...)
		if err != nil || len(rows) == 0 {
			return values, err
		}
		for _, row := range rows {
			values = append(values, str(row[0]))
		}
		if !s.dialect.apart {
			return values, nil
		}
	}
}

// paged is a page of rows, of which there is one more if there are more.
func paged[T any](rows [][]any, limit int, scan func([]any) T) core.Page[T] {
	p := core.Page[T]{More: len(rows) > limit}
	for _, row := range rows[:min(limit, len(rows))] {
		p.Items = append(p.Items, scan(row))
	}
	return p
}

// pageLimit is how many rows a page has.
func pageLimit(limit int) int {
	if limit <= 0 {
		limit = core.DefaultPage
	}
	return min(limit, core.MaxPage)
}

// Attempts lists the attempts of a job. See core.Ledger.
func (s *Store) Attempts(ctx context.Context, job core.ID) ([]core.Attempt, error) {
	rows, err := s.read(ctx, "attempts", s.sql.attempts, string(job))
	if err != nil {
		return nil, fmt.Errorf("attempts of job %s: %w", job, err)
	}
	var attempts []core.Attempt
	for _, row := range rows {
		attempts = append(attempts, scanAttempt(row))
	}
	return attempts, nil
}

// Depth counts unfinished jobs. See core.Ledger.
func (s *Store) Depth(ctx context.Context) (int, error) {
	n, err := s.count(ctx, "depth", s.sql.depth, core.MaxDepth)
	if err != nil {
		return 0, fmt.Errorf("depth: %w", err)
	}
	return n, nil
}

// Finished lists finished jobs. See core.Ledger.
func (s *Store) Finished(ctx context.Context, since time.Time, after core.ID, limit int) (core.Page[core.Job], error) {
	limit = pageLimit(limit)
	at := since.UnixMilli()
	rows, err := s.read(ctx, "finished", s.sql.finished, at, at, string(after), int64(limit+1))
	if err != nil {
		return core.Page[core.Job]{}, fmt.Errorf("list finished jobs: %w", err)
	}
	return paged(rows, limit, scanShown), nil
}

// maxBuried is how many dead jobs Completed knows from completed ones.
const maxBuried = 10 * core.MaxDepth

// Completed counts completed jobs. See core.Ledger. No index has them alone: they are
// the finished ones that are not dead. The dead are counted first, so that one which
// dies meanwhile makes the number one too high and not too low.
func (s *Store) Completed(ctx context.Context) (int, error) {
	dead, err := s.count(ctx, "buried", s.sql.buried, maxBuried)
	if err != nil {
		return 0, fmt.Errorf("completed: %w", err)
	}
	over, err := s.count(ctx, "over", s.sql.over, dead+core.MaxDepth)
	if err != nil {
		return 0, fmt.Errorf("completed: %w", err)
	}
	return max(0, over-dead), nil
}

func (s *Store) count(ctx context.Context, name, sql string, limit int) (int, error) {
	results, err := s.readBatch(ctx, Stmt{Name: name, SQL: sql, Args: []any{int64(limit)}, Reads: true})
	if err != nil {
		return 0, err
	}
	row, err := lone(name, results[0].Rows)
	if err != nil {
		return 0, err
	}
	return whole(row[0]), nil
}
