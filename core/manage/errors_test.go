package manage

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

func (d *drawer) Failures(_ context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	d.failures = append(d.failures, f)
	return d.failed, d.err
}

// made returns the id of a job that was made some seconds after noon.
func made(seconds int) core.ID { return core.FirstID(noon.Add(time.Duration(seconds) * time.Second)) }

func TestErrorsAreGrouped(t *testing.T) {
	j, d := office()
	d.failed = core.Page[core.FailedJob]{Items: []core.FailedJob{
		{ID: made(9), Lane: "handler/b", Status: core.Dead, Error: "status: 503 Service Unavailable"},
		{ID: made(8), Lane: "handler/a", Status: core.Retryable, Error: "no order 1001"},
		{ID: made(7), Lane: "handler/a", Status: core.Dead, Error: "no order 1000"},
		{ID: made(6), Lane: "handler/a", Status: core.Retryable},
		{ID: made(5), Lane: "handler/a", Status: core.Dead, Error: "no order 1000"},
		{ID: made(4), Lane: "handler/b", Status: core.Dead, Error: "no order 999"},
	}}
	f := core.FailureFilter{Lane: "handler/a", Since: noon, Until: noon.Add(time.Hour)}
	got, err := j.Errors(t.Context(), f)
	at := func(seconds int) time.Time { return made(seconds).Time() }
	want := Errors{Scanned: 6, Groups: []ErrorGroup{
		{Lane: "handler/a", Kind: "no order <n>", Dead: 2, Retrying: 1, Newest: at(8), Oldest: at(5), Example: made(8), Error: "no order 1001"},
		{Lane: "handler/b", Kind: "status: 503 Service Unavailable", Dead: 1, Newest: at(9), Oldest: at(9), Example: made(9), Error: "status: 503 Service Unavailable"},
		{Lane: "handler/a", Retrying: 1, Newest: at(6), Oldest: at(6), Example: made(6)},
		{Lane: "handler/b", Kind: "no order <n>", Dead: 1, Newest: at(4), Oldest: at(4), Example: made(4), Error: "no order 999"},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Errors = %+v, %v, want %+v", got, err, want)
	}
	if len(d.failures) != 1 || d.failures[0] != f {
		t.Errorf("the store was asked for %+v, want %+v", d.failures, f)
	}
}

// More groups than an answer has are left out, and the answer says so.
func TestErrorGroupsAreBounded(t *testing.T) {
	j, d := office()
	for i := range MaxErrorGroups + 1 {
		d.failed.Items = append(d.failed.Items, core.FailedJob{ID: made(1000 - i), Lane: core.Lane(fmt.Sprintf("handler/h%d", i)), Status: core.Dead, Error: "x"})
	}
	got, err := j.Errors(t.Context(), core.FailureFilter{})
	if err != nil || len(got.Groups) != MaxErrorGroups || !got.More || got.Scanned != MaxErrorGroups+1 {
		t.Errorf("Errors = %d groups, more %t, of %d jobs, %v", len(got.Groups), got.More, got.Scanned, err)
	}
	d.failed.Items = d.failed.Items[:1]
	for _, more := range []bool{false, true} {
		d.failed.More = more
		if got, err := j.Errors(t.Context(), core.FailureFilter{}); err != nil || got.More != more {
			t.Errorf("Errors: more = %t, %v, want %t", got.More, err, more)
		}
	}
}

// A consumer that is not configured and has no job is refused, as in a list of jobs.
func TestErrorsOfUnknownConsumers(t *testing.T) {
	j, d := office()
	d.jobs = nil
	j.Names = &Names{Handlers: []string{"a"}, Unknown: func(kind, name string, _ []string) error {
		return core.Refuse(core.NotFound, "%s %s is not configured", kind, name)
	}}
	if got, err := j.Errors(t.Context(), core.FailureFilter{Lane: "handler/a"}); err != nil || len(got.Groups) > 0 {
		t.Errorf("Errors of a handler without jobs = %+v, %v", got, err)
	}
	if _, err := j.Errors(t.Context(), core.FailureFilter{Lane: "handler/nobody"}); !core.IsKind(err, core.NotFound) {
		t.Errorf("Errors of an unknown handler = %v, want a refusal of kind NotFound", err)
	}
	d.err = errors.New("broken")
	if _, err := j.Errors(t.Context(), core.FailureFilter{}); !errors.Is(err, d.err) {
		t.Errorf("Errors = %v, want %v", err, d.err)
	}
}

// BenchmarkErrors groups as many errors as one call looks at, all of which differ.
func BenchmarkErrors(b *testing.B) {
	var jobs []core.FailedJob
	for i := range core.MaxFailures {
		jobs = append(jobs, core.FailedJob{ID: made(-i), Lane: "handler/a", Status: core.Dead, Error: fmt.Sprintf("status: 503 Service Unavailable, request %d", 1_000_000+i)})
	}
	for b.Loop() {
		grouped(jobs)
	}
}
