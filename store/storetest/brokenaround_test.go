package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Stores of brokenruns_test.go that break the contract in methods of events and jobs that touch
// runs.

// takesBlind returns situations without the run and the steps above.
type takesBlind struct{ *Model }

func (s takesBlind) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	taken, err := s.Model.Take(ctx, now, quotas)
	for i := range taken {
		taken[i].Situation.Run, taken[i].Situation.Above = core.Run{}, nil
	}
	return taken, err
}

// acceptsRuns stores the runs of an arrival also if the arrival is a duplicate.
type acceptsRuns struct{ *Model }

func (s acceptsRuns) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	receipt, err := s.Model.Accept(ctx, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range a.Runs {
		added := s.jobs[n.StepID] == nil
		if added {
			s.jobs[n.StepID] = &core.Job{}
		}
		s.addRun(a, n)
		if added {
			delete(s.jobs, n.StepID)
		}
	}
	return receipt, err
}

// jobsBare leaves out the run and step of a job.
type jobsBare struct{ *Model }

func (s jobsBare) Job(ctx context.Context, id core.ID) (core.Job, error) {
	j, err := s.Model.Job(ctx, id)
	j.RunID, j.Step = "", ""
	return j, err
}

// retriesRuns revives dead jobs of workflows as well.
type retriesRuns struct{ *Model }

func (s retriesRuns) Retry(_ context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	return s.change(func(j *core.Job) bool {
		return j.Status == core.Dead && (id == "" || j.ID == id) && (lane == "" || j.Lane == lane)
	}, func(j *core.Job) { j.Status, j.Attempt, j.DueAt, j.FinishedAt = core.Available, 0, now, time.Time{} })
}

// purgesNoRuns keeps finished runs for ever.
type purgesNoRuns struct{ *Model }

func (s purgesNoRuns) Purge(ctx context.Context, before time.Time, limit int) (int, bool, error) {
	s.mu.Lock()
	runs := s.runs
	s.runs = nil
	s.mu.Unlock()
	n, more, err := s.Model.Purge(ctx, before, limit)
	s.mu.Lock()
	s.runs = runs
	s.mu.Unlock()
	return n, more, err
}

// purgesOpen purges runs that have not ended.
type purgesOpen struct{ *Model }

func (s purgesOpen) Purge(ctx context.Context, before time.Time, limit int) (int, bool, error) {
	s.mu.Lock()
	for _, r := range s.runs {
		if r.FinishedAt.IsZero() {
			r.FinishedAt = r.StartedAt
		}
	}
	s.mu.Unlock()
	return s.Model.Purge(ctx, before, limit)
}

// purgesDefinitions deletes definitions that no stored run uses.
type purgesDefinitions struct{ *Model }

func (s purgesDefinitions) Purge(ctx context.Context, before time.Time, limit int) (int, bool, error) {
	n, more, err := s.Model.Purge(ctx, before, limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) == 0 {
		clear(s.definitions)
	}
	return n, more, err
}

// listsOutputs lists runs with their outputs, which may be large.
type listsOutputs struct{ *Model }

func (s listsOutputs) Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	p, err := s.Model.Runs(ctx, f)
	for i := range p.Items {
		p.Items[i], _ = s.Model.Run(ctx, p.Items[i].ID)
	}
	return p, err
}

// historyUnlimited returns all entries at a time.
type historyUnlimited struct{ *Model }

func (s historyUnlimited) History(ctx context.Context, run core.ID, after, _ int) ([]core.Entry, error) {
	return s.Model.History(ctx, run, after, core.MaxPage)
}

// schemaBehind reports a migrated schema as not migrated.
type schemaBehind struct{ *Model }

func (schemaBehind) Schema(context.Context) (have, want int, err error) { return 0, 1, nil }
