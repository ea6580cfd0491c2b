package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Stores with a defect in lines.

// TestBrokenLinesFail is TestBrokenStoresFail for lines.
func TestBrokenLinesFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string
	}{
		{"Accept admits too many", func(m *Model) core.Store { return admitsMany{m} },
			[]string{saysWaits, saysAdmitted + "/a limit of 2", saysLineOrder + "/concurrent callers"}},
		{"Accept places by id", func(m *Model) core.Store { return placesByID{m} }, []string{saysLineOrder + "/ids that run backwards"}},
		{"Accept forgets the place of a job", func(m *Model) core.Store { return placesNone{m} }, []string{saysNext, saysLineOrder}},
		{"Settle forgets to admit", func(m *Model) core.Store { return admitsNone{m} },
			[]string{saysLineOrder, saysNext, saysNext + "/several at once", saysStopsLine + "/not"}},
		{"Settle admits after a dead job", func(m *Model) core.Store { return stopsNone{m} }, []string{saysStopsLine, saysSkip, saysPurgeStopped, saysRetryInLine + "/with its slot"}},
		{"Settle passes on the slots of lost outcomes", func(m *Model) core.Store { return passesLost{m} }, []string{saysNext + "/a lost outcome"}},
		{"Settle gives the slot of a retry away", func(m *Model) core.Store { return retriesLeave{m} },
			[]string{saysRetryKeeps + "/limit 1", saysLineOrder + "/concurrent callers"}},
		{"Settle keeps the slot of a retry", func(m *Model) core.Store { return retriesStay{m} }, []string{saysRetryKeeps + "/limit 2"}},
		{"Settle ignores delays", func(m *Model) core.Store { return admitsEarly{m} }, []string{saysNext}},
		{"Take ignores slots", func(m *Model) core.Store { return takesUnslotted{m} }, []string{saysReenters, saysFront}},
		{"Take puts a retry at the end of its line", func(m *Model) core.Store { return reentersLast{m} }, []string{saysFront}},
		{"AckLined admits none", func(m *Model) core.Store { return acksPlain{m} }, []string{saysAckLined}},
		{"Retry starts a new place", func(m *Model) core.Store { return retriesAnew{m} }, []string{saysRetryInLine + "/with its slot"}},
		{"Retry passes by the line", func(m *Model) core.Store { return retriesFirst{m} }, []string{saysRetryInLine + "/at the end"}},
		{"Drain leaves slots", func(m *Model) core.Store { return drainsJobs{m} }, []string{saysDrainLines}},
		{"Skip skips every job", func(m *Model) core.Store { return skipsAll{m} }, []string{saysSkipOther}},
		{"Skip completes the job", func(m *Model) core.Store { return skipsAndCompletes{m} }, []string{saysSkipDead}},
		{"Fill fills none", func(m *Model) core.Store { return fillsNone{m} }, []string{saysFill, saysFillEnded, saysFillSome}},
		{"Fill starts stopped lines", func(m *Model) core.Store { return fillsStopped{m} }, []string{saysFillEnded}},
		{"LinedLanes returns one lane", func(m *Model) core.Store { return firstLined{m} }, []string{saysLinedLanes}},
		{"Lines lists all lines", func(m *Model) core.Store { return listsAll{m} }, []string{saysLines, saysLinesLimit}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c := find(t, name)
				failed := false
				for i := 0; i < 20 && !failed; i++ {
					failed = failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{Slow: true})) }) != ""
				}
				if !failed {
					t.Errorf("the check %q passes a store whose %s", name, tc.breaks)
				}
			}
		})
	}
}

// locked calls do with the model's lock.
func (m *Model) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// admitsMany adds 1 to each limit.
type admitsMany struct{ *Model }

func (s admitsMany) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	a.Jobs = slices.Clone(a.Jobs)
	for i := range a.Jobs {
		a.Jobs[i].Line.Limit++
	}
	return s.Model.Accept(ctx, a)
}

// placesByID keeps the places of lines in the order of ids.
type placesByID struct{ *Model }

func (s placesByID) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	r, err := s.Model.Accept(ctx, a)
	s.locked(func() {
		for _, l := range s.lines {
			slices.Sort(l.places)
		}
	})
	return r, err
}

// placesNone stores waiting jobs without a place.
type placesNone struct{ *Model }

func (s placesNone) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	r, err := s.Model.Accept(ctx, a)
	s.locked(func() {
		for _, l := range s.lines {
			l.places = nil
		}
	})
	return r, err
}

// settleChanged changes outcomes before they are settled.
func (m *Model) settleChanged(ctx context.Context, outcomes []core.Outcome, change func(*core.Outcome)) (core.Settlement, error) {
	outcomes = slices.Clone(outcomes)
	for i := range outcomes {
		change(&outcomes[i])
	}
	return m.Settle(ctx, outcomes...)
}

// admitsNone ignores the lines of outcomes.
type admitsNone struct{ *Model }

func (s admitsNone) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	return s.settleChanged(ctx, outcomes, func(o *core.Outcome) { o.Line = core.Line{} })
}

// stopsNone goes on after dead jobs.
type stopsNone struct{ *Model }

func (s stopsNone) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	return s.settleChanged(ctx, outcomes, func(o *core.Outcome) { o.StopsLine = false })
}

// passesLost passes on the slots of outcomes whose leases are lost.
type passesLost struct{ *Model }

func (s passesLost) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	after, err := s.Model.Settle(ctx, outcomes...)
	s.locked(func() {
		for _, o := range outcomes {
			if slices.Contains(after.Lost, o.JobID) && o.Line.Key != "" {
				s.leave(s.jobs[o.JobID], o.Line.Limit, o.At)
			}
		}
	})
	return after, err
}

// retriesLeave lets each retry leave its line.
type retriesLeave struct{ *Model }

func (s retriesLeave) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	return s.settleChanged(ctx, outcomes, func(o *core.Outcome) { o.Line.Limit = max(o.Line.Limit, 2) })
}

// retriesStay lets each retry keep its slot.
type retriesStay struct{ *Model }

func (s retriesStay) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	return s.settleChanged(ctx, outcomes, func(o *core.Outcome) { o.Line.Limit = min(o.Line.Limit, 1) })
}

// admitsEarly makes admitted jobs due at once.
type admitsEarly struct{ *Model }

func (s admitsEarly) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	s.locked(func() {
		for _, j := range s.jobs {
			if j.Status == core.Waiting {
				j.ScheduledAt = time.Time{}
			}
		}
	})
	return s.Model.Settle(ctx, outcomes...)
}

// takesUnslotted takes jobs that gave their slots away.
type takesUnslotted struct{ *Model }

func (s takesUnslotted) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	quotas = slices.Clone(quotas)
	for i := range quotas {
		quotas[i].Lines = 0
	}
	return s.Model.Take(ctx, now, quotas)
}

// reentersLast moves a job that enters its line again to its end.
type reentersLast struct{ *Model }

func (s reentersLast) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	taken, err := s.Model.Take(ctx, now, quotas)
	s.locked(func() {
		for _, l := range s.lines {
			if len(l.places) > 1 && s.jobs[l.places[0]].Attempt > 0 {
				l.places = append(l.places[1:], l.places[0])
			}
		}
	})
	return taken, err
}

// acksPlain acks as in a lane without lines.
type acksPlain struct{ *Model }

func (s acksPlain) AckLined(ctx context.Context, now time.Time, lane core.Lane, _ int, refs []core.Ref) (int, error) {
	return s.Ack(ctx, now, lane, refs)
}

// retriesAnew lets a retried job that stops its line enter at the end.
type retriesAnew struct{ *Model }

func (s retriesAnew) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	_, _ = s.Skip(ctx, now, id)
	return s.Model.Retry(ctx, now, id, lane)
}

// retriesFirst makes retried jobs due at once, also if their line has no free slot.
type retriesFirst struct{ *Model }

func (s retriesFirst) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	n, err := s.Model.Retry(ctx, now, id, lane)
	s.locked(func() {
		if j := s.jobs[id]; j != nil && j.Status == core.Waiting {
			s.admit(j, now)
		}
	})
	return n, err
}

// drainsJobs leaves the slots of deleted jobs.
type drainsJobs struct{ *Model }

func (s drainsJobs) Drain(_ context.Context, lane core.Lane, below core.ID, limit int) (n int, err error) {
	s.locked(func() {
		for id, j := range s.jobs {
			if j.Lane == lane && id < below && n < limit {
				delete(s.jobs, id)
				n++
			}
		}
	})
	return n, nil
}

// skipsAll passes on the slot of any job.
type skipsAll struct{ *Model }

func (s skipsAll) Skip(_ context.Context, now time.Time, id core.ID) (skipped bool, err error) {
	s.locked(func() { skipped = s.leave(s.jobs[id], 0, now) })
	return skipped, nil
}

// skipsAndCompletes completes skipped jobs.
type skipsAndCompletes struct{ *Model }

func (s skipsAndCompletes) Skip(ctx context.Context, now time.Time, id core.ID) (bool, error) {
	skipped, err := s.Model.Skip(ctx, now, id)
	if skipped {
		s.locked(func() { s.jobs[id].Status = core.Completed })
	}
	return skipped, err
}

// fillsNone fills no line.
type fillsNone struct{ *Model }

func (s fillsNone) Fill(context.Context, time.Time, core.Lane, int, string) (string, error) {
	return "", nil
}

// fillsStopped passes on the slots of dead jobs that stop their lines.
type fillsStopped struct{ *Model }

func (s fillsStopped) Fill(ctx context.Context, now time.Time, lane core.Lane, limit int, after string) (string, error) {
	s.locked(func() {
		for _, l := range s.lines {
			clear(l.stopped)
		}
	})
	return s.Model.Fill(ctx, now, lane, limit, after)
}

// firstLined returns the first of the lanes with lines.
type firstLined struct{ *Model }

func (s firstLined) LinedLanes(ctx context.Context) ([]core.Lane, error) {
	lanes, err := s.Model.LinedLanes(ctx)
	return lanes[:min(1, len(lanes))], err
}

// listsAll ignores the key after which a page begins, and says that there are no further pages.
type listsAll struct{ *Model }

func (s listsAll) Lines(ctx context.Context, lane core.Lane, _ string, limit int) (core.Page[core.LineState], error) {
	page, err := s.Model.Lines(ctx, lane, "", limit)
	page.More = false
	return page, err
}
