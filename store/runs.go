package store

import (
	"context"
	"errors"
	"time"

	"github.com/eventgateway/gateway/core"
)

var errRuns = errors.New("runs")

// Definition returns a definition. See core.Runs.
func (s *Store) Definition(ctx context.Context, hash string) (core.Definition, error) {
	return core.Definition{}, errRuns
}

// Situations returns situations. See core.Runs.
func (s *Store) Situations(ctx context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	return nil, errRuns
}

// Survey returns steps. See core.Runs.
func (s *Store) Survey(ctx context.Context, run core.ID, epoch int, w core.Wanted) ([]core.Step, error) {
	return nil, errRuns
}

// Transit makes transitions. See core.Runs.
func (s *Store) Transit(ctx context.Context, ts ...core.Transition) ([]bool, error) {
	return nil, errRuns
}

// Awaited finds a step by a token. See core.Runs.
func (s *Store) Awaited(ctx context.Context, now time.Time, hash string) (core.ID, error) {
	return "", errRuns
}

// Run returns a run. See core.Chronicle.
func (s *Store) Run(ctx context.Context, id core.ID) (core.Run, error) { return core.Run{}, errRuns }

// Runs lists runs. See core.Chronicle.
func (s *Store) Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	return core.Page[core.Run]{}, errRuns
}

// History lists entries. See core.Chronicle.
func (s *Store) History(ctx context.Context, run core.ID, after, limit int) ([]core.Entry, error) {
	return nil, errRuns
}
