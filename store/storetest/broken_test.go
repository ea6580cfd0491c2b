package storetest

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// A suite that cannot fail proves nothing. The tests of broken stores run single checks on models
// with one defect each, and require that the checks fail. A new driver is likely to have such
// defects: a missing condition, a look before a write, a wrong order, a limit that is ignored.
// Each defective store is a type that embeds the [Model] and overrides one method.
//
// A check reports to a recorder, not to the test, so that its failure can be required. A check of
// a race may pass by chance, so it has up to twenty attempts.

// TestBrokenStoresFail requires, for each broken store, that the named checks fail on it. If one
// passes, the suite would accept a driver with that defect.
func TestBrokenStoresFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string // checks, by name
	}{
		{"Accept stores a repeated arrival anew", func(m *Model) core.Store { return acceptsAnew{m} },
			[]string{saysAcceptAgain + "/with jobs", "Accept twice is Accept once"}},
		{"Accept looks before it writes", func(m *Model) core.Store { return acceptsLate{m} },
			[]string{saysOneAtATime + "/delivery id", saysOneAtATime + "/key"}},
		{"Accept reserves the keys of a duplicate", func(m *Model) core.Store { return acceptsKeys{m} },
			[]string{saysDelivery + "/the keys of a duplicate stay free"}},
		{"Accept ignores delays", func(m *Model) core.Store { return acceptsAtOnce{m} },
			[]string{saysDelayed + "/beside a job that is due", saysDelayed + "/with a key and a delivery id", saysDelayed + "/a run"}},
		{"Accept folds case", func(m *Model) core.Store { return acceptsFolded{m} },
			[]string{"Delivery ids are compared byte by byte"}},
		{"AcceptAndTake ignores gates", func(m *Model) core.Store { return expressesShut{m} },
			[]string{saysExpressGate + "/a breaker is open or was", saysExpressGate + "/the lane is held or was", saysExpressGate + "/the source is held"}},
		{"AcceptAndTake takes a stored arrival's jobs", func(m *Model) core.Store { return expressesAgain{m} },
			[]string{saysExpressOnce + "/the same arrival"}},
		{"AcceptAndTake is Accept and Take", func(m *Model) core.Store { return expressesAll{m} },
			[]string{saysExpress + "/concurrent callers", saysExpressNot}},
		{"Take ignores its quota", func(m *Model) core.Store { return takesAll{m} },
			[]string{saysTake + "/never more than its quota", saysOneLease}},
		{"Take looks before it writes", func(m *Model) core.Store { return &takesLate{Model: m} }, []string{saysOneLease}},
		{"Take is a millisecond early", func(m *Model) core.Store { return takesEarly{m} },
			[]string{saysDue + "/due time", "A job is due from its due time on", "A lease is over from its end on"}},
		{"Take leaves spent jobs", func(m *Model) core.Store { return takesUnspent{m} }, []string{saysSpent}},
		{"Settle ignores the lease", func(m *Model) core.Store { return settlesAny{m} },
			[]string{saysLost + "/taken again", "Settle under an expired lease and Take: exactly one counts/take first"}},
		{"Settle records again", func(m *Model) core.Store { return settlesTwice{m} },
			[]string{saysSettled + "/immediately", "Settle twice is Settle once"}},
		{"Release ignores the lease", func(m *Model) core.Store { return releasesAny{m} },
			[]string{saysReleaseNo + "/settled", saysReleaseNo + "/taken again"}},
		{"Schema does not know its version", func(m *Model) core.Store { return schemaBehind{m} }, []string{saysSchema}},
		{"Retry revives running jobs", func(m *Model) core.Store { return retriesAny{m} },
			[]string{saysRetryOther, "Retry of a running job changes nothing"}},
		{"Pages skip", func(m *Model) core.Store { return pagesByNumber{m} },
			[]string{saysPages + "/events"}},
		{"Mark moves back", func(m *Model) core.Store { return marksAny{m} },
			[]string{saysForward + "/earlier", saysForward + "/concurrent callers, one mark"}},
		{"Mark ignores the schedule", func(m *Model) core.Store { return marksForward{m} },
			[]string{saysOtherSchedule + "/earlier", saysOtherSchedule + "/alternating"}},
		{"Mark looks before it writes", func(m *Model) core.Store { return marksLate{m} },
			[]string{saysForward + "/concurrent callers, one mark"}},
		{"Marks returns unknown sources", func(m *Model) core.Store { return marksAll{m} }, []string{saysMarks + "/none"}},
		{"Events lists alerts unasked", func(m *Model) core.Store { return showsAlerts{m} }, []string{saysAlerts}},
		{"Take ignores breakers", func(m *Model) core.Store { return takesShut{m} },
			[]string{saysNoPass + "/open", saysNoPass + "/after it closed", saysPaced + "/open"}},
		{"Take starts all at once", func(m *Model) core.Store { return startsAll{m} },
			[]string{saysStarts + "/in sequence", saysStarts + "/concurrent takers"}},
		{"Take consumes starts without taking jobs", func(m *Model) core.Store { return startsNone{m} }, []string{saysStarts + "/nothing is due"}},
		{"Take permits any number of probes", func(m *Model) core.Store { return probesAll{m} },
			[]string{saysOneProbe + "/in sequence", saysOneProbe + "/concurrently"}},
		{"Settle counts lost outcomes", func(m *Model) core.Store { return judgesLost{m} },
			[]string{saysVerdicts + "/lost outcomes do not count", saysRise + "/lost", saysVerdicts + "/once"}},
		{"Settle counts every outcome as the newest probe's", func(m *Model) core.Store { return judgesAll{m} },
			[]string{saysNewest + "/deliveries that are no probe", saysNewest + "/older probe"}},
		{"Release keeps a probe's time", func(m *Model) core.Store { return releasesJobs{m} }, []string{saysProbeBack}},
		{"Take ignores holds", func(m *Model) core.Store { return takesHeld{m} },
			[]string{saysNotHeld, saysHold + "/until a time", saysHold + "/an open breaker"}},
		{"Hold begins anew", func(m *Model) core.Store { return holdsAfresh{m} }, []string{saysHoldKeeps}},
		{"Unhold leaves out the ramp", func(m *Model) core.Store { return unholdsAbruptly{m} }, []string{saysUnhold}},
		{"Unhold returns every lane", func(m *Model) core.Store { return unholdsAll{m} }, []string{saysUnhold + "/some lanes", saysUnholdSame}},
		{"CloseBreakers leaves out the ramp", func(m *Model) core.Store { return closesAbruptly{m} }, []string{saysCloses}},
		{"CloseBreakers returns every lane", func(m *Model) core.Store { return closesAll{m} }, []string{saysClosed}},
		{"Settle ignores breaker settings", func(m *Model) core.Store { return judgesByDefault{m} },
			[]string{saysOpens + "/other breaker settings", saysOpens + "/breaker settings change", saysNewest + "/a failure, other breaker settings"}},
		{"Settle forgets an opening when the breaker closes", func(m *Model) core.Store { return forgetsOpenings{m} }, []string{saysOpenings}},
		{"Settle counts failed probes as openings", func(m *Model) core.Store { return opensAnew{m} }, []string{saysOpenings}},
		{"Strays forgets since when a lane is a stray", func(m *Model) core.Store { return straysAnew{m} }, []string{saysStrays}},
		{"Strays never ends a lane's time as a stray", func(m *Model) core.Store { return straysKept{m} }, []string{saysKnown}},
		{"Strays closes breakers at once", func(m *Model) core.Store { return straysClose{m} }, []string{saysSetBack + "/not before StrayTime"}},
		{"Strays leaves gates as they are", func(m *Model) core.Store { return straysLeave{m} }, []string{saysSetBack}},
		{"Retry keeps strays' times", func(m *Model) core.Store { return retriesStrays{m} },
			[]string{saysRetryStray + "/one", saysRetryStray + "/of a lane"}},
		{"Take ignores a breaker closed by a fast clock", func(m *Model) core.Store { return takesAhead{m} },
			[]string{saysNoPass + "/closed by a fast clock"}},
		{"Ack ignores the lease", func(m *Model) core.Store { return acksAny{m} },
			[]string{saysNoRef + "/taken again", "Ack under an expired lease and Take: exactly one counts/concurrently"}},
		{"Ack ignores the lane", func(m *Model) core.Store { return acksElsewhere{m} }, []string{saysNoRef + "/of another lane"}},
		{"Ack completes jobs that do not run", func(m *Model) core.Store { return acksResting{m} },
			[]string{saysNoRef + "/not running"}},
		{"Ack counts refs", func(m *Model) core.Store { return acksTwice{m} },
			[]string{saysSameJob + "/the same ref", saysSameJob + "/by lease and by id", saysSameJob + "/beside an older lease"}},
		{"Ack counts before it writes", func(m *Model) core.Store { return acksLate{m} },
			[]string{saysOneAck, saysOneAck + "/many each"}},
		{"Ack counts nothing beside other callers", func(m *Model) core.Store { return acksTogether{m, new(atomic.Int64)} },
			[]string{saysAck + "/concurrent callers"}},
		{"Ack keeps the last error", func(m *Model) core.Store { return acksFailed{m} }, []string{saysAck + "/after a failure"}},
		{"Extend ignores the lease", func(m *Model) core.Store { return extendsAny{m} },
			[]string{saysNoRef + "/taken again", "Extend of an expired lease and Take: exactly one counts/concurrently"}},
		{"Extend makes new leases", func(m *Model) core.Store { return extendsAnew{m} }, []string{saysLeaseKept, saysLeaseKept + "/by id"}},
		{"Extend moves ends only forward", func(m *Model) core.Store { return extendsLater{m} },
			[]string{saysExtend + "/earlier", saysExtend + "/into the past"}},
		{"Extend counts only changed rows", func(m *Model) core.Store { return extendsChanges{m} }, []string{saysExtend + "/to the same time"}},
		{"Held keeps the order of refs", func(m *Model) core.Store { return heldUnsorted{m} },
			[]string{saysHeld + "/in order", saysSameJob + "/the same ref"}},
		{"Lapsed is a millisecond early", func(m *Model) core.Store { return lapsesEarly{m} }, []string{saysLapsed}},
		{"Lapsed brings jobs with attempts left", func(m *Model) core.Store { return lapsesAll{m} }, []string{saysLapsed}},
		{"Lapsed has a limit for each lane", func(m *Model) core.Store { return lapsesEachLane{m} }, []string{saysLapsed + "/limit"}},
		{"Tallies counts jobs whose lease is over as processing", func(m *Model) core.Store { return talliesRunning{m} },
			[]string{saysTallies, saysTallies + "/at the given time"}},
		{"Tallies leaves empty lanes out", func(m *Model) core.Store { return talliesSome{m} }, []string{saysNoTally}},
		{"Peek takes", func(m *Model) core.Store { return peeksAndTakes{m} },
			[]string{saysPeek, saysPeek + "/unchanged jobs", saysPeek + "/writes nothing"}},
		{"Peek shows leases that are over as running", func(m *Model) core.Store { return peeksStored{m} }, []string{saysPeek + "/lease over"}},
		{"DeadLetters shows all lanes", func(m *Model) core.Store { return buriesAnywhere{m} }, []string{saysDead + "/of the lane"}},
		{"DeadLetters has no bound", func(m *Model) core.Store { return buriesLarge{m} }, []string{saysDeadBytes}},
		{"Peek has no bound", func(m *Model) core.Store { return peeksLarge{m} }, []string{saysPeekBytes}},
		{"Take has no bound", func(m *Model) core.Store { return takesLarge{m} }, []string{saysBytes, saysFirst}},
		{"Drain deletes completed jobs", func(m *Model) core.Store { return drainsCompleted{m} }, []string{saysDrain}},
		{"Drain leaves attempts", func(m *Model) core.Store { return drainsTries{m} }, []string{saysDrain}},
		{"Drain deletes new jobs", func(m *Model) core.Store { return drainsNew{m} }, []string{saysDrain + "/below the id"}},
		{"Drain leaves running jobs", func(m *Model) core.Store { return drainsWaiting{m} }, []string{saysDrain, saysDrainHeld}},
		{"Drain counts selected jobs", func(m *Model) core.Store { return drainsPicked{m} }, []string{saysDrain + "/concurrent callers"}},
		{"Drain deletes events", func(m *Model) core.Store { return drainsEvents{m} }, []string{saysDrainEvents}},
		{"More is true for each full page", func(m *Model) core.Store { return pagesMore{m} }, []string{"A limit of 0 means DefaultPage/events"}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c := find(t, name)
				// A race may go well once. It must fail in one of twenty rounds.
				failed := false
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

// TestFaultsFailWithoutAtomicBatches runs the fault tests on a connection that runs the statements
// of a batch one by one, as a proxy does that takes one statement a call. RunFaults must fail on
// it. Each driver's own tests show that RunFaults passes a connection with atomic batches.
func TestFaultsFailWithoutAtomicBatches(t *testing.T) {
	for _, how := range []faultKind{refuseStmt, loseAnswer} {
		conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
		if err != nil {
			t.Fatal(err)
		}
		f := &Fault{}
		s := store.New(oneByOne{Faulty(conn, f)}, store.SQLite, core.SystemClock)
		defer s.Close()
		if err := s.Migrate(context.Background()); err != nil {
			t.Fatal(err)
		}
		if failure(func(t tb) { eachInTurn(newRig(t, s, Options{}), f, how, 1) }) == "" {
			t.Errorf("with fault %d RunFaults passes a connection that runs one statement at a time", how)
		}
	}
}

// oneByOne is a connection whose batches are not atomic: a failure leaves the statements before
// it.
type oneByOne struct{ store.Conn }

func (c oneByOne) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	var out []store.Result
	for _, s := range stmts {
		got, err := c.Conn.Batch(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// find returns the check of that name. If the checks of its role share a stock, the returned
// check fills a stock of its own.
func find(t *testing.T, name string) check {
	for _, g := range roles() {
		for _, c := range g.checks {
			if c.name() != name {
				continue
			}
			if run := c.run; g.stock != nil {
				c.run = func(r *rig) { g.stock(r); run(r) }
			}
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return check{}
}

// A recorder is a tb whose failures do not fail the test that uses it. Fatalf ends the goroutine
// of the check, so a check runs in a goroutine of its own.
type recorder struct {
	mu    sync.Mutex
	first string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == "" {
		r.first = fmt.Sprintf(format, args...)
	}
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first != ""
}

// failure runs a check until its end or its first fatal failure, and returns the text of the
// first failure, or "" if the check passed.
func failure(run func(tb)) string {
	var r recorder
	var wg sync.WaitGroup
	wg.Go(func() { run(&r) })
	wg.Wait()
	return r.first
}

// acceptsAnew stores a repeated arrival once more, under new ids.
type acceptsAnew struct{ *Model }

func (s acceptsAnew) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if _, err := s.Model.Event(ctx, a.Event.ID); err == nil {
		a.Event.ID += "'"
		a.Event.DeliveryID = ""
		jobs := a.Jobs
		a.Jobs = nil
		for _, j := range jobs {
			j.ID, j.Key = j.ID+"'", ""
			a.Jobs = append(a.Jobs, j)
		}
	}
	return s.Model.Accept(ctx, a)
}

// acceptsLate looks for duplicates before other calls write, and stores its event after them.
type acceptsLate struct{ *Model }

// Accept reads and writes under two separate locks, so that other calls come in between.
func (s acceptsLate) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	s.mu.Lock()
	first := s.delivered(a.Event)
	for _, n := range a.Jobs {
		first = earlier(first, s.keyed(n))
	}
	s.mu.Unlock()
	if first != "" && first != a.Event.ID {
		return core.Receipt{EventID: first, Duplicate: true}, nil
	}
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeEvent(a.Event)
	for _, n := range a.Jobs {
		s.jobs[n.ID] = &core.Job{ID: n.ID, EventID: a.Event.ID, Lane: n.Lane, Key: n.Key, Status: core.Available}
	}
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// acceptsKeys keeps the keys of a refused duplicate in use.
type acceptsKeys struct{ *Model }

func (s acceptsKeys) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	got, err := s.Model.Accept(ctx, a)
	if got.Duplicate {
		for _, n := range a.Jobs {
			s.jobs[n.ID] = &core.Job{ID: n.ID, EventID: got.EventID, Lane: n.Lane, Key: n.Key, Status: core.Dead}
		}
	}
	return got, err
}

// acceptsAtOnce makes delayed jobs due at once.
type acceptsAtOnce struct{ *Model }

func (s acceptsAtOnce) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	a.Jobs = slices.Clone(a.Jobs)
	for i := range a.Jobs {
		a.Jobs[i].DueAt = time.Time{}
	}
	return s.Model.Accept(ctx, a)
}

// acceptsFolded takes delivery ids that differ in case for the same.
type acceptsFolded struct{ *Model }

func (s acceptsFolded) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if a.Event.DeliveryID == "BILLING" {
		a.Event.DeliveryID = "billing"
	}
	return s.Model.Accept(ctx, a)
}

// takesAll ignores the number in a quota and takes up to 1,000 jobs.
type takesAll struct{ *Model }

func (s takesAll) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	var more []core.Quota
	for _, q := range quotas {
		q.N = 1000
		more = append(more, q)
	}
	return s.Model.Take(ctx, now, more)
}

// takesLate returns the jobs of the previous Take once more.
type takesLate struct {
	*Model
	mu   sync.Mutex
	last []core.TakenJob
}

func (s *takesLate) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	got, err := s.Model.Take(ctx, now, quotas)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) > 0 && len(got) > 0 {
		got[0], s.last = s.last[0], nil
		got[0].Lease += "'"
		return got, err
	}
	s.last = got
	return got, err
}

// takesEarly compares due times with a clock that is a millisecond ahead.
type takesEarly struct{ *Model }

func (s takesEarly) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	return s.Model.Take(ctx, now.Add(time.Millisecond), quotas)
}

// takesUnspent leases spent jobs and does not return them, so no worker ends them.
type takesUnspent struct{ *Model }

func (s takesUnspent) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	got, err := s.Model.Take(ctx, now, quotas)
	var tried []core.TakenJob
	for _, j := range got {
		if !j.Spent() {
			tried = append(tried, j)
		}
	}
	return tried, err
}

// settlesAny settles a running job under any lease.
type settlesAny struct{ *Model }

func (s settlesAny) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for i, o := range outcomes {
		if j, ok := s.jobs[o.JobID]; ok && j.Status == core.Running {
			outcomes[i].Lease = j.Lease
		}
	}
	return s.Model.Settle(ctx, outcomes...)
}

// settlesTwice records an attempt again with each repetition of the outcome.
type settlesTwice struct{ *Model }

func (s settlesTwice) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	settled, err := s.Model.Settle(ctx, outcomes...)
	for _, o := range outcomes {
		if before := s.attempts[o.JobID]; len(before) > 0 && s.jobs[o.JobID].Lease == "" {
			s.attempts[o.JobID] = append(before, leased{o.Attempt, "another"})
		}
	}
	return settled, err
}

// releasesAny releases a job in any state and under any lease.
type releasesAny struct{ *Model }

func (s releasesAny) Release(_ context.Context, due time.Time, jobs ...core.Job) error {
	for _, j := range jobs {
		stored := s.jobs[j.ID]
		stored.Status, stored.Lease, stored.DueAt = core.Available, "", due
		stored.Attempt--
	}
	return nil
}

// retriesAny makes jobs of any status available.
type retriesAny struct{ *Model }

func (s retriesAny) Retry(_ context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	return s.change(func(j *core.Job) bool {
		return (id == "" || j.ID == id) && (lane == "" || j.Lane == lane)
	}, func(j *core.Job) { j.Status, j.Lease, j.DueAt = core.Available, "", now })
}

// pagesByNumber treats After as a number of rows to skip.
type pagesByNumber struct{ *Model }

func (s pagesByNumber) Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	after := f.After
	f.After = ""
	limit := max(f.Limit, 1)
	f.Limit = core.MaxPage
	p, err := s.Model.Events(ctx, f)
	from := 0
	for i, e := range p.Items {
		if e.ID == after {
			from = i + 2
		}
	}
	from = min(from, len(p.Items))
	end := min(from+limit, len(p.Items))
	return core.Page[core.Event]{Items: p.Items[from:end], More: end < len(p.Items)}, err
}

// pagesMore takes each full page for one of several.
type pagesMore struct{ *Model }

func (s pagesMore) Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	p, err := s.Model.Events(ctx, f)
	p.More = len(p.Items) == core.DefaultPage
	return p, err
}

// marksAny stores each mark, also an earlier one.
type marksAny struct{ *Model }

func (s marksAny) Mark(ctx context.Context, marks ...core.Mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range marks {
		s.marks[m.Source] = m
	}
	return nil
}

// marksForward moves marks forward only, also if the schedule differs.
type marksForward struct{ *Model }

func (s marksForward) Mark(_ context.Context, marks ...core.Mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range marks {
		if m.Until.After(s.marks[m.Source].Until) {
			s.marks[m.Source] = m
		}
	}
	return nil
}

// marksLate reads and writes under two separate locks, so that other calls come in between.
type marksLate struct{ *Model }

func (s marksLate) Mark(ctx context.Context, marks ...core.Mark) error {
	for _, m := range marks {
		before, _ := s.Marks(ctx, []string{m.Source})
		runtime.Gosched()
		if b := before[m.Source]; b.Schedule != m.Schedule || m.Until.After(b.Until) {
			s.mu.Lock()
			s.marks[m.Source] = m
			s.mu.Unlock()
		}
	}
	return nil
}

// marksAll returns a zero mark for an unknown source.
type marksAll struct{ *Model }

func (s marksAll) Marks(ctx context.Context, sources []string) (map[string]core.Mark, error) {
	known, err := s.Model.Marks(ctx, sources)
	for _, source := range sources {
		m := known[source]
		m.Source = source
		known[source] = m
	}
	return known, err
}

// showsAlerts lists alerts among other events.
type showsAlerts struct{ *Model }

func (s showsAlerts) Events(_ context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return list(s.events, f.After, f.Limit, func(e core.Event) (core.Event, bool) {
		return summary(e), (f.Source == "" || e.Source == f.Source) && (f.Type == "" || e.Type == f.Type)
	}), nil
}
