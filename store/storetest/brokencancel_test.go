package storetest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestBrokenCancelsFail requires that checks fail on stores that break one sentence about Cancel
// each. See broken_test.go.
func TestBrokenCancelsFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string
	}{
		{"Cancel ends jobs of other events", func(m *Model) core.Store { return cancelsAll{m} }, []string{saysCancel}},
		{"Cancel counts finished jobs as canceled", func(m *Model) core.Store { return cancelsCounted{m} }, []string{saysCancel, saysCancelAgain}},
		{"Cancel leaves the due time", func(m *Model) core.Store { return cancelsDue{m} }, []string{saysCancelWaits, saysCancel + "/with keys, and purged later"}},
		{"Cancel leaves leases that are over", func(m *Model) core.Store { return cancelsUntaken{m} },
			[]string{saysCancelWaits, saysCancelWaits + "/at the end of the lease", saysCancelLease}},
		{"Cancel ends running jobs", func(m *Model) core.Store { return cancelsRunning{m} },
			[]string{saysCancelHeld, saysCancelWaits + "/at the end of the lease"}},
		{"Cancel ends steps of workflows", func(m *Model) core.Store { return cancelsSteps{m} }, []string{saysCancelRuns}},
		{"Cancel looks before it writes", func(m *Model) core.Store { return cancelsLate{m} },
			[]string{saysCancelRace, saysCancelRace + "/under leases that are over"}},
		{"Cancel keeps leases valid", func(m *Model) core.Store { return cancelsHeld{m} }, []string{saysCancelLease}},
		{"Cancel counts nothing the second time", func(m *Model) core.Store { return &cancelsOnce{Model: m} },
			[]string{saysCancelAgain, saysCancelRace + "/several callers"}},
		{"Cancel accepts unknown events", func(m *Model) core.Store { return cancelsUnknown{m} }, []string{saysCancelNone}},
		{"Retry leaves canceled jobs", func(m *Model) core.Store { return retriesDead{m} },
			[]string{saysRetryCanceled, saysRetryCanceled + "/after attempts"}},
		{"Retry of all revives canceled jobs", func(m *Model) core.Store { return retriesCanceled{m} }, []string{saysRetryOther + "/canceled jobs"}},
		{"Drain deletes canceled jobs", func(m *Model) core.Store { return drainsCanceled{m} }, []string{saysDrain + "/canceled jobs stay"}},
		{"Ended counts canceled jobs as dead", func(m *Model) core.Store { return endsCanceled{m} }, []string{saysEndedJobs + "/canceled"}},
		{"Completed counts canceled jobs", func(m *Model) core.Store { return completesCanceled{m} }, []string{saysCompleted + "/beside canceled ones"}},
		{"Jobs shows canceled jobs as dead", func(m *Model) core.Store { return listsCanceled{m} }, []string{saysJobs + "/canceled, beyond the newest jobs"}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c, failed := find(t, name), false
				for i := 0; i < 20 && !failed; i++ {
					failed = failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{})) }) != ""
				}
				if !failed {
					t.Errorf("the check %q passes a store whose %s", name, tc.breaks)
				}
			}
		})
	}
}

// cancelsAll cancels all waiting jobs.
type cancelsAll struct{ *Model }

func (s cancelsAll) Cancel(ctx context.Context, now time.Time, event core.ID) (c core.Cancellation, err error) {
	for id := range s.events {
		n, err := s.Model.Cancel(ctx, now, id)
		if id == event {
			c = n
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// cancelsCounted counts each finished job as canceled.
type cancelsCounted struct{ *Model }

func (s cancelsCounted) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	c, err := s.Model.Cancel(ctx, now, event)
	c.Canceled, c.Finished = c.Canceled+c.Finished, 0
	return c, err
}

// withCanceled applies do to each job that a Cancel canceled now.
func withCanceled(m *Model, now time.Time, event core.ID, do func(*core.Job)) (core.Cancellation, error) {
	c, err := m.Cancel(context.Background(), now, event)
	_, _ = m.change(func(j *core.Job) bool {
		return j.EventID == event && j.Status == core.Canceled && j.FinishedAt.Equal(now)
	}, do)
	return c, err
}

// cancelsDue leaves canceled jobs due.
type cancelsDue struct{ *Model }

func (s cancelsDue) Cancel(_ context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	return withCanceled(s.Model, now, event, func(j *core.Job) { j.DueAt, j.FinishedAt = j.ScheduledAt, time.Time{} })
}

// cancelsUntaken treats each running job as held.
type cancelsUntaken struct{ *Model }

func (s cancelsUntaken) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	over := map[core.ID]time.Time{}
	_, _ = s.change(func(j *core.Job) bool { return j.Status == core.Running && !j.DueAt.After(now) }, func(j *core.Job) {
		over[j.ID], j.DueAt = j.DueAt, now.Add(time.Hour)
	})
	c, err := s.Model.Cancel(ctx, now, event)
	_, _ = s.change(func(j *core.Job) bool { return !over[j.ID].IsZero() }, func(j *core.Job) { j.DueAt = over[j.ID] })
	return c, err
}

// cancelsRunning treats each lease as over.
type cancelsRunning struct{ *Model }

func (s cancelsRunning) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	_, _ = s.change(func(j *core.Job) bool { return j.EventID == event && j.Status == core.Running }, func(j *core.Job) { j.DueAt = now })
	return s.Model.Cancel(ctx, now, event)
}

// cancelsSteps cancels waiting jobs of workflows like others.
type cancelsSteps struct{ *Model }

func (s cancelsSteps) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	c, err := s.Model.Cancel(ctx, now, event)
	n, _ := s.change(func(j *core.Job) bool {
		return j.EventID == event && j.Lane.Workflow() != "" && !j.Status.Finished() && !j.DueAt.After(now)
	}, func(j *core.Job) { j.Status, j.Lease, j.DueAt, j.FinishedAt = core.Canceled, "", time.Time{}, now })
	c.Canceled += n
	return c, err
}

// cancelsLate looks which jobs wait, and cancels them after other calls may have taken them.
type cancelsLate struct{ *Model }

func (s cancelsLate) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	waiting := map[core.ID]bool{}
	_, _ = s.change(func(j *core.Job) bool {
		return j.EventID == event && !j.Status.Finished() && (j.Status != core.Running || !j.DueAt.After(now))
	}, func(j *core.Job) { waiting[j.ID] = true })
	runtime.Gosched()
	_, _ = s.change(func(j *core.Job) bool { return waiting[j.ID] }, func(j *core.Job) { j.Status, j.DueAt = core.Available, now })
	return s.Model.Cancel(ctx, now, event)
}

// cancelsHeld lets the last holder of a canceled job settle it.
type cancelsHeld struct{ *Model }

func (s cancelsHeld) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for _, o := range outcomes {
		_, _ = s.change(func(j *core.Job) bool { return j.ID == o.JobID && j.Status == core.Canceled }, func(j *core.Job) {
			j.Status, j.Lease = core.Running, o.Lease
		})
	}
	return s.Model.Settle(ctx, outcomes...)
}

// cancelsOnce counts a job for the first caller only.
type cancelsOnce struct {
	*Model
	seen map[core.ID]bool
}

func (s *cancelsOnce) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	c, err := s.Model.Cancel(ctx, now, event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[event] {
		return core.Cancellation{Finished: c.Canceled + c.Finished, Running: c.Running}, err
	}
	if s.seen == nil {
		s.seen = map[core.ID]bool{}
	}
	s.seen[event] = true
	return c, err
}

// cancelsUnknown finds nothing to cancel of an unknown event.
type cancelsUnknown struct{ *Model }

func (s cancelsUnknown) Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error) {
	c, _ := s.Model.Cancel(ctx, now, event)
	return c, nil
}

// retriesDead retries no canceled job.
type retriesDead struct{ *Model }

func (s retriesDead) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	if j, err := s.Model.Job(ctx, id); err == nil && j.Status == core.Canceled {
		return 0, nil
	}
	return s.Model.Retry(ctx, now, id, lane)
}

// retriesCanceled retries canceled jobs beside dead ones.
type retriesCanceled struct{ *Model }

func (s retriesCanceled) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	_, _ = s.change(func(j *core.Job) bool { return j.Status == core.Canceled }, func(j *core.Job) { j.Status = core.Dead })
	return s.Model.Retry(ctx, now, id, lane)
}

// drainsCanceled deletes canceled jobs as well.
type drainsCanceled struct{ *Model }

func (s drainsCanceled) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	_, _ = s.change(func(j *core.Job) bool { return j.Status == core.Canceled }, func(j *core.Job) { j.Status = core.Dead })
	return s.Model.Drain(ctx, lane, below, limit)
}

// endsCanceled counts canceled jobs as dead.
type endsCanceled struct{ *Model }

func (s endsCanceled) Ended(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error) {
	ended, err := s.Model.Ended(ctx, lanes)
	for l, e := range ended {
		ended[l] = core.Ended{Dead: e.Dead + e.Canceled}
	}
	return ended, err
}

// completesCanceled counts each finished job that is not dead.
type completesCanceled struct{ *Model }

func (s completesCanceled) Completed(context.Context) (int, error) {
	return s.change(func(j *core.Job) bool { return j.Status == core.Completed || j.Status == core.Canceled }, func(*core.Job) {})
}

// listsCanceled lists canceled jobs among the dead.
type listsCanceled struct{ *Model }

func (s listsCanceled) Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	if f.Status == core.Canceled {
		f.Status = core.Dead
	}
	return s.Model.Jobs(ctx, f)
}
