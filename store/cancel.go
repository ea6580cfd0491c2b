package store

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Cancel skips jobs that another batch has locked, as a claim does. So it never waits for a
// Take or a Settle, and cannot deadlock with them. A skipped job that still waits after the other
// batch is canceled by the next of at most cancelTries batches, which cancelPause separates.
const (
	cancelTries = 100
	cancelPause = 10 * time.Millisecond
)

// Cancel ends the waiting jobs of an event. See core.Operations. The count at the end of the batch
// knows the canceled jobs by their time, so that a batch that is sent again counts them again.
func (s *Store) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	at, id := now.UnixMilli(), string(event)
	for range cancelTries {
		stmts, err := s.cancelStmts(ctx, now, event)
		if err != nil {
			return core.Cancellation{}, fmt.Errorf("cancel the jobs of event %s: %w", event, err)
		}
		stmts = append(stmts, s.audited(ctx, s.sql.auditCanceled, []any{at, id})...)
		counts := s.onJobsOf(event, s.sql.canceled, s.sql.canceledLater, []any{at, at, at})
		results, err := s.write(ctx, append(append(stmts, counts...), s.sql.canceledEvent.with(id))...)
		if err != nil {
			return core.Cancellation{}, fmt.Errorf("cancel the jobs of event %s: %w", event, err)
		}
		results = results[len(stmts):]
		if known := results[len(counts)]; len(known.Rows) == 0 {
			return core.Cancellation{}, core.Refuse(core.NotFound, "event not found")
		}
		c, waiting, err := s.cancellation(results[:len(counts)])
		if err != nil {
			return core.Cancellation{}, fmt.Errorf("cancel the jobs of event %s: %w", event, err)
		}
		s.floors.jobWritten(now) // the next jobs of the lines
		if waiting == 0 {
			return c, nil
		}
		if err := pause(ctx, cancelPause); err != nil {
			return core.Cancellation{}, fmt.Errorf("cancel the jobs of event %s: %w", event, err)
		}
	}
	return core.Cancellation{}, core.Refuse(core.Unavailable, "other callers are changing the jobs of event %s; cancel it again", event)
}

// cancellation adds up the rows of canceled, and returns how many jobs still wait.
func (s *Store) cancellation(counts []Result) (c core.Cancellation, waiting int, err error) {
	for _, count := range counts {
		row, err := onlyRow(s.sql.canceled, count.Rows)
		if err != nil {
			return core.Cancellation{}, 0, err
		}
		r := rowReader{row}
		canceled, running, finished := r.number(), r.number(), r.number()
		c.Canceled, c.Running, c.Finished = c.Canceled+canceled, c.Running+running, c.Finished+finished-canceled
		waiting += r.number()
	}
	return c, waiting, nil
}

// cancelStmts are the statements that cancel the waiting jobs of an event. The lines of its jobs are
// read first, and locked before the jobs: a Settle locks a line before the job that it admits. The
// places of canceled jobs are deleted, and their slots go to the next jobs.
func (s *Store) cancelStmts(ctx context.Context, now time.Time, event core.ID) ([]Stmt, error) {
	cancel := s.onJobsOf(event, s.sql.cancel, s.sql.cancelLater, nil, now.UnixMilli(), now.UnixMilli())
	found, err := s.readBatch(ctx, s.onJobsOf(event, s.sql.linesOfEvent, s.sql.linesOfLater, nil)...)
	if err != nil {
		return nil, err
	}
	var refs []lineRef
	var places [][]any
	for _, part := range found {
		for _, row := range part.Rows {
			r := rowReader{row}
			ref := lineRef{job: r.id(), line: r.text(), status: core.Canceled}
			refs, places = append(refs, ref), append(places, []any{string(ref.job), string(ref.job)})
		}
	}
	if len(refs) == 0 {
		return cancel, nil
	}
	stmts := append(append(s.lockLines(refs), cancel...), s.sql.canceledPlaces.on(places...))
	return append(stmts, s.passStmts(now, refs)...), nil
}

// cancelSQL are the statements of a Cancel.
type cancelSQL struct {
	cancel, cancelLater, canceled, canceledLater statement
	linesOfEvent, linesOfLater, canceledPlaces   statement
	canceledEvent                                statement
}

func newCancelSQL(d Dialect) cancelSQL {
	t := d.sql
	// The lease of a running job is over once its due time has come. scheduled_at comes before
	// due_at: MySQL evaluates SET from left to right and reads the new values.
	cancel := func(name, jobs string) statement {
		return writing(name, d.updatePicked("jobs",
			`scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL, finished_at = ?`,
			`FROM jobs{use jobs_event} WHERE `+jobs+` AND (status IN ('available', 'scheduled', 'waiting', 'retryable') OR status = 'running' AND due_at <= ?) AND `+noWorkflow))
	}
	// Cancel reads the columns in this order. The last one counts jobs that wait although the
	// statement before was to cancel them.
	canceled := func(name, jobs string) statement {
		return reading(name, t(`SELECT COUNT(CASE WHEN status = 'canceled' AND finished_at = ? THEN 1 END) AS canceled,
			COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS running,
			COUNT(CASE WHEN status IN ('completed', 'dead', 'canceled') THEN 1 END) AS finished,
			COUNT(CASE WHEN status IN ('available', 'scheduled', 'waiting', 'retryable') OR status = 'running' AND due_at <= ? THEN 1 END) AS waiting
			FROM jobs{use jobs_event} WHERE `+jobs+` AND `+noWorkflow))
	}
	lines := func(name, jobs string) statement {
		return reading(name, t(`SELECT id, line FROM jobs{use jobs_event} WHERE `+jobs+` AND line IS NOT NULL`))
	}
	const later = inSpan + ` AND ` + laterJob
	return cancelSQL{
		cancel: cancel("cancel", inSpan), cancelLater: d.later(cancel("cancel_later", later)),
		canceled: canceled("canceled", inSpan), canceledLater: d.later(canceled("canceled_later", later)),
		linesOfEvent: lines("lines_of_event", inSpan), linesOfLater: d.later(lines("lines_of_later", later)),
		canceledPlaces: writing("canceled_places", d.deleteByIndex("line_places_job", "line_places",
			`line_places.job_id = r.job AND (SELECT jobs.status FROM jobs WHERE jobs.id = r.same) = 'canceled'`)),
		canceledEvent: reading("canceled_event", t(`SELECT id FROM events WHERE id = ?`)),
	}
}
