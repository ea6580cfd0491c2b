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
	maxParts = 5000
	partsAt  = 1000
)

// Purge deletes what is over. See core.Upkeep. It looks first and deletes by id, so that
// what it deletes is bounded and its batch is one that can be repeated.
func (s *Store) Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error) {
	if limit <= 0 {
		return 0, false, nil
	}
	began := time.Now()
	p, err := s.over(ctx, before, limit)
	if err != nil {
		return 0, false, fmt.Errorf("purge: %w", err)
	}
	n, err = s.purge(ctx, p)
	if err == nil {
		err = s.forgetGates(ctx, before)
	}
	if err == nil {
		err = s.sweep(ctx, limit)
	}
	more = p.full || p.next != ""
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
type purging struct {
	end        any // what finished before is over
	jobs, runs [][]any
	largeJob   any // one of the jobs, whose attempts are deleted afterwards
	largeRun   any
	bare       [][]any // events that have neither jobs nor runs
	full       bool    // whether there may be more jobs or runs
	next       string  // behind which events to look for bare ones; empty once all were looked at
}

// over looks for what is over.
func (s *Store) over(ctx context.Context, before time.Time, limit int) (p purging, err error) {
	p.end = millis(before)
	from, most, wide := s.seen.at("events"), int64(limit), max(limit, partsAt)
	found, err := s.readBatch(ctx,
		s.sql.overJobs.with(p.end, most),
		s.sql.overRuns.with(p.end, most),
		s.sql.overEvents.with(p.end, from, string(core.FirstID(before)), int64(wide)))
	if err != nil {
		return p, err
	}
	p.jobs, p.runs = within(found[0].Rows, maxParts), within(found[1].Rows, maxParts)
	p.full = len(p.jobs) == limit || len(p.runs) == limit || len(p.jobs) < len(found[0].Rows) || len(p.runs) < len(found[1].Rows)
	p.largeJob, p.largeRun = large(p.jobs), large(p.runs)
	p.bare, p.next = bareAmong(found[2].Rows, p.end, limit, wide)
	return p, nil
}

// within are the first of some jobs or runs that have no more parts than that together,
// or one that has more by itself. One without any counts like one that has one.
func within(rows [][]any, most int) [][]any {
	parts := 0
	for i, row := range rows {
		if parts += max(1, whole(row[overParts])); parts > most {
			return rows[:max(1, i)]
		}
	}
	return rows
}

// large is the id of one that has more than maxParts by itself, and so is alone.
func large(rows [][]any) any {
	if len(rows) == 1 && whole(rows[0][overParts]) > maxParts {
		return rows[0][overOwner]
	}
	return nil
}

// eventsOf are the events of jobs and runs, each once and in one order.
func eventsOf(jobs, runs [][]any, end any) (events [][]any) {
	for _, row := range slices.Concat(jobs, runs) {
		events = append(events, []any{row[overEvent], end})
	}
	slices.SortFunc(events, byKey)
	return slices.CompactFunc(events, func(a, b []any) bool { return key(a) == key(b) })
}

// bareAmong are the first events of a slice that are over, up to limit, and behind which
// one to look for more: none is passed by that was looked at and not taken.
func bareAmong(slice [][]any, end any, limit, full int) (bare [][]any, next string) {
	for i, row := range slice {
		if id := row[eventOver]; id != nil {
			bare = append(bare, []any{id, end})
		}
		if len(bare) == limit && i+1 < len(slice) {
			return bare, str(row[eventLooked])
		}
	}
	return bare, behind(slice, full)
}

// purge deletes what is over, and tells how many jobs, runs and events that were. If it
// fails, events that were looked for by themselves are looked at once more.
func (s *Store) purge(ctx context.Context, p purging) (total int, err error) {
	if total, err = s.deleteAll(ctx, p); err != nil {
		return total, err
	}
	if p.largeJob != nil {
		err = s.dismantle(ctx, p.largeJob, jobParts(&s.sql))
	}
	if p.largeRun != nil && err == nil {
		err = s.dismantle(ctx, p.largeRun, runParts(&s.sql))
	}
	if err == nil {
		s.seen.move("events", p.next)
	}
	return total, err
}

// deleteAll deletes in bites, and pauses after each.
func (s *Store) deleteAll(ctx context.Context, p purging) (total int, err error) {
	b, rest := bite{s.dialect.purgeRows, s.dialect.purgeRows}, time.Duration(0)
	for batch := s.cut(&p, b.most); rowsOf(batch) > 0 && err == nil; batch = s.cut(&p, b.most) {
		began, n := time.Now(), 0
		n, err = s.delete(ctx, batch...)
		total += n
		if b, rest = b.next(time.Since(began), rowsOf(batch)); rest > 0 && err == nil {
			err = pause(ctx, rest)
		}
	}
	return total, err
}

// A bite is how much a Purge deletes in one commit, at most: so many parts of jobs, or of
// runs, or so many events. Zero is all of them. Who sends an event may wait for one; but
// where a commit itself takes long, it is made for more.
type bite struct{ most, least int }

// Whether a bite takes long for its rows, and what follows.
const (
	slowRow     = 50 * time.Microsecond // a few times what one takes by itself
	widestBite  = 8                     // times the least
	rests       = 10                    // times as long as it took, up to longestRest
	longestRest = 5 * time.Millisecond
)

// next is the bite after one of so many rows, and how long the database is left alone
// before it. Who waited in line for long, among others, rests for shorter than it took, or
// never got done.
func (b bite) next(took time.Duration, rows int) (bite, time.Duration) {
	switch {
	case b.most == 0:
		return b, 0
	case took > slowRow*time.Duration(rows):
		b.most = min(2*b.most, widestBite*b.least)
	case took < slowRow*time.Duration(rows)/2:
		b.most = max(b.most/2, b.least)
	}
	return b, min(rests*took, longestRest)
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
func (s *Store) cut(p *purging, most int) []Stmt {
	jobs, runs := p.jobs, p.runs
	switch {
	case len(jobs)+len(runs) == 0:
		bare := p.bare[:min(cmp.Or(most, len(p.bare)), len(p.bare))]
		p.bare = p.bare[len(bare):]
		return eventsGo(&s.sql, bare)
	case most == 0:
	case len(jobs) > 0:
		jobs, runs = within(jobs, most), nil
	default:
		runs = within(runs, most)
	}
	p.jobs, p.runs = p.jobs[len(jobs):], p.runs[len(runs):]
	return s.ownersGo(p, jobs, runs)
}

// ownersGo deletes jobs and runs with all that belongs to them, and their events.
func (s *Store) ownersGo(p *purging, jobs, runs [][]any) []Stmt {
	parts := besides(runs, p.largeRun)
	return append([]Stmt{
		s.sql.deleteJob.on(ending(jobs, p.end)...),
		s.sql.deleteAttempts.on(besides(jobs, p.largeJob)...),
		s.sql.deleteRun.on(ending(runs, p.end)...),
		s.sql.deleteSteps.on(parts...),
		s.sql.deleteTexts.on(parts...),
		s.sql.deleteHistory.on(parts...),
		s.sql.deleteCallbacks.on(parts...),
	}, eventsGo(&s.sql, eventsOf(jobs, runs, p.end))...)
}

// ending are the ids of rows, each with when what is over had finished.
func ending(rows [][]any, end any) (ids [][]any) {
	for _, row := range rows {
		ids = append(ids, []any{row[overOwner], end})
	}
	return ids
}

// besides are the ids of rows but for one whose parts are deleted afterwards.
func besides(rows [][]any, large any) [][]any {
	return slices.DeleteFunc(firsts(rows), func(row []any) bool { return row[overOwner] == large })
}

// eventsGo delete events. Who gives an old event new jobs, and who deletes it because it
// has none, wait for each other: a DELETE that waited would not see what came meanwhile.
func eventsGo(q *statements, events [][]any) []Stmt {
	return []Stmt{
		q.lockEvents.on(firsts(events)...).sortedBy(keyAt),
		q.deleteEvent.on(events...),
	}
}

// delete sends those of some statements that have rows, and tells how many jobs, runs and
// events are gone.
func (s *Store) delete(ctx context.Context, all ...Stmt) (total int, err error) {
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

func firsts(rows [][]any) (first [][]any) {
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
func (s *Store) dismantle(ctx context.Context, owner any, parts []part) error {
	for _, p := range parts {
		for {
			began := time.Now()
			more, err := s.dismantleSome(ctx, owner, p)
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
func (s *Store) dismantleSome(ctx context.Context, owner any, p part) (more bool, err error) {
	rows, err := s.read(ctx, p.pick, owner, int64(partsAt))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	remove := p.remove.on(rows...).noMerge()
	remove.Lazy = true
	results, err := s.write(ctx, remove)
	return err == nil && len(rows) == partsAt && results[0].Changed > 0, err
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
	overOwner = iota
	overEvent
	overParts
)

// The columns of overEvents: an event that was looked at, and its id again if it is over.
const (
	eventLooked = iota
	eventOver
)

const (
	// An event that no job and no run is about.
	bare = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.event_id = events.id) AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.event_id = events.id)`

	// An attempt whose job is gone.
	noJob = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = attempts.job_id)`
)

// noRun is the condition that a row's run is gone.
func noRun(table string) string {
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
		overEvents: reading("over_events", t(`SELECT events.id AS looked, CASE WHEN events.created_at < ? AND `+bare+` THEN events.id END AS over_id
			FROM (SELECT id, created_at FROM events{use PRIMARY} WHERE id > ? AND id < ? ORDER BY id LIMIT {limit}) AS events ORDER BY events.id`)),

		// Whatever happened since they were picked: a job that was brought back stays.
		deleteJob:      writing("purge_jobs", d.deleteRows("jobs", `jobs.id = r.id AND jobs.finished_at < r#before`)),
		deleteAttempts: writing("purge_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND `+noJob)),
		deleteEvent:    writing("purge_events", d.deleteRows("events", `events.id = r.id AND events.created_at < r#before AND `+bare)),

		// Whatever happened since they were picked: a run that was redriven stays.
		deleteRun:       writing("purge_runs", d.deleteRows("runs", `runs.id = r.id AND runs.finished_at < r#before`)),
		deleteSteps:     writing("purge_steps", d.deleteByIndex("steps_path", "steps", `steps.run_id = r.run AND `+noRun("steps"))),
		deleteTexts:     writing("purge_texts", d.deleteRows("step_texts", `step_texts.run_id = r.run AND `+noRun("step_texts"))),
		deleteHistory:   writing("purge_history", d.deleteRows("history", `history.run_id = r.run AND `+noRun("history"))),
		deleteCallbacks: writing("purge_callbacks", d.deleteByIndex("callbacks_step", "callbacks", `callbacks.run_id = r.run AND `+noRun("callbacks"))),

		// The parts of a job or run that has many, piece by piece.
		pickAttempts:   reading("pick_attempts", t(`SELECT job_id, lease FROM attempts WHERE job_id = ? LIMIT {limit}`)),
		deleteAttempt:  writing("delete_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND attempts.lease = r.lease AND `+noJob)),
		pickSteps:      reading("pick_steps", t(`SELECT id FROM steps{use steps_path} WHERE run_id = ? LIMIT {limit}`)),
		deleteStep:     writing("delete_steps", d.deleteRows("steps", `steps.id = r.id AND `+noRun("steps"))),
		pickTexts:      reading("pick_texts", t(`SELECT run_id, name FROM step_texts{use PRIMARY} WHERE run_id = ? LIMIT {limit}`)),
		deleteText:     writing("delete_texts", d.deleteRows("step_texts", `step_texts.run_id = r.run AND step_texts.name = r.name AND `+noRun("step_texts"))),
		pickHistory:    reading("pick_history", t(`SELECT run_id, seq FROM history WHERE run_id = ? LIMIT {limit}`)),
		deleteEntry:    writing("delete_history", d.deleteRows("history", `history.run_id = r.run AND history.seq = r#seq AND `+noRun("history"))),
		pickCallbacks:  reading("pick_callbacks", t(`SELECT token_hash FROM callbacks{use callbacks_step} WHERE run_id = ? LIMIT {limit}`)),
		deleteCallback: writing("delete_callbacks", d.deleteRows("callbacks", `callbacks.token_hash = r.hash AND `+noRun("callbacks"))),
	}
}
