package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eventgateway/gateway/core"
)

// tb is the part of a test that checks use. *testing.T and *rapid.T implement it, and so does the
// recorder that proves that checks can fail.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
}

// A rig is a store under test with its fixtures. Its methods fail the test on an error, so that a
// check reads as a list of calls and results. If an answer differs from the expected one, a method
// that begins with "want" continues, and one that returns stored things, such as take, ends the test.
type rig struct {
	tb
	store core.Store
	slow  bool
	ids   *core.IDs

	// now is the time of the test. It starts 24 h ahead of the machine's clock, so that no lease
	// of the test is over by the store's own clock and the Ledger shows jobs as they are stored.
	// Checks of expired leases in the Ledger set it back.
	now time.Time

	// lane is the lane of new jobs unless a check names another.
	lane core.Lane

	// workflow is the workflow of new runs unless a check names another.
	workflow string

	stock *stock

	// auditing makes the calls of operators leave audit entries.
	auditing bool

	// oneCaller is set if the name of the check says nothing of concurrent callers.
	oneCaller bool

	// armed are the steps for which the test made a token or a receipt. If it is not nil,
	// [rig.runView] looks up the tokens and receipts of these steps only, since each lookup is a
	// statement.
	armed map[core.ID]bool
}

// leaseTime is the length of the leases of jobs taken by [rig.take].
const leaseTime = time.Minute

// maxAttempts is MaxAttempts of the jobs that fixtures make.
const maxAttempts = 3

// The time of the rig is cut to milliseconds, the resolution at which stores keep times.
func newRig(t tb, s core.Store, o Options) *rig {
	endAtFailure(t)
	now := core.SystemClock().UTC().Truncate(time.Millisecond).Add(24 * time.Hour)
	return &rig{
		tb: t, store: s, slow: o.Slow, now: now, lane: core.HandlerLane("billing"), workflow: defaultWorkflow,
		ids: core.NewIDs(func() time.Time { return now }),
	}
}

// with returns the same rig for a sub-test. The sub-test shares the store and the stock, and has
// failures of its own.
func (r rig) with(t tb) *rig {
	endAtFailure(t)
	r.tb = t
	return &r
}

// scaled returns n, or a quarter of it for a slow store. It never returns less than 2, so that a
// race has two sides and a list has an order.
func (r *rig) scaled(n int) int {
	if r.slow {
		return max(2, n/4)
	}
	return n
}

// event returns a new event. It has no delivery id, which would make a second event a duplicate.
func (r *rig) event() core.Event {
	return core.Event{
		ID: r.ids.Next(), Source: "shop", Type: "order.created",
		Payload: []byte(`{"order": 1}`), ContentType: "application/json",
		Headers:   map[string]string{"ce-type": "order.created", "traceparent": "00-1-2-03"},
		CreatedAt: r.now,
	}
}

// arrival returns a new event with a job in each lane, without keys and with maxAttempts. All ids are of
// one block, as those that intake makes.
func (r *rig) arrival(lanes ...core.Lane) core.Arrival {
	a, ids := core.Arrival{Event: r.event()}, r.ids.Block()
	a.Event.ID = ids.At(0)
	for i, l := range lanes {
		a.Jobs = append(a.Jobs, core.NewJob{ID: ids.At(uint32(i + 1)), Lane: l, MaxAttempts: maxAttempts})
	}
	return a
}

// keyed returns an arrival with one job, in the rig's lane, under a key.
func (r *rig) keyed(key string) core.Arrival {
	a := r.arrival(r.lane)
	a.Jobs[0].Key = key
	return a
}

// delivered returns an arrival with a delivery id and a job in the rig's lane.
func (r *rig) delivered(id string) core.Arrival {
	a := r.arrival(r.lane)
	a.Event.DeliveryID = id
	return a
}

// accept stores an arrival and returns the receipt. It ends the test on an error.
func (r *rig) accept(a core.Arrival) core.Receipt {
	r.Helper()
	got, err := r.store.Accept(context.Background(), a)
	if err != nil {
		r.Fatalf("Accept(%s) failed: %v", a.Event.ID, err)
	}
	return got
}

// accepted accepts an arrival that must not be a duplicate. It returns its jobs as they must be
// stored.
func (r *rig) accepted(a core.Arrival) []core.Job {
	r.Helper()
	want := core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}
	r.equal(fmt.Sprintf("Accept(%s)", a.Event.ID), r.accept(a), want)
	var jobs []core.Job
	for _, n := range a.Jobs {
		jobs = append(jobs, stored(a.Event.ID, a.Event.CreatedAt, n))
	}
	return jobs
}

// stored returns a new job of an event as it must be stored, given the time of the event.
func stored(event core.ID, at time.Time, n core.NewJob) core.Job {
	j := core.Job{ID: n.ID, EventID: event, Lane: n.Lane, Key: n.Key, Status: core.Available, MaxAttempts: n.MaxAttempts, DueAt: at, CreatedAt: at}
	if n.DueAt.After(at) {
		j.Status, j.DueAt = core.Scheduled, n.DueAt
	}
	return j
}

// put stores a new event with one job in the rig's lane and returns the job.
func (r *rig) put() core.Job {
	r.Helper()
	return r.accepted(r.arrival(r.lane))[0]
}

// takeQuotas takes jobs at the rig's time. It returns the taken jobs, and ends the test on an
// error. It accepts any number of jobs.
func (r *rig) takeQuotas(quotas ...core.Quota) []core.TakenJob {
	r.Helper()
	got, err := r.store.Take(context.Background(), r.now, quotas)
	if err != nil {
		r.Fatalf("Take(%v) failed: %v", quotas, err)
	}
	return got
}

// outlooks returns the outlooks of lanes. It ends the test on an error.
func (r *rig) outlooks(lanes ...core.Lane) map[core.Lane]core.Outlook {
	r.Helper()
	got, err := r.store.Due(context.Background(), lanes)
	if err != nil {
		r.Fatalf("Due(%q) failed: %v", lanes, err)
	}
	return got
}

// due returns when lanes are next due. Lanes without unfinished jobs are absent. It is the part of
// the outlooks that checks of due times need.
func (r *rig) due(lanes ...core.Lane) map[core.Lane]time.Time {
	r.Helper()
	due := map[core.Lane]time.Time{}
	for l, o := range r.outlooks(lanes...) {
		if !o.DueAt.IsZero() {
			due[l] = o.DueAt
		}
	}
	return due
}

// strays returns the strays: lanes with unfinished jobs that are not among the known lanes.
func (r *rig) strays(known ...core.Lane) map[core.Lane]time.Time {
	r.Helper()
	got, err := r.store.Strays(context.Background(), r.now, known)
	if err != nil {
		r.Fatalf("Strays(%q) failed: %v", known, err)
	}
	return got
}

// quota is a quota for n jobs of the rig's lane.
func (r *rig) quota(n int) core.Quota { return core.Quota{Lane: r.lane, N: n, Hold: leaseTime} }

// take takes exactly n jobs of the rig's lane. It ends the test if Take returns fewer.
func (r *rig) take(n int) []core.TakenJob {
	r.Helper()
	got := r.takeQuotas(r.quota(n))
	if len(got) != n {
		r.Fatalf("Take(%q, %d) at %s brought %d jobs, want %d", r.lane, n, core.FormatTime(r.now), len(got), n)
	}
	return got
}

// nothingDue checks that a take from the rig's lane returns no jobs.
func (r *rig) nothingDue() {
	r.Helper()
	if got := r.takeQuotas(r.quota(9)); len(got) > 0 {
		r.Errorf("Take(%q, 9) at %s = %v, want none", r.lane, core.FormatTime(r.now), ids(got))
	}
}

// takeOnly takes exactly this job. It ends the test if Take returns another job or several.
func (r *rig) takeOnly(want core.ID, quotas ...core.Quota) core.TakenJob {
	r.Helper()
	got := r.takeQuotas(quotas...)
	if len(got) != 1 || got[0].ID != want {
		r.Fatalf("Take(%v) = %v, want %v", quotas, ids(got), []core.ID{want})
	}
	return got[0]
}

// taken stores a new job and takes it.
func (r *rig) taken() core.TakenJob {
	r.Helper()
	return r.takeOnly(r.put().ID, r.quota(1))
}

// ended is an outcome of a taken job after one second of work, settled now.
func (r *rig) ended(j core.Job, s core.Status) core.Outcome {
	o := core.Outcome{
		JobID: j.ID, Lease: j.Lease, Status: s, At: r.now,
		Attempt: core.Attempt{Number: j.Attempt, StatusCode: 200, Duration: time.Second, StartedAt: r.now.Add(-time.Second)},
	}
	if s != core.Completed {
		o.Attempt.StatusCode, o.Attempt.Error, o.Attempt.Response = 500, "status: 500", "no"
	}
	if s == core.Retryable {
		o.DueAt = r.now.Add(leaseTime)
	}
	return o
}

// settle settles outcomes, none of which may be lost. A lost outcome fails the test.
func (r *rig) settle(outcomes ...core.Outcome) {
	r.Helper()
	if lost := r.lost(outcomes...); len(lost) > 0 {
		r.Errorf("Settle(%v): lost = %v, want none", outcomes, lost)
	}
}

// lost settles outcomes and returns the ids of the jobs whose outcomes were lost.
func (r *rig) lost(outcomes ...core.Outcome) []core.ID {
	r.Helper()
	return r.settlement(outcomes...).Lost
}

// settlement settles outcomes and returns the whole answer. It ends the test on an error.
func (r *rig) settlement(outcomes ...core.Outcome) core.Settlement {
	r.Helper()
	got, err := r.store.Settle(context.Background(), outcomes...)
	if err != nil {
		r.Fatalf("Settle(%v) failed: %v", outcomes, err)
	}
	return got
}

// settled stores a new job, takes it and settles it with a status. It returns the job as stored.
func (r *rig) settled(s core.Status) core.Job {
	r.Helper()
	j := r.taken().Job
	r.settle(r.ended(j, s))
	return r.job(j.ID)
}

// release releases taken jobs, due at the given time.
func (r *rig) release(due time.Time, jobs ...core.Job) {
	r.Helper()
	if err := r.store.Release(context.Background(), due, jobs...); err != nil {
		r.Fatalf("Release failed: %v", err)
	}
}

// recover makes the running jobs of lanes due now, as a process does when it starts and no other
// process uses its database. It returns their number.
func (r *rig) recover(lanes ...core.Lane) int {
	r.Helper()
	n, err := r.store.Recover(context.Background(), r.now, lanes)
	if err != nil {
		r.Fatalf("Recover(%q) failed: %v", lanes, err)
	}
	return n
}

// retry revives the dead job with an id, or all dead jobs of a lane, or all. It returns their
// number.
func (r *rig) retry(id core.ID, lane core.Lane) int {
	r.Helper()
	n, err := r.store.Retry(r.asked(), r.now, id, lane)
	if err != nil {
		r.Fatalf("Retry(%q, %q) failed: %v", id, lane, err)
	}
	return n
}

// purge deletes rows that finished before the rig's time, at most limit of each kind. It returns
// the number of deleted rows, and ignores whether there are more.
func (r *rig) purge(limit int) int {
	r.Helper()
	n, _, err := r.store.Purge(context.Background(), r.now, limit)
	if err != nil {
		r.Fatalf("Purge(%s, %d) failed: %v", core.FormatTime(r.now), limit, err)
	}
	return n
}

// storedEvent returns a stored event, and ends the test if there is none.
func (r *rig) storedEvent(id core.ID) core.Event {
	r.Helper()
	e, err := r.store.Event(context.Background(), id)
	if err != nil {
		r.Fatalf("Event(%s) failed: %v", id, err)
	}
	return e
}

// job returns a stored job as the Ledger shows it, and ends the test if there is none.
func (r *rig) job(id core.ID) core.Job {
	r.Helper()
	j, err := r.store.Job(context.Background(), id)
	if err != nil {
		r.Fatalf("Job(%s) failed: %v", id, err)
	}
	return j
}

// attempts returns the stored attempts of a job with their responses, oldest first.
func (r *rig) attempts(id core.ID) []core.Attempt {
	r.Helper()
	got, err := r.store.Attempts(context.Background(), id, 0, core.MaxPage)
	if err != nil {
		r.Fatalf("Attempts(%s) failed: %v", id, err)
	}
	return got
}

// sourcesOf returns the sources of events; an event that is not stored is absent.
func (r *rig) sourcesOf(events ...core.ID) map[core.ID]string {
	r.Helper()
	got, err := r.store.SourcesOf(context.Background(), events)
	if err != nil {
		r.Fatalf("SourcesOf(%v) failed: %v", events, err)
	}
	return got
}

// events returns one page of events.
func (r *rig) events(f core.EventFilter) core.Page[core.Event] {
	r.Helper()
	p, err := r.store.Events(context.Background(), f)
	if err != nil {
		r.Fatalf("Events(%+v) failed: %v", f, err)
	}
	return p
}

// jobs returns one page of jobs.
func (r *rig) jobs(f core.JobFilter) core.Page[core.Job] {
	r.Helper()
	p, err := r.store.Jobs(context.Background(), f)
	if err != nil {
		r.Fatalf("Jobs(%+v) failed: %v", f, err)
	}
	return p
}

// depth returns the number of unfinished jobs of the whole store, not of the rig's lane.
func (r *rig) depth() int {
	r.Helper()
	n, err := r.store.Depth(context.Background())
	if err != nil {
		r.Fatalf("Depth() failed: %v", err)
	}
	return n
}

// wantJob compares all fields of a stored job. A check that compares the whole job also notices a
// field that the call must not change.
func (r *rig) wantJob(want core.Job) {
	r.Helper()
	r.equal(fmt.Sprintf("Job(%s)", want.ID), r.job(want.ID), want)
}

// wantAbsent checks that neither the event nor any job of an arrival is stored.
func (r *rig) wantAbsent(a core.Arrival) {
	r.Helper()
	if _, err := r.store.Event(context.Background(), a.Event.ID); !core.IsKind(err, core.NotFound) {
		r.Errorf("Event(%s) = %v, want a refusal of kind NotFound", a.Event.ID, err)
	}
	for _, j := range a.Jobs {
		if _, err := r.store.Job(context.Background(), j.ID); !core.IsKind(err, core.NotFound) {
			r.Errorf("Job(%s) = %v, want a refusal of kind NotFound", j.ID, err)
		}
	}
}

// equal compares two values. Times are equal if they are the same instant, and nil is equal to
// empty. The failure begins with the text of the caller, and shows the difference. The test
// continues.
func (r *rig) equal(what string, got, want any) {
	r.Helper()
	diff := cmp.Diff(want, got, equalOptions...)
	if diff != "" {
		r.Errorf("%s = %s, want %s (-want +got)\n%s", what, shortened(got), shortened(want), diff)
	}
}

// equalValues reports whether [rig.equal] would succeed. Checks use it where one of two values is
// permitted.
func equalValues(a, b any) bool { return cmp.Equal(a, b, equalOptions...) }

// equalOptions are the differences that comparisons ignore, such as the names under which a store
// keeps the texts of a step. nil and empty are equal because a store cannot keep the difference in
// most columns.
var equalOptions = []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(core.Step{}, "StateName", "OutputName"), cmpopts.IgnoreFields(core.Transited{}, "StateName"),
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))} // otherwise byte by byte

// shortened returns a value as text of at most 200 bytes and a mark, for messages. Payloads of
// checks are up to some megabytes.
func shortened(v any) string {
	s := fmt.Sprintf("%+v", v)
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// concurrently runs n calls of do at the same time and reports their errors. All goroutines wait
// for one signal before their call, so that the calls overlap as far as the scheduler permits. The
// first error of any caller ends the test.
func (r *rig) concurrently(n int, do func(i int) error) {
	r.Helper()
	if r.oneCaller {
		r.Errorf("this check has concurrent callers, and its name does not say so: see check.concurrent")
	}
	r.together(n, do)
}

// together is concurrently for fixtures: it only stores rows faster.
func (r *rig) together(n int, do func(i int) error) {
	r.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Fatalf("%d callers at once: %v", n, err)
	}
}

// ids returns the ids of jobs or events, in their order, for comparisons that need no more.
func ids[T core.Job | core.TakenJob | core.Event](items []T) []core.ID {
	var out []core.ID
	for _, it := range items {
		switch v := any(it).(type) {
		case core.Job:
			out = append(out, v.ID)
		case core.TakenJob:
			out = append(out, v.ID)
		case core.Event:
			out = append(out, v.ID)
		}
	}
	return out
}
