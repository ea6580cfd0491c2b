package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestStoreIsMeasured: each method calls the same method of the wrapped store, and is measured
// under its own name.
func TestStoreIsMeasured(t *testing.T) {
	m := newMetrics()
	store := reflect.ValueOf(m.Store(&recorder{}))
	capital := regexp.MustCompile(`(.)([A-Z])`)
	for i := range reflect.TypeFor[core.Store]().NumMethod() {
		method := reflect.TypeFor[core.Store]().Method(i)
		if method.Name == "Close" {
			continue
		}
		call := store.MethodByName(method.Name)
		var args []reflect.Value
		for i := range call.Type().NumIn() {
			if in := call.Type().In(i); in == reflect.TypeFor[context.Context]() {
				args = append(args, reflect.ValueOf(t.Context()))
			} else if !call.Type().IsVariadic() || i < call.Type().NumIn()-1 {
				args = append(args, reflect.Zero(in))
			}
		}
		op := strings.ToLower(capital.ReplaceAllString(method.Name, "${1}_$2"))
		var results []reflect.Value
		got := moves(t, m, func() {
			defer func() {
				if broken := recover(); broken != nil {
					t.Fatalf("%s: %v; the recorder of this test has no method %[1]s, or measured.%[1]s fails", method.Name, broken)
				}
			}()
			results = call.Call(args)
		})
		if err := results[len(results)-1].Interface(); fmt.Sprint(err) != method.Name {
			t.Errorf("%s asked for %v", method.Name, err)
		}
		want := []string{`store_duration_seconds_count{op="` + op + `"} +1`, `store_errors_total{op="` + op + `"} +1`}
		if !slices.Equal(got, want) {
			t.Errorf("%s moves %v, want %v", method.Name, got, want)
		}
	}
}

func TestStoreErrorsThatCount(t *testing.T) {
	for _, tt := range []struct {
		err   error
		count bool
	}{
		{nil, false},
		{core.Refuse(core.NotFound, "job not found"), false},
		{fmt.Errorf("ping: %w", context.Canceled), false},
		{context.DeadlineExceeded, true},
		{core.Refuse(core.Unavailable, "away"), true},
		{errors.New("no such table"), true},
	} {
		m := newMetrics()
		s := m.Store(&recorder{fail: func(string) error { return tt.err }})
		var err error
		got := moves(t, m, func() { err = s.Ping(t.Context()) })
		if !errors.Is(err, tt.err) || (len(got) == 2) != tt.count {
			t.Errorf("%v came out as %v and moved %v, want that it counts: %v", tt.err, err, got, tt.count)
		}
	}
}

// A recorder is a store that answers each call with the name of the method.
type recorder struct {
	core.Store
	fail func(method string) error
}

func (f *recorder) answer(method string) error {
	if f.fail != nil {
		return f.fail(method)
	}
	return errors.New(method)
}

func (f *recorder) Accept(context.Context, core.Arrival) (r core.Receipt, err error) {
	return r, f.answer("Accept")
}

func (f *recorder) AcceptAndTake(context.Context, time.Time, core.Arrival, map[core.ID]time.Duration) (r core.Receipt, jobs []core.TakenJob, err error) {
	return r, jobs, f.answer("AcceptAndTake")
}

func (f *recorder) AcceptAll(context.Context, []core.Arrival) (r []core.Receipt, err error) {
	return r, f.answer("AcceptAll")
}

func (f *recorder) Due(context.Context, []core.Lane) (r map[core.Lane]core.Outlook, err error) {
	return r, f.answer("Due")
}

func (f *recorder) Take(context.Context, time.Time, []core.Quota) (r []core.TakenJob, err error) {
	return r, f.answer("Take")
}

func (f *recorder) Settle(context.Context, ...core.Outcome) (r core.Settlement, err error) {
	return r, f.answer("Settle")
}

func (f *recorder) Release(context.Context, time.Time, ...core.Job) error {
	return f.answer("Release")
}

func (f *recorder) Recover(context.Context, time.Time, []core.Lane) (r int, err error) {
	return r, f.answer("Recover")
}

func (f *recorder) Lapsed(context.Context, time.Time, []core.Lane, int) (r []core.TakenJob, err error) {
	return r, f.answer("Lapsed")
}

func (f *recorder) Strays(context.Context, time.Time, []core.Lane) (r map[core.Lane]time.Time, err error) {
	return r, f.answer("Strays")
}

func (f *recorder) Hold(context.Context, time.Time, core.Lane, time.Time, string) error {
	return f.answer("Hold")
}

func (f *recorder) Unhold(context.Context, time.Time, ...core.Lane) (r []core.Lane, err error) {
	return r, f.answer("Unhold")
}

func (f *recorder) Holding(context.Context, time.Time) (r []core.Hold, err error) {
	return r, f.answer("Holding")
}

func (f *recorder) Record(context.Context) error { return f.answer("Record") }

func (f *recorder) Audited(context.Context, core.AuditFilter) (r core.Page[core.AuditEntry], err error) {
	return r, f.answer("Audited")
}

func (f *recorder) PurgeAudit(context.Context, time.Time, int) (int, error) {
	return 0, f.answer("PurgeAudit")
}

func (f *recorder) Lines(context.Context, core.Lane, string, int) (r core.Page[core.LineState], err error) {
	return r, f.answer("Lines")
}

func (f *recorder) BeginOperation(context.Context, core.Operation, core.Arrival) error {
	return f.answer("BeginOperation")
}

func (f *recorder) Operation(context.Context, core.ID) (r core.Operation, err error) {
	return r, f.answer("Operation")
}

func (f *recorder) OperationList(context.Context, core.ID, int) (r core.Page[core.Operation], err error) {
	return r, f.answer("OperationList")
}

func (f *recorder) EndOperation(context.Context, time.Time, core.ID, string) (r core.Operation, err error) {
	return r, f.answer("EndOperation")
}

func (f *recorder) DoSlice(context.Context, time.Time, core.Slice) (r core.Operation, err error) {
	return r, f.answer("DoSlice")
}

func (f *recorder) FinishedJobs(context.Context, core.FinishedWalk) (r []core.Job, err error) {
	return r, f.answer("FinishedJobs")
}

func (f *recorder) KindsOf(context.Context, []core.ID) (r map[core.ID]core.EventKind, err error) {
	return r, f.answer("KindsOf")
}

func (f *recorder) PurgeOperations(context.Context, time.Time) error {
	return f.answer("PurgeOperations")
}

func (f *recorder) CountMinutes(context.Context, core.ID, []core.LaneCounts) error {
	return f.answer("CountMinutes")
}

func (f *recorder) SumMinutes(context.Context, time.Time, time.Time, time.Duration) (r []core.LaneCounts, err error) {
	return r, f.answer("SumMinutes")
}

func (f *recorder) Received(context.Context, time.Time, time.Time, []string) (r map[string]int, err error) {
	return r, f.answer("Received")
}

func (f *recorder) PurgeMinutes(context.Context, time.Time) error {
	return f.answer("PurgeMinutes")
}

func (f *recorder) LinedLanes(context.Context) (r []core.Lane, err error) {
	return r, f.answer("LinedLanes")
}

func (f *recorder) LinesOf(context.Context, core.Lane, int, ...string) (r []core.LineJobs, err error) {
	return r, f.answer("LinesOf")
}

func (f *recorder) AckLined(context.Context, time.Time, core.Lane, int, []core.Ref) (r int, err error) {
	return r, f.answer("AckLined")
}

func (f *recorder) Skip(context.Context, time.Time, core.ID) (r bool, err error) {
	return r, f.answer("Skip")
}

func (f *recorder) Fill(context.Context, time.Time, core.Lane, int, string) (r string, err error) {
	return r, f.answer("Fill")
}

func (f *recorder) CloseBreakers(context.Context, time.Time, ...core.Lane) (r []core.Lane, err error) {
	return r, f.answer("CloseBreakers")
}

func (f *recorder) Ack(context.Context, time.Time, core.Lane, []core.Ref) (r int, err error) {
	return r, f.answer("Ack")
}

func (f *recorder) Extend(context.Context, time.Time, core.Lane, []core.Ref) (r int, err error) {
	return r, f.answer("Extend")
}

func (f *recorder) Held(context.Context, core.Lane, []core.Ref) (r []core.TakenJob, err error) {
	return r, f.answer("Held")
}

func (f *recorder) Marks(context.Context, []string) (r map[string]core.Mark, err error) {
	return r, f.answer("Marks")
}

func (f *recorder) Mark(context.Context, ...core.Mark) error {
	return f.answer("Mark")
}

func (f *recorder) Definition(context.Context, string) (r core.Definition, err error) {
	return r, f.answer("Definition")
}

func (f *recorder) Situations(context.Context, []core.ID) (r map[core.ID]core.Situation, err error) {
	return r, f.answer("Situations")
}

func (f *recorder) Survey(context.Context, core.ID, int, core.Wanted) (r []core.Step, err error) {
	return r, f.answer("Survey")
}

func (f *recorder) Transit(context.Context, ...core.Transition) (r []core.Transited, err error) {
	return r, f.answer("Transit")
}

func (f *recorder) Awaited(context.Context, time.Time, string, string) (r core.Awaiting, err error) {
	return r, f.answer("Awaited")
}

func (f *recorder) Event(context.Context, core.ID) (r core.Event, err error) {
	return r, f.answer("Event")
}

func (f *recorder) Events(context.Context, core.EventFilter) (r core.Page[core.Event], err error) {
	return r, f.answer("Events")
}

func (f *recorder) Job(context.Context, core.ID) (r core.Job, err error) {
	return r, f.answer("Job")
}

func (f *recorder) Jobs(context.Context, core.JobFilter) (r core.Page[core.Job], err error) {
	return r, f.answer("Jobs")
}

func (f *recorder) Failures(context.Context, core.FailureFilter) (r core.Page[core.FailedJob], err error) {
	return r, f.answer("Failures")
}

func (f *recorder) Attempts(context.Context, core.ID, int, int) (r []core.Attempt, err error) {
	return r, f.answer("Attempts")
}

func (f *recorder) SentBody(context.Context, core.ID, int) (r string, err error) {
	return r, f.answer("SentBody")
}

func (f *recorder) SourcesOf(context.Context, []core.ID) (r map[core.ID]string, err error) {
	return r, f.answer("SourcesOf")
}

func (f *recorder) AttemptsOf(context.Context, []core.ID) (r map[core.ID][]core.Attempt, err error) {
	return r, f.answer("AttemptsOf")
}

func (f *recorder) Depth(context.Context) (r int, err error) {
	return r, f.answer("Depth")
}

func (f *recorder) Tallies(context.Context, time.Time, []core.Lane) (r map[core.Lane]core.Tally, err error) {
	return r, f.answer("Tallies")
}

func (f *recorder) Ended(context.Context, []core.Lane) (r map[core.Lane]core.Ended, err error) {
	return r, f.answer("Ended")
}

func (f *recorder) Peek(context.Context, time.Time, core.Lane, int) (r []core.TakenJob, err error) {
	return r, f.answer("Peek")
}

func (f *recorder) DeadLetters(context.Context, core.Lane, core.ID, int) (r core.Page[core.TakenJob], err error) {
	return r, f.answer("DeadLetters")
}

func (f *recorder) Finished(context.Context, time.Time, core.ID, int) (r core.Page[core.Job], err error) {
	return r, f.answer("Finished")
}

func (f *recorder) Completed(context.Context) (r int, err error) {
	return r, f.answer("Completed")
}

func (f *recorder) Nth(context.Context, core.EventFilter, int) (r core.ID, err error) {
	return r, f.answer("Nth")
}

func (f *recorder) Read(context.Context, core.ID, core.EventFilter) (r core.Page[core.Event], err error) {
	return r, f.answer("Read")
}

func (f *recorder) ReadNewest(context.Context, core.EventFilter) (r core.Page[core.Event], err error) {
	return r, f.answer("ReadNewest")
}

func (f *recorder) Newest(context.Context) (id core.ID, finished time.Time, err error) {
	return id, finished, f.answer("Newest")
}

func (f *recorder) JobsOf(context.Context, []core.ID) (r map[core.ID][]core.Job, err error) {
	return r, f.answer("JobsOf")
}

func (f *recorder) Run(context.Context, core.ID) (r core.Run, err error) {
	return r, f.answer("Run")
}

func (f *recorder) Runs(context.Context, core.RunFilter) (r core.Page[core.Run], err error) {
	return r, f.answer("Runs")
}

func (f *recorder) Steps(context.Context, core.ID, int, core.ID, int) (r core.Page[core.Step], err error) {
	return r, f.answer("Steps")
}

func (f *recorder) Outline(context.Context, core.ID, int) (r []core.Step, err error) {
	return r, f.answer("Outline")
}

func (f *recorder) History(context.Context, core.ID, int, int) (r []core.Entry, err error) {
	return r, f.answer("History")
}

func (f *recorder) Cancel(context.Context, time.Time, core.ID) (c core.Cancellation, err error) {
	return c, f.answer("Cancel")
}

func (f *recorder) Retry(context.Context, time.Time, core.ID, core.Lane) (r int, err error) {
	return r, f.answer("Retry")
}

func (f *recorder) Replay(context.Context, time.Time, ...core.Arrival) (r int, err error) {
	return r, f.answer("Replay")
}

func (f *recorder) Turn(context.Context, time.Time, string, time.Duration) (r bool, err error) {
	return r, f.answer("Turn")
}

func (f *recorder) Purge(context.Context, time.Time, int) (r int, more bool, err error) {
	return r, more, f.answer("Purge")
}

func (f *recorder) Drain(context.Context, core.Lane, core.ID, int) (r int, err error) {
	return r, f.answer("Drain")
}

func (f *recorder) Migrate(context.Context) error {
	return f.answer("Migrate")
}

func (f *recorder) Schema(context.Context) (have, want int, err error) {
	return have, want, f.answer("Schema")
}

func (f *recorder) Rehearse(context.Context, core.Work) error {
	return f.answer("Rehearse")
}

func (f *recorder) Ping(context.Context) error {
	return f.answer("Ping")
}
