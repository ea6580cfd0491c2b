package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Transit makes transitions. See core.Runs.
func (s *Store) Transit(ctx context.Context, ts ...core.Transition) ([]bool, error) {
	if len(ts) == 0 {
		return nil, nil
	}
	for _, t := range ts {
		if len(t.Entries) == 0 {
			return nil, errors.New("transit: a transition without an entry")
		}
	}
	stmts := s.transitStmts(ts)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("transit: %w", err)
	}
	for _, t := range ts {
		s.makeRoom(t)
	}
	var made []bool
	last := len(stmts) - 1
	_, err = s.eventually(ctx, results[last:], stmts[last:], func(said []Result) (ok bool) {
		made, ok = madeOf(ts, said[0].Rows)
		return ok
	})
	if err != nil {
		return nil, fmt.Errorf("transit: %w", err)
	}
	return made, nil
}

// madeOf tells which transitions are made, from rows of heldBy. It does not know yet
// where nobody seems to have made the entry and the run seems to be where it was.
func madeOf(ts []core.Transition, rows [][]any) (made []bool, known bool) {
	at := make(map[string][]any, len(rows))
	for _, row := range rows {
		at[str(row[0])] = row
	}
	made = make([]bool, len(ts))
	for i, t := range ts {
		row, found := at[string(t.Mark)]
		switch {
		case !found: // no such run
		case row[2] == nil && whole(row[1]) == t.Seq:
			return nil, false
		default:
			made[i] = str(row[2]) == string(t.Mark)
		}
	}
	return made, true
}

// makeRoom makes room for the jobs that a transition writes.
func (s *Store) makeRoom(t core.Transition) {
	for _, j := range t.Jobs {
		s.floors.lower(j.DueAt)
	}
	for _, j := range t.JobsEnd {
		if !j.DueAt.IsZero() {
			s.floors.lower(j.DueAt)
		}
	}
	if t.GivesRise != nil {
		s.floors.lower(t.GivesRise.Event.CreatedAt)
	}
}

// transitStmts are the statements of a Transit. Only those that have rows are sent, but
// for the last, which tells what became of it. Runs are in the order of their ids, so
// that those who meet at several wait in line and not in a circle.
func (s *Store) transitStmts(ts []core.Transition) (stmts []Stmt) {
	ts = slices.SortedStableFunc(slices.Values(ts), func(a, b core.Transition) int { return cmp.Compare(a.Run.ID, b.Run.ID) })
	add := func(st Stmt, rows func(core.Transition) [][]any) {
		for _, t := range ts {
			st.Rows = append(st.Rows, rows(t)...)
		}
		if len(st.Rows) > 0 {
			stmts = append(stmts, st)
		}
	}
	if s.sql.lockRuns != "" {
		add(Stmt{Name: "lock_runs", SQL: s.sql.lockRuns, Reads: true, Sorted: 1}, func(t core.Transition) [][]any { return [][]any{{string(t.Run.ID)}} })
	}
	add(Stmt{Name: "insert_definitions", SQL: s.sql.insertDefinition, Sorted: 1}, s.newDefinition)
	add(Stmt{Name: "insert_history", SQL: s.sql.insertHistory, Sorted: historyRun}, firstEntry)
	add(Stmt{Name: "more_history", SQL: s.sql.moreHistory}, moreEntries)
	add(Stmt{Name: "insert_step_attempts", SQL: s.sql.insertStepAttempts}, stepAttemptRows)
	add(Stmt{Name: "insert_rises", SQL: s.sql.insertRise}, riseRows)
	add(Stmt{Name: "insert_jobs_if", SQL: s.sql.insertJobIf}, s.riseJobRows)
	texts := make(map[core.ID]*shelf, len(ts))
	for _, t := range ts {
		texts[t.Mark] = shelve(t)
	}
	add(Stmt{Name: "insert_texts", SQL: s.sql.insertTexts}, func(t core.Transition) [][]any { return texts[t.Mark].texts })
	add(Stmt{Name: "insert_steps", SQL: s.sql.insertSteps}, func(t core.Transition) [][]any { return texts[t.Mark].fresh })
	add(Stmt{Name: "change_steps", SQL: s.sql.changeSteps}, func(t core.Transition) [][]any { return texts[t.Mark].changed })
	add(Stmt{Name: "hold_steps", SQL: s.sql.holdSteps}, heldRows)
	add(Stmt{Name: "insert_step_jobs", SQL: s.sql.insertStepJobs}, stepJobRows)
	add(Stmt{Name: "change_jobs", SQL: s.sql.changeJobs}, changedJobRows)
	add(Stmt{Name: "insert_tokens", SQL: s.sql.insertTokens}, tokenRows)
	add(Stmt{Name: "disarm", SQL: s.sql.disarm}, disarmRows)
	add(Stmt{Name: "move_runs", SQL: s.sql.moveRun}, runRow)
	add(Stmt{Name: "held_by", SQL: s.sql.heldBy, Reads: true}, func(t core.Transition) [][]any {
		return [][]any{{string(t.Mark), int64(t.Seq + 1), string(t.Run.ID)}}
	})
	return stmts
}

// holder are the values of the condition that a transition holds its run.
func holder(t core.Transition) []any {
	return []any{string(t.Run.ID), int64(t.Seq + 1), string(t.Mark)}
}

// historyRun is where a row of insertHistory has its run, from 1.
const historyRun = 7

func firstEntry(t core.Transition) [][]any {
	e := t.Entries[0]
	return [][]any{{string(t.Mark), millis(e.At), int64(e.Epoch), string(e.Type), e.Path, e.Data, string(t.Run.ID), int64(t.Seq)}}
}

func moreEntries(t core.Transition) (rows [][]any) {
	for _, e := range t.Entries[1:] {
		rows = append(rows, append([]any{int64(e.Seq), millis(e.At), int64(e.Epoch), string(e.Type), e.Path, e.Data}, holder(t)...))
	}
	return rows
}

func stepAttemptRows(t core.Transition) (rows [][]any) {
	for _, a := range t.Attempts {
		rows = append(rows, append([]any{string(a.JobID), string(a.Lease), int64(a.Number), int64(a.StatusCode), a.Error, a.Response,
			a.Duration.Milliseconds(), millis(a.StartedAt)}, holder(t)...))
	}
	return rows
}

func riseRows(t core.Transition) [][]any {
	if t.GivesRise == nil {
		return nil
	}
	return [][]any{append(eventRow(t.GivesRise.Event), holder(t)...)}
}

// riseJobRows are rows of insertJobIf: they go where their event went.
func (s *Store) riseJobRows(t core.Transition) [][]any {
	if t.GivesRise == nil {
		return nil
	}
	return s.jobsStmt(*t.GivesRise, false).Rows
}

// leafOf is the parent whose branch a step ended, or null. On the workflow's own list
// it is the run.
func leafOf(n core.Step, run core.ID) any {
	if !n.Last {
		return nil
	}
	return string(cmp.Or(n.ParentID, run))
}

func stepJobRows(t core.Transition) (rows [][]any) {
	for _, j := range t.Jobs {
		rows = append(rows, append([]any{string(j.ID), string(core.WorkflowLane(t.Run.Workflow)), string(cmp.Or(j.Status, core.Available)), int64(core.Unlimited), millis(j.DueAt),
			millis(t.Entries[0].At)}, holder(t)...))
	}
	return rows
}

func changedJobRows(t core.Transition) (rows [][]any) {
	for _, j := range t.JobsEnd {
		rows = append(rows, append([]any{string(j.Status), millis(j.DueAt), j.Error, millis(j.FinishedAt), string(j.ID)}, holder(t)...))
	}
	return rows
}

func heldRows(t core.Transition) (rows [][]any) {
	for _, step := range t.Held {
		rows = append(rows, append([]any{string(step)}, holder(t)...))
	}
	return rows
}

// tokenRows are the tokens of a transition and its receipts, which have no step: a Disarm leaves
// them, and they go with their run.
func tokenRows(t core.Transition) (rows [][]any) {
	for _, token := range t.Tokens {
		rows = append(rows, append([]any{token.Hash, string(token.StepID), millis(token.ExpiresAt)}, holder(t)...))
	}
	for _, receipt := range t.Receipts {
		rows = append(rows, append([]any{receipt, "", nil}, holder(t)...))
	}
	return rows
}

func disarmRows(t core.Transition) (rows [][]any) {
	for _, step := range t.Disarm {
		rows = append(rows, append([]any{string(t.Run.ID), string(step)}, holder(t)...))
	}
	return rows
}

// newDefinition is the definition that a run follows from now on, unless it is stored. It is
// stored also if the transition is not made, since definitions are never deleted.
func (s *Store) newDefinition(t core.Transition) [][]any {
	d := t.Definition
	if d.Hash == "" || s.definitions.have(d.Hash) {
		return nil
	}
	return [][]any{{d.Hash, d.Body}}
}

func runRow(t core.Transition) [][]any {
	r, id := t.Run, string(t.Run.ID)
	return [][]any{{r.Definition, string(r.Status), int64(r.Epoch), int64(r.Seq), r.Step, textOrNull(r.Output), r.Error,
		millis(r.DeadlineAt), millis(r.StartedAt), millis(r.FinishedAt), int64(r.Written), orNull(r.Writers), id, int64(t.Seq), id, int64(t.Seq + 1), string(t.Mark)}}
}
