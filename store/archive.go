package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Nth returns the id of an event by its place from the newest, so that a read can begin there.
// See core.Archive. With fewer events it returns the oldest.
func (s *Store) Nth(ctx context.Context, f core.EventFilter, n int) (id core.ID, err error) {
	filters, err := s.splitBySource(ctx, f)
	switch {
	case err != nil:
	case len(filters) == 1:
		id, err = s.nth(ctx, filters[0], max(n, 1))
	default:
		id, err = s.nthOfType(ctx, filters, max(n, 1))
	}
	if err != nil {
		return "", fmt.Errorf("find an event by its place: %w", err)
	}
	return id, nil
}

// nth finds the event by OFFSET in one index. The second statement finds the oldest event, for
// when there are fewer than n.
func (s *Store) nth(ctx context.Context, f core.EventFilter, n int) (core.ID, error) {
	nth, oldest := s.sql.nthEvent.query(f, "", ""), s.sql.oldestEvent.query(f, "", "")
	results, err := s.readBatch(ctx,
		nth.stmt(" DESC", "1 OFFSET "+s.dialect.limitParam, n-1),
		oldest.ordered("", "1").with(oldest.args...))
	if err != nil {
		return "", err
	}
	for _, row := range slices.Concat(results[0].Rows, results[1].Rows) {
		return core.ID(rowKey(row)), nil
	}
	return "", nil
}

// Read returns events in full, oldest first. See core.Archive.
func (s *Store) Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error) {
	return s.readInFull(ctx, f, from, "", "")
}

// ReadNewest returns events in full, newest first. See core.Archive.
func (s *Store) ReadNewest(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	p, err := s.readInFull(ctx, f, "", f.After, " DESC")
	slices.Reverse(p.Items)
	return p, err
}

// Newest returns the highest id and the latest end. See core.Archive.
func (s *Store) Newest(ctx context.Context) (id core.ID, finished time.Time, err error) {
	results, err := s.readBatch(ctx, s.sql.lastEvent.with(), s.sql.lastJob.with(), s.sql.lastRun.with(),
		s.sql.lastJobOver.with(), s.sql.lastRunOver.with())
	if err != nil {
		return "", time.Time{}, fmt.Errorf("find the newest records: %w", err)
	}
	ids, ends := results[:3], results[3:]
	for _, result := range ids {
		for _, row := range result.Rows {
			id = max(id, core.ID(rowKey(row)))
		}
	}
	for _, result := range ends {
		for _, row := range result.Rows {
			if end := (&rowReader{row}).time(); end.After(finished) {
				finished = end
			}
		}
	}
	return id, finished, nil
}

// readInFull returns the first events, in a direction, with ids from from on and below below,
// sorted by id. It reads their sizes first, so that a page of the largest events does not fill the
// memory. Events that a purge deletes in between are left out. If it deleted all of them,
// readInFull begins again.
func (s *Store) readInFull(ctx context.Context, f core.EventFilter, from, below core.ID, way string) (core.Page[core.Event], error) {
	limit := pageLimit(f.Limit)
	for {
		sizes, err := s.selectEvents(ctx, s.sql.eventSizes, f, from, below, way, limit+1)
		if err != nil {
			return core.Page[core.Event]{}, fmt.Errorf("read events: %w", err)
		}
		if len(sizes) == 0 {
			return core.Page[core.Event]{}, nil
		}
		n := fitting(sizes[:min(limit, len(sizes))])
		events, err := s.eventsOf(ctx, sizes[:n])
		if err != nil || len(events) > 0 {
			return core.Page[core.Event]{Items: events, More: len(sizes) > n}, err
		}
	}
}

// fitting returns how many of the first events, given rows of event_sizes, it takes to reach core.MaxRead bytes, or
// len(sizes).
func fitting(sizes [][]any) int {
	total := 0
	for i, row := range sizes {
		if total += intOf(row[eventSize]); total >= core.MaxRead {
			return i + 1
		}
	}
	return len(sizes)
}

// eventsOf reads events by id and returns them sorted by id.
func (s *Store) eventsOf(ctx context.Context, sizes [][]any) (events []core.Event, err error) {
	results, err := s.readBatch(ctx, s.sql.readEvents.on(firstColumns(sizes)...))
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	for _, row := range results[0].Rows {
		r := rowReader{row}
		events = append(events, r.event())
	}
	order.Sort(events, func(a, b core.Event) int { return cmp.Compare(a.ID, b.ID) })
	return events, nil
}

// JobsOf returns the jobs of events. See core.Archive.
func (s *Store) JobsOf(ctx context.Context, events []core.ID) (map[core.ID][]core.Job, error) {
	if len(events) == 0 {
		return nil, nil
	}
	stmts := []Stmt{s.sql.jobsOf.on(idRows(events)...)}
	if s.sql.laterJobsOf.sql != "" {
		stmts = append(stmts, s.sql.laterJobsOf.on(idRows(events)...))
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("read the jobs of events: %w", err)
	}
	of := map[core.ID][]core.Job{}
	for _, part := range results {
		for _, row := range part.Rows {
			j := s.readJob(&rowReader{row})
			of[j.EventID] = append(of[j.EventID], j)
		}
	}
	for _, jobs := range of {
		order.Sort(jobs, func(a, b core.Job) int { return cmp.Compare(a.ID, b.ID) })
	}
	return of, nil
}

// AttemptsOf returns the attempts of jobs without their responses and exchanges. See core.Archive. Attempts
// that began in the same millisecond are ordered by number. The successes are read first, as in
// Attempts.
func (s *Store) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, s.sql.successesOf.on(idRows(jobs)...), s.sql.attemptsOf.on(idRows(jobs)...))
	if err != nil {
		return nil, fmt.Errorf("read the attempts of jobs: %w", err)
	}
	of := map[core.ID][]core.Attempt{}
	for _, row := range results[1].Rows {
		r := rowReader{row}
		attempt, job := r.attempt(), r.id()
		of[job] = append(of[job], attempt)
	}
	for _, attempts := range of {
		order.Sort(attempts, func(a, b core.Attempt) int {
			return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.Number, b.Number))
		})
	}
	for _, row := range results[0].Rows {
		r := rowReader{row}
		job := r.id()
		if last, ok := decodeSuccess(r.text()); ok {
			last.Response = ""
			of[job] = append(of[job], last)
		}
	}
	return of, nil
}

// SentBody returns the kept part of a body that was sent. See core.Archive.
func (s *Store) SentBody(ctx context.Context, job core.ID, number int) (string, error) {
	rows, err := s.read(ctx, s.sql.sentBody, string(job), int64(number))
	if err != nil {
		return "", fmt.Errorf("read the body of attempt %d of job %s: %w", number, job, err)
	}
	if len(rows) == 0 {
		return "", nil
	}
	r := rowReader{rows[0]}
	return r.text(), nil
}

// eventSize is the position of the size in a row of event_sizes.
const eventSize = 1

// archiveSQL are the statements of the Archive.
type archiveSQL struct {
	nthEvent, oldestEvent, eventIDs, eventSizes eventListing
	readEvents, jobsOf, laterJobsOf, sentBody   statement
	successesOf, attemptsOf                     statement
	lastEvent, lastJob, lastRun                 statement
	lastJobOver, lastRunOver                    statement
}

func newArchiveSQL(d Dialect) archiveSQL {
	jobsOf := func(name, where string) statement {
		return reading(name, d.selectRows(jobDetail, "jobs{use jobs_event}", where))
	}
	parts := d.jobsOf(`r.event`)
	return archiveSQL{
		nthEvent:    d.eventListing("nth_event", `id`),
		oldestEvent: d.eventListing("oldest_event", `id`),
		eventIDs:    d.eventListing("event_ids", `id`),
		eventSizes:  d.eventListing("event_sizes", `id, LENGTH(payload) + LENGTH(headers) AS size`),

		lastEvent:   reading("last_event", d.sql(`SELECT id FROM events{use PRIMARY} ORDER BY id DESC LIMIT 1`)),
		lastJob:     reading("last_job", d.sql(`SELECT id FROM jobs{use PRIMARY} ORDER BY id DESC LIMIT 1`)),
		lastRun:     reading("last_run", d.sql(`SELECT id FROM runs{use PRIMARY} ORDER BY id DESC LIMIT 1`)),
		lastJobOver: reading("last_job_over", d.sql(`SELECT finished_at FROM jobs{use jobs_finished} WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 1`)),
		lastRunOver: reading("last_run_over", d.sql(`SELECT finished_at FROM runs{use runs_finished} WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 1`)),

		readEvents:  reading("read_events", d.selectRows(eventStored, "events{use PRIMARY}", `events.id = r.id`)),
		jobsOf:      jobsOf("jobs_of", parts[0]),
		laterJobsOf: d.later(jobsOf("later_jobs_of", parts[len(parts)-1])),
		successesOf: reading("successes_of", d.selectRows(`jobs.id AS job, jobs.success AS success`, "jobs{use PRIMARY}", `jobs.id = r.id AND jobs.success IS NOT NULL`)),
		attemptsOf:  reading("attempts_of", d.selectRows(attemptSummary+`, job_id`, "attempts{use PRIMARY}", `attempts.job_id = r.id`)),
		sentBody:    reading("sent_body", d.sql(`SELECT sent_body FROM attempts WHERE job_id = ? AND attempt = ? ORDER BY created_at DESC LIMIT 1`)),
	}
}
