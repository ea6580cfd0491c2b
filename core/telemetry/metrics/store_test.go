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
	store := reflect.ValueOf(m.Store(&oracle{}))
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
					t.Fatalf("%s: %v; the oracle of this test has no method %[1]s, or measured.%[1]s fails", method.Name, broken)
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
		s := m.Store(&oracle{mood: func(string) error { return tt.err }})
		var err error
		got := moves(t, m, func() { err = s.Ping(t.Context()) })
		if !errors.Is(err, tt.err) || (len(got) == 2) != tt.count {
			t.Errorf("%v came out as %v and moved %v, want that it counts: %v", tt.err, err, got, tt.count)
		}
	}
}

// An oracle is a store that answers each call with the name of the method.
type oracle struct {
	core.Store
	mood func(method string) error
}

func (f *oracle) told(method string) error {
	if f.mood != nil {
		return f.mood(method)
	}
	return errors.New(method)
}

func (f *oracle) Accept(context.Context, core.Arrival) (r core.Receipt, err error) {
	return r, f.told("Accept")
}

func (f *oracle) AcceptAll(context.Context, []core.Arrival) (r []core.Receipt, err error) {
	return r, f.told("AcceptAll")
}

func (f *oracle) Due(context.Context, []core.Lane) (r map[core.Lane]core.Outlook, err error) {
	return r, f.told("Due")
}

func (f *oracle) Take(context.Context, time.Time, []core.Quota) (r []core.TakenJob, err error) {
	return r, f.told("Take")
}

func (f *oracle) Settle(context.Context, ...core.Outcome) (r core.Settlement, err error) {
	return r, f.told("Settle")
}

func (f *oracle) Release(context.Context, time.Time, ...core.Job) error {
	return f.told("Release")
}

func (f *oracle) Recover(context.Context, time.Time, []core.Lane) (r int, err error) {
	return r, f.told("Recover")
}

func (f *oracle) Lapsed(context.Context, time.Time, []core.Lane, int) (r []core.TakenJob, err error) {
	return r, f.told("Lapsed")
}

func (f *oracle) Strays(context.Context, time.Time, []core.Lane) (r map[core.Lane]time.Time, err error) {
	return r, f.told("Strays")
}

func (f *oracle) CloseBreakers(context.Context, time.Time, ...core.Lane) (r []core.Lane, err error) {
	return r, f.told("CloseBreakers")
}

func (f *oracle) Ack(context.Context, time.Time, core.Lane, []core.Ref) (r int, err error) {
	return r, f.told("Ack")
}

func (f *oracle) Extend(context.Context, time.Time, core.Lane, []core.Ref) (r int, err error) {
	return r, f.told("Extend")
}

func (f *oracle) Held(context.Context, core.Lane, []core.Ref) (r []core.TakenJob, err error) {
	return r, f.told("Held")
}

func (f *oracle) Marks(context.Context, []string) (r map[string]core.Mark, err error) {
	return r, f.told("Marks")
}

func (f *oracle) Mark(context.Context, ...core.Mark) error {
	return f.told("Mark")
}

func (f *oracle) Definition(context.Context, string) (r core.Definition, err error) {
	return r, f.told("Definition")
}

func (f *oracle) Situations(context.Context, []core.ID) (r map[core.ID]core.Situation, err error) {
	return r, f.told("Situations")
}

func (f *oracle) Survey(context.Context, core.ID, int, core.Wanted) (r []core.Step, err error) {
	return r, f.told("Survey")
}

func (f *oracle) Transit(context.Context, ...core.Transition) (r []bool, err error) {
	return r, f.told("Transit")
}

func (f *oracle) Awaited(context.Context, time.Time, string, string) (r core.Awaiting, err error) {
	return r, f.told("Awaited")
}

func (f *oracle) Event(context.Context, core.ID) (r core.Event, err error) {
	return r, f.told("Event")
}

func (f *oracle) Events(context.Context, core.EventFilter) (r core.Page[core.Event], err error) {
	return r, f.told("Events")
}

func (f *oracle) Job(context.Context, core.ID) (r core.Job, err error) {
	return r, f.told("Job")
}

func (f *oracle) Jobs(context.Context, core.JobFilter) (r core.Page[core.Job], err error) {
	return r, f.told("Jobs")
}

func (f *oracle) Attempts(context.Context, core.ID) (r []core.Attempt, err error) {
	return r, f.told("Attempts")
}

func (f *oracle) AttemptsOf(context.Context, []core.ID) (r map[core.ID][]core.Attempt, err error) {
	return r, f.told("AttemptsOf")
}

func (f *oracle) Depth(context.Context) (r int, err error) {
	return r, f.told("Depth")
}

func (f *oracle) Tallies(context.Context, time.Time, []core.Lane) (r map[core.Lane]core.Tally, err error) {
	return r, f.told("Tallies")
}

func (f *oracle) Peek(context.Context, time.Time, core.Lane, int) (r []core.TakenJob, err error) {
	return r, f.told("Peek")
}

func (f *oracle) DeadLetters(context.Context, core.Lane, core.ID, int) (r core.Page[core.TakenJob], err error) {
	return r, f.told("DeadLetters")
}

func (f *oracle) Finished(context.Context, time.Time, core.ID, int) (r core.Page[core.Job], err error) {
	return r, f.told("Finished")
}

func (f *oracle) Completed(context.Context) (r int, err error) {
	return r, f.told("Completed")
}

func (f *oracle) Nth(context.Context, core.EventFilter, int) (r core.ID, err error) {
	return r, f.told("Nth")
}

func (f *oracle) Read(context.Context, core.ID, core.EventFilter) (r core.Page[core.Event], err error) {
	return r, f.told("Read")
}

func (f *oracle) JobsOf(context.Context, []core.ID) (r map[core.ID][]core.Job, err error) {
	return r, f.told("JobsOf")
}

func (f *oracle) Run(context.Context, core.ID) (r core.Run, err error) {
	return r, f.told("Run")
}

func (f *oracle) Runs(context.Context, core.RunFilter) (r core.Page[core.Run], err error) {
	return r, f.told("Runs")
}

func (f *oracle) Steps(context.Context, core.ID, int, core.ID, int) (r core.Page[core.Step], err error) {
	return r, f.told("Steps")
}

func (f *oracle) History(context.Context, core.ID, int, int) (r []core.Entry, err error) {
	return r, f.told("History")
}

func (f *oracle) Retry(context.Context, time.Time, core.ID, core.Lane) (r int, err error) {
	return r, f.told("Retry")
}

func (f *oracle) Replay(context.Context, time.Time, ...core.Arrival) (r int, err error) {
	return r, f.told("Replay")
}

func (f *oracle) Turn(context.Context, time.Time, string, time.Duration) (r bool, err error) {
	return r, f.told("Turn")
}

func (f *oracle) Purge(context.Context, time.Time, int) (r int, more bool, err error) {
	return r, more, f.told("Purge")
}

func (f *oracle) Drain(context.Context, core.Lane, core.ID, int) (r int, err error) {
	return r, f.told("Drain")
}

func (f *oracle) Migrate(context.Context) error {
	return f.told("Migrate")
}

func (f *oracle) Schema(context.Context) (have, want int, err error) {
	return have, want, f.told("Schema")
}

func (f *oracle) Rehearse(context.Context, core.Work) error {
	return f.told("Rehearse")
}

func (f *oracle) Ping(context.Context) error {
	return f.told("Ping")
}
