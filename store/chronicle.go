package store

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// Run returns a run. See core.Chronicle.
func (s *Store) Run(ctx context.Context, id core.ID) (core.Run, error) {
	rows, err := s.read(ctx, "run", s.sql.run, string(id))
	if err != nil {
		return core.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	if len(rows) == 0 {
		return core.Run{}, core.Refuse(core.NotFound, "run not found")
	}
	return scanRun(rows[0]), nil
}

// Runs lists runs. See core.Chronicle.
func (s *Store) Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	q := listing(s.sql.runs, f.After)
	q.and("status = ?", string(f.Status))
	q.and("workflow = ?", f.Workflow)
	q.and("event_id = ?", string(f.EventID))
	return pageOf(ctx, s, "runs", q, f.Limit, scanRun)
}

// History lists entries. See core.Chronicle.
func (s *Store) History(ctx context.Context, run core.ID, after, limit int) ([]core.Entry, error) {
	rows, err := s.read(ctx, "history", s.sql.history, string(run), int64(after), int64(min(max(limit, 1), core.MaxPage)))
	if err != nil {
		return nil, fmt.Errorf("history of run %s: %w", run, err)
	}
	var entries []core.Entry
	for _, row := range rows {
		entries = append(entries, scanEntry(row))
	}
	return entries, nil
}
