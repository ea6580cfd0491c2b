package storetest

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestBrokenSourcesFail requires that checks fail on stores that break one sentence about held
// sources each. See broken_test.go.
func TestBrokenSourcesFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string
	}{
		{"Take ignores held sources", func(m *Model) core.Store { return takesUnheld{m} },
			[]string{saysSourceHeld, saysSourceHeld + "/with a Pass", saysSourceHeld + "/whose lease is over", saysSourceAlone + "/in a queue and a workflow"}},
		{"a held source stops all lanes", func(m *Model) core.Store { return stopsAll{m} },
			[]string{saysSourceHeld, saysSourceAlone, saysSourceHeld + "/before more than a claim looks at"}},
		{"a held source holds those whose names begin with its name", func(m *Model) core.Store { return holdsPrefixes{m} }, []string{saysSourceAlone}},
		{"a Take moves the jobs of held sources to a later time", func(m *Model) core.Store { return parksLater{m} }, []string{saysSourceKeeps, saysSourceBack}},
		{"a Take counts attempts of held jobs", func(m *Model) core.Store { return countsHeld{m} }, []string{saysSourceKeeps}},
		{"jobs of a released source stay", func(m *Model) core.Store { return keepsParked{m} },
			[]string{saysSourceBack, saysSourceBack + "/at its end", saysSourceBack + "/held again", saysSourceBack + "/while another source is held", saysSourceBack + "/after a purge"}},
		{"a release ends the holds of all sources", func(m *Model) core.Store { return releasesAllSources{m} }, []string{saysSourceBack + "/while another source is held"}},
		{"the ramp is left out", func(m *Model) core.Store { return returnsAbruptly{m} }, []string{saysSourceRamp}},
		{"Due shows held jobs as due", func(m *Model) core.Store { return dueUnheld{m} }, []string{saysSourceDue}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c := find(t, name)
				if failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{})) }) == "" {
					t.Errorf("the check %q passes a store in which %s", name, tc.breaks)
				}
			}
		})
	}
}

// takesUnheld takes as if no source were held.
type takesUnheld struct{ *Model }

func (s takesUnheld) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	gates := maps.Clone(s.gates)
	maps.DeleteFunc(s.gates, func(l core.Lane, _ *gate) bool { return isSource(l) })
	taken, err := s.Model.Take(ctx, now, quotas)
	for l, g := range gates {
		s.gates[l] = g
	}
	return taken, err
}

// isSource reports whether a lane names a source.
func isSource(l core.Lane) bool { return l.Source() != "" }

// stopsAll takes nothing while a source is held.
type stopsAll struct{ *Model }

func (s stopsAll) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for l, g := range s.gates {
		if isSource(l) && g.Held(now) {
			return nil, nil
		}
	}
	return s.Model.Take(ctx, now, quotas)
}

// holdsPrefixes holds all sources whose names begin with that of a held one.
type holdsPrefixes struct{ *Model }

func (s holdsPrefixes) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for _, e := range s.events {
		for l, g := range maps.Clone(s.gates) {
			if of := core.SourceLane(e.Source); isSource(l) && strings.HasPrefix(string(of), string(l)) {
				s.gates[of] = g
			}
		}
	}
	return s.Model.Take(ctx, now, quotas)
}

// eachParked applies do to each parked job.
func (m *Model) eachParked(do func(*core.Job)) {
	for id, p := range m.parked {
		if j := m.jobs[id]; j != nil && m.isParked(j) {
			do(j)
			m.parked[id] = parkedJob{p.source, j.DueAt}
		}
	}
}

// parksLater shows a parked job with a later due time.
type parksLater struct{ *Model }

func (s parksLater) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	taken, err := s.Model.Take(ctx, now, quotas)
	s.eachParked(func(j *core.Job) { j.DueAt = now.Add(24 * time.Hour) })
	return taken, err
}

// countsHeld counts an attempt for each job that it leaves.
type countsHeld struct{ *Model }

func (s countsHeld) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	taken, err := s.Model.Take(ctx, now, quotas)
	s.eachParked(func(j *core.Job) { j.Attempt++ })
	return taken, err
}

// keepsParked never returns a parked job.
type keepsParked struct{ *Model }

func (s keepsParked) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	kept := map[core.ID]*core.Job{}
	for id := range s.parked {
		kept[id] = s.jobs[id]
		delete(s.jobs, id)
	}
	taken, err := s.Model.Take(ctx, now, quotas)
	maps.Copy(s.jobs, kept)
	for id, j := range kept {
		s.parked[id] = parkedJob{s.sourceOf(j), j.DueAt}
	}
	return taken, err
}

// releasesAllSources releases all sources.
type releasesAllSources struct{ *Model }

func (s releasesAllSources) Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	released, err := s.Model.Unhold(ctx, now, lanes...)
	for l := range s.gates {
		if isSource(l) {
			_, _ = s.Model.Unhold(ctx, now, l)
		}
	}
	return released, err
}

// returnsAbruptly returns parked jobs without a ramp.
type returnsAbruptly struct{ *Model }

func (s returnsAbruptly) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	for l, g := range s.gates {
		if isSource(l) && !g.Held(now) {
			g.HeldUntil = time.Time{}
		}
	}
	return s.Model.Take(ctx, now, quotas)
}

// dueUnheld shows parked jobs as due.
type dueUnheld struct{ *Model }

func (s dueUnheld) Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	parked := s.parked
	s.parked = nil
	defer func() { s.parked = parked }()
	return s.Model.Due(ctx, lanes)
}
