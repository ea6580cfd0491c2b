package manage

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

func (d *drawer) Failures(_ context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	d.mu.Lock()
	d.failures = append(d.failures, f)
	page := d.failed
	d.mu.Unlock()
	if d.panics != nil {
		panic(d.panics)
	}
	time.Sleep(d.takes)
	return page, d.err
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
		j.Forget()
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

// manyFailed is an office whose store has n failed jobs. Its clock is that of the test, and a query takes takes.
func manyFailed(n int, takes time.Duration) (*Jobs, *drawer) {
	_, d := office()
	for i := range n {
		d.failed.Items = append(d.failed.Items, core.FailedJob{ID: made(n - i), Lane: "handler/a", Status: core.Dead, Error: "x"})
	}
	d.takes = takes
	return NewJobs(d, time.Now), d
}

// An answer with errors is used the longer, the more jobs were looked at and the longer that took. So callers
// that poll cost the database little.
func TestErrorsAreShared(t *testing.T) {
	for _, tt := range []struct {
		jobs int
		took time.Duration
		used time.Duration
	}{
		{0, 0, 0}, {1, 0, time.Millisecond}, {3000, 0, 3 * time.Second}, {core.MaxFailures, 0, 8 * time.Second},
		{3000, 10 * time.Millisecond, 5 * time.Second}, {3000, time.Second, 12 * time.Second}, {core.MaxFailures, time.Second, 32 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			j, d := manyFailed(tt.jobs, tt.took)
			asked := func(after time.Duration, f core.FailureFilter) int {
				t.Helper()
				time.Sleep(after)
				if got, err := j.Errors(t.Context(), f); err != nil || got.Scanned != tt.jobs {
					t.Fatalf("Errors = %+v, %v", got, err)
				}
				return len(d.failures)
			}
			all := core.FailureFilter{}
			asked(0, all)
			if n := asked(max(tt.used-tt.took-1, 0), all); tt.used > 0 && n != 1 {
				t.Errorf("%d jobs: asked %d times before %v, want once", tt.jobs, n, tt.used)
			}
			if n := asked(1, all); n < 2 {
				t.Errorf("%d jobs: asked %d times after %v, want again", tt.jobs, n, tt.used)
			}
			n := len(d.failures)
			zone := time.FixedZone("", 3600)
			if since, same := asked(0, core.FailureFilter{Since: noon}), asked(0, core.FailureFilter{Since: noon.In(zone)}); tt.used > 0 && (since != n+1 || same != since) {
				t.Errorf("%d jobs: asked %d and %d times for another selection, want %d", tt.jobs, since, same, n+1)
			}
		})
	}
}

// Callers at once share one query. A caller after a change gets an answer whose query began after it,
// also while an older query is under way.
func TestErrorsAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, d := manyFailed(10_000, time.Second)
		scanned := make(chan int, 10)
		ask := func() {
			got, err := j.Errors(t.Context(), core.FailureFilter{})
			if err != nil {
				t.Error(err)
			}
			scanned <- got.Scanned
		}
		for range 5 {
			go ask()
		}
		synctest.Wait()
		if len(d.failures) != 1 {
			t.Errorf("asked %d times at once, want once", len(d.failures))
		}
		d.failed.Items = d.failed.Items[:9999] // the query under way has read them already
		j.Forget()
		for range 3 {
			go ask()
		}
		synctest.Wait()
		if len(d.failures) != 2 {
			t.Errorf("asked %d times after a change, want twice", len(d.failures))
		}
		counts := map[int]int{}
		for range 8 {
			counts[<-scanned]++
		}
		if counts[10_000] != 5 || counts[9999] != 3 {
			t.Errorf("got %v, want the old answer 5 times and the new one 3 times", counts)
		}
		ask()
		if n := <-scanned; n != 9999 || len(d.failures) != 2 {
			t.Errorf("then %d jobs, asked %d times, want 9999 and twice", n, len(d.failures))
		}
		j.Forget()
		ask()
		if <-scanned; len(d.failures) != 3 {
			t.Errorf("asked %d times after another change, want 3 times", len(d.failures))
		}
	})
}

// The answers of few selections are kept, and Quiet waits for the queries of all of them.
func TestErrorsOfManySelections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, d := manyFailed(10_000, time.Second)
		began := time.Now()
		ctx, hangUp := context.WithCancel(t.Context())
		for i := range 3 * errorsKept {
			go func() { _, _ = j.Errors(ctx, core.FailureFilter{Since: noon.Add(time.Duration(i))}) }()
		}
		synctest.Wait()
		hangUp()
		if j.Quiet(t.Context()); time.Since(began) != time.Second || len(d.failures) != 3*errorsKept || len(j.errors.all) != errorsKept {
			t.Errorf("quiet after %v, %d queries and %d answers, want 1s, %d and %d", time.Since(began), len(d.failures), len(j.errors.all), 3*errorsKept, errorsKept)
		}
	})
}

// A query that panics is an error of its callers, and ends no process.
func TestErrorsThatPanic(t *testing.T) {
	j, d := office()
	d.panics = "no such error"
	var p *core.Panic
	if _, err := j.Errors(t.Context(), core.FailureFilter{}); !errors.As(err, &p) {
		t.Errorf("Errors = %v, want a panic", err)
	}
	d.panics = nil
	if _, err := j.Errors(t.Context(), core.FailureFilter{}); err != nil {
		t.Errorf("Errors after that = %v", err)
	}
}
