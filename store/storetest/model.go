package storetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Model is a store in memory. It is the contract of core/store.go as the shortest program that
// keeps it, regardless of speed: it finds rows by walking through maps. The suite runs on it, and
// compares real stores with it. A new sentence of the contract goes into the Model as well. Its
// methods may be called from any goroutine.
type Model struct {
	// clock decides in the Ledger's methods whether a lease is over. Other methods get the time
	// from their callers.
	clock core.Clock

	// mu guards all fields below. Each method holds it from beginning to end, so calls take effect
	// one after the other.
	mu         sync.Mutex
	leases     int // how many leases there were; the next lease is made from it
	events     map[core.ID]core.Event
	firsts     map[delivery]core.ID    // the event of each delivery id
	jobs       map[core.ID]*core.Job   // as stored: a lease that is over shows as running here
	attempts   map[core.ID][]leased    // by job, in the order in which they were recorded
	marks      map[string]core.Mark    // by source
	gates      map[core.Lane]*gate     // a zero Gate counts as absent
	strays     map[core.Lane]time.Time // since when each lane is a stray
	turns      map[string]time.Time    // the end of each turn, by name
	operations map[core.ID]core.Operation
	minutes    map[minuteRow]core.Counts
	lines      map[lineName]*line
	takenAt    time.Time // the time of the newest Take
	parked     map[core.ID]parkedJob
	numbers    map[core.Lane]time.Time // of sources: when they were last held
	runRows
	auditRows
}

// A delivery identifies an event that has a delivery id.
type delivery struct{ source, id string }

// leased is an attempt with its lease. A store recognizes a repeated outcome by its lease.
type leased struct {
	core.Attempt
	lease core.Lease
}

var _ core.Store = (*Model)(nil)

// NewModel returns an empty Model that judges leases by clock.
func NewModel(clock core.Clock) *Model {
	return &Model{
		clock: clock, events: map[core.ID]core.Event{}, firsts: map[delivery]core.ID{},
		jobs: map[core.ID]*core.Job{}, attempts: map[core.ID][]leased{}, marks: map[string]core.Mark{},
		gates: map[core.Lane]*gate{}, strays: map[core.Lane]time.Time{}, turns: map[string]time.Time{}, operations: map[core.ID]core.Operation{}, minutes: map[minuteRow]core.Counts{}, lines: map[lineName]*line{}, parked: map[core.ID]parkedJob{}, numbers: map[core.Lane]time.Time{}, runRows: newRunRows(),
		auditRows: auditRows{auditIDs: core.NewIDs(clock), entries: map[core.ID]core.AuditEntry{}},
	}
}

// Accept implements [core.Inbox].
func (m *Model) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.accept(ctx, a), nil
}

// accept accepts an arrival. The order of the cases matters: a repetition is answered before a
// duplicate is looked for, and delivery ids come before keys. The caller holds mu.
func (m *Model) accept(ctx context.Context, a core.Arrival) core.Receipt {
	if _, stored := m.events[a.Event.ID]; stored {
		return core.Receipt{EventID: a.Event.ID, Jobs: m.acceptedJobs(a.Event.ID)}
	}
	if first := m.delivered(a.Event); first != "" {
		return core.Receipt{EventID: first, Duplicate: true}
	}
	var repeats core.ID
	for _, n := range a.Jobs {
		if holder := m.keyed(n); holder != "" {
			repeats = earlier(repeats, holder)
			continue
		}
		m.jobs[n.ID] = new(stored(a.Event.ID, a.Event.CreatedAt, n))
		m.enterNew(m.jobs[n.ID], n.Line)
	}
	jobs := m.jobsOf(a.Event.ID)
	if jobs == 0 && len(a.Jobs) > 0 {
		return core.Receipt{EventID: repeats, Duplicate: true}
	}
	a.Event.Payload, a.Event.Headers = slices.Clone(a.Event.Payload), maps.Clone(a.Event.Headers)
	m.storeEvent(a.Event)
	for _, n := range a.Runs {
		m.addRun(a, n)
	}
	m.audit(ctx, true)
	return core.Receipt{EventID: a.Event.ID, Jobs: jobs}
}

// AcceptAll implements [core.Inbox] by one Accept after the other. An arrival with the delivery id
// of an earlier one repeats that one, even if the earlier one was left out. Errors of one arrival
// would end the call, but a Model has none.
func (m *Model) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	type delivery struct{ source, id string }
	first := map[delivery]core.ID{}
	for _, a := range all {
		d := delivery{a.Event.Source, a.Event.DeliveryID}
		if id, ok := first[d]; ok && d.id != "" {
			receipts = append(receipts, core.Receipt{EventID: id, Duplicate: true})
			continue
		}
		r, err := m.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		first[d] = r.EventID
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// acceptedJobs returns the number of jobs that were stored with an event: its jobs without a step,
// and one for each of its runs. Later transitions made the other jobs of steps.
func (m *Model) acceptedJobs(event core.ID) int {
	n := m.runsOf(event)
	for _, j := range m.jobs {
		if j.EventID == event && m.steps[j.ID] == nil {
			n++
		}
	}
	return n
}

// jobsOf returns the number of stored jobs of an event.
func (m *Model) jobsOf(event core.ID) int {
	n := 0
	for _, j := range m.jobs {
		if j.EventID == event {
			n++
		}
	}
	return n
}

// delivered returns the stored event with the same source and delivery id, or "".
func (m *Model) delivered(e core.Event) core.ID { return m.firsts[delivery{e.Source, e.DeliveryID}] }

// storeEvent stores an event and its delivery id. An event whose id is more than a minute younger
// than its time of receipt is stored as received at the time in its id.
func (m *Model) storeEvent(e core.Event) {
	made := e.ID.Time()
	if e.CreatedAt.Before(made.Add(-time.Minute)) {
		e.CreatedAt = made
	}
	m.events[e.ID] = e
	if e.DeliveryID != "" {
		m.firsts[delivery{e.Source, e.DeliveryID}] = e.ID
	}
}

// keyed returns the event whose job has the key in that lane, or "".
func (m *Model) keyed(n core.NewJob) core.ID {
	for _, j := range m.jobs {
		if n.Key != "" && j.Lane == n.Lane && j.Key == n.Key {
			return j.EventID
		}
	}
	return ""
}

// earlier returns the smaller of two ids, of which "" means none.
func earlier(a, b core.ID) core.ID {
	if a == "" || b < a {
		return b
	}
	return a
}

// due returns the jobs that a quota may take, longest due first. Jobs of the same due time are in
// the order of their ids.
func (m *Model) due(now time.Time, q core.Quota) []*core.Job {
	var due []*core.Job
	for _, j := range m.jobs {
		if j.Lane == q.Lane && !j.Status.Finished() && j.Status != core.Waiting && !j.DueAt.After(now) && !m.isParked(j) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *core.Job) int {
		if c := a.DueAt.Compare(b.DueAt); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return due[:min(q.N, len(due))]
}

// holds returns the job, and whether it is running under this lease.
func (m *Model) holds(id core.ID, l core.Lease) (*core.Job, bool) {
	j, ok := m.jobs[id]
	return j, ok && j.Status == core.Running && j.Lease == l
}

// applyOutcome changes a job as its outcome says. A spent job is shown with the attempts that it
// was permitted.
func (m *Model) applyOutcome(j *core.Job, o core.Outcome) {
	j.Status, j.Lease, j.LastError = o.Status, "", o.Attempt.Error
	j.Attempt = min(j.Attempt, j.MaxAttempts)
	j.DueAt, j.FinishedAt = time.Time{}, o.At
	if o.Status == core.Retryable {
		j.DueAt, j.FinishedAt = o.DueAt, time.Time{}
	}
	m.endInLine(j, o)
}

// Recover implements [core.Worklist].
func (m *Model) Recover(_ context.Context, now time.Time, lanes []core.Lane) (int, error) {
	return m.change(func(j *core.Job) bool {
		return j.Status == core.Running && j.DueAt.After(now) && slices.Contains(lanes, j.Lane)
	}, func(j *core.Job) { j.DueAt = now })
}

// Retry implements [core.Upkeep]. An id may name a waiting job, which becomes due. Otherwise only
// dead jobs are revived, and with an id a canceled one. A Retry begins the time of all strays anew.
func (m *Model) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (n int, err error) {
	defer func() { m.audit(ctx, n > 0) }()
	m.mu.Lock()
	clear(m.strays)
	m.mu.Unlock()
	if id != "" {
		n, _ := m.change(func(j *core.Job) bool {
			waits := !j.Status.Finished() && j.Status != core.Running && j.Status != core.Waiting
			return j.ID == id && waits && j.DueAt.After(now) && j.Lane.Workflow() == ""
		}, func(j *core.Job) { j.DueAt = now })
		if n > 0 {
			return n, nil
		}
	}
	return m.changeInOrder(func(j *core.Job) bool {
		dead := j.Status == core.Dead || id != "" && j.Status == core.Canceled
		return dead && j.Lane.Workflow() == "" && (id == "" || j.ID == id) && (lane == "" || j.Lane == lane)
	}, func(j *core.Job) {
		if j.MaxAttempts != core.Unlimited {
			j.MaxAttempts += j.Attempt - j.Earlier
		}
		j.Status, j.Earlier, j.DueAt, j.FinishedAt = core.Available, j.Attempt, now, time.Time{}
		m.reviveInLine(j)
	})
}

// Purge implements [core.Upkeep]. Events without jobs and runs have a limit of their own, and are
// looked for first. So an event whose last job this call deletes counts as part of that job's
// share.
func (m *Model) Purge(_ context.Context, before time.Time, limit int) (n int, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var over []*core.Job
	for _, j := range m.jobs {
		if !j.FinishedAt.IsZero() && j.FinishedAt.Before(before) && !m.stopsLine(j) {
			over = append(over, j)
		}
	}
	n = m.purgeEvents(before, limit, slices.Sorted(maps.Keys(m.events)))
	over = finishedFirst(over)[:min(limit, len(over))]
	events := m.purgeRuns(before, limit)
	n += len(over) + len(events)
	for _, j := range over {
		delete(m.jobs, j.ID)
		delete(m.attempts, j.ID)
		events = append(events, j.EventID)
	}
	n += m.purgeEvents(before, len(events), events)
	m.forgetGates(before)
	return n, n > 0, nil
}

// purgeEvents deletes those of the given events that are older than before and have no jobs and no
// runs. It returns their number. Ids that appear twice count once.
func (m *Model) purgeEvents(before time.Time, limit int, some []core.ID) int {
	var bare []core.ID
	for _, id := range some {
		if e := m.events[id]; !e.CreatedAt.IsZero() && e.CreatedAt.Before(before) && m.jobsOf(id) == 0 && m.runsOf(id) == 0 && !slices.Contains(bare, id) {
			bare = append(bare, id)
		}
	}
	bare = bare[:min(limit, len(bare))]
	for _, id := range bare {
		e := m.events[id]
		delete(m.firsts, delivery{e.Source, e.DeliveryID})
		delete(m.events, id)
	}
	return len(bare)
}

// change applies to to each job that matches, and returns the number of those jobs. It is the
// write of all methods without an order or a limit.
func (m *Model) change(match func(*core.Job) bool, to func(*core.Job)) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if match(j) {
			to(j)
			n++
		}
	}
	return n, nil
}

// changeInOrder is change in the order of ids, for changes that depend on earlier ones.
func (m *Model) changeInOrder(match func(*core.Job) bool, to func(*core.Job)) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if j := m.jobs[id]; match(j) {
			to(j)
			n++
		}
	}
	return n, nil
}

// Event implements [core.Ledger].
func (m *Model) Event(_ context.Context, id core.ID) (core.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.events[id]
	if !ok {
		return e, core.Refuse(core.NotFound, "event not found")
	}
	return e, nil
}

// Events implements [core.Ledger].
func (m *Model) Events(_ context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return list(m.events, f.After, f.Limit, func(e core.Event) (core.Event, bool) {
		return summary(e), selects(f, e)
	}), nil
}

// list returns the page of limit rows below the id after that show selects, newest first. A limit
// of 0 means core.DefaultPage. It looks at all rows.
func list[R, T any](rows map[core.ID]R, after core.ID, limit int, show func(R) (T, bool)) core.Page[T] {
	if limit == 0 {
		limit = core.DefaultPage
	}
	var p core.Page[T]
	for _, id := range newest(slices.Sorted(maps.Keys(rows))) {
		item, ok := show(rows[id])
		if !ok || after != "" && id >= after {
			continue
		}
		if len(p.Items) == limit {
			p.More = true
			break
		}
		p.Items = append(p.Items, item)
	}
	return p
}

// shownAt returns the status with which the Ledger shows a job at a time. It differs from the
// stored status from the due time on.
func shownAt(j *core.Job, now time.Time) core.Status {
	switch {
	case j.DueAt.After(now):
	case j.Status == core.Running:
		return core.Retryable
	case j.Status == core.Scheduled:
		return core.Available
	}
	return j.Status
}

// shown returns a job as the Ledger shows it. It has the run and step as well, if the job is one
// of a workflow.
func (m *Model) shown(j *core.Job) core.Job {
	out := *j
	out.Status = shownAt(j, m.clock())
	if s := m.steps[j.ID]; s != nil {
		out.RunID, out.Step = s.RunID, s.Path
	}
	return out
}

// Job implements [core.Ledger].
func (m *Model) Job(_ context.Context, id core.ID) (core.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.jobs[id]
	if !ok {
		return core.Job{}, core.Refuse(core.NotFound, "job not found")
	}
	return m.shown(j), nil
}

// Jobs implements [core.Ledger].
func (m *Model) Jobs(_ context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return list(m.jobs, f.After, f.Limit, func(row *core.Job) (core.Job, bool) {
		j := m.shown(row)
		return j, (f.Status == "" || j.Status == f.Status) && (f.Lane == "" || j.Lane == f.Lane) &&
			(f.EventID == "" || j.EventID == f.EventID)
	}), nil
}

// Attempts implements [core.Ledger].
func (m *Model) Attempts(_ context.Context, job core.ID, skip, limit int) (out []core.Attempt, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.attempts[job]
	all = all[min(skip, len(all)):]
	for _, a := range all[:min(limit, len(all))] {
		if x := a.Exchange; x != nil {
			bare := *x
			bare.Body, a.Exchange = "", &bare
		}
		out = append(out, a.Attempt)
	}
	return out, nil
}

// Depth implements [core.Ledger].
func (m *Model) Depth(context.Context) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if !j.Status.Finished() {
			n++
		}
	}
	return n, nil
}

// Migrate does nothing: a Model has no schema.
func (m *Model) Migrate(context.Context) error { return nil }

// Schema always reports step 1 of 1.
func (m *Model) Schema(context.Context) (have, want int, err error) { return 1, 1, nil }

// Rehearse returns only the error of ctx: a Model has no statements that could fail.
func (m *Model) Rehearse(ctx context.Context, _ core.Work) error { return ctx.Err() }

// Ping always succeeds.
func (m *Model) Ping(context.Context) error { return nil }

// Close does nothing.
func (m *Model) Close() error { return nil }

// Marks implements [core.Calendar].
func (m *Model) Marks(_ context.Context, sources []string) (map[string]core.Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := map[string]core.Mark{}
	for _, s := range sources {
		if mark, ok := m.marks[s]; ok {
			known[s] = mark
		}
	}
	return known, nil
}

// Mark implements [core.Calendar].
func (m *Model) Mark(_ context.Context, marks ...core.Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mark := range marks {
		stored, ok := m.marks[mark.Source]
		if !ok || stored.Schedule != mark.Schedule || mark.Until.After(stored.Until) {
			m.marks[mark.Source] = mark
		}
	}
	return nil
}
