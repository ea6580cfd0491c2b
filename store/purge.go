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
	if err != nil {
		return n, false, fmt.Errorf("purge: %w", err)
	}
	return n, p.full || p.next != "", nil
}

// A purging is what one batch deletes.
type purging struct {
	end        any // what finished before is over
	jobs, runs [][]any
	largeJob   any // one of the jobs, whose attempts are deleted afterwards
	largeRun   any
	attempts   [][]any // jobs whose attempts go with them
	parts      [][]any // runs, likewise
	events     [][]any // of these jobs and runs
	bare       [][]any // events that have neither
	full       bool    // whether there may be more jobs or runs
	next       string  // behind which events to look for bare ones; empty once all were looked at
}

// over looks for what is over.
func (s *Store) over(ctx context.Context, before time.Time, limit int) (p purging, err error) {
	p.end = millis(before)
	from, most, wide := s.seen.at("events"), int64(limit), max(limit, partsAt)
	found, err := s.readBatch(ctx,
		Stmt{Name: "over_jobs", SQL: s.sql.overJobs, Args: []any{p.end, most}, Reads: true},
		Stmt{Name: "over_runs", SQL: s.sql.overRuns, Args: []any{p.end, most}, Reads: true},
		Stmt{Name: "over_events", SQL: s.sql.overEvents, Args: []any{p.end, from, string(core.FirstID(before)), int64(wide)}, Reads: true})
	if err != nil {
		return p, err
	}
	var jobs, runs [][]any
	jobs, p.largeJob = within(found[0].Rows)
	runs, p.largeRun = within(found[1].Rows)
	p.full = len(jobs) == limit || len(runs) == limit || len(jobs) < len(found[0].Rows) || len(runs) < len(found[1].Rows)
	for _, row := range jobs {
		p.jobs = append(p.jobs, []any{row[0], p.end})
		if row[0] != p.largeJob {
			p.attempts = append(p.attempts, row[:1])
		}
	}
	for _, row := range runs {
		p.runs = append(p.runs, []any{row[0], p.end})
		if row[0] != p.largeRun {
			p.parts = append(p.parts, row[:1])
		}
	}
	p.events = eventsOf(append(jobs, runs...), p.end)
	p.bare, p.next = bareAmong(found[2].Rows, p.end, limit, wide)
	return p, nil
}

// within are the first of some jobs or runs that have no more than maxParts together, as
// their third column counts, or one that has more by itself, which is named.
func within(rows [][]any) (some [][]any, large any) {
	parts := 0
	for i, row := range rows {
		if parts += whole(row[2]); parts <= maxParts {
			continue
		}
		if i > 0 {
			return rows[:i], nil
		}
		return rows[:1], row[0]
	}
	return rows, nil
}

// eventsOf are the events of jobs and runs, each once and in one order.
func eventsOf(rows [][]any, end any) (events [][]any) {
	for _, row := range rows {
		events = append(events, []any{row[1], end})
	}
	slices.SortFunc(events, func(a, b []any) int { return cmp.Compare(str(a[0]), str(b[0])) })
	return slices.CompactFunc(events, func(a, b []any) bool { return str(a[0]) == str(b[0]) })
}

// bareAmong are the first events of a slice that are over, up to limit, and behind which
// one to look for more: none is passed by that was looked at and not taken.
func bareAmong(slice [][]any, end any, limit, full int) (bare [][]any, next string) {
	for i, row := range slice {
		if row[1] != nil {
			bare = append(bare, []any{row[1], end})
		}
		if len(bare) == limit && i+1 < len(slice) {
			return bare, str(row[0])
		}
	}
	return bare, behind(slice, full)
}

// purge deletes what is over, and tells how many jobs, runs and events that were. Events
// that were looked for by themselves go in a batch of their own, so that neither makes the
// other longer. If it fails, they are looked at once more.
func (s *Store) purge(ctx context.Context, p purging) (total int, err error) {
	if total, err = s.purgeOwners(ctx, p); err != nil {
		return total, err
	}
	n, err := s.delete(ctx, eventsGo(s.sql, p.bare)...)
	if err == nil {
		s.seen.move("events", p.next)
	}
	return total + n, err
}

// eventsGo delete events. Who gives an old event new jobs, and who deletes it because it
// has none, wait for each other: a DELETE that waited would not see what came meanwhile.
func eventsGo(q statements, events [][]any) []Stmt {
	return []Stmt{
		{Name: "hold_events", SQL: q.holdEvents, Rows: firsts(events), Reads: true, Sorted: 1},
		{Name: "purge_events", SQL: q.deleteEvent, Rows: events},
	}
}

// purgeOwners deletes jobs and runs with all that belongs to them, and their events.
func (s *Store) purgeOwners(ctx context.Context, p purging) (total int, err error) {
	all := []Stmt{
		{Name: "purge_jobs", SQL: s.sql.deleteJob, Rows: p.jobs},
		{Name: "purge_attempts", SQL: s.sql.deleteAttempts, Rows: p.attempts},
		{Name: "purge_runs", SQL: s.sql.deleteRun, Rows: p.runs},
		{Name: "purge_steps", SQL: s.sql.deleteSteps, Rows: p.parts},
		{Name: "purge_history", SQL: s.sql.deleteHistory, Rows: p.parts},
		{Name: "purge_callbacks", SQL: s.sql.deleteCallbacks, Rows: p.parts},
	}
	if total, err = s.delete(ctx, append(all, eventsGo(s.sql, p.events)...)...); err != nil {
		return total, err
	}
	if p.largeJob != nil {
		err = s.dismantle(ctx, p.largeJob, jobParts(s.sql))
	}
	if p.largeRun != nil && err == nil {
		err = s.dismantle(ctx, p.largeRun, runParts(s.sql))
	}
	return total, err
}

// delete sends those of some statements that have rows, and tells how many jobs, runs and
// events are gone.
func (s *Store) delete(ctx context.Context, all ...Stmt) (total int, err error) {
	stmts := slices.DeleteFunc(all, func(st Stmt) bool { return len(st.Rows) == 0 || st.SQL == "" })
	if len(stmts) == 0 {
		return 0, nil
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, err
	}
	for i, st := range stmts {
		if st.Name == "purge_jobs" || st.Name == "purge_runs" || st.Name == "purge_events" {
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
type part struct{ pick, remove Stmt }

func jobParts(q statements) []part {
	return []part{{Stmt{Name: "pick_attempts", SQL: q.pickAttempts}, Stmt{Name: "delete_attempts", SQL: q.deleteAttempt}}}
}

func runParts(q statements) []part {
	return []part{
		{Stmt{Name: "pick_steps", SQL: q.pickSteps}, Stmt{Name: "delete_steps", SQL: q.deleteStep}},
		{Stmt{Name: "pick_history", SQL: q.pickHistory}, Stmt{Name: "delete_history", SQL: q.deleteEntry}},
		{Stmt{Name: "pick_callbacks", SQL: q.pickCallbacks}, Stmt{Name: "delete_callbacks", SQL: q.deleteCallback}},
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
	rows, err := s.read(ctx, p.pick.Name, p.pick.SQL, owner, int64(partsAt))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	p.remove.Rows, p.remove.Apart = rows, true
	results, err := s.write(ctx, p.remove)
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
