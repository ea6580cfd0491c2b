package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of operations, the bulk work of operators. A failure means that a job is tried or
// canceled twice, that a consumer gets an event twice, or that an operation leaves matches out.

const (
	saysBegin        = "BeginOperation stores an operation, and the arrival whose job does it, whole or not at all"
	saysBeginAgain   = "Beginning the same operation again changes nothing"
	saysOperation    = "Operation returns one operation"
	saysNoOperation  = "A missing operation is refused as NotFound"
	saysOperations   = "OperationList lists operations newest first; if after is set, only those below that id"
	saysEnd          = "EndOperation makes a running operation canceled, or failed if why is not empty, and returns the operation"
	saysEnded        = "An operation in a final state stays as it is"
	saysNoMore       = "No slice that is sent after it changes anything"
	saysSlice        = "DoSlice acts on the matches of a slice and counts them in one commit, and returns the operation afterwards"
	saysFence        = "It changes nothing if the operation is not running, or if its Seq is not that of the slice"
	saysOneSlice     = "So of several slices with one Seq, and however often each is sent, exactly one takes effect"
	saysSliceActs    = "A retry revives jobs as [Operations.Retry] does, and a cancel ends them as [Operations.Cancel] does"
	saysSliceStatus  = "A job is acted on only if its status allows that when the slice takes effect, and if no other transaction locks it"
	saysSliceSteps   = "Steps of workflows are left alone, and so are the jobs of operations"
	saysSliceReplays = "A replay stores new jobs as [Operations.Replay] does, for the events that are still stored"
	saysSliceAll     = "The cursor, the state and the counts of the slice are stored only if the slice acted on all of its jobs"
	saysSliceGone    = "An event that is not stored any more is no match"
	saysWalk         = "FinishedJobs returns jobs of a walk, lane by lane in the order of their names, and in each lane in the order of their ids"
	saysWalkEnd      = "Fewer than Limit jobs are the last ones"
	saysWalkSteps    = "It does not return the jobs of workflows"
	saysKinds        = "KindsOf returns the sources and types of events by their ids"
	saysNoKinds      = "Events that are not stored are absent"
	saysPurgeOps     = "PurgeOperations deletes operations that reached a final state before the given time"
)

// operationLog are the checks of core.OperationLog.
var operationLog = role{name: "OperationLog", checks: []check{
	{saysBegin, "", beginOperation},
	{saysBeginAgain, "", beginAgain},
	{saysOperation, "", everyField},
	{saysNoOperation, "", noOperation},
	{saysOperations, "", listOperations},
	{saysEnd, "", endOperation},
	{saysEnded, "", endedStays},
	{saysNoMore, "", noSliceAfterEnd},
	{saysSlice, "", countSlices},
	{saysSlice, "that ends the operation", lastSlice},
	{saysFence, "", fencedSlice},
	{saysOneSlice, "", sliceTwice},
	{saysOneSlice, "of lines", sliceTwiceLined},
	{saysOneSlice, "of events", sliceTwiceReplay},
	{saysOneSlice, "two workers at the same time", raceSlices},
	{saysSliceActs, "dead and canceled jobs", sliceRetries},
	{saysSliceActs, "waiting jobs", sliceCancels},
	{saysSliceActs, "dead jobs of lines", sliceRetriesLined},
	{saysSliceActs, "waiting jobs of lines", sliceCancelsLined},
	{saysSliceActs, "strays", sliceForgetsStrays},
	{saysSliceStatus, "", sliceStatus},
	{saysSliceStatus, "while others take and settle", raceSliceTake},
	{saysSliceSteps, "", sliceSteps},
	{saysSliceReplays, "", sliceReplays},
	{saysSliceReplays, "jobs of lines, later ones, and runs", sliceReplaysAll},
	{saysSliceAll, "", partOfSlice},
	{saysSliceGone, "", sliceOfPurged},
	{saysWalk, "", walkFinished},
	{saysWalkEnd, "", walkPages},
	{saysWalkSteps, "", walkSteps},
	{saysKinds, "", kindsOf},
	{saysNoKinds, "", kindsOfNone},
	{saysPurgeOps, "", purgeOperations},
}}

// newOperation returns an operation that has not begun, and the arrival that does it.
func (r *rig) newOperation(action core.Action) (core.Operation, core.Arrival) {
	e := r.event()
	e.Source, e.Type = core.AlertSource, core.OperationEvent+string(action)
	a := core.Arrival{Event: e, Jobs: []core.NewJob{{ID: r.ids.Next(), Lane: core.OperationLane, MaxAttempts: core.Unlimited}}}
	return core.Operation{ID: e.ID, Action: action, Rate: core.DefaultRate, CreatedAt: r.now, State: core.OperationRunning}, a
}

// begun stores a new operation and returns it.
func (r *rig) begun(action core.Action) core.Operation {
	r.Helper()
	op, a := r.newOperation(action)
	r.begin(op, a)
	return op
}

func (r *rig) begin(op core.Operation, a core.Arrival) {
	r.Helper()
	if err := r.store.BeginOperation(r.asked(), op, a); err != nil {
		r.Fatalf("BeginOperation failed: %v", err)
	}
}

func (r *rig) operation(id core.ID) core.Operation {
	r.Helper()
	op, err := r.store.Operation(context.Background(), id)
	if err != nil {
		r.Fatalf("Operation(%s) failed: %v", id, err)
	}
	return op
}

func (r *rig) endOperation(id core.ID, why string) core.Operation {
	r.Helper()
	op, err := r.store.EndOperation(r.asked(), r.now, id, why)
	if err != nil {
		r.Fatalf("EndOperation(%s) failed: %v", id, err)
	}
	return op
}

// slice returns a slice of an operation that goes on after it.
func (r *rig) slice(op core.Operation, jobs ...core.Job) core.Slice {
	return core.Slice{Operation: op, Mark: r.ids.Next(), Jobs: jobs, Cursor: "next", Looked: len(jobs) + 1, Skipped: 1, State: core.OperationRunning}
}

// do sends a slice at the rig's time.
func (r *rig) do(s core.Slice) core.Operation {
	r.Helper()
	op, err := r.store.DoSlice(context.Background(), r.now, s)
	if err != nil {
		r.Fatalf("DoSlice failed: %v", err)
	}
	return op
}

func (r *rig) walk(w core.FinishedWalk) []core.Job {
	r.Helper()
	if w.Below == "" {
		w.Below = newestID
	}
	if w.Limit == 0 {
		w.Limit = core.MaxPage
	}
	jobs, err := r.store.FinishedJobs(context.Background(), w)
	if err != nil {
		r.Fatalf("FinishedJobs failed: %v", err)
	}
	return jobs
}

// stateOf returns the jobs of a lane with all their fields, to compare them later.
func (r *rig) stateOf(some ...core.ID) (jobs []core.Job) {
	r.Helper()
	for _, id := range some {
		jobs = append(jobs, r.job(id))
	}
	return jobs
}

func beginOperation(r *rig) {
	op, a := r.newOperation(core.RetryAction)
	r.begin(op, a)
	r.equal("Operation", r.operation(op.ID), op)
	r.equal("event", r.storedEvent(a.Event.ID), a.Event)
	r.wantJob(stored(a.Event.ID, r.now, a.Jobs[0]))
	r.lane = core.OperationLane
	r.takeOnly(a.Jobs[0].ID, r.quota(5))
}

func beginAgain(r *rig) {
	op, a := r.newOperation(core.RetryAction)
	r.begin(op, a)
	job := r.settled(core.Dead)
	after := r.do(r.slice(op, job))
	r.begin(op, a)
	r.equal("Operation", r.operation(op.ID), after)
	r.lane = core.OperationLane
	r.takeOnly(a.Jobs[0].ID, r.quota(5))
}

// Each field is stored, and the fields of another operation stay apart.
func everyField(r *rig) {
	op, a := r.newOperation(core.ReplayAction)
	op.Filter = core.OperationFilter{Lane: "handler/x", Status: "dead", Source: "shop", Type: "order.created", Since: r.now.Add(-time.Hour), Until: r.now,
		Error: "50%_'\"", Match: `$.a == "b"`, DeliveryID: "evt'1", First: r.ids.Next(), Last: r.ids.Next()}
	op.To, op.Rate, op.By = []core.Lane{"handler/a", "queue/b"}, 7, "ops"
	r.begin(op, a)
	r.begun(core.CancelAction)
	r.equal("Operation", r.operation(op.ID), op)
}

func noOperation(r *rig) {
	id := r.ids.Next()
	_, err := r.store.Operation(context.Background(), id)
	_, ended := r.store.EndOperation(context.Background(), r.now, id, "")
	_, done := r.store.DoSlice(context.Background(), r.now, r.slice(core.Operation{ID: id, Action: core.RetryAction}))
	for what, err := range map[string]error{"Operation": err, "EndOperation": ended, "DoSlice": done} {
		if !core.IsKind(err, core.NotFound) {
			r.Errorf("%s of a missing operation = %v, want a refusal of kind NotFound", what, err)
		}
	}
}

func listOperations(r *rig) {
	a, b, c := r.begun(core.RetryAction), r.begun(core.CancelAction), r.begun(core.RedriveAction)
	list := func(after core.ID, limit int) core.Page[core.Operation] {
		p, err := r.store.OperationList(context.Background(), after, limit)
		if err != nil {
			r.Fatalf("OperationList failed: %v", err)
		}
		return p
	}
	r.equal("OperationList", list("", 0), core.Page[core.Operation]{Items: []core.Operation{c, b, a}})
	r.equal("OperationList of two", list("", 2), core.Page[core.Operation]{Items: []core.Operation{c, b}, More: true})
	r.equal("OperationList after the second", list(b.ID, 2), core.Page[core.Operation]{Items: []core.Operation{a}})
}

func endOperation(r *rig) {
	for _, why := range []string{"", "the filter is wrong"} {
		want := r.begun(core.RetryAction)
		r.now = r.now.Add(time.Second)
		want.State, want.Error, want.FinishedAt = core.OperationCanceled, why, r.now
		if why != "" {
			want.State = core.OperationFailed
		}
		r.equal("EndOperation", r.endOperation(want.ID, why), want)
		r.equal("Operation", r.operation(want.ID), want)
	}
}

func endedStays(r *rig) {
	op := r.begun(core.RetryAction)
	ended := r.endOperation(op.ID, "")
	r.now = r.now.Add(time.Second)
	r.equal("EndOperation again", r.endOperation(op.ID, "why"), ended)
	op = r.begun(core.RetryAction)
	s := r.slice(op)
	s.State = core.OperationFinished
	done := r.do(s)
	r.now = r.now.Add(time.Second)
	r.equal("EndOperation of a finished one", r.endOperation(op.ID, ""), done)
}

func noSliceAfterEnd(r *rig) {
	op, job := r.begun(core.RetryAction), r.settled(core.Dead)
	ended := r.endOperation(op.ID, "")
	r.equal("DoSlice", r.do(r.slice(op, job)), ended)
	r.wantJob(job)
}

func countSlices(r *rig) {
	op := r.begun(core.RetryAction)
	first, second := r.settled(core.Dead), r.settled(core.Dead)
	r.now = r.now.Add(time.Second)
	want := op
	want.Seq, want.Cursor, want.Looked, want.Acted, want.Skipped, want.StartedAt = 1, "next", 3, 2, 1, r.now
	got := r.do(r.slice(op, first, second))
	r.equal("DoSlice", got, want)
	r.equal("Operation", r.operation(op.ID), want)
	r.now = r.now.Add(time.Second)
	s := r.slice(got)
	s.Cursor, s.Looked, s.Skipped, s.Acted = "later", 10, 2, 4
	want.Seq, want.Cursor, want.Looked, want.Acted, want.Skipped = 2, "later", 13, 6, 3
	r.equal("DoSlice without jobs", r.do(s), want)
}

func lastSlice(r *rig) {
	op := r.begun(core.CancelAction)
	s := r.slice(op, r.put())
	s.State, s.Error = core.OperationFailed, "enough"
	want := op
	want.Seq, want.Cursor, want.Looked, want.Acted, want.Skipped, want.StartedAt = 1, "next", 2, 1, 1, r.now
	want.State, want.Error, want.FinishedAt = core.OperationFailed, "enough", r.now
	r.equal("DoSlice", r.do(s), want)
}

func fencedSlice(r *rig) {
	op := r.begun(core.RetryAction)
	first, second := r.settled(core.Dead), r.settled(core.Dead)
	after := r.do(r.slice(op, first))
	r.equal("DoSlice with an old Seq", r.do(r.slice(op, second)), after)
	r.wantJob(second)
	early := after
	early.Seq++
	r.equal("DoSlice with a Seq to come", r.do(r.slice(early, second)), after)
	r.wantJob(second)
	r.equal("DoSlice", r.do(r.slice(after, second)).Acted, 2)
}

// A slice is sent again after the jobs that it revived have died again, and after the jobs that it
// canceled were revived.
func sliceTwice(r *rig) {
	op := r.begun(core.RetryAction)
	s := r.slice(op, r.settled(core.Dead), r.canceledJob())
	after := r.do(s)
	var outcomes []core.Outcome
	for _, j := range r.take(2) {
		outcomes = append(outcomes, r.ended(j.Job, core.Dead))
	}
	r.settle(outcomes...)
	before := r.stateOf(ids(s.Jobs)...)
	r.now = r.now.Add(time.Second)
	r.equal("DoSlice again", r.do(s), after)
	r.equal("jobs", r.stateOf(ids(s.Jobs)...), before)

	op = r.begun(core.CancelAction)
	s = r.slice(op, r.put())
	after = r.do(s)
	r.retry(s.Jobs[0].ID, "")
	before = r.stateOf(ids(s.Jobs)...)
	r.equal("DoSlice again", r.do(s), after)
	r.equal("jobs", r.stateOf(ids(s.Jobs)...), before)
}
