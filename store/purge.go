package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Bounds of one batch of a Purge, beside its limit of jobs, runs and events.
const (
	// maxParts bounds the attempts of a batch's jobs, and the history entries of its runs. A
	// job or run that has more is deleted in a batch of its own; its parts follow in batches of
	// partChunk rows. Parts are the rows that belong to a job or run: attempts, steps, texts,
	// history entries and callbacks.
	maxParts  = 5000
	partChunk = 1000
)

// Purge deletes finished jobs and runs, and old events without any. See core.Upkeep. It reads
// ids first and then deletes by id. So a batch is bounded and can be repeated. Each DELETE
// checks again that its row is still expired, since a Retry, Replay or redrive may come
// between.
//
// limit bounds the jobs, the runs and the events of one call. more reports that another call
// would find more. Purge pauses between its commits, so that it does not slow down accepts; the
// commits get larger while it is late. See commitSizeOf.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error) {
	if limit <= 0 {
		return 0, false, nil
	}
	began := time.Now()
	p, err := s.findExpired(ctx, before, limit)
	if err != nil {
		return 0, false, fmt.Errorf("purge: %w", err)
	}
	n, err = s.deleteExpired(ctx, p)
	// Then rows that no other method deletes: idle gates, and parts whose owner is gone.
	if err == nil {
		err = s.forgetGates(ctx, before)
	}
	if err == nil {
		err = s.sweepOneTable(ctx, limit)
	}
	more = p.full || p.nextEvent != ""
	// Deletes were followed by pauses. If there were none, wait here for as long as the reads
	// took.
	if err == nil && more && (n == 0 || s.dialect.purgeRows == 0) {
		// Without deletes there were no pauses between commits. The reads cost as well, so wait
		// for as long as they took.
		err = pause(ctx, time.Since(began))
	}
	if err != nil {
		return n, false, fmt.Errorf("purge: %w", err)
	}
	return n, more, nil
}

// An expired holds the rows that one Purge deletes. jobs and runs are rows of an id, the event,
// and the number of parts.
type expired struct {
	before       any // rows that finished earlier are expired; Unix milliseconds
	jobs, runs   [][]any
	largeJob     any           // the id of a job with more than maxParts, which is then the only one
	largeRun     any           // the same for runs
	unreferenced [][]any       // events without jobs and runs
	full         bool          // there may be more jobs or runs
	nextEvent    string        // where the next Purge looks for unreferenced events; "" for the beginning
	late         time.Duration // how long ago the oldest of these rows expired
}

// findExpired reads the ids of expired rows. Jobs and runs come from jobs_finished and
// runs_finished, by their end. Events come from the primary key, in slices of at least
// partChunk, from where the last slice ended: most old events still have jobs, and reading from
// the beginning each time would read them again.
func (s *Store) findExpired(ctx context.Context, before time.Time, limit int) (p expired, err error) {
	p.before = millis(before)
	from, most, wide := s.scanned.position("events"), int64(limit), max(limit, partChunk)
	found, err := s.readBatch(ctx,
		s.sql.overJobs.with(p.before, most),
		s.sql.overRuns.with(p.before, most),
		s.sql.overEvents.with(p.before, from, string(core.FirstID(before)), int64(wide)))
	if err != nil {
		return p, err
	}
	p.jobs, p.runs = firstWithin(found[0].Rows, maxParts), firstWithin(found[1].Rows, maxParts)
	p.full = len(p.jobs) == limit || len(p.runs) == limit || len(p.jobs) < len(found[0].Rows) || len(p.runs) < len(found[1].Rows)
	p.largeJob, p.largeRun = onlyLarge(p.jobs), onlyLarge(p.runs)
	p.unreferenced, p.nextEvent = unreferencedAmong(found[2].Rows, p.before, limit, wide)
	p.late = before.Sub(oldestOf(before, found[0].Rows, found[1].Rows, found[2].Rows))
	return p, nil
}

// oldestOf returns the time of the oldest row that a Purge found, or else before. Jobs and runs
// come in the order of their ends, and events have ids that grow with their times.
func oldestOf(before time.Time, jobs, runs, events [][]any) time.Time {
	if len(jobs) > 0 {
		before = earlier(before, timeOf(jobs[0][expiredEnd]))
	}
	if len(runs) > 0 {
		before = earlier(before, timeOf(runs[0][expiredEnd]))
	}
	if i := slices.IndexFunc(events, isUnreferenced); i >= 0 {
		before = earlier(before, timeOf(events[i][scannedTime]))
	}
	return before
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// isUnreferenced reports whether a row of over_events is an event to delete.
func isUnreferenced(row []any) bool { return row[unreferencedEvent] != nil }

// firstWithin returns the first jobs or runs whose parts add up to at most most, or the first
// one if it has more by itself. One without parts counts as one row.
func firstWithin(rows [][]any, most int) [][]any {
	parts := 0
	for i, row := range rows {
		if parts += max(1, intOf(row[expiredParts])); parts > most {
			return rows[:max(1, i)]
		}
	}
	return rows
}

// onlyLarge returns the id of a job or run with more than maxParts, or nil. firstWithin has put
// it alone.
func onlyLarge(rows [][]any) any {
	if len(rows) == 1 && intOf(rows[0][expiredParts]) > maxParts {
		return rows[0][expiredOwner]
	}
	return nil
}

// eventsOf returns rows of deleteEvent for the events of jobs and runs, each event once and
// sorted by id, which is the lock order.
func eventsOf(jobs, runs [][]any, end any) (events [][]any) {
	for _, row := range slices.Concat(jobs, runs) {
		events = append(events, []any{row[expiredEvent], end})
	}
	slices.SortFunc(events, byKey)
	return slices.CompactFunc(events, func(a, b []any) bool { return rowKey(a) == rowKey(b) })
}

// unreferencedAmong returns the first limit unreferenced events of a slice, and where the next
// look begins. An event that was read but not taken is read again next time.
func unreferencedAmong(slice [][]any, end any, limit, full int) (bare [][]any, next string) {
	for i, row := range slice {
		if id := row[unreferencedEvent]; id != nil {
			bare = append(bare, []any{id, end})
		}
		if len(bare) == limit && i+1 < len(slice) {
			return bare, textOf(row[scannedEvent])
		}
	}
	return bare, lastOf(slice, full)
}

// deleteExpired deletes rows and returns how many jobs, runs and events were deleted. If it
// fails, the position among the events stays, and the next Purge reads the same slice again.
func (s *Store) deleteExpired(ctx context.Context, p expired) (total int, err error) {
	if total, err = s.deleteInCommits(ctx, p); err != nil {
		return total, err
	}
	if p.largeJob != nil {
		err = s.deleteParts(ctx, p.largeJob, jobParts(&s.sql))
	}
	if p.largeRun != nil && err == nil {
		err = s.deleteParts(ctx, p.largeRun, runParts(&s.sql))
	}
	if err == nil {
		s.scanned.move("events", p.nextEvent)
	}
	return total, err
}

// deleteInCommits deletes in small commits and pauses after each, so that an accept waits
// behind at most one of them.
func (s *Store) deleteInCommits(ctx context.Context, p expired) (total int, err error) {
	size := commitSizeOf(s.dialect.purgeRows, p.late)
	for batch := s.nextBatch(&p, size.rows); rowsOf(batch) > 0 && err == nil; batch = s.nextBatch(&p, size.rows) {
		began, n := time.Now(), 0
		n, err = s.runDeletes(ctx, batch...)
		total += n
		took := time.Since(began)
		if size = size.next(took, rowsOf(batch)); size.rows > 0 && err == nil {
			err = pause(ctx, pauseAfter(took))
		}
	}
	return total, err
}

// rowsOf returns how many rows the statements of a batch have.
func rowsOf(batch []Stmt) (n int) {
	for _, st := range batch {
		n += len(st.Rows)
	}
	return n
}

// nextBatch removes the next rows from p and returns the statements that delete them: jobs
// first, then runs, then unreferenced events. These never share a batch, unless there is no
// bound. Rows that belong together are in one batch, so an interrupted Purge leaves no attempts
// without their job.
func (s *Store) nextBatch(p *expired, most int) []Stmt {
	jobs, runs := p.jobs, p.runs
	switch {
	case len(jobs)+len(runs) == 0:
		bare := p.unreferenced[:min(cmp.Or(most, len(p.unreferenced)), len(p.unreferenced))]
		p.unreferenced = p.unreferenced[len(bare):]
		return eventStmts(&s.sql, bare)
	case most == 0:
	case len(jobs) > 0:
		jobs, runs = firstWithin(jobs, most), nil
	default:
		runs = firstWithin(runs, most)
	}
	p.jobs, p.runs = p.jobs[len(jobs):], p.runs[len(runs):]
	return s.ownerStmts(p, jobs, runs)
}

// ownerStmts delete jobs and runs with their parts, and then their events: an event can only go
// when no job and no run refers to it.
func (s *Store) ownerStmts(p *expired, jobs, runs [][]any) []Stmt {
	parts := idsExcept(runs, p.largeRun)
	return append([]Stmt{
		s.sql.deleteJob.on(idsAndBefore(jobs, p.before)...),
		s.sql.deleteAttempts.on(idsExcept(jobs, p.largeJob)...),
		s.sql.deleteRun.on(idsAndBefore(runs, p.before)...),
		s.sql.deleteSteps.on(parts...),
		s.sql.deleteTexts.on(parts...),
		s.sql.deleteHistory.on(parts...),
		s.sql.deleteCallbacks.on(parts...),
	}, eventStmts(&s.sql, eventsOf(jobs, runs, p.before))...)
}

// idsAndBefore returns rows of an id and the time before which it must have finished.
func idsAndBefore(rows [][]any, end any) (ids [][]any) {
	for _, row := range rows {
		ids = append(ids, []any{row[expiredOwner], end})
	}
	return ids
}

// idsExcept returns rows of ids, without the large one whose parts are deleted afterwards.
func idsExcept(rows [][]any, large any) [][]any {
	return slices.DeleteFunc(firstColumns(rows), func(row []any) bool { return row[expiredOwner] == large })
}

// eventStmts lock events and delete those without jobs and runs. A Replay locks the events as
// well, so the two wait for each other. Without the lock, a DELETE on PostgreSQL that waited
// for a row would evaluate its condition on the jobs as they were before the wait, and delete
// an event that just got new ones.
func eventStmts(q *statements, events [][]any) []Stmt {
	return []Stmt{
		q.lockEvents.on(firstColumns(events)...).sortedBy(keyColumn),
		q.deleteEvent.on(events...),
	}
}

// runDeletes sends the statements that have rows, and returns how many jobs, runs and events
// were deleted. Statements without a text are not needed on this database.
func (s *Store) runDeletes(ctx context.Context, all ...Stmt) (total int, err error) {
	stmts := slices.DeleteFunc(all, func(st Stmt) bool { return len(st.Rows) == 0 || st.SQL == "" })
	if len(stmts) == 0 {
		return 0, nil
	}
	for i := range stmts {
		stmts[i].Lazy = true // if a power failure undoes it, the rows are still expired
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, err
	}
	for i, st := range stmts {
		if st.Name == s.sql.deleteJob.name || st.Name == s.sql.deleteRun.name || st.Name == s.sql.deleteEvent.name {
			total += int(results[i].Changed)
		}
	}
	return total, nil
}

// firstColumns returns the rows with only their first column.
func firstColumns(rows [][]any) (first [][]any) {
	for _, row := range rows {
		first = append(first, row[:1])
	}
	return first
}

// A part is a table of rows that belong to a job or run. pick reads the keys of some rows of an
// owner, and remove deletes rows by key if their owner is gone.
type part struct{ pick, remove statement }

// jobParts are the tables whose rows belong to a job.
func jobParts(q *statements) []part {
	return []part{{q.pickAttempts, q.deleteAttempt}}
}

// runParts are the tables whose rows belong to a run.
func runParts(q *statements) []part {
	return []part{
		{q.pickSteps, q.deleteStep},
		{q.pickTexts, q.deleteText},
		{q.pickHistory, q.deleteEntry},
		{q.pickCallbacks, q.deleteCallback},
	}
}

// deleteParts deletes the parts of a job or run that is gone, in chunks, and pauses after each
// for as long as it took. If it is interrupted, a later sweep finds the rest. The parts of an
// owner that exists are kept: each DELETE checks.
func (s *Store) deleteParts(ctx context.Context, owner any, parts []part) error {
	for _, p := range parts {
		for {
			began := time.Now()
			more, err := s.deletePartChunk(ctx, owner, p)
			if err == nil && more {
				err = pause(ctx, time.Since(began))
			}
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

// deletePartChunk deletes up to partChunk rows of one table, and reports whether there may be
// more.
func (s *Store) deletePartChunk(ctx context.Context, owner any, p part) (more bool, err error) {
	rows, err := s.read(ctx, p.pick, owner, int64(partChunk))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	remove := p.remove.on(rows...).noMerge()
	remove.Lazy = true
	results, err := s.write(ctx, remove)
	return err == nil && len(rows) == partChunk && results[0].Changed > 0, err // no rows changed: the owner exists
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// The columns of over_jobs and over_runs: the job or run, its event, how many parts it has, and
// when it ended. The number is the attempt of a job and the seq of a run, which count its
// attempts and its history entries.
const (
	expiredOwner = iota
	expiredEvent
	expiredParts
	expiredEnd
)

// The columns of over_events: an event that was read, its id again if the event is expired and
// unreferenced, and when it was stored.
const (
	scannedEvent = iota
	unreferencedEvent
	scannedTime
)

// jobGone is the condition that the job of an attempt is gone.
const jobGone = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = attempts.job_id)`

// runGone is the condition that the run of a row is gone.
func runGone(table string) string {
	return `NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = ` + table + `.run_id)`
}

// purgeSQL are the statements of a Purge.
type purgeSQL struct {
	overJobs, overRuns, overEvents         statement
	deleteJob, deleteAttempts, deleteEvent statement

	deleteRun, deleteSteps, deleteTexts, deleteHistory, deleteCallbacks statement

	pickAttempts, deleteAttempt, pickSteps, deleteStep, pickTexts, deleteText statement
	pickHistory, deleteEntry, pickCallbacks, deleteCallback                   statement
}

func newPurgeSQL(d Dialect) purgeSQL {
	t := d.sql
	return purgeSQL{
		// In the order of jobs_finished and runs_finished, so nothing is sorted.
		overJobs: reading("over_jobs", t(`SELECT id, event_id, attempt, finished_at FROM jobs{use jobs_finished} WHERE finished_at < ? AND NOT `+hasSlot+` ORDER BY finished_at, id LIMIT {limit}`)),
		overRuns: reading("over_runs", t(`SELECT id, event_id, seq, finished_at FROM runs{use runs_finished} WHERE finished_at < ? ORDER BY finished_at, id LIMIT {limit}`)),

		// Ids grow with time, so the oldest events come first in the primary key. An event with
		// jobs yields a row too, with a null id: so the statement reads at most its limit of
		// events, however many of them have jobs.
		overEvents: reading("over_events", t(`SELECT events.id AS looked, CASE WHEN events.created_at < ? AND `+d.unreferenced()+` THEN events.id END AS over_id, events.created_at
			FROM (SELECT id, created_at FROM events{use PRIMARY} WHERE id > ? AND id < ? ORDER BY id LIMIT {limit}) AS events ORDER BY events.id`)),

		// The guard on finished_at keeps a job that a Retry made available since its id was
		// read. jobGone then keeps the job's attempts.
		deleteJob:      writing("purge_jobs", d.deleteRows("jobs", `jobs.id = r.id AND jobs.finished_at < r#before AND NOT `+hasSlot)),
		deleteAttempts: writing("purge_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND `+jobGone)),
		deleteEvent:    writing("purge_events", d.deleteRows("events", `events.id = r.id AND events.created_at < r#before AND `+d.unreferenced())),

		// The guard on finished_at keeps a run that was redriven since its id was read. runGone
		// then keeps the run's parts.
		deleteRun:       writing("purge_runs", d.deleteRows("runs", `runs.id = r.id AND runs.finished_at < r#before`)),
		deleteSteps:     writing("purge_steps", d.deleteByIndex("steps_path", "steps", `steps.run_id = r.run AND `+runGone("steps"))),
		deleteTexts:     writing("purge_texts", d.deleteRows("step_texts", `step_texts.run_id = r.run AND `+runGone("step_texts"))),
		deleteHistory:   writing("purge_history", d.deleteRows("history", `history.run_id = r.run AND `+runGone("history"))),
		deleteCallbacks: writing("purge_callbacks", d.deleteByIndex("callbacks_step", "callbacks", `callbacks.run_id = r.run AND `+runGone("callbacks"))),

		// The parts of a job or run that has many, in chunks: each pick reads the first rows by
		// an index that leads with the owner, and each delete goes by the whole key.
		pickAttempts:   reading("pick_attempts", t(`SELECT job_id, lease FROM attempts WHERE job_id = ? LIMIT {limit}`)),
		deleteAttempt:  writing("delete_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND attempts.lease = r.lease AND `+jobGone)),
		pickSteps:      reading("pick_steps", t(`SELECT id FROM steps{use steps_path} WHERE run_id = ? LIMIT {limit}`)),
		deleteStep:     writing("delete_steps", d.deleteRows("steps", `steps.id = r.id AND `+runGone("steps"))),
		pickTexts:      reading("pick_texts", t(`SELECT run_id, name FROM step_texts{use PRIMARY} WHERE run_id = ? LIMIT {limit}`)),
		deleteText:     writing("delete_texts", d.deleteRows("step_texts", `step_texts.run_id = r.run AND step_texts.name = r.name AND `+runGone("step_texts"))),
		pickHistory:    reading("pick_history", t(`SELECT run_id, seq FROM history WHERE run_id = ? LIMIT {limit}`)),
		deleteEntry:    writing("delete_history", d.deleteRows("history", `history.run_id = r.run AND history.seq = r#seq AND `+runGone("history"))),
		pickCallbacks:  reading("pick_callbacks", t(`SELECT token_hash FROM callbacks{use callbacks_step} WHERE run_id = ? LIMIT {limit}`)),
		deleteCallback: writing("delete_callbacks", d.deleteRows("callbacks", `callbacks.token_hash = r.hash AND `+runGone("callbacks"))),
	}
}
