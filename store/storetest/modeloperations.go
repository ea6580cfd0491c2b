package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// BeginOperation implements [core.OperationLog].
func (m *Model) BeginOperation(ctx context.Context, op core.Operation, a core.Arrival) error {
	m.mu.Lock()
	_, known := m.operations[op.ID]
	if !known {
		m.operations[op.ID] = op
	}
	m.mu.Unlock()
	m.audit(ctx, !known)
	_, err := m.Accept(ctx, a)
	return err
}

// Operation implements [core.OperationLog].
func (m *Model) Operation(_ context.Context, id core.ID) (core.Operation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.operation(id)
}

func (m *Model) operation(id core.ID) (core.Operation, error) {
	op, ok := m.operations[id]
	if !ok {
		return op, core.Refuse(core.NotFound, "operation not found")
	}
	return op, nil
}

// OperationList implements [core.OperationLog].
func (m *Model) OperationList(_ context.Context, after core.ID, limit int) (p core.Page[core.Operation], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit = cmp.Or(limit, core.DefaultPage)
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.operations))) {
		switch {
		case after != "" && id >= after:
		case len(p.Items) == limit:
			p.More = true
		default:
			p.Items = append(p.Items, m.operations[id])
		}
	}
	return p, nil
}

// EndOperation implements [core.OperationLog].
func (m *Model) EndOperation(ctx context.Context, now time.Time, id core.ID, why string) (core.Operation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op, err := m.operation(id)
	if err != nil || op.State != core.OperationRunning {
		return op, err
	}
	op.State, op.Error, op.FinishedAt = core.OperationCanceled, why, now
	if why != "" {
		op.State = core.OperationFailed
	}
	m.operations[id] = op
	m.audit(ctx, op.State == core.OperationCanceled)
	return op, nil
}

// DoSlice implements [core.OperationLog].
func (m *Model) DoSlice(_ context.Context, now time.Time, sl core.Slice) (core.Operation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op, err := m.operation(sl.Operation.ID)
	if err != nil || op.State != core.OperationRunning || op.Seq != sl.Operation.Seq {
		return op, err
	}
	if op.StartedAt.IsZero() {
		op.StartedAt = now
	}
	acted, left := 0, 0
	switch op.Action {
	case core.RetryAction:
		acted = m.retrySlice(now, sl.Jobs)
		left = len(sl.Jobs) - acted
	case core.CancelAction:
		acted = m.cancelSlice(now, sl.Jobs)
		left = len(sl.Jobs) - acted
	case core.ReplayAction:
		for _, a := range sl.Arrivals {
			if e, known := m.events[a.Event.ID]; known {
				e.CreatedAt = now
				m.addReplayed(e, a)
				acted++
			}
		}
	}
	op.Seq++
	op.Acted += acted + sl.Acted
	if left == 0 {
		op.Cursor, op.State, op.Error = sl.Cursor, sl.State, sl.Error
		op.Looked, op.Skipped = op.Looked+sl.Looked, op.Skipped+sl.Skipped
		if op.State != core.OperationRunning {
			op.FinishedAt = now
		}
	}
	m.operations[op.ID] = op
	return op, nil
}

// changeable returns the stored jobs among some that an operation may change, in the order of
// their ids.
func (m *Model) changeable(some []core.Job, may func(*core.Job) bool) (jobs []*core.Job) {
	for _, id := range slices.Sorted(slices.Values(ids(some))) {
		if j := m.jobs[id]; j != nil && j.Lane.Workflow() == "" && !j.Lane.Operation() && may(j) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func (m *Model) retrySlice(now time.Time, some []core.Job) int {
	jobs := m.changeable(some, func(j *core.Job) bool { return j.Status == core.Dead || j.Status == core.Canceled })
	if len(some) > 0 {
		clear(m.strays)
	}
	for _, j := range jobs {
		if j.MaxAttempts != core.Unlimited {
			j.MaxAttempts += j.Attempt - j.Earlier
		}
		j.Status, j.Earlier, j.DueAt, j.FinishedAt = core.Available, j.Attempt, now, time.Time{}
		m.reviveInLine(j)
	}
	return len(jobs)
}

func (m *Model) cancelSlice(now time.Time, some []core.Job) int {
	jobs := m.changeable(some, func(j *core.Job) bool {
		return !j.Status.Finished() && (j.Status != core.Running || !j.DueAt.After(now))
	})
	for _, j := range jobs {
		if j.ScheduledAt.IsZero() {
			j.ScheduledAt = j.DueAt
		}
		j.Status, j.Lease, j.DueAt, j.FinishedAt = core.Canceled, "", time.Time{}, now
	}
	m.leaveLines(jobs, now)
	return len(jobs)
}

// FinishedJobs implements [core.OperationLog].
func (m *Model) FinishedJobs(_ context.Context, w core.FinishedWalk) (jobs []core.Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		beyond := j.Lane > w.Lane && !w.Only || j.Lane == w.Lane && j.ID > w.After
		if j.Status == w.Status && beyond && j.ID >= w.From && j.ID < w.Below && j.Lane.Workflow() == "" {
			jobs = append(jobs, *j)
		}
	}
	slices.SortFunc(jobs, func(a, b core.Job) int { return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.ID, b.ID)) })
	return jobs[:min(w.Limit, len(jobs))], nil
}

// KindsOf implements [core.OperationLog].
func (m *Model) KindsOf(_ context.Context, events []core.ID) (map[core.ID]core.EventKind, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := map[core.ID]core.EventKind{}
	for _, id := range events {
		if e, known := m.events[id]; known {
			of[id] = core.EventKind{Source: e.Source, Type: e.Type}
		}
	}
	return of, nil
}

// PurgeOperations implements [core.OperationLog].
func (m *Model) PurgeOperations(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.operations, func(_ core.ID, op core.Operation) bool {
		return !op.FinishedAt.IsZero() && op.FinishedAt.Before(before)
	})
	return nil
}
