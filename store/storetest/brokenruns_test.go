package storetest

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestBrokenRunsFail requires that checks fail on stores that break one sentence about runs each.
// See broken_test.go.
func TestBrokenRunsFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string // checks, by name
	}{
		{"Transit ignores Seq", func(m *Model) core.Store { return transitsAny{m} },
			[]string{saysAllOrNothing + "/stale, nothing changes", saysAllOrNothing + "/ahead, nothing changes", saysOneForSeq + "/concurrently"}},
		{"Transit looks before it writes", func(m *Model) core.Store { return transitsLate{m} },
			[]string{saysOneForSeq + "/concurrently", saysOneForSeq + "/items of a map join"}},
		{"Transit makes a repeated transition again", func(m *Model) core.Store { return transitsTwice{m} }, []string{saysTransitAgain + "/immediately", saysTransitAgain + "/later"}},
		{"Transit reports a repeated transition as lost", func(m *Model) core.Store { return transitsForgets{m} },
			[]string{saysTransitAgain + "/immediately", saysTransitAgain + "/concurrent callers"}},
		{"Transit knows the newest mark only", func(m *Model) core.Store { return transitsNewest{m} }, []string{saysTransitAgain + "/later"}},
		{"Transit makes all or none", func(m *Model) core.Store { return transitsTogether{m} }, []string{saysTransit, saysAllOrNothing + "/one of two is stale"}},
		{"Transit stores the steps of a lost transition", func(m *Model) core.Store { return transitsParts{m, func(u *core.Transition) { u.Jobs = nil }} },
			[]string{saysAllOrNothing + "/stale, nothing changes"}},
		{"Transit changes the jobs of a lost transition", func(m *Model) core.Store { return losersJobs{m} },
			[]string{saysAllOrNothing + "/stale, nothing changes", saysAllOrNothing + "/one of two is stale"}},
		{"Transit stores the alert of a lost transition", func(m *Model) core.Store { return losersRise{m} },
			[]string{saysAllOrNothing + "/one of two is stale", saysOneForSeq + "/concurrently"}},
		{"Transit respects leases", func(m *Model) core.Store { return transitsHeld{m} },
			[]string{saysAnyLease + "/job not taken", saysAnyLease + "/job held by another worker"}},
		{"Transit leaves leases", func(m *Model) core.Store { return transitsLeased{m} },
			[]string{saysAnyLease + "/then a release", saysAnyLease + "/then an outcome"}},
		{"Transit drops attempts", func(m *Model) core.Store {
			return transitsLess{m, func(u *core.Transition) { u.Attempts = nil }}
		}, []string{saysAllOrNothing, saysAnyLease + "/job held by another worker"}},
		{"Transit drops tokens", func(m *Model) core.Store {
			return transitsLess{m, func(u *core.Transition) { u.Tokens = nil }}
		}, []string{saysAllOrNothing, saysAwaited}},
		{"Transit drops receipts", func(m *Model) core.Store {
			return transitsLess{m, func(u *core.Transition) { u.Receipts = nil }}
		}, []string{saysRecorded, saysRecorded + "/only if its transition is made", saysRecorded + "/until its run is purged"}},
		{"Transit stores the receipts of a lost transition", func(m *Model) core.Store { return losersRecord{m} },
			[]string{saysRecorded + "/only if its transition is made"}},
		{"Transit disarms nothing", func(m *Model) core.Store {
			return transitsLess{m, func(u *core.Transition) { u.Disarm = nil }}
		}, []string{saysInvalidToken + "/disarmed", saysAllOrNothing + "/in sequence"}},
		{"Transit drops later entries", func(m *Model) core.Store {
			return transitsLess{m, func(u *core.Transition) { u.Entries = u.Entries[:1] }}
		}, []string{saysAllOrNothing, saysHistory}},
		{"Transit takes no job", func(m *Model) core.Store {
			return transitsLess{m, func(u *core.Transition) { u.Take = core.Taking{} }}
		}, []string{saysTakeNext, saysTakeNext + "/and goes on to the next ones"}},
		{"Transit takes jobs in spite of holds", func(m *Model) core.Store { return transitsUnheld{m} },
			[]string{saysTakeNext + "/the lane is held or was", saysTakeNext + "/the source is held"}},
		{"Transit says that it takes each job", func(m *Model) core.Store { return transitsSaying{m} },
			[]string{saysTakeNext + "/sent again", saysTakeNext + "/the lane is held or was"}},
		{"Transit keeps cleared times", func(m *Model) core.Store { return transitsTimes{m} }, []string{saysAllOrNothing + "/in sequence"}},
		{"Transit drops outputs that equal the state", func(m *Model) core.Store { return transitsNothingOn{m} },
			[]string{saysAllOrNothing + "/steps whose output is their state"}},
		{"Awaited ignores the expiry of tokens", func(m *Model) core.Store { return awaitsEver{m} }, []string{saysInvalidToken + "/expired"}},
		{"Situations reads twice", func(m *Model) core.Store { return situationsTorn{m} }, []string{saysSituations + "/consistent under concurrent transitions"}},
		{"Situations returns the outermost step first", func(m *Model) core.Store { return situationsReversed{m} },
			[]string{saysSituations + "/enclosing steps, innermost first"}},
		{"Survey ignores the epoch", func(m *Model) core.Store { return surveysEpochs{m} }, []string{saysSurvey + "/of the epoch and run"}},
		{"Survey returns a step twice", func(m *Model) core.Store { return surveysTwice{m} }, []string{saysSurvey + "/each once, in order"}},
		{"Take reads no situation", func(m *Model) core.Store { return takesBlind{m} }, []string{saysTakenRun, saysTakenRun + "/later"}},
		{"Accept starts runs of duplicates", func(m *Model) core.Store { return acceptsRuns{m} },
			[]string{saysRunsStored + "/not those of a duplicate", saysRunsStored + "/not a run whose job is left out", saysRunsStored + "/once"}},
		{"Job leaves out the run", func(m *Model) core.Store { return jobsBare{m} }, []string{saysJobRun, saysRunsStored}},
		{"Retry revives jobs of workflows", func(m *Model) core.Store { return retriesRuns{m} }, []string{saysRetryRun}},
		{"Purge leaves runs", func(m *Model) core.Store { return purgesNoRuns{m} }, []string{saysPurge + "/runs", saysPurgeLimit + "/of runs"}},
		{"Purge deletes unfinished runs", func(m *Model) core.Store { return purgesOpen{m} }, []string{saysPurgeOpen + "/runs"}},
		{"Purge deletes definitions", func(m *Model) core.Store { return purgesDefinitions{m} }, []string{saysDefsStay}},
		{"Runs shows outputs", func(m *Model) core.Store { return listsOutputs{m} }, []string{saysRuns}},
		{"Outline has the steps of all epochs", func(m *Model) core.Store { return outlinesEpochs{m} }, []string{saysOutline}},
		{"History has no limit", func(m *Model) core.Store { return historyUnlimited{m} }, []string{saysHistory}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c := find(t, name)
				failed := false
				for i := 0; i < 20 && !failed; i++ { // a race may go well once
					failed = failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{})) }) != ""
				}
				if !failed {
					t.Errorf("the check %q passes a store whose %s", name, tc.breaks)
				}
			}
		})
	}
}

// each calls one with each of the transitions, under the lock of the model.
func (m *Model) each(ts []core.Transition, one func(core.Transition) bool) (results []core.Transited, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range ts {
		results = append(results, m.transited(t, one(t)))
	}
	return results, nil
}

// behind reports whether the run has moved on since the transition read it.
func (m *Model) behind(t core.Transition) bool {
	run := m.runs[t.Run.ID]
	return run != nil && run.Seq != t.Seq
}

// transitsAny makes each transition, even if its Seq is stale.
type transitsAny struct{ *Model }

func (s transitsAny) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		if run := s.runs[t.Run.ID]; run != nil {
			t.Seq = run.Seq
		}
		return s.transit(t)
	})
}

// transitsLate compares Seq under one lock and writes under another, so other calls may write in
// between.
type transitsLate struct{ *Model }

func (s transitsLate) Transit(ctx context.Context, ts ...core.Transition) (made []core.Transited, err error) {
	s.mu.Lock()
	late := s.behind(ts[0])
	s.mu.Unlock()
	runtime.Gosched()
	if late {
		return s.Model.Transit(ctx, ts...)
	}
	return transitsAny(s).Transit(ctx, ts...)
}

// transitsTwice records the attempts of a transition again with each repetition.
type transitsTwice struct{ *Model }

func (s transitsTwice) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		again := s.behind(t)
		made := s.transit(t)
		if made && again {
			s.moveJobs(s.runs[t.Run.ID], core.Transition{Attempts: t.Attempts})
		}
		return made
	})
}

// transitsForgets reports a repeated transition as not made.
type transitsForgets struct{ *Model }

func (s transitsForgets) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool { return !s.behind(t) && s.transit(t) })
}

// transitsNewest recognizes a repetition only until the next transition.
type transitsNewest struct{ *Model }

func (s transitsNewest) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		if h := s.history[t.Run.ID]; s.behind(t) {
			return len(h) > 0 && h[len(h)-1].mark == t.Mark
		}
		return s.transit(t)
	})
}

// transitsTogether makes no transition if one of the call is stale.
type transitsTogether struct{ *Model }

func (s transitsTogether) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	s.mu.Lock()
	late := slices.ContainsFunc(ts, s.behind)
	s.mu.Unlock()
	if late {
		return make([]core.Transited, len(ts)), nil
	}
	return s.Model.Transit(ctx, ts...)
}

// transitsParts adds the new steps of a transition that is not made, after leave has removed some
// parts of it.
type transitsParts struct {
	*Model
	leave func(*core.Transition)
}

func (s transitsParts) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		made := s.transit(t)
		if run := s.runs[t.Run.ID]; !made && run != nil {
			s.leave(&t)
			s.moveSteps(run, core.Transition{New: t.New})
		}
		return made
	})
}

// losersJobs ends the jobs of a transition that is not made.
type losersJobs struct{ *Model }

func (s losersJobs) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		made := s.transit(t)
		if run := s.runs[t.Run.ID]; !made && run != nil {
			s.moveJobs(run, core.Transition{JobsEnd: t.JobsEnd})
		}
		return made
	})
}

// losersRise stores the alert of a transition that is not made.
type losersRise struct{ *Model }

func (s losersRise) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		made := s.transit(t)
		if !made {
			s.storeArrival(t.GivesRise)
		}
		return made
	})
}

// losersRecord stores the receipts of a transition that is not made.
type losersRecord struct{ *Model }

func (s losersRecord) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		for _, receipt := range t.Receipts {
			s.receipts[receipt] = t.Run.ID
		}
		return s.transit(t)
	})
}

// transitsHeld refuses a transition whose attempts have stale leases.
type transitsHeld struct{ *Model }

func (s transitsHeld) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		for _, a := range t.Attempts {
			if _, held := s.holds(a.JobID, a.Lease); !held {
				return false
			}
		}
		return s.transit(t)
	})
}

// transitsLeased does not end jobs that a worker holds.
type transitsLeased struct{ *Model }

func (s transitsLeased) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		ended := t.JobsEnd
		t.JobsEnd = nil
		for _, c := range ended {
			if j := s.jobs[c.ID]; j != nil && j.Lease == "" {
				t.JobsEnd = append(t.JobsEnd, c)
			}
		}
		return s.transit(t)
	})
}

// transitsLess makes transitions without one of their parts.
type transitsLess struct {
	*Model
	leave func(*core.Transition)
}

func (s transitsLess) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	ts = slices.Clone(ts)
	for i := range ts {
		s.leave(&ts[i])
	}
	return s.Model.Transit(ctx, ts...)
}

// transitsUnheld takes the job of a transition although its lane or source is held.
type transitsUnheld struct{ *Model }

func (s transitsUnheld) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		gates := s.gates
		s.gates = map[core.Lane]*gate{}
		defer func() { s.gates = gates }()
		return s.transit(t)
	})
}

// transitsSaying reports the job of each transition as taken.
type transitsSaying struct{ *Model }

func (s transitsSaying) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	results, err := s.Model.Transit(ctx, ts...)
	for i := range results {
		results[i].Taken = results[i].Made && ts[i].Take.Job != ""
	}
	return results, err
}

// transitsTimes keeps the finish time of a run that is redriven.
type transitsTimes struct{ *Model }

func (s transitsTimes) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.each(ts, func(t core.Transition) bool {
		if run := s.runs[t.Run.ID]; run != nil && t.Run.FinishedAt.IsZero() {
			t.Run.FinishedAt = run.FinishedAt
		}
		return s.transit(t)
	})
}

// transitsNothingOn drops an output that equals the step's state.
type transitsNothingOn struct{ *Model }

func (s transitsNothingOn) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	for _, t := range ts {
		for i := range t.Changed {
			if t.Changed[i].Passes {
				t.Changed[i].Output = nil
			}
		}
	}
	return s.Model.Transit(ctx, ts...)
}

// awaitsEver accepts tokens after they expired.
type awaitsEver struct{ *Model }

func (s awaitsEver) Awaited(ctx context.Context, _ time.Time, hash, receipt string) (core.Awaiting, error) {
	return s.Model.Awaited(ctx, time.Time{}, hash, receipt)
}

// situationsTorn reads steps and runs at different moments.
type situationsTorn struct{ *Model }

func (s situationsTorn) Situations(ctx context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	found, _ := s.Model.Situations(ctx, steps)
	for range 20 {
		runtime.Gosched()
	}
	for id, one := range found {
		one.Run, _ = s.Model.Run(ctx, one.Run.ID)
		found[id] = one
	}
	return found, nil
}

// situationsReversed lists the enclosing steps from the outermost on.
type situationsReversed struct{ *Model }

func (s situationsReversed) Situations(ctx context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	found, err := s.Model.Situations(ctx, steps)
	for one := range maps.Values(found) {
		slices.Reverse(one.Above)
	}
	return found, err
}

// surveysEpochs returns the steps of the first two epochs and ignores the epoch of the call.
type surveysEpochs struct{ *Model }

func (s surveysEpochs) Survey(ctx context.Context, run core.ID, _ int, w core.Wanted) ([]core.Step, error) {
	first, _ := s.Model.Survey(ctx, run, 1, w)
	second, err := s.Model.Survey(ctx, run, 2, w)
	return append(first, second...), err
}

// surveysTwice returns a step once for each condition that it meets.
type surveysTwice struct{ *Model }

func (s surveysTwice) Survey(ctx context.Context, run core.ID, epoch int, w core.Wanted) ([]core.Step, error) {
	open, _ := s.Model.Survey(ctx, run, epoch, core.Wanted{Open: w.Open})
	w.Open = false
	rest, err := s.Model.Survey(ctx, run, epoch, w)
	return append(open, rest...), err
}

// outlinesEpochs returns the steps of the first two epochs.
type outlinesEpochs struct{ *Model }

func (s outlinesEpochs) Outline(ctx context.Context, run core.ID, _ int) ([]core.Step, error) {
	first, _ := s.Model.Outline(ctx, run, 1)
	second, err := s.Model.Outline(ctx, run, 2)
	return append(first, second...), err
}
