package storetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The part of the [Model] with lines. A job of a line has a slot, or a place, or neither: then it
// is finished, or gave its slot away and waits for its retry.

// A lineName identifies a line.
type lineName struct {
	lane core.Lane
	key  string
}

// A line has slots with numbers from 1, and the jobs that wait for one. stopped has the times at
// which dead jobs stopped the line.
type line struct {
	slots   map[int]core.ID
	places  []core.ID
	stopped map[core.ID]time.Time
}

// lineOf returns the line of a job. It makes one if there is none.
func (m *Model) lineOf(j *core.Job) *line { return m.line(lineName{j.Lane, j.Line}) }

func (m *Model) line(n lineName) *line {
	if m.lines[n] == nil {
		m.lines[n] = &line{slots: map[int]core.ID{}, stopped: map[core.ID]time.Time{}}
	}
	return m.lines[n]
}

// slot returns the number of a job's slot, 0 for none.
func (l *line) slot(id core.ID) int {
	for n, holder := range l.slots {
		if holder == id {
			return n
		}
	}
	return 0
}

// free returns the lowest number of a free slot.
func (l *line) free() int {
	n := 1
	for l.slots[n] != "" {
		n++
	}
	return n
}

// enter gives a job a slot, or else a place at the end or the front of its line. It reports
// whether the job has a slot.
func (l *line) enter(id core.ID, limit int, front bool) bool {
	if limit == 0 {
		limit = core.MaxLineLimit
	}
	if l.slot(id) > 0 {
		return true
	}
	if n := l.free(); n <= limit && len(l.places) == 0 {
		l.slots[n] = id
		return true
	}
	if front {
		l.places = slices.Insert(l.places, 0, id)
	} else {
		l.places = append(l.places, id)
	}
	return false
}

// enterNew stores the place of a new job.
func (m *Model) enterNew(j *core.Job, l core.Line) {
	if l.Key == "" {
		return
	}
	j.Line = l.Key
	if !m.lineOf(j).enter(j.ID, l.Limit, false) {
		j.Status, j.ScheduledAt, j.DueAt = core.Waiting, j.DueAt, time.Time{}
	}
}

// leave gives the slot of a job to the next job of its line, which becomes due.
func (m *Model) leave(j *core.Job, limit int, now time.Time) bool {
	l := m.lineOf(j)
	n := l.slot(j.ID)
	if n == 0 {
		return false
	}
	delete(l.stopped, j.ID)
	delete(l.slots, n)
	if len(l.places) == 0 || limit > 0 && n > limit {
		return true
	}
	l.slots[n] = l.places[0]
	l.places = l.places[1:]
	m.admit(m.jobs[l.slots[n]], now)
	return true
}

// admit makes a waiting job due.
func (m *Model) admit(j *core.Job, now time.Time) {
	j.Status, j.DueAt = core.Available, now
	if j.ScheduledAt.After(now) {
		j.Status, j.DueAt = core.Scheduled, j.ScheduledAt
	}
}

// endInLine changes the line of a job after an outcome.
func (m *Model) endInLine(j *core.Job, o core.Outcome) {
	switch l := o.Line; {
	case l.Key == "" || o.Status == core.Retryable && l.Limit == 1:
	case o.Status == core.Dead && o.StopsLine:
		if l := m.lineOf(j); l.slot(j.ID) > 0 {
			l.stopped[j.ID] = o.At
		}
	default:
		m.leave(j, l.Limit, o.At)
	}
}

// reenter lets the taken jobs without a slot enter their lines again, and returns the jobs that
// have a slot now. The others wait, untried.
func (m *Model) reenter(q core.Quota, taken []core.TakenJob) []core.TakenJob {
	if q.Lines == 0 {
		return taken
	}
	order := slices.Clone(taken)
	slices.SortFunc(order, func(a, b core.TakenJob) int { return strings.Compare(string(a.ID), string(b.ID)) })
	waits := map[core.ID]bool{}
	for _, t := range order {
		j := m.jobs[t.ID]
		if j.Line == "" || m.lineOf(j).enter(j.ID, q.Lines, true) {
			continue
		}
		waits[j.ID] = true
		j.Status, j.Lease, j.Attempt = core.Waiting, "", j.Attempt-1
		j.DueAt, j.ScheduledAt = time.Time{}, time.Time{}
		if g := m.gate(j.Lane); t.Probe && g.Open() && g.taker == t.Lease {
			g.OpenUntil, g.taker = m.takenAt, ""
		}
	}
	return slices.DeleteFunc(taken, func(t core.TakenJob) bool { return waits[t.ID] })
}

// reviveInLine makes a dead job of a line available again: with the slot with which it stops the
// line, or at the end of the line.
func (m *Model) reviveInLine(j *core.Job) {
	if j.Line == "" {
		return
	}
	l := m.lineOf(j)
	delete(l.stopped, j.ID)
	if l.slot(j.ID) > 0 {
		return
	}
	j.ScheduledAt = time.Time{}
	if !l.enter(j.ID, 1, false) {
		j.Status, j.DueAt = core.Waiting, time.Time{}
	}
}

// leaveLines removes canceled or deleted jobs from their lines, first the waiting ones.
func (m *Model) leaveLines(jobs []*core.Job, now time.Time) {
	for _, j := range jobs {
		l := m.lineOf(j)
		l.places = slices.DeleteFunc(l.places, func(id core.ID) bool { return id == j.ID })
	}
	for _, j := range jobs {
		if j.Line != "" {
			m.leave(j, 0, now)
		}
	}
}

// stopsLine reports whether a dead job stops its line.
func (m *Model) stopsLine(j *core.Job) bool {
	return j.Line != "" && m.lineOf(j).slot(j.ID) > 0
}

// AckLined implements [core.Lines].
func (m *Model) AckLined(_ context.Context, now time.Time, lane core.Lane, limit int, refs []core.Ref) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.refJobs(lane, refs)
	for _, j := range jobs {
		j.Status, j.Lease, j.LastError, j.DueAt, j.FinishedAt = core.Completed, "", "", time.Time{}, now
	}
	for _, j := range jobs {
		if j.Line != "" {
			m.leave(j, limit, now)
		}
	}
	return len(jobs), nil
}

// Skip implements [core.Lines].
func (m *Model) Skip(ctx context.Context, now time.Time, id core.ID) (skipped bool, err error) {
	defer func() { m.audit(ctx, skipped) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.jobs[id]
	if !ok {
		return false, core.Refuse(core.NotFound, "job not found")
	}
	return j.Status == core.Dead && j.Line != "" && m.leave(j, 0, now), nil
}

// Fill implements [core.Lines]. It fills all lines at once.
func (m *Model) Fill(_ context.Context, now time.Time, lane core.Lane, limit int, _ string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, l := range m.lines {
		if n.lane != lane {
			continue
		}
		for _, id := range l.slots {
			if j := m.jobs[id]; j == nil || j.Status == core.Completed || j.Status == core.Dead && l.stopped[id].IsZero() {
				m.leave(&core.Job{ID: id, Lane: n.lane, Line: n.key}, limit, now)
			}
		}
		for most := max(limit, core.MaxLineLimit*min(1, max(0, 1-limit))); len(l.places) > 0 && l.free() <= most; {
			slot := l.free()
			l.slots[slot] = l.places[0]
			l.places = l.places[1:]
			m.admit(m.jobs[l.slots[slot]], now)
		}
	}
	return "", nil
}

// LinedLanes implements [core.Lines].
func (m *Model) LinedLanes(context.Context) (lanes []core.Lane, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, l := range m.lines {
		if len(l.slots) > 0 {
			lanes = append(lanes, n.lane)
		}
	}
	slices.Sort(lanes)
	return slices.Compact(lanes), nil
}

// Lines implements [core.Lines].
func (m *Model) Lines(_ context.Context, lane core.Lane, after string, limit int) (page core.Page[core.LineState], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit == 0 {
		limit = core.DefaultPage
	}
	var keys []string
	for n, l := range m.lines {
		if n.lane == lane && len(l.slots) > 0 && n.key > after {
			keys = append(keys, n.key)
		}
	}
	slices.Sort(keys)
	for _, k := range keys[:min(limit, len(keys))] {
		page.Items = append(page.Items, m.lines[lineName{lane, k}].state(k))
	}
	page.More = len(keys) > limit
	return page, nil
}

// state returns a line as Lines lists it.
func (l *line) state(key string) core.LineState {
	s := core.LineState{Key: key, Admitted: len(l.slots), Waiting: len(l.places)}
	for _, n := range slices.Sorted(maps.Keys(l.slots)) {
		at := l.stopped[l.slots[n]]
		if at.IsZero() {
			continue
		}
		if s.StoppedBy == "" {
			s.StoppedBy = l.slots[n]
		}
		if at.After(s.StoppedAt) {
			s.StoppedAt = at
		}
	}
	return s
}

// LinesOf implements [core.Lines].
func (m *Model) LinesOf(_ context.Context, lane core.Lane, next int, keys ...string) (lines []core.LineJobs, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys {
		found := core.LineJobs{LineState: core.LineState{Key: k}}
		if l := m.lines[lineName{lane, k}]; l != nil {
			found.LineState = l.state(k)
			found.Holders = slices.Sorted(maps.Values(l.slots))
			found.Next = slices.Clone(l.places[:min(next, len(l.places))])
			found.Waiting = len(found.Next)
		}
		lines = append(lines, found)
	}
	return lines, nil
}
