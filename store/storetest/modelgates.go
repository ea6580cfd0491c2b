package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The part of the [Model] with gates. It follows the state of one gate through the methods that
// read or move it.

// A gate is a lane's gate with the lease of the Take that passed it last, and the reason of its
// hold. The taker is the newest probe while the breaker is open.
type gate struct {
	core.Gate
	taker  core.Lease
	reason string
}

// gate returns the gate of a lane. It makes one if there is none.
func (m *Model) gate(l core.Lane) *gate {
	if m.gates[l] == nil {
		m.gates[l] = &gate{}
	}
	return m.gates[l]
}

// forgetGates deletes gates whose times all lie before before, that count no failures and whose
// lanes are no strays and no sources with a number. The caller holds the lock, as for all methods here that begin with a small
// letter.
func (m *Model) forgetGates(before time.Time) {
	for l, g := range m.gates {
		past := g.ClosedAt.Before(before) && g.OpenUntil.Before(before) && g.NextAt.Before(before) && g.HeldUntil.Before(before)
		_, stray := m.strays[l]
		if _, numbered := m.numbers[l]; past && g.Failures == 0 && !stray && !numbered {
			delete(m.gates, l)
		}
	}
}

// Due implements [core.Worklist].
func (m *Model) Due(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[core.Lane]core.Outlook{}
	for _, l := range lanes {
		o := core.Outlook{Gate: m.gate(l).Gate}
		for _, j := range m.jobs {
			if j.Lane != l || j.Status.Finished() || j.Status == core.Waiting {
				continue
			}
			at := j.DueAt
			if source, parked := m.parkedBy(j); parked {
				at = m.gate(source).HeldUntil
			}
			if !at.Equal(core.NoEnd) && (o.DueAt.IsZero() || at.Before(o.DueAt)) {
				o.DueAt = at
			}
		}
		if o != (core.Outlook{}) {
			next[l] = o
		}
	}
	return next, nil
}

// Take implements [core.Worklist]. All jobs of a call have the same lease. Jobs beyond Quota.Bytes
// are returned bare.
func (m *Model) Take(_ context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(quotas, asks) {
		return nil, nil
	}
	m.park(now, quotas)
	m.leases++
	m.takenAt = now
	lease := core.Lease(fmt.Sprint("lease ", m.leases))
	var taken []core.TakenJob
	for _, q := range quotas {
		q.N = m.allowed(now, q)
		var some []core.TakenJob
		for _, j := range m.due(now, q) {
			j.Status, j.Lease, j.ScheduledAt = core.Running, lease, j.DueAt
			j.Attempt, j.DueAt = j.Attempt+1, now.Add(q.Hold)
			some = append(some, core.TakenJob{Job: *j, Event: m.events[j.EventID], Situation: m.situation(j.ID)})
		}
		if q.Pass != nil && len(some) > 0 {
			m.pass(now, q, lease, some)
		}
		if q.Bytes > 0 {
			for i := fitting(some, q.Bytes); i < len(some); i++ {
				some[i] = core.TakenJob{Job: some[i].Job, Bare: true}
			}
		}
		taken = append(taken, m.reenter(q, some)...)
	}
	return taken, nil
}

// fitting returns the number of jobs whose events fit into most bytes, at least one. An event
// counts with its payload and 200 bytes. The 200 bytes stand for headers and other fields.
func fitting(jobs []core.TakenJob, most int) int {
	bytes := 0
	for i, j := range jobs {
		if bytes += len(j.Event.Payload) + 200; bytes > most && i > 0 {
			return i
		}
	}
	return len(jobs)
}

// allowed returns the number of jobs that a quota may take through the gate of its lane. A probe
// is one job at most.
func (m *Model) allowed(now time.Time, q core.Quota) int {
	g := m.gate(q.Lane)
	switch p := q.Pass; {
	case g.Held(now):
		return 0
	case p == nil && (g.Open() || q.Lane.Queue() == "" && g.Ramp(now) > 0):
		return 0
	case p == nil:
		return q.N
	case !p.Closed.Equal(g.ClosedAt):
		return 0
	case p.Probe > 0 && (!g.Open() || g.ProbeAt(now, p.Probe).After(now)):
		return 0
	case p.Probe > 0:
		return min(q.N, 1)
	case g.Open() || g.StartAt(now).After(now.Add(p.Ahead)):
		return 0
	default: // no start is further ahead than the horizon
		return min(q.N, max(1, int((core.GateHorizon-p.Ahead)/p.Interval)))
	}
}

// pass changes the gate for the jobs that passed it, and sets their start times. A probe reserves
// the gate until its time is over. A paced Take moves the next start by one interval for each of
// its jobs.
func (m *Model) pass(now time.Time, q core.Quota, lease core.Lease, some []core.TakenJob) {
	g := m.gate(q.Lane)
	g.taker = lease
	if q.Pass.Probe > 0 {
		g.OpenUntil, some[0].Probe = now.Add(q.Pass.Probe), true
		return
	}
	slices.SortFunc(some, func(a, b core.TakenJob) int { return strings.Compare(string(a.ID), string(b.ID)) })
	g.NextAt = g.StartAt(now).Truncate(time.Microsecond)
	for i := range some {
		some[i].StartAt = g.NextAt
		g.NextAt = g.NextAt.Add(q.Pass.Interval)
	}
}

// Settle implements [core.Worklist]. It reports the gates of lanes for which an outcome failed or
// was a probe's, as they are at the end.
func (m *Model) Settle(_ context.Context, outcomes ...core.Outcome) (after core.Settlement, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range outcomes {
		if j, ok := m.holds(o.JobID, o.Lease); ok {
			m.attempts[o.JobID] = append(m.attempts[o.JobID], leased{o.Attempt, o.Lease})
			m.applyOutcome(j, o)
			m.applyVerdict(o)
			m.storeArrival(o.GivesRise)
			continue
		}
		before := slices.ContainsFunc(m.attempts[o.JobID], func(a leased) bool { return a.lease == o.Lease })
		if !before {
			after.Lost = append(after.Lost, o.JobID)
		}
	}
	for _, o := range outcomes {
		if o.Lane != "" && (o.Verdict == core.Failure || o.Probe) {
			if after.Gates == nil {
				after.Gates = map[core.Lane]core.Gate{}
			}
			after.Gates[o.Lane] = m.gate(o.Lane).Gate
		}
	}
	return after, nil
}

// applyVerdict changes the gate of a lane by an outcome's verdict. While the breaker is open, only
// the taker's outcome counts.
func (m *Model) applyVerdict(o core.Outcome) {
	if o.Lane == "" {
		return
	}
	g := m.gate(o.Lane)
	open := g.Open()
	if open && g.taker != o.Lease {
		return
	}
	switch {
	case o.Verdict == core.Success && open:
		g.Failures, g.OpenUntil, g.ClosedAt, g.MovedBy, g.taker = 0, time.Time{}, o.At, o.JobID, ""
	case o.Verdict == core.Success:
		g.Failures = 0
	case o.Verdict == core.Failure:
		b := o.Breaker.Numbers()
		if g.Failures++; !open && g.Failures < b.Failures {
			return
		}
		if !open {
			g.OpenedAt, g.Openings = o.At, g.Openings+1
		}
		g.OpenUntil, g.taker, g.MovedBy = o.At.Add(b.Cooldown), "", o.JobID
		if open {
			g.MovedBy = ""
		}
	case open && o.Probe:
		g.OpenUntil, g.taker = o.At, ""
	}
}

// storeArrival stores the arrival that an outcome gives rise to, if there is one. The caller has
// made sure that the arrival is new.
func (m *Model) storeArrival(a *core.Arrival) {
	if a == nil {
		return
	}
	m.storeEvent(a.Event)
	for _, n := range a.Jobs {
		m.jobs[n.ID] = &core.Job{
			ID: n.ID, EventID: a.Event.ID, Lane: n.Lane, Status: core.Available,
			MaxAttempts: n.MaxAttempts, DueAt: a.Event.CreatedAt, CreatedAt: a.Event.CreatedAt,
		}
	}
}

// CloseBreakers implements [core.Worklist]. A lane that was closed at the same time is returned
// again, so that a repetition has the same answer.
func (m *Model) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) (closed []core.Lane, err error) {
	defer func() { m.audit(ctx, len(closed) > 0) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range slices.Compact(slices.Sorted(slices.Values(lanes))) {
		g := m.gate(l)
		if g.Open() {
			g.ClosedAt, g.taker = now, ""
		}
		if g.Failures > 0 {
			g.Failures, g.OpenUntil, g.MovedBy = 0, time.Time{}, ""
		}
		if g.ClosedAt.Equal(now) && g.MovedBy == "" {
			closed = append(closed, l)
		}
	}
	return closed, nil
}

// Hold implements [core.Holds].
func (m *Model) Hold(ctx context.Context, now time.Time, lane core.Lane, until time.Time, reason string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gate(lane)
	if lane.Source() != "" {
		m.numbers[lane] = now
	}
	if !g.Held(now) {
		g.HeldSince = now
	}
	if until.IsZero() {
		until = core.NoEnd
	}
	m.audit(ctx, !g.Held(now) || !g.HeldUntil.Equal(until) || g.reason != reason)
	g.HeldUntil, g.reason = until, reason
	return nil
}

// Unhold implements [core.Holds]. A lane that was released at the same time is returned again.
func (m *Model) Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) (released []core.Lane, err error) {
	defer func() { m.audit(ctx, len(released) > 0) }()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range slices.Compact(slices.Sorted(slices.Values(lanes))) {
		g := m.gate(l)
		if g.Held(now) {
			g.HeldSince, g.HeldUntil, g.reason = time.Time{}, now, ""
		}
		if g.HeldUntil.Equal(now) && g.HeldSince.IsZero() {
			released = append(released, l)
		}
	}
	return released, nil
}

// Holding implements [core.Holds].
func (m *Model) Holding(_ context.Context, now time.Time) (holds []core.Hold, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range slices.Sorted(maps.Keys(m.gates)) {
		if g := m.gates[l]; g.Held(now) {
			h := core.Hold{Lane: l, Since: g.HeldSince, Until: g.HeldUntil, Reason: g.reason}
			if h.Until.Equal(core.NoEnd) {
				h.Until = time.Time{}
			}
			holds = append(holds, h)
		}
	}
	return holds, nil
}

// Release implements [core.Worklist]. A job becomes available if no attempt since the last Retry
// remains, and retryable otherwise.
func (m *Model) Release(_ context.Context, due time.Time, jobs ...core.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, given := range jobs {
		// A probe ends also if its job was drained.
		if g := m.gate(given.Lane); g.Open() && g.taker == given.Lease {
			g.OpenUntil, g.taker = due, ""
		}
		j, ok := m.holds(given.ID, given.Lease)
		if !ok {
			continue
		}
		j.Status, j.Lease, j.DueAt, j.Attempt = core.Retryable, "", due, j.Attempt-1
		if j.Attempt == j.Earlier || j.Lane.Workflow() != "" && j.LastError == "" {
			j.Status = core.Available
		}
	}
	return nil
}

// Strays implements [core.Worklist]. Lanes that are strays for core.StrayTime lose their gates.
func (m *Model) Strays(_ context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range known {
		delete(m.strays, l)
	}
	found := map[core.Lane]time.Time{}
	for _, j := range m.jobs {
		if j.Status.Finished() || j.Status == core.Waiting || slices.Contains(known, j.Lane) {
			continue
		}
		if _, before := m.strays[j.Lane]; !before {
			m.strays[j.Lane] = now
		}
		if found[j.Lane] = m.strays[j.Lane]; now.Sub(found[j.Lane]) >= core.StrayTime {
			g := m.gate(j.Lane)
			m.gates[j.Lane] = &gate{Gate: core.Gate{HeldSince: g.HeldSince, HeldUntil: g.HeldUntil}, reason: g.reason}
		}
	}
	return found, nil
}
