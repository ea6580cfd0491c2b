package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Run returns one run. See core.Chronicle.
func (s *Store) Run(ctx context.Context, id core.ID) (core.Run, error) {
	rows, err := s.read(ctx, s.sql.run, string(id))
	if err != nil {
		return core.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	if len(rows) == 0 {
		return core.Run{}, core.Refuse(core.NotFound, "run not found")
	}
	return (&rowReader{rows[0]}).run(), nil
}

// Runs lists runs, the newest first, without their outputs. See core.Chronicle.
func (s *Store) Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	q := s.sql.runs.below(f.After)
	q.and("status = ?", string(f.Status))
	q.and("workflow = ?", f.Workflow)
	q.and("event_id = ?", string(f.EventID))
	return pageOf(ctx, s, q, f.Limit, (*rowReader).run)
}

// History lists the history entries of a run behind one number. See core.Chronicle.
func (s *Store) History(ctx context.Context, run core.ID, after, limit int) ([]core.Entry, error) {
	rows, err := s.read(ctx, s.sql.history, string(run), int64(after), int64(min(max(limit, 1), core.MaxPage)))
	if err != nil {
		return nil, fmt.Errorf("history of run %s: %w", run, err)
	}
	var entries []core.Entry
	for _, row := range rows {
		r := rowReader{row}
		entries = append(entries, r.entry())
	}
	return entries, nil
}

// outlineColumns are a step of an outline.
const outlineColumns = `id, parent_id, branch, path, name, type, status, attempt, error, started_at, finished_at`

// Outline returns the steps of an epoch without their texts. See core.Chronicle. The steps are sorted
// here and not in SQL: the index has them in the order of paths.
func (s *Store) Outline(ctx context.Context, run core.ID, epoch int) ([]core.Step, error) {
	rows, err := s.read(ctx, s.sql.outline, string(run), int64(epoch))
	if err != nil {
		return nil, fmt.Errorf("outline of run %s: %w", run, err)
	}
	steps := make([]core.Step, 0, len(rows))
	for _, row := range rows {
		r := rowReader{row}
		steps = append(steps, core.Step{
			ID: r.id(), RunID: run, Epoch: epoch, ParentID: r.id(), Branch: r.text(), Path: r.text(), Name: r.text(), Type: r.text(),
			Status: core.StepStatus(r.text()), Attempt: r.number(), Error: r.text(), StartedAt: r.time(), FinishedAt: r.time(),
		})
	}
	order.Sort(steps, func(a, b core.Step) int { return cmp.Compare(a.ID, b.ID) })
	return steps, nil
}

// The columns of step_sizes.
const (
	sizedStep = iota
	sizedState
	sizedOutput
	sizedStateName
	sizedOutputName
	sizedPasses
)

// chronicleSQL are the statements of the Chronicle.
type chronicleSQL struct {
	run, history, outline, stepIDs, stepSizes, readSteps statement
	runs                                                 listing
}

func newChronicleSQL(d Dialect) chronicleSQL {
	t := d.sql
	return chronicleSQL{
		run:     reading("run", t(`SELECT `+runColumns+` FROM runs WHERE id = ?`)),
		runs:    listing{"runs", t(`SELECT ` + runSummary + ` FROM runs{use runs_event, runs_status, PRIMARY} WHERE id < ?`)},
		history: reading("history", t(`SELECT `+entryColumns+` FROM history WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT {limit}`)),

		// By steps_path, like step_ids. It reads no texts: those of all steps may have many MiB.
		outline: reading("outline", t(`SELECT `+outlineColumns+` FROM steps{use steps_path} WHERE run_id = ? AND epoch = ?`)),

		// By steps_path. The ids are sorted here and not in SQL: the index has them in the
		// order of paths.
		stepIDs: reading("step_ids", t(`SELECT id FROM steps{use steps_path} WHERE run_id = ? AND epoch = ? AND id > ?`)),
		// LENGTH reads a text that is stored in the step. For a text in step_texts the size is
		// in its name.
		stepSizes: reading("step_sizes", d.selectRows(`steps.id AS id, COALESCE(LENGTH(steps.state), 0) AS state_size, COALESCE(LENGTH(steps.output), 0) AS output_size,
			steps.state_in AS state_in, steps.output_in AS output_in,
			CASE WHEN steps.output = '' THEN 'yes' ELSE 'no' END AS passes`, "steps{use PRIMARY}", `steps.id = r.id`)),
		readSteps: reading("read_steps", d.selectRows(stepInFull+`, steps.held_until AS held_until`, "steps{use PRIMARY}", `steps.id = r.id`)),
	}
}
