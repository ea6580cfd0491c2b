package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// newestID is greater than every ULID, whose first character is at most 7.
const newestID = "~"

// Event returns one event in full. See core.Ledger.
func (s *Store) Event(ctx context.Context, id core.ID) (core.Event, error) {
	rows, err := s.read(ctx, s.sql.event, string(id))
	if err != nil {
		return core.Event{}, fmt.Errorf("event %s: %w", id, err)
	}
	if len(rows) == 0 {
		return core.Event{}, core.Refuse(core.NotFound, "event not found")
	}
	return (&rowReader{rows[0]}).event(), nil
}

// Job returns one job. See core.Ledger.
func (s *Store) Job(ctx context.Context, id core.ID) (core.Job, error) {
	rows, err := s.read(ctx, s.sql.job, string(id))
	if err != nil {
		return core.Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	if len(rows) == 0 {
		return core.Job{}, core.Refuse(core.NotFound, "job not found")
	}
	return s.readJob(&rowReader{rows[0]}), nil
}

// withShownStatus returns a job with the status that is shown now.
func (s *Store) withShownStatus(j core.Job) core.Job {
	j.Status = shownAs(j, s.clock())
	return j
}

// shownAs returns the status with which a job is shown. A running job with an expired lease
// waits for another attempt, so it is retryable. A scheduled job whose time has come is
// available. The stored status changes with the next Take.
func shownAs(j core.Job, now time.Time) core.Status {
	switch due := !j.DueAt.After(now); {
	case due && j.Status == core.Running:
		return core.Retryable
	case due && j.Status == core.Scheduled:
		return core.Available
	}
	return j.Status
}

// A query is a listing under construction: fixed fragments of SQL and their arguments. Values
// never become part of the text.
type query struct {
	name string
	sql  strings.Builder
	args []any

	// index is part of the statement's name, "" for the primary key. indexColumns are the
	// columns before the id in that index, each with one value; ORDER BY repeats them, so that
	// MySQL and PostgreSQL see that the index has the order.
	index        string
	indexColumns []string

	// unordered says that the listing has one row at most, and needs no ORDER BY. PostgreSQL
	// would sort.
	unordered bool
}

// pageTop returns the id below which a page begins.
func pageTop(after core.ID) string {
	if after == "" {
		return newestID
	}
	return string(after)
}

// A listing is the beginning of a statement, up to its first conditions. A query adds more.
type listing struct{ name, sql string }

// begin starts a query with the arguments of the beginning.
func (l listing) begin(args ...any) *query {
	q := &query{name: l.name, args: args}
	q.sql.WriteString(l.sql)
	return q
}

// below starts a query for the rows below an id.
func (l listing) below(after core.ID) *query { return l.begin(pageTop(after)) }

// and adds a condition with one argument. An empty string means that the filter has no such
// condition.
func (q *query) and(condition string, arg any) {
	if arg == "" {
		return
	}
	q.sql.WriteString(" AND " + condition)
	q.args = append(q.args, arg)
}

// ordered returns the statement with its order, by id and in a direction, and its limit.
func (q *query) ordered(way, limit string) statement {
	by, name := " ORDER BY ", q.name
	for _, column := range q.indexColumns {
		by += column + way + ", "
	}
	by += "id" + way
	if q.unordered {
		by = ""
	}
	if q.index != "" {
		name += "_by_" + q.index
	}
	return reading(name, q.sql.String()+by+" LIMIT "+limit)
}

// finish returns the statement with a given end, whose last parameter is the number of rows.
func (q *query) finish(end string, most int) Stmt {
	return reading(q.name, q.sql.String()+end).with(append(q.args, int64(most))...)
}

// stmt returns the statement in the order of ids, with at most so many rows.
func (q *query) stmt(way, limit string, most int) Stmt {
	return q.ordered(way, limit).with(append(q.args, int64(most))...)
}

// pageOf reads a page. It asks for one row more than the page has, to know whether there are
// more.
func pageOf[T any](ctx context.Context, s *Store, q *query, limit int, scan func(*rowReader) T) (core.Page[T], error) {
	limit = pageLimit(limit)
	rows, err := s.merged(ctx, []*query{q}, " DESC", limit+1)
	if err != nil {
		return core.Page[T]{}, fmt.Errorf("list %s: %w", q.name, err)
	}
	return paged(rows, limit, scan), nil
}

// merged reads the first rows of several listings together, in the order of ids. The id is
// their first column. The listings go by different ranges of an index; a UNION in SQL would
// sort all rows.
func (s *Store) merged(ctx context.Context, queries []*query, way string, limit int) ([][]any, error) {
	stmts := make([]Stmt, len(queries))
	for i, q := range queries {
		stmts[i] = q.stmt(way, s.dialect.limitParam, limit)
	}
	return s.mergedOf(ctx, stmts, way, limit)
}

// mergedOf is merged for statements.
func (s *Store) mergedOf(ctx context.Context, stmts []Stmt, way string, limit int) (rows [][]any, err error) {
	results, err := s.readBatch(ctx, stmts...)
	if err != nil || len(results) == 1 {
		return firstRows(results), err
	}
	for _, r := range results {
		rows = append(rows, r.Rows...)
	}
	slices.SortFunc(rows, func(a, b []any) int {
		if way == "" {
			a, b = b, a
		}
		return byKey(b, a)
	})
	return rows[:min(limit, len(rows))], nil
}

// firstRows returns the rows of the first result, if there is one.
func firstRows(results []Result) [][]any {
	if len(results) == 0 {
		return nil
	}
	return results[0].Rows
}

// distinct returns the values that a statement of [Dialect.distinctValues] finds. of are the
// arguments of its condition.
func (s *Store) distinct(ctx context.Context, st statement, of ...any) (values []string, err error) {
	rows, err := s.read(ctx, st, distinctArgs(st, "", of)...)
	if err != nil {
		return nil, err
	}
	values, _, err = s.distinctAfter(ctx, rows, math.MaxInt, st, of...)
	return values, err
}

// distinctAfter returns the values that distinct returns, given the rows of the first statement. With
// rangePerRow, a statement returns the values of some rows, in order, and the next statement begins
// above the last value. distinctAfter sends at most the given number of statements, and reports
// whether the values are complete.
func (s *Store) distinctAfter(ctx context.Context, rows [][]any, most int, st statement, of ...any) (values []string, complete bool, err error) {
	for {
		for _, row := range rows {
			if v := rowKey(row); len(values) == 0 || v != values[len(values)-1] {
				values = append(values, v)
			}
		}
		if !s.dialect.rangePerRow || len(rows) < distinctPage {
			return values, true, nil
		}
		if most--; most < 0 {
			return values, false, nil
		}
		if rows, err = s.read(ctx, st, distinctArgs(st, values[len(values)-1], of)...); err != nil {
			return nil, false, err
		}
	}
}

// distinctArgs are the arguments of a statement of distinctValues for the values above one. The
// statement has the condition twice if it is recursive. Then it has more question marks, and gets
// the arguments of the condition again.
func distinctArgs(st statement, above string, of []any) []any {
	args := append(of[:len(of):len(of)], above)
	return append(args, of[:min(len(of), strings.Count(st.sql, "?")-len(args))]...)
}

// distincts is distinct for several statements whose conditions have no arguments. They are one batch
// where each of them finds all of its values.
func (s *Store) distincts(ctx context.Context, sts ...statement) (all [][]string, err error) {
	all = make([][]string, len(sts))
	if s.dialect.rangePerRow {
		for i, st := range sts {
			if all[i], err = s.distinct(ctx, st); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	stmts := make([]Stmt, len(sts))
	for i, st := range sts {
		stmts[i] = st.with("")
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		for _, row := range r.Rows {
			all[i] = append(all[i], rowKey(row))
		}
	}
	return all, nil
}

// paged makes a page of rows. One row more than limit means that there are more.
func paged[T any](rows [][]any, limit int, scan func(*rowReader) T) core.Page[T] {
	p := core.Page[T]{More: len(rows) > limit}
	for _, row := range rows[:min(limit, len(rows))] {
		p.Items = append(p.Items, scan(&rowReader{row}))
	}
	return p
}

// pageLimit returns the number of rows of a page: core.DefaultPage if none is asked for, and
// core.MaxPage at most.
func pageLimit(limit int) int {
	if limit <= 0 {
		limit = core.DefaultPage
	}
	return min(limit, core.MaxPage)
}

// Attempts lists the attempts of a job. See core.Ledger. The job is read first: once it has a
// success, no further attempt comes between the two statements.
func (s *Store) Attempts(ctx context.Context, job core.ID, skip, limit int) ([]core.Attempt, error) {
	limit = pageLimit(limit)
	results, err := s.readBatch(ctx, s.sql.success.with(string(job)), s.sql.attempts.with(string(job), int64(limit), int64(skip)))
	if err != nil {
		return nil, fmt.Errorf("attempts of job %s: %w", job, err)
	}
	var attempts []core.Attempt
	for _, row := range results[1].Rows {
		r := rowReader{row}
		attempts = append(attempts, r.attempt())
	}
	for _, row := range results[0].Rows {
		r := rowReader{row}
		last, ok := decodeSuccess(r.text())
		if before := r.number(); ok && skip <= before && before < skip+limit {
			attempts = append(attempts, last)
		}
	}
	return attempts, nil
}

// SourcesOf returns the sources of events, by their primary key. See core.Ledger.
func (s *Store) SourcesOf(ctx context.Context, events []core.ID) (map[core.ID]string, error) {
	if len(events) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, s.sql.eventSources.on(idRows(events)...))
	if err != nil {
		return nil, fmt.Errorf("read the sources of events: %w", err)
	}
	of := make(map[core.ID]string, len(results[0].Rows))
	for _, row := range results[0].Rows {
		r := rowReader{row}
		id := core.ID(r.text())
		of[id] = r.text()
	}
	return of, nil
}

// Depth counts unfinished jobs, up to core.MaxDepth. See core.Backlog.
func (s *Store) Depth(ctx context.Context) (int, error) {
	due, err := s.count(ctx, s.sql.depth, int64(core.MaxDepth))
	if err != nil {
		return 0, fmt.Errorf("count unfinished jobs: %w", err)
	}
	inLines, err := s.count(ctx, s.sql.depthWaiting, int64(core.MaxDepth))
	if err != nil {
		return 0, fmt.Errorf("count jobs in lines: %w", err)
	}
	return min(due+inLines, core.MaxDepth), nil
}

// Finished lists finished jobs in the order in which they finished. See core.Ledger.
func (s *Store) Finished(ctx context.Context, since time.Time, after core.ID, limit int) (core.Page[core.Job], error) {
	limit = pageLimit(limit)
	at := since.UnixMilli()
	rows, err := s.read(ctx, s.sql.finished, at, at, string(after), int64(limit+1))
	if err != nil {
		return core.Page[core.Job]{}, fmt.Errorf("list finished jobs: %w", err)
	}
	return paged(rows, limit, (*rowReader).jobDetail), nil
}

// Completed counts completed jobs, up to core.MaxDepth. See core.Backlog.
func (s *Store) Completed(ctx context.Context) (int, error) {
	n, err := s.count(ctx, s.sql.countDone, int64(core.MaxDepth))
	if err != nil {
		return 0, fmt.Errorf("count completed jobs: %w", err)
	}
	return n, nil
}

// count returns the number that a statement reads.
func (s *Store) count(ctx context.Context, st statement, args ...any) (int, error) {
	rows, err := s.read(ctx, st, args...)
	if err != nil {
		return 0, err
	}
	return countIn(st, rows)
}

// countIn reads the number from the rows of such a statement.
func countIn(st statement, rows [][]any) (int, error) {
	row, err := onlyRow(st, rows)
	if err != nil {
		return 0, err
	}
	r := rowReader{row}
	return r.number(), nil
}

// noAlert leaves out jobs of alerts. The range contains all lanes that begin with "alert/": "0"
// is the character after "/".
const noAlert = `(lane < 'alert/' OR lane >= 'alert0')`

// ledgerSQL are the statements of the Ledger and of listings.
type ledgerSQL struct {
	event, job, success, attempts                     statement
	depth, finished, countDone                        statement
	sources, sourcesOf, readJobs, eventSources        statement
	failuresDead, failuresRetryable, waitingBeyond    statement
	failureTexts                                      statement
	lanesWaiting, lanesDead, lanesDone, lanesCanceled statement
	events                                            eventListing
	jobs, jobsNear, jobsOfEvent, jobsOfLater          listing
	jobsWaiting, jobsDead, jobsDone, jobsCanceled     listing
}

func newLedgerSQL(d Dialect) ledgerSQL {
	t := d.sql
	return ledgerSQL{
		event: reading("event", t(`SELECT `+eventStored+` FROM events WHERE id = ?`)),
		job:   reading("job", t(`SELECT `+jobDetail+` FROM jobs WHERE id = ?`)),
		// The success of a job, and how many attempts it had before.
		success: reading("success", t(`SELECT success, (SELECT COUNT(*) FROM attempts{use PRIMARY} WHERE attempts.job_id = jobs.id) AS before_it
			FROM jobs WHERE id = ? AND success IS NOT NULL`)),
		attempts: reading("attempts", t(`SELECT `+attemptShown+` FROM attempts WHERE job_id = ? ORDER BY created_at, attempt LIMIT {limit} OFFSET {limit}`)),
		depth:    walking("depth", t(`SELECT COUNT(*) FROM (SELECT 1 AS one FROM jobs WHERE {in_waiting} LIMIT {limit}) AS counted`)),
		finished: reading("finished", t(`SELECT `+jobDetail+` FROM jobs{use jobs_finished}
			WHERE finished_at >= ? AND (finished_at > ? OR id > ?) AND `+noAlert+` ORDER BY finished_at, id LIMIT {limit}`)),
		countDone: walking("count_done", t(`SELECT COUNT(*) FROM (SELECT 1 AS one FROM jobs{use jobs_done} WHERE {in_done} LIMIT {limit}) AS counted`)),

		events:    d.eventListing("events", eventSummary),
		sources:   reading("sources", d.distinctValues(`source`, `events{use events_by_source}`, `1 = 1`)),
		sourcesOf: reading("sources_of", d.distinctValues(`source`, `events{use events_by_kind}`, `type = ?`)),

		jobs:        listing{"jobs", t(`SELECT ` + jobDetail + ` FROM jobs{use PRIMARY} WHERE id < ?`)},
		jobsOfEvent: listing{"jobs_of_event", t(jobsIn(inSpan))},
		jobsOfLater: d.laterListing("jobs_of_later", jobsIn(inSpan+` AND `+laterJob)),
		jobsNear: listing{"jobs_near", t(`SELECT ` + jobDetail + ` FROM (SELECT ` + jobStored + ` FROM jobs{use PRIMARY} WHERE id < ?
			ORDER BY id DESC LIMIT {limit}) AS jobs WHERE 1 = 1`)},
		// In jobs_waiting, the jobs of a lane are in the order of due times. COALESCE keeps the
		// planner from taking the primary key for the order of ids.
		jobsWaiting: listing{"jobs_waiting", t(`SELECT COALESCE(id, '') AS job FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ?`)},
		// jobs_dead, jobs_done and jobs_canceled have the order of the listing.
		jobsDead: listing{"jobs_dead", t(`SELECT id AS job FROM jobs{use jobs_dead} WHERE {in_dead} AND {from lane} AND {below lane}
			ORDER BY lane DESC, id DESC LIMIT {limit}`)},
		jobsDone: listing{"jobs_done", t(`SELECT id AS job FROM jobs{use jobs_done} WHERE {in_done} AND {from lane} AND {below lane}
			ORDER BY lane DESC, id DESC LIMIT {limit}`)},
		jobsCanceled: listing{"jobs_canceled", t(`SELECT id AS job FROM jobs{use jobs_canceled} WHERE {in_canceled} AND {from lane} AND {below lane}
			ORDER BY lane DESC, id DESC LIMIT {limit}`)},

		// MaxFailureText characters have as many bytes or more. On MySQL they are bytes.
		failuresDead: walking("failures_dead", t(`SELECT id`+d.unlessKeys(`, `+failureText+` AS error`)+` FROM jobs{use jobs_dead}
			WHERE {in_dead} AND {from lane} AND {below lane} ORDER BY lane DESC, id DESC LIMIT {limit}`)),
		// The index has all columns of slice. Its rows are of one column, since SQLite copies each row of an
		// inner SELECT with a LIMIT. Only the jobs that are found are read themselves.
		failuresRetryable: walking("failures_retryable", t(`SELECT id`+d.unlessKeys(`, (SELECT `+failureText+` FROM jobs WHERE jobs.id = found.id) AS error`)+`
			FROM (SELECT id FROM (SELECT CASE WHEN id >= ? AND id < ? AND (status = 'retryable' OR (status = 'running' AND due_at <= ?)) THEN id END AS id
			FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ? ORDER BY due_at DESC LIMIT {limit}) AS slice WHERE id IS NOT NULL
			ORDER BY id DESC LIMIT {limit}) AS found WHERE 1 = 1`)),
		failureTexts: walking("failure_texts", d.selectKeys(`jobs.id AS job, `+failureText+` AS error`, "jobs", `jobs.id`)),
		waitingBeyond: walking("waiting_beyond", t(`SELECT id FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ?
			ORDER BY due_at DESC LIMIT 1 OFFSET {limit}`)),

		lanesWaiting:  reading("jobs_waiting_lanes", d.distinctValues(`{waiting_lane}`, `jobs{use jobs_waiting}`, `{in_waiting}`)),
		lanesDead:     reading("jobs_dead_lanes", d.distinctValues(`lane`, `jobs{use jobs_dead}`, `{in_dead}`)),
		lanesDone:     reading("jobs_done_lanes", d.distinctValues(`lane`, `jobs{use jobs_done}`, `{in_done}`)),
		lanesCanceled: reading("jobs_canceled_lanes", d.distinctValues(`lane`, `jobs{use jobs_canceled}`, `{in_canceled}`)),
		readJobs:      reading("read_jobs", d.selectRows(jobDetail, "jobs{use PRIMARY}", `jobs.id = r.id`)),
		eventSources:  reading("event_sources", d.selectRows(`events.id AS event, events.source AS source`, "events{use PRIMARY}", `events.id = r.id`)),
	}
}
