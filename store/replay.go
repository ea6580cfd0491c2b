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

// Replay stores new jobs and runs of old events. See core.Operations. It locks the events
// first, so that a purge cannot delete them before the jobs are inserted.
func (s *Store) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error) {
	arrivals = preparedForReplay(now, arrivals)
	if len(arrivals) == 0 {
		return 0, nil
	}
	stmts, reads := s.replayStmts(ctx, arrivals)
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

// preparedForReplay returns the arrivals that have jobs, with the present as their time and
// without keys: a key would make the new job a repeat of the old one. They are sorted by event,
// the lock order.
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
	order.Stable(prepared, func(a, b core.Arrival) int { return cmp.Compare(a.Event.ID, b.Event.ID) })
	return prepared
}

// replayStmts are the statements of a Replay. The last two, reads, tell which jobs and which
// events are stored.
func (s *Store) replayStmts(ctx context.Context, arrivals []core.Arrival) (stmts []Stmt, reads int) {
	var all core.Arrival // the runs of all arrivals; its event is not stored
	var events, ready, later, ids, guards [][]any
	for _, a := range arrivals {
		if id := string(a.Event.ID); len(events) == 0 || rowKey(events[len(events)-1]) != id {
			events = append(events, []any{id})
		}
		now, then := jobRows(a, false)
		ready, later = append(ready, now...), append(later, then...)
		guards = append(guards, []any{string(a.Jobs[0].ID)}) // the jobs of an event are stored together
		for _, j := range a.Jobs {
			ids = append(ids, []any{string(j.ID)})
		}
		all.Event.CreatedAt, all.Jobs, all.Runs = a.Event.CreatedAt, append(all.Jobs, a.Jobs...), append(all.Runs, a.Runs...)
	}
	if s.sql.lockEvents.sql != "" {
		stmts = append(stmts, s.sql.lockEvents.on(events...).sortedBy(keyColumn))
	}
	if len(ready) > 0 {
		stmts = append(stmts, s.sql.insertJobIf.on(ready...))
	}
	if len(later) > 0 {
		stmts = append(stmts, s.sql.insertLaterIf.on(later...))
	}
	stmts = append(stmts, s.linedStmts(arrivals...)...)
	stmts = append(stmts, s.runStmts(all)...)
	stmts = append(stmts, s.audited(ctx, s.sql.auditReplayed, guards...)...)
	return append(stmts, s.sql.replayed.on(ids...), s.sql.stored.on(events...)), 2
}

// countReplayed counts the jobs that are stored. all is false if a job is not stored although
// its event is: then the read may have been too early, see rereadUntil.
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

// idsOf returns the first columns of rows, as a set.
func idsOf(rows [][]any) map[string]bool {
	ids := make(map[string]bool, len(rows))
	for _, row := range rows {
		ids[rowKey(row)] = true
	}
	return ids
}

// replaySQL are the statements of a Replay, besides those of Accept.
type replaySQL struct{ lockEvents, replayed statement }

func newReplaySQL(d Dialect) replaySQL {
	return replaySQL{
		// Purge sends it too, before it deletes events.
		lockEvents: reading("hold_events", lockEventsSQL(d)),
		replayed:   reading("replayed", d.selectRows(`jobs.id AS job`, "jobs{use PRIMARY}", `jobs.id = r.id`)),
	}
}

// lockEventsSQL is the statement that locks events; "" on SQLite and D1, which have one writer.
func lockEventsSQL(d Dialect) string {
	if d.lockRows == "" {
		return ""
	}
	return d.selectRows(`events.id AS event`, "events{use PRIMARY}", `events.id = r.id`) + " " + d.sql("{lock_rows events}")
}
