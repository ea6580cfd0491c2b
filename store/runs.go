package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// definitions are those that this process knows to be stored, by their hash. They
// are never deleted.
type definitions struct {
	mu     sync.Mutex
	stored map[string]bool
}

func (d *definitions) have(hash string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stored[hash]
}

func (d *definitions) keep(runs []core.NewRun) {
	if len(runs) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stored == nil {
		d.stored = map[string]bool{}
	}
	for _, r := range runs {
		d.stored[r.Definition.Hash] = true
	}
}

// runStmts insert the runs of an arrival beside their jobs, and the definitions that
// may be new.
func (s *Store) runStmts(a core.Arrival) (stmts []Stmt) {
	if len(a.Runs) == 0 {
		return nil
	}
	var defs, runs, first [][]any
	for _, r := range a.Runs {
		if d := r.Definition; !s.definitions.have(d.Hash) {
			defs = append(defs, []any{d.Hash, d.Body})
		}
		var deadline time.Time
		if r.Timeout > 0 {
			deadline = a.Event.CreatedAt.Add(r.Timeout)
		}
		runs = append(runs, []any{string(r.ID), r.Workflow, r.Definition.Hash, r.Step, millis(deadline), string(r.StepID)})
		first = append(first, []any{string(r.StepID), r.StepType, string(r.ID)})
	}
	if len(defs) > 0 {
		stmts = append(stmts, Stmt{Name: "insert_definitions", SQL: s.sql.insertDefinition, Rows: defs, Sorted: 1})
	}
	return append(stmts,
		Stmt{Name: "insert_runs", SQL: s.sql.insertRun, Rows: runs},
		Stmt{Name: "insert_first_steps", SQL: s.sql.insertFirst, Rows: first})
}

// Definition returns a definition. See core.Runs.
func (s *Store) Definition(ctx context.Context, hash string) (core.Definition, error) {
	rows, err := s.read(ctx, "definition", s.sql.definition, hash)
	if err != nil {
		return core.Definition{}, fmt.Errorf("definition %s: %w", hash, err)
	}
	if len(rows) == 0 {
		return core.Definition{}, core.Refuse(core.NotFound, "definition not found")
	}
	return core.Definition{Hash: hash, Body: str(rows[0][0])}, nil
}

// Situations returns situations. See core.Runs.
func (s *Store) Situations(ctx context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, Stmt{Name: "situations", SQL: s.sql.situations, Rows: idRows(steps), Reads: true})
	if err != nil {
		return nil, fmt.Errorf("situations: %w", err)
	}
	return situationsOf(results[0].Rows), nil
}

// idRows are rows of one id each, every id once.
func idRows(ids []core.ID) (rows [][]any) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		rows = append(rows, []any{string(id)})
	}
	return rows
}

// situationsOf are situations by their steps.
func situationsOf(rows [][]any) map[core.ID]core.Situation {
	of := make(map[core.ID]core.Situation, len(rows))
	for _, row := range rows {
		if lacksText(row) {
			continue // the run is being purged
		}
		situation := scanSituation(row)
		of[situation.Step.ID] = situation
	}
	return of
}

// Survey returns steps. See core.Runs.
func (s *Store) Survey(ctx context.Context, run core.ID, epoch int, w core.Wanted) ([]core.Step, error) {
	if w.All {
		return s.surveyAll(ctx, run, epoch)
	}
	stmts := s.surveyStmts(string(run), int64(epoch), w)
	if len(stmts) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("survey run %s: %w", run, err)
	}
	var steps []core.Step
	for _, r := range results {
		for _, row := range r.Rows {
			if st := scanStep(row); st.RunID == run && st.Epoch == epoch {
				steps = append(steps, st)
			}
		}
	}
	slices.SortFunc(steps, func(a, b core.Step) int { return cmp.Compare(a.ID, b.ID) })
	steps = slices.CompactFunc(steps, func(a, b core.Step) bool { return a.ID == b.ID })
	if err := s.fill(ctx, run, steps); err != nil {
		return nil, fmt.Errorf("survey run %s: %w", run, err)
	}
	return steps, nil
}

// surveyStmts are what reads the wanted steps.
func (s *Store) surveyStmts(run string, epoch int64, w core.Wanted) (stmts []Stmt) {
	all := func(name, sql string) {
		stmts = append(stmts, Stmt{Name: name, SQL: sql, Args: []any{run, epoch}, Reads: true})
	}
	some := func(name, sql string, rows [][]any) {
		if len(rows) > 0 {
			stmts = append(stmts, Stmt{Name: name, SQL: sql, Rows: rows, Reads: true})
		}
	}
	if w.Open {
		all("survey_open", s.sql.surveyOpen)
	}
	if w.Failed {
		all("survey_failed", s.sql.surveyFailed)
	}
	some("survey_ids", s.sql.surveyIDs, idRows(w.IDs))
	some("survey_leaves", s.sql.surveyLeaves, idRows(w.Leaves))
	var paths [][]any
	for _, p := range slices.Compact(slices.Sorted(slices.Values(w.Paths))) {
		paths = append(paths, []any{run, epoch, p})
	}
	some("survey_paths", s.sql.surveyPaths, paths)
	return stmts
}

// Awaited finds the step that a callback is for, and the run that has recorded it. See core.Runs.
func (s *Store) Awaited(ctx context.Context, now time.Time, hash, receipt string) (found core.Awaiting, err error) {
	rows, err := s.read(ctx, "awaited", s.sql.awaited, hash, receipt, now.UnixMilli())
	if err != nil {
		return found, fmt.Errorf("look for a callback: %w", err)
	}
	for _, row := range rows {
		if step := core.ID(str(row[0])); step != "" {
			found.StepID = step
		} else {
			found.RunID = core.ID(str(row[1]))
		}
	}
	return found, nil
}
