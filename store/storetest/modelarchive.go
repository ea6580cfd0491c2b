package storetest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The part of the [Model] with the requests of operators. A Model needs no pages and no indexes,
// so each method is a filter.

// selects reports whether a filter selects an event. It ignores the filter's After and Limit.
func selects(f core.EventFilter, e core.Event) bool {
	return (e.Source == f.Source || f.Source == "" && e.Source != core.AlertSource) && (f.Type == "" || e.Type == f.Type) &&
		(f.DeliveryID == "" || e.DeliveryID == f.DeliveryID) &&
		!e.CreatedAt.Before(f.Since) && (f.Until.IsZero() || e.CreatedAt.Before(f.Until))
}

// selected returns the ids of the events that a filter selects, oldest first.
func (m *Model) selected(f core.EventFilter) []core.ID {
	return filtered(slices.Sorted(maps.Keys(m.events)), func(id core.ID) bool { return selects(f, m.events[id]) })
}

// Nth implements [core.Archive].
func (m *Model) Nth(_ context.Context, f core.EventFilter, n int) (core.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.selected(f)
	if len(ids) == 0 {
		return "", nil
	}
	return ids[max(0, len(ids)-n)], nil
}

// Read implements [core.Archive]. The event that makes the page reach MaxRead is its last one.
func (m *Model) Read(_ context.Context, from core.ID, f core.EventFilter) (p core.Page[core.Event], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, id := range m.selected(f) {
		if id < from {
			continue
		}
		if size >= core.MaxRead || len(p.Items) == cmp.Or(f.Limit, core.DefaultPage) {
			p.More = true
			break
		}
		p.Items, size = append(p.Items, m.events[id]), size+len(m.events[id].Payload)
	}
	return p, nil
}

// Newest implements [core.Archive].
func (m *Model) Newest(context.Context) (id core.ID, finished time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := range m.events {
		id = max(id, e)
	}
	over := func(record core.ID, end time.Time) {
		if id = max(id, record); end.After(finished) {
			finished = end
		}
	}
	for _, j := range m.jobs {
		over(j.ID, j.FinishedAt)
	}
	for _, r := range m.runs {
		over(r.ID, r.FinishedAt)
	}
	return id, finished, nil
}

// ReadNewest implements [core.Archive], with the bounds of Read.
func (m *Model) ReadNewest(_ context.Context, f core.EventFilter) (p core.Page[core.Event], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, id := range newest(m.selected(f)) {
		if f.After != "" && id >= f.After {
			continue
		}
		if size >= core.MaxRead || len(p.Items) == cmp.Or(f.Limit, core.DefaultPage) {
			p.More = true
			break
		}
		p.Items, size = append(p.Items, m.events[id]), size+len(m.events[id].Payload)
	}
	return p, nil
}

// JobsOf implements [core.Archive].
func (m *Model) JobsOf(_ context.Context, events []core.ID) (map[core.ID][]core.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := map[core.ID][]core.Job{}
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if j := m.jobs[id]; slices.Contains(events, j.EventID) {
			of[j.EventID] = append(of[j.EventID], m.shown(j))
		}
	}
	return of, nil
}

// AttemptsOf implements [core.Archive].
func (m *Model) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	of := map[core.ID][]core.Attempt{}
	for _, id := range jobs {
		attempts, err := m.Attempts(ctx, id, 0, math.MaxInt)
		if err != nil {
			return nil, err
		}
		for i := range attempts {
			attempts[i].Response, attempts[i].Exchange = "", nil
		}
		if len(attempts) > 0 {
			of[id] = attempts
		}
	}
	return of, nil
}

// SourcesOf implements [core.Ledger].
func (m *Model) SourcesOf(_ context.Context, events []core.ID) (map[core.ID]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := map[core.ID]string{}
	for _, id := range events {
		if e, stored := m.events[id]; stored {
			of[id] = e.Source
		}
	}
	return of, nil
}

// Failures implements [core.Ledger].
func (m *Model) Failures(_ context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := core.MaxFailures
	if f.Limit > 0 {
		limit = min(f.Limit, limit)
	}
	return list(m.jobs, "", limit, func(row *core.Job) (core.FailedJob, bool) {
		j := m.shown(row)
		text := strings.ToValidUTF8(j.LastError[:min(len(j.LastError), core.MaxFailureText)], "")
		return core.FailedJob{ID: j.ID, Lane: j.Lane, Status: j.Status, Error: text}, (j.Status == core.Dead || j.Status == core.Retryable) &&
			(f.Lane == "" || j.Lane == f.Lane) && (f.Since.IsZero() || j.ID >= core.FirstID(f.Since)) && (f.Until.IsZero() || j.ID < core.FirstID(f.Until))
	}), nil
}

// Finished implements [core.Ledger]. The cursor is a pair of a time and an id.
func (m *Model) Finished(_ context.Context, since time.Time, after core.ID, limit int) (p core.Page[core.Job], err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var over []*core.Job
	for _, j := range m.jobs {
		passed := j.FinishedAt.Before(since) || j.FinishedAt.Equal(since) && j.ID <= after
		if !j.FinishedAt.IsZero() && !passed && !j.Lane.Alert() {
			over = append(over, j)
		}
	}
	for _, j := range finishedFirst(over) {
		if len(p.Items) == cmp.Or(limit, core.DefaultPage) {
			p.More = true
			break
		}
		p.Items = append(p.Items, m.shown(j))
	}
	return p, nil
}

// finishedFirst returns the jobs by finish time, then by id.
func finishedFirst(jobs []*core.Job) []*core.Job {
	return slices.SortedFunc(slices.Values(jobs), func(a, b *core.Job) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), cmp.Compare(a.ID, b.ID))
	})
}

// Completed implements [core.Ledger].
func (m *Model) Completed(context.Context) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if j.Status == core.Completed {
			n++
		}
	}
	return n, nil
}

// Cancel implements [core.Operations]. A job that was canceled at the same time counts again, so
// that a repetition has the same answer.
func (m *Model) Cancel(ctx context.Context, now time.Time, event core.ID) (c core.Cancellation, err error) {
	defer func() { m.audit(ctx, c.Canceled > 0) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.events[event]; !ok {
		return c, core.Refuse(core.NotFound, "event not found")
	}
	var ended []*core.Job
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		switch j := m.jobs[id]; {
		case j.EventID != event || j.Lane.Workflow() != "":
		case j.Status == core.Canceled && j.FinishedAt.Equal(now):
			c.Canceled++
		case j.Status.Finished():
			c.Finished++
		case j.Status == core.Running && j.DueAt.After(now):
			c.Running++
		default:
			if j.ScheduledAt.IsZero() {
				j.ScheduledAt = j.DueAt
			}
			j.Status, j.Lease, j.DueAt, j.FinishedAt = core.Canceled, "", time.Time{}, now
			c.Canceled++
			ended = append(ended, j)
		}
	}
	m.leaveLines(ended, now)
	return c, nil
}

// Replay implements [core.Upkeep].
func (m *Model) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (stored int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.audit(ctx, stored > 0) }()
	for _, a := range arrivals {
		e, known := m.events[a.Event.ID]
		if e.CreatedAt = now; known {
			m.addReplayed(e, a)
		}
		for _, n := range a.Jobs {
			if m.jobs[n.ID] != nil {
				stored++
			}
		}
	}
	return stored, nil
}

// addReplayed stores the jobs and runs of an arrival that are not yet stored.
func (m *Model) addReplayed(e core.Event, a core.Arrival) {
	for _, n := range a.Jobs {
		if m.jobs[n.ID] == nil {
			n.Key = ""
			m.jobs[n.ID] = new(stored(e.ID, e.CreatedAt, n))
			m.enterNew(m.jobs[n.ID], n.Line)
		}
	}
	for _, n := range a.Runs {
		if m.runs[n.ID] == nil {
			a.Event = e
			m.addRun(a, n)
		}
	}
}

// Turn implements [core.Upkeep]. A stored end that is later than any caller with this hold could
// set was set by a wrong clock.
func (m *Model) Turn(_ context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := m.turns[name]
	if end.After(now) && !end.After(now.Add(hold+core.TurnHorizon)) {
		return false, nil
	}
	m.turns[name] = now.Add(hold)
	return true, nil
}

// SentBody implements [core.Archive].
func (m *Model) SentBody(_ context.Context, job core.ID, number int) (body string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var newest time.Time
	for _, a := range m.attempts[job] {
		if a.Number == number && !a.StartedAt.Before(newest) {
			newest, body = a.StartedAt, ""
			if a.Exchange != nil {
				body = a.Exchange.Body
			}
		}
	}
	return body, nil
}
