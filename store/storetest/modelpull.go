package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The part of the [Model] with the calls of queue consumers. All of them begin with refJobs.

// refJobs returns the jobs that refs mean, by id. Each job appears once, in the order of ids. The
// caller holds the lock.
func (m *Model) refJobs(lane core.Lane, refs []core.Ref) []*core.Job {
	meant := map[core.ID]*core.Job{}
	for _, ref := range refs {
		j, ok := m.jobs[ref.ID]
		if ok && j.Lane == lane && j.Status == core.Running && (ref.Lease == "" || ref.Lease == j.Lease) {
			meant[j.ID] = j
		}
	}
	var jobs []*core.Job
	for _, id := range slices.Sorted(maps.Keys(meant)) {
		jobs = append(jobs, meant[id])
	}
	return jobs
}

// Ack implements [core.Counter].
func (m *Model) Ack(_ context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.refJobs(lane, refs)
	for _, j := range jobs {
		j.Status, j.Lease, j.LastError, j.DueAt, j.FinishedAt = core.Completed, "", "", time.Time{}, now
	}
	return len(jobs), nil
}

// Extend implements [core.Counter].
func (m *Model) Extend(_ context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.refJobs(lane, refs)
	for _, j := range jobs {
		j.DueAt = end
	}
	return len(jobs), nil
}

// Held implements [core.Counter].
func (m *Model) Held(_ context.Context, lane core.Lane, refs []core.Ref) ([]core.TakenJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.withEvents(m.refJobs(lane, refs)), nil
}

// withEvents returns jobs as taken jobs, without situations. The caller holds the lock.
func (m *Model) withEvents(jobs []*core.Job) (taken []core.TakenJob) {
	for _, j := range jobs {
		taken = append(taken, core.TakenJob{Job: *j, Event: m.events[j.EventID]})
	}
	return taken
}

// Lapsed implements [core.Worklist]. The limit holds for all lanes together, in the order in which
// they are given.
func (m *Model) Lapsed(_ context.Context, now time.Time, lanes []core.Lane, limit int) ([]core.TakenJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var over []*core.Job
	for _, l := range lanes {
		over = append(over, slices.DeleteFunc(m.due(now, core.Quota{Lane: l, N: len(m.jobs)}), func(j *core.Job) bool {
			return j.Status != core.Running || j.Attempt < j.MaxAttempts
		})...)
	}
	return m.withEvents(over[:min(max(limit, 0), len(over))]), nil
}

// Tallies implements [core.Ledger].
func (m *Model) Tallies(_ context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tallies := map[core.Lane]core.Tally{}
	for _, l := range lanes {
		tallies[l] = core.Tally{}
	}
	for _, j := range m.jobs {
		if t, asked := tallies[j.Lane]; asked && !j.Status.Finished() {
			before, at := t, now
			parked := m.isParked(j)
			if parked && j.DueAt.After(now) {
				at = j.DueAt // the clock went back; a parked job counts as one whose time has come
			}
			if t = tallied(t, j, at); parked { // it waits for its source, not only for its time
				t.OldestDue, t.Scheduled = before.OldestDue, before.Scheduled
			}
			tallies[j.Lane] = t
		}
	}
	for n, line := range m.lines {
		if t, asked := tallies[n.lane]; asked && !line.state(n.key).StoppedAt.IsZero() {
			t.Stopped++
			tallies[n.lane] = t
		}
	}
	return tallies, nil
}

// tallied returns the tally with one more unfinished job. A job whose lease is over counts as pending
// and tried before.
func tallied(t core.Tally, j *core.Job, now time.Time) core.Tally {
	if j.Status == core.Running && j.DueAt.After(now) {
		t.Processing++
	} else {
		t.Pending++
		switch shownAt(j, now) {
		case core.Scheduled:
			t.Scheduled++
		case core.Retryable:
			t.Retryable++
		case core.Waiting:
			t.Waiting++
			return t
		}
	}
	if !j.DueAt.After(now) && (t.OldestDue.IsZero() || j.DueAt.Before(t.OldestDue)) {
		t.OldestDue = j.DueAt
	}
	return t
}

// Ended implements [core.Ledger].
func (m *Model) Ended(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := map[core.Lane]core.Ended{}
	for _, l := range lanes {
		ended[l] = core.Ended{}
	}
	for _, j := range m.jobs {
		e, asked := ended[j.Lane]
		switch {
		case !asked:
			continue
		case j.Status == core.Dead:
			e.Dead++
		case j.Status == core.Canceled:
			e.Canceled++
		}
		ended[j.Lane] = e
	}
	return ended, nil
}

// Peek implements [core.Ledger]. It returns the jobs that a Take would return, and changes
// nothing.
func (m *Model) Peek(_ context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	due := slices.DeleteFunc(m.due(now, core.Quota{Lane: lane, N: len(m.jobs)}), func(j *core.Job) bool { return m.heldSource(j, now) })
	jobs := m.withEvents(due[:min(limit, len(due))])
	for i := range jobs {
		jobs[i].Status = shownAt(&jobs[i].Job, now)
	}
	return jobs[:fitting(jobs, core.MaxRead)], nil
}

// DeadLetters implements [core.Ledger].
func (m *Model) DeadLetters(_ context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	page := list(m.jobs, after, limit, func(j *core.Job) (core.TakenJob, bool) {
		return core.TakenJob{Job: *j, Event: m.events[j.EventID]}, j.Status == core.Dead && j.Lane == lane
	})
	if n := fitting(page.Items, core.MaxRead); n < len(page.Items) {
		page.Items, page.More = page.Items[:n], true
	}
	return page, nil
}

// Drain implements [core.Upkeep]. Which jobs a limit leaves is open, so it follows the order of
// the map.
func (m *Model) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (n int, err error) {
	defer func() { m.audit(ctx, n > 0) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []*core.Job
	for id, j := range m.jobs {
		if j.Lane == lane && id < below && j.Status != core.Completed && j.Status != core.Canceled && n < limit {
			delete(m.jobs, id)
			delete(m.attempts, id)
			gone = append(gone, j)
			n++
		}
	}
	m.leaveLines(gone, m.clock())
	return n, nil
}
