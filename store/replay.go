package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Replay stores new jobs and runs of old events. See core.Operations. The events are held
// while that goes on, where somebody could purge them in between.
func (s *Store) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error) {
	arrivals = preparedForReplay(now, arrivals)
	if len(arrivals) == 0 {
		return 0, nil
	}
	stmts, reads := s.replayStmts(arrivals)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	s.floors.jobWritten(now)
	for _, a := range arrivals {
		s.definitions.keep(a.Runs)
	}
	from := len(stmts) - reads
	stored := 0
	_, err = s.reread(ctx, results[from:], stmts[from:], func(answers []Result) (ok bool) {
		stored, ok = countReplayed(arrivals, answers)
		return ok
	})
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	return stored, nil
}

// anew are arrivals as they are replayed: with jobs, which have no keys, now, in the
// order of their events, which is the one in which those are held.
func preparedForReplay(now time.Time, arrivals []core.Arrival) (prepared []core.Arrival) {
	for _, a := range arrivals {
		if len(a.Jobs) == 0 {
			continue
		}
		a.Event.CreatedAt, a.Jobs = now, slices.Clone(a.Jobs)
		for i := range a.Jobs {
			a.Jobs[i].Key = ""
		}
		prepared = append(prepared, a)
	}
	slices.SortStableFunc(prepared, func(a, b core.Arrival) int { return cmp.Compare(a.Event.ID, b.Event.ID) })
	return prepared
}

// replayStmts are the statements of a Replay, and how many at their end tell what is
// stored.
func (s *Store) replayStmts(arrivals []core.Arrival) (stmts []Stmt, reads int) {
	var all core.Arrival // every job and run, of whatever event
	var events, jobs, ids [][]any
	for _, a := range arrivals {
		if id := string(a.Event.ID); len(events) == 0 || rowKey(events[len(events)-1]) != id {
			events = append(events, []any{id})
		}
		jobs = append(jobs, s.jobsStmt(a, false).Rows...)
		for _, j := range a.Jobs {
			ids = append(ids, []any{string(j.ID)})
		}
		all.Event.CreatedAt, all.Runs = a.Event.CreatedAt, append(all.Runs, a.Runs...)
	}
	if s.sql.lockEvents.sql != "" {
		stmts = append(stmts, s.sql.lockEvents.on(events...).sortedBy(keyColumn))
	}
	stmts = append(stmts, s.sql.insertJobIf.on(jobs...))
	stmts = append(stmts, s.runStmts(all)...)
	return append(stmts, s.sql.replayed.on(ids...), s.sql.stored.on(events...)), 2
}

// replayedOf counts the arrivals' jobs that are stored. That may not be all yet while one
// is not whose event is there.
func countReplayed(arrivals []core.Arrival, answers []Result) (stored int, all bool) {
	jobs, events := idsOf(answers[0].Rows), idsOf(answers[1].Rows)
	all = true
	for _, a := range arrivals {
		for _, j := range a.Jobs {
			if jobs[string(j.ID)] {
				stored++
			} else if events[string(a.Event.ID)] {
				all = false
			}
		}
	}
	return stored, all
}

// idsOf are the first columns of rows.
func idsOf(rows [][]any) map[string]bool {
	ids := make(map[string]bool, len(rows))
	for _, row := range rows {
		ids[rowKey(row)] = true
	}
	return ids
}

type replaySQL struct{ lockEvents, replayed statement }

func newReplaySQL(d Dialect) replaySQL {
	return replaySQL{
		// Who gives an old event new jobs and who purges it wait for each other here.
		lockEvents: reading("hold_events", lockEventsSQL(d)),
		replayed:   reading("replayed", d.selectRows(`jobs.id AS job`, "jobs{use PRIMARY}", `jobs.id = r.id`)),
	}
}

// holdEvents keeps events as they are, where two transactions could change what is
// around them at the same time.
func lockEventsSQL(d Dialect) string {
	if d.lockRows == "" {
		return ""
	}
	return d.selectRows(`events.id AS event`, "events{use PRIMARY}", `events.id = r.id`) + " " + d.sql("{lock_rows events}")
}
