package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Bounds of what one batch of a Purge deletes beside the rows it is limited to.
const (
	// maxParts is how many attempts, and how many entries of histories, the jobs and runs
	// of a batch have. A job or run that has more by itself goes alone, and its parts go
	// after it, a thousand at a time.
	maxParts  = 5000
	partChunk = 1000
)

// Purge deletes what is over. See core.Upkeep. It looks first and deletes by id, so that
// what it deletes is bounded and its batch is one that can be repeated.
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
	if err == nil {
		err = s.forgetGates(ctx, before)
	}
	if err == nil {
		err = s.sweepOneTable(ctx, limit)
	}
	more = p.full || p.nextEvent != ""
	if err == nil && more && (n == 0 || s.dialect.purgeRows == 0) {
		err = pause(ctx, time.Since(began)) // it did not rest between bites
	}
	if err != nil {
		return n, false, fmt.Errorf("purge: %w", err)
	}
	return n, more, nil
}

// A purging is what a Purge deletes. Jobs and runs are rows of an id, the event and how
// many parts there are.
type expired struct {
	before       any // what finished before is over
	jobs, runs   [][]any
	largeJob     any // one of the jobs, whose attempts are deleted afterwards
	largeRun     any
	unreferenced [][]any // events that have neither jobs nor runs
	full         bool    // whether there may be more jobs or runs
	nextEvent    string  // behind which events to look for bare ones; empty once all were looked at
}

// over looks for what is over.
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
	return p, nil
}

// within are the first of some jobs or runs that have no more parts than that together,
// or one that has more by itself. One without any counts like one that has one.
func firstWithin(rows [][]any, most int) [][]any {
	parts := 0
	for i, row := range rows {
		if parts += max(1, intOf(row[expiredParts])); parts > most {
			return rows[:max(1, i)]
		}
	}
	return rows
}

// large is the id of one that has more than maxParts by itself, and so is alone.
func onlyLarge(rows [][]any) any {
	if len(rows) == 1 && intOf(rows[0][expiredParts]) > maxParts {
		return rows[0][expiredOwner]
	}
	return nil
}

// eventsOf are the events of jobs and runs, each once and in one order.
func eventsOf(jobs, runs [][]any, end any) (events [][]any) {
	for _, row := range slices.Concat(jobs, runs) {
		events = append(events, []any{row[expiredEvent], end})
	}
	slices.SortFunc(events, byKey)
	return slices.CompactFunc(events, func(a, b []any) bool { return rowKey(a) == rowKey(b) })
}

// bareAmong are the first events of a slice that are over, up to limit, and behind which
// one to look for more: none is passed by that was looked at and not taken.
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

// purge deletes what is over, and tells how many jobs, runs and events that were. If it
// fails, events that were looked for by themselves are looked at once more.
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

// deleteAll deletes in bites, and pauses after each.
func (s *Store) deleteInCommits(ctx context.Context, p expired) (total int, err error) {
	size, pauseTime := commitSize{s.dialect.purgeRows, s.dialect.purgeRows}, time.Duration(0)
	for batch := s.nextBatch(&p, size.rows); rowsOf(batch) > 0 && err == nil; batch = s.nextBatch(&p, size.rows) {
		began, n := time.Now(), 0
		n, err = s.runDeletes(ctx, batch...)
		total += n
		if size, pauseTime = size.next(time.Since(began), rowsOf(batch)); pauseTime > 0 && err == nil {
			err = pause(ctx, pauseTime)
		}
	}
	return total, err
}

// A bite is how much a Purge deletes in one commit, at most: so many parts of jobs, or of
// runs, or so many events. Zero is all of them. Who sends an event may wait for one; but
// where a commit itself takes long, it is made for more.
type commitSize struct{ rows, least int }

// Whether a bite takes long for its rows, and what follows.
const (
	slowRow     = 50 * time.Microsecond // a few times what one takes by itself
	maxGrowth   = 8                     // times the least
	pauseFactor = 10                    // times as long as it took, up to longestRest
	maxPause    = 5 * time.Millisecond
)

// next is the bite after one of so many rows, and how long the database is left alone
// before it. Who waited in line for long, among others, rests for shorter than it took, or
// never got done.
func (b commitSize) next(took time.Duration, rows int) (commitSize, time.Duration) {
	switch {
	case b.rows == 0:
		return b, 0
	case took > slowRow*time.Duration(rows):
		b.rows = min(2*b.rows, maxGrowth*b.least)
	case took < slowRow*time.Duration(rows)/2:
		b.rows = max(b.rows/2, b.least)
	}
	return b, min(pauseFactor*took, maxPause)
}

func rowsOf(batch []Stmt) (n int) {
	for _, st := range batch {
		n += len(st.Rows)
	}
	return n
}

// cut takes off what is deleted next: jobs, runs, then events that are bare, so that
// neither makes the other's commit longer. It is a batch that can be repeated, and what
// belongs together is in one.
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

// ownersGo deletes jobs and runs with all that belongs to them, and their events.
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

// ending are the ids of rows, each with when what is over had finished.
func idsAndBefore(rows [][]any, end any) (ids [][]any) {
	for _, row := range rows {
		ids = append(ids, []any{row[expiredOwner], end})
	}
	return ids
}

// besides are the ids of rows but for one whose parts are deleted afterwards.
func idsExcept(rows [][]any, large any) [][]any {
	return slices.DeleteFunc(firstColumns(rows), func(row []any) bool { return row[expiredOwner] == large })
}

// eventsGo delete events. Who gives an old event new jobs, and who deletes it because it
// has none, wait for each other: a DELETE that waited would not see what came meanwhile.
func eventStmts(q *statements, events [][]any) []Stmt {
	return []Stmt{
		q.lockEvents.on(firstColumns(events)...).sortedBy(keyColumn),
		q.deleteEvent.on(events...),
	}
}

// delete sends those of some statements that have rows, and tells how many jobs, runs and
// events are gone.
func (s *Store) runDeletes(ctx context.Context, all ...Stmt) (total int, err error) {
	stmts := slices.DeleteFunc(all, func(st Stmt) bool { return len(st.Rows) == 0 || st.SQL == "" })
	if len(stmts) == 0 {
		return 0, nil
	}
	for i := range stmts {
		stmts[i].Lazy = true // what comes back is still over
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

func firstColumns(rows [][]any) (first [][]any) {
	for _, row := range rows {
		first = append(first, row[:1])
	}
	return first
}

// A part is a table of rows that belong to a job or a run: what finds the keys of some,
// and what deletes those whose owner is gone.
type part struct{ pick, remove statement }

func jobParts(q *statements) []part {
	return []part{{q.pickAttempts, q.deleteAttempt}}
}

func runParts(q *statements) []part {
	return []part{
		{q.pickSteps, q.deleteStep},
		{q.pickTexts, q.deleteText},
		{q.pickHistory, q.deleteEntry},
		{q.pickCallbacks, q.deleteCallback},
	}
}

// dismantle deletes what is left of a job or run that is gone, a piece at a time, and
// pauses after each for as long as it took. If it breaks off, a sweep finds the rest. An
// owner that is there after all keeps everything.
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

// dismantleSome deletes one piece, and tells whether there may be another.
func (s *Store) deletePartChunk(ctx context.Context, owner any, p part) (more bool, err error) {
	rows, err := s.read(ctx, p.pick, owner, int64(partChunk))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	remove := p.remove.on(rows...).noMerge()
	remove.Lazy = true
	results, err := s.write(ctx, remove)
	return err == nil && len(rows) == partChunk && results[0].Changed > 0, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// The columns of what a Purge picks: a job or run, its event, and how many parts it has.
const (
	expiredOwner = iota
	expiredEvent
	expiredParts
)

// The columns of overEvents: an event that was looked at, and its id again if it is over.
const (
	scannedEvent = iota
	unreferencedEvent
)

const (
	// An event that no job and no run is about.
	unreferenced = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.event_id = events.id) AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.event_id = events.id)`

	// An attempt whose job is gone.
	jobGone = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = attempts.job_id)`
)

// noRun is the condition that a row's run is gone.
func runGone(table string) string {
	return `NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = ` + table + `.run_id)`
}

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
		overJobs: reading("over_jobs", t(`SELECT id, event_id, attempt FROM jobs{use jobs_finished} WHERE finished_at < ? ORDER BY finished_at, id LIMIT {limit}`)),
		overRuns: reading("over_runs", t(`SELECT id, event_id, seq FROM runs{use runs_finished} WHERE finished_at < ? ORDER BY finished_at, id LIMIT {limit}`)),

		// Ids grow with time, so old events are at the head of the primary key. Those that
		// still have jobs come without their second column: however many there are, a look is
		// at no more than its limit.
		overEvents: reading("over_events", t(`SELECT events.id AS looked, CASE WHEN events.created_at < ? AND `+unreferenced+` THEN events.id END AS over_id
			FROM (SELECT id, created_at FROM events{use PRIMARY} WHERE id > ? AND id < ? ORDER BY id LIMIT {limit}) AS events ORDER BY events.id`)),

		// Whatever happened since they were picked: a job that was brought back stays.
		deleteJob:      writing("purge_jobs", d.deleteRows("jobs", `jobs.id = r.id AND jobs.finished_at < r#before`)),
		deleteAttempts: writing("purge_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND `+jobGone)),
		deleteEvent:    writing("purge_events", d.deleteRows("events", `events.id = r.id AND events.created_at < r#before AND `+unreferenced)),

		// Whatever happened since they were picked: a run that was redriven stays.
		deleteRun:       writing("purge_runs", d.deleteRows("runs", `runs.id = r.id AND runs.finished_at < r#before`)),
		deleteSteps:     writing("purge_steps", d.deleteByIndex("steps_path", "steps", `steps.run_id = r.run AND `+runGone("steps"))),
		deleteTexts:     writing("purge_texts", d.deleteRows("step_texts", `step_texts.run_id = r.run AND `+runGone("step_texts"))),
		deleteHistory:   writing("purge_history", d.deleteRows("history", `history.run_id = r.run AND `+runGone("history"))),
		deleteCallbacks: writing("purge_callbacks", d.deleteByIndex("callbacks_step", "callbacks", `callbacks.run_id = r.run AND `+runGone("callbacks"))),

		// The parts of a job or run that has many, piece by piece.
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
