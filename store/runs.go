package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// definitions are the hashes of the definitions that this process knows to be stored.
// Definitions are never deleted, so the set only grows. It saves an INSERT of a large text for
// each run.
type definitions struct {
	mu     sync.Mutex // guards stored
	stored map[string]bool
}

// have reports whether a definition is known to be stored.
func (d *definitions) have(hash string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stored[hash]
}

// keep adds the definitions of runs. The caller has stored them.
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

// runStmts insert the runs of an arrival with their first steps, and the definitions that may
// be new. They come after the jobs: a run is stored only beside the job of its first step.
func (s *Store) runStmts(a core.Arrival) (stmts []Stmt) {
	if len(a.Runs) == 0 {
		return nil
	}
	var defs, runs, first [][]any
	for _, r := range a.Runs {
		if d := r.Definition; !s.definitions.have(d.Hash) {
			defs = append(defs, []any{d.Hash, d.Body})
		}
		runs = append(runs, []any{string(r.ID), r.Workflow, r.Definition.Hash, r.Step, millis(a.Deadline(r)), string(r.StepID)})
		first = append(first, []any{string(r.StepID), r.StepType, string(r.ID)})
	}
	if len(defs) > 0 {
		stmts = append(stmts, s.sql.insertDefinition.on(defs...).sortedBy(keyColumn))
	}
	return append(stmts,
		s.sql.insertRun.on(runs...),
		s.sql.insertFirst.on(first...))
}

// Definition returns a definition by its hash. See core.Runs.
func (s *Store) Definition(ctx context.Context, hash string) (core.Definition, error) {
	rows, err := s.read(ctx, s.sql.definition, hash)
	if err != nil {
		return core.Definition{}, fmt.Errorf("definition %s: %w", hash, err)
	}
	if len(rows) == 0 {
		return core.Definition{}, core.Refuse(core.NotFound, "definition not found")
	}
	return core.Definition{Hash: hash, Body: rowKey(rows[0])}, nil
}

// Situations returns steps with their runs and the steps above them. See core.Runs.
func (s *Store) Situations(ctx context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, s.sql.situations.on(idRows(steps)...))
	if err != nil {
		return nil, fmt.Errorf("read situations of steps: %w", err)
	}
	return situationsOf(results[0].Rows), nil
}

// idRows returns rows of one id each, sorted and without repeats.
func idRows(ids []core.ID) (rows [][]any) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		rows = append(rows, []any{string(id)})
	}
	return rows
}

// situationsOf reads situations, by step.
func situationsOf(rows [][]any) map[core.ID]core.Situation {
	of := make(map[core.ID]core.Situation, len(rows))
	for _, row := range rows {
		if lacksText(row) {
			continue // the run is being purged
		}
		r := rowReader{row}
		situation := r.situation()
		of[situation.Step.ID] = situation
	}
	return of
}

// Survey returns steps of one epoch of a run. See core.Runs. It reads the steps without the
// texts in step_texts, and then each text once: many steps may share a large one.
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
	for _, result := range results {
		for _, row := range result.Rows {
			r := rowReader{row}
			if st := r.step(); st.RunID == run && st.Epoch == epoch {
				steps = append(steps, st)
			}
		}
	}
	order.Sort(steps, func(a, b core.Step) int { return cmp.Compare(a.ID, b.ID) })
	// A step may match several of the wanted conditions.
	steps = slices.CompactFunc(steps, func(a, b core.Step) bool { return a.ID == b.ID })
	if err := s.readTexts(ctx, run, steps); err != nil {
		return nil, fmt.Errorf("survey run %s: %w", run, err)
	}
	return steps, nil
}

// surveyStmts are the statements that read the wanted steps.
func (s *Store) surveyStmts(run string, epoch int64, w core.Wanted) (stmts []Stmt) {
	some := func(st statement, rows [][]any) {
		if len(rows) > 0 {
			stmts = append(stmts, st.on(rows...))
		}
	}
	if w.Open {
		stmts = append(stmts, s.sql.surveyOpen.with(run, epoch))
	}
	if w.Failed {
		stmts = append(stmts, s.sql.surveyFailed.with(run, epoch))
	}
	some(s.sql.surveyIDs, idRows(w.IDs))
	some(s.sql.surveyLeaves, idRows(w.Leaves))
	var paths [][]any
	for _, p := range slices.Compact(slices.Sorted(slices.Values(w.Paths))) {
		paths = append(paths, []any{run, epoch, p})
	}
	some(s.sql.surveyPaths, paths)
	return stmts
}

// Awaited finds the step that a callback completes, and the run that has recorded the same
// callback already. See core.Runs.
func (s *Store) Awaited(ctx context.Context, now time.Time, hash, receipt string) (found core.Awaiting, err error) {
	rows, err := s.read(ctx, s.sql.awaited, hash, receipt, now.UnixMilli())
	if err != nil {
		return found, fmt.Errorf("find the step of a callback: %w", err)
	}
	for _, row := range rows {
		r := rowReader{row}
		if step, run := r.id(), r.id(); step != "" {
			found.StepID = step
		} else {
			found.RunID = run
		}
	}
	return found, nil
}

// openStep is the condition that a step has not ended.
const openStep = `status IN ('ready', 'running', 'waiting')`

// runsSQL are the statements of runs, except those of a Transit.
type runsSQL struct {
	insertDefinition, insertRun, insertFirst, definition, situations        statement
	surveyOpen, surveyFailed, surveyIDs, surveyLeaves, surveyPaths, textsOf statement
	awaited                                                                 statement
}

func newRunsSQL(d Dialect) runsSQL {
	t := d.sql
	return runsSQL{
		insertDefinition: uncounted("insert_definitions", d.insertIfAbsent("definitions", `hash, body`, `r.hash, r.body`, "", "", "hash")),

		// A run is joined with its job. A duplicate arrival has none, and neither has a job
		// whose key is taken.
		insertRun: uncounted("insert_runs", d.insertIfAbsent("runs", runColumns,
			`r.id, r.workflow, jobs.event_id, r.definition, 'pending', 1, 0, r.step, NULL, '', r#deadline_at, jobs.created_at, NULL, NULL, 0, NULL`,
			"jobs{use PRIMARY}", `jobs.id = r.job`, "id")),
		insertFirst: uncounted("insert_first_steps", d.insertIfAbsent("steps", stepColumns,
			`r.id, runs.id, 1, NULL, '', runs.step, runs.step, r.type, 'ready', 0, NULL, NULL, '', '', '', NULL, runs.created_at, NULL, NULL, NULL`,
			"runs{use PRIMARY}", `runs.id = r.run`, "id")),

		definition: reading("definition", t(`SELECT body FROM definitions WHERE hash = ?`)),
		// One statement reads the whole situation at one moment.
		situations: reading("situations", d.selectRows(stepAndRun+above(), "steps{use PRIMARY}"+withRun+withAbove(), `steps.id = r.id`)),

		// By steps_path: all steps of the epoch are read, since open and failed ones have no
		// index.
		surveyOpen:   reading("survey_open", t(`SELECT `+stepColumns+` FROM steps{use steps_path} WHERE run_id = ? AND epoch = ? AND `+openStep)),
		surveyFailed: reading("survey_failed", t(`SELECT `+stepColumns+` FROM steps{use steps_path} WHERE run_id = ? AND epoch = ? AND status = 'failed'`)),
		// Not conditioned on the run: a plan might use it and read all steps of the run.
		surveyIDs:    reading("survey_ids", d.selectRows(qualified("steps", stepColumns), "steps{use PRIMARY}", `steps.id = r.id`)),
		surveyLeaves: reading("survey_leaves", d.selectRows(qualified("steps", stepColumns), "steps{use steps_leaf}", `steps.leaf_of = r.parent`)),
		surveyPaths: reading("survey_paths", d.selectRows(qualified("steps", stepColumns), "steps{use steps_path}",
			`steps.run_id = r.run AND steps.epoch = r#epoch AND steps.path = r.path`)),
		textsOf: reading("texts_of", d.selectRows(`step_texts.name, step_texts.body`, "step_texts{use PRIMARY}", `step_texts.run_id = r.run AND step_texts.name = r.name`)),

		// A receipt is a callback without a step, and never expires.
		awaited: reading("awaited", t(`SELECT step_id, run_id FROM callbacks WHERE token_hash IN (?, ?) AND (step_id = '' OR expires_at > ?)`)),
	}
}
