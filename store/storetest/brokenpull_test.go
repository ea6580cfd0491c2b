package storetest

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Stores that break one sentence about queues each. broken_test.go lists them.

// anyLease returns the refs without their leases.
func anyLease(refs []core.Ref) []core.Ref {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Lease = ""
	}
	return refs
}

// anyLane returns the lane of the first job that refs name, or lane if they name none.
func (m *Model) anyLane(lane core.Lane, refs []core.Ref) core.Lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range refs {
		if j, ok := m.jobs[ref.ID]; ok {
			return j.Lane
		}
	}
	return lane
}

// acksAny acks a job under a stale lease.
type acksAny struct{ *Model }

func (s acksAny) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	return s.Model.Ack(ctx, now, lane, anyLease(refs))
}

// acksElsewhere acks jobs of any lane.
type acksElsewhere struct{ *Model }

func (s acksElsewhere) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	return s.Model.Ack(ctx, now, s.anyLane(lane, refs), refs)
}

// acksResting also completes jobs that do not run.
type acksResting struct{ *Model }

func (s acksResting) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	n, err := s.Model.Ack(ctx, now, lane, refs)
	more, _ := s.change(func(j *core.Job) bool {
		return j.Lane == lane && j.Lease == "" && slices.Contains(refs, byID(j.ID))
	}, func(j *core.Job) { j.Status, j.DueAt, j.FinishedAt = core.Completed, time.Time{}, now })
	return n + more, err
}

// acksTwice counts each ref that names a held job, so two refs to one job count twice.
type acksTwice struct{ *Model }

func (s acksTwice) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	n, err := s.Model.Ack(ctx, now, lane, refs)
	return min(2*n, len(refs)), err
}

// acksLate counts in one call and writes in another, so that other calls come in between.
type acksLate struct{ *Model }

func (s acksLate) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	held, err := s.Model.Held(ctx, lane, refs)
	runtime.Gosched()
	_, _ = s.Model.Ack(ctx, now, lane, refs)
	return len(held), err
}

// acksTogether counts nothing if another caller acks at the same time, as a store whose callers share
// a statement and only learn how many jobs it changed for all of them.
type acksTogether struct {
	*Model
	callers *atomic.Int64
}

func (s acksTogether) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	s.callers.Add(1)
	defer s.callers.Add(-1)
	runtime.Gosched()
	n, err := s.Model.Ack(ctx, now, lane, refs)
	if n < len(refs) && s.callers.Load() > 1 {
		n = 0
	}
	return n, err
}

// acksFailed keeps the error of an earlier attempt on an acked job.
type acksFailed struct{ *Model }

func (s acksFailed) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	failed := map[core.ID]string{}
	for _, ref := range refs {
		if j, ok := s.jobs[ref.ID]; ok {
			failed[ref.ID] = j.LastError
		}
	}
	n, err := s.Model.Ack(ctx, now, lane, refs)
	for id, text := range failed {
		s.jobs[id].LastError = text
	}
	return n, err
}

// extendsAny extends a job under a stale lease.
type extendsAny struct{ *Model }

func (s extendsAny) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	return s.Model.Extend(ctx, end, lane, anyLease(refs))
}

// extendsAnew replaces the lease of each job that it extends.
type extendsAnew struct{ *Model }

func (s extendsAnew) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	for _, j := range s.refJobs(lane, refs) {
		j.Lease += "'"
	}
	return s.Model.Extend(ctx, end, lane, anyLease(refs))
}

// extendsLater moves the ends of leases only forward.
type extendsLater struct{ *Model }

func (s extendsLater) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	jobs := s.refJobs(lane, refs)
	for _, j := range jobs {
		if end.After(j.DueAt) {
			j.DueAt = end
		}
	}
	return len(jobs), nil
}

// extendsChanges counts only the jobs whose lease end changes, as some databases count rows.
type extendsChanges struct{ *Model }

func (s extendsChanges) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (n int, err error) {
	for _, j := range s.refJobs(lane, refs) {
		if !j.DueAt.Equal(end) {
			n++
		}
	}
	_, err = s.Model.Extend(ctx, end, lane, refs)
	return n, err
}

// heldUnsorted returns a job for each ref, in the order of refs.
type heldUnsorted struct{ *Model }

func (s heldUnsorted) Held(ctx context.Context, lane core.Lane, refs []core.Ref) ([]core.TakenJob, error) {
	var jobs []core.TakenJob
	for _, ref := range refs { // in the order of refs
		held, err := s.Model.Held(ctx, lane, []core.Ref{ref})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, held...)
	}
	return jobs, nil
}

// lapsesEarly treats a lease as over a millisecond before its end.
type lapsesEarly struct{ *Model }

func (s lapsesEarly) Lapsed(ctx context.Context, now time.Time, lanes []core.Lane, limit int) ([]core.TakenJob, error) {
	return s.Model.Lapsed(ctx, now.Add(time.Millisecond), lanes, limit)
}

// lapsesAll returns jobs that have attempts left.
type lapsesAll struct{ *Model }

func (s lapsesAll) Lapsed(_ context.Context, now time.Time, lanes []core.Lane, limit int) (jobs []core.TakenJob, err error) {
	for _, l := range lanes {
		for _, j := range s.due(now, core.Quota{Lane: l, N: limit}) {
			if j.Status == core.Running {
				jobs = append(jobs, s.withEvents([]*core.Job{j})...)
			}
		}
	}
	return jobs, nil
}

// lapsesEachLane applies the limit to each lane.
type lapsesEachLane struct{ *Model }

func (s lapsesEachLane) Lapsed(ctx context.Context, now time.Time, lanes []core.Lane, limit int) (jobs []core.TakenJob, err error) {
	for _, l := range lanes {
		some, err := s.Model.Lapsed(ctx, now, []core.Lane{l}, limit)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, some...)
	}
	return jobs, nil
}

// talliesRunning counts jobs with a lease that is over as running.
type talliesRunning struct{ *Model }

func (s talliesRunning) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	return s.Model.Tallies(ctx, now.Add(-1000*time.Hour), lanes)
}

// talliesSome leaves out lanes without jobs.
type talliesSome struct{ *Model }

func (s talliesSome) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	tallies, err := s.Model.Tallies(ctx, now, lanes)
	for l, t := range tallies {
		if t == (core.Tally{}) {
			delete(tallies, l)
		}
	}
	return tallies, err
}

// peeksAndTakes leases the jobs that it shows.
type peeksAndTakes struct{ *Model }

func (s peeksAndTakes) Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	return s.Model.Take(ctx, now, []core.Quota{{Lane: lane, N: limit, Hold: leaseTime}})
}

// peeksStored returns jobs as they are stored, not as they are to be shown.
type peeksStored struct{ *Model }

func (s peeksStored) Peek(_ context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	return s.withEvents(s.due(now, core.Quota{Lane: lane, N: limit})), nil
}

// buriesAnywhere lists the dead jobs of all lanes.
type buriesAnywhere struct{ *Model }

func (s buriesAnywhere) DeadLetters(_ context.Context, _ core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	return list(s.jobs, after, limit, func(j *core.Job) (core.TakenJob, bool) {
		return core.TakenJob{Job: *j, Event: s.events[j.EventID]}, j.Status == core.Dead
	}), nil
}

// buriesLarge has no bound for the bytes of a page.
type buriesLarge struct{ *Model }

func (s buriesLarge) DeadLetters(_ context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	return list(s.jobs, after, limit, func(j *core.Job) (core.TakenJob, bool) {
		return core.TakenJob{Job: *j, Event: s.events[j.EventID]}, j.Status == core.Dead && j.Lane == lane
	}), nil
}

// peeksLarge has no bound for the bytes of an answer.
type peeksLarge struct{ *Model }

func (s peeksLarge) Peek(_ context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	return s.withEvents(s.due(now, core.Quota{Lane: lane, N: limit})), nil
}

// takesLarge ignores Quota.Bytes.
type takesLarge struct{ *Model }

func (s takesLarge) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	quotas = slices.Clone(quotas)
	for i := range quotas {
		quotas[i].Bytes = 0
	}
	return s.Model.Take(ctx, now, quotas)
}

// drains deletes up to limit jobs that match, and calls also on each.
func (m *Model) drains(limit int, match func(*core.Job) bool, also func(*core.Job)) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, j := range m.jobs {
		if match(j) && n < limit {
			delete(m.jobs, id)
			also(j)
			n++
		}
	}
	return n, nil
}

// forgetAttempts deletes the attempts of a job.
func (m *Model) forgetAttempts(j *core.Job) { delete(m.attempts, j.ID) }

// drainsCompleted also deletes completed jobs, which are a record of finished work.
type drainsCompleted struct{ *Model }

func (s drainsCompleted) Drain(_ context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	return s.drains(limit, func(j *core.Job) bool { return j.Lane == lane && j.ID < below }, s.forgetAttempts)
}

// drainsTries leaves the attempts of deleted jobs, which no call would ever find.
type drainsTries struct{ *Model }

func (s drainsTries) Drain(_ context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	return s.drains(limit, func(j *core.Job) bool {
		return j.Lane == lane && j.ID < below && j.Status != core.Completed
	}, func(*core.Job) {})
}

// drainsNew deletes jobs that arrived after the operator looked.
type drainsNew struct{ *Model }

func (s drainsNew) Drain(ctx context.Context, lane core.Lane, _ core.ID, limit int) (int, error) {
	return s.Model.Drain(ctx, lane, newestID, limit)
}

// drainsWaiting leaves running and dead jobs.
type drainsWaiting struct{ *Model }

func (s drainsWaiting) Drain(_ context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	return s.drains(limit, func(j *core.Job) bool {
		return j.Lane == lane && j.ID < below && !j.Status.Finished() && j.Status != core.Running
	}, s.forgetAttempts)
}

// drainsPicked counts the jobs that it selected, although other calls may have deleted or
// completed some of them before it did.
type drainsPicked struct{ *Model }

func (s drainsPicked) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	s.mu.Lock()
	var picks []core.ID
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		if j := s.jobs[id]; j.Lane == lane && id < below && j.Status != core.Completed && len(picks) < limit {
			picks = append(picks, id)
		}
	}
	s.mu.Unlock()
	for _, id := range picks {
		runtime.Gosched()
		_, _ = s.drains(1, func(j *core.Job) bool { return j.ID == id && j.Status != core.Completed }, s.forgetAttempts)
	}
	return len(picks), nil
}

// drainsEvents deletes the events of the jobs, with their delivery ids.
type drainsEvents struct{ *Model }

func (s drainsEvents) Drain(_ context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	return s.drains(limit, func(j *core.Job) bool {
		return j.Lane == lane && j.ID < below && j.Status != core.Completed
	}, func(j *core.Job) { delete(s.events, j.EventID); s.forgetAttempts(j) })
}
