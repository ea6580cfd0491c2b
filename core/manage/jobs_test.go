package manage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// drawer is a store of jobs. The function meanwhile runs before a retry, like another caller.
type drawer struct {
	*fake
	meanwhile func()
	moved     bool // the store's answer is older than the change of another process
	attempts  map[core.ID][]core.Attempt
	asked     []core.JobFilter

	mu       sync.Mutex
	failed   core.Page[core.FailedJob]
	failures []core.FailureFilter
	takes    time.Duration // a query of Failures
	panics   any
}

func (d *drawer) Jobs(_ context.Context, f core.JobFilter) (core.Page[core.Job], error) {
	d.asked = append(d.asked, f)
	return core.Page[core.Job]{Items: d.jobs, More: true}, d.err
}

func (d *drawer) Attempts(_ context.Context, id core.ID, skip, limit int) ([]core.Attempt, error) {
	all := d.attempts[id]
	all = all[min(skip, len(all)):]
	return all[:min(limit, len(all))], d.err
}

func (d *drawer) Events(context.Context, core.EventFilter) (core.Page[core.Event], error) {
	return core.Page[core.Event]{}, d.err
}

func (d *drawer) KindsOf(context.Context, []core.ID) (map[core.ID]core.EventKind, error) {
	return nil, d.err
}

// SentBody returns a kept body of the first attempt of each job that has attempts.
func (d *drawer) SentBody(_ context.Context, id core.ID, number int) (string, error) {
	if number == 1 && len(d.attempts[id]) > 0 {
		return "kept", d.err
	}
	return "", d.err
}

func (d *drawer) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error) {
	if d.meanwhile != nil {
		d.meanwhile()
	}
	if d.moved {
		return 0, d.err
	}
	return d.fake.Retry(ctx, now, id, lane)
}

func office() (*Jobs, *drawer) {
	d := &drawer{attempts: map[core.ID][]core.Attempt{id(1): {{Number: 1}}}, fake: &fake{jobs: []core.Job{
		{ID: id(1), Lane: "handler/a", Status: core.Dead, Attempt: 5},
		{ID: id(2), Lane: "handler/a", Status: core.Completed},
		{ID: id(3), Lane: "handler/b", Status: core.Dead},
		{ID: id(4), Lane: "workflow/w", Status: core.Dead, RunID: "R1", Step: "s"},
		{ID: id(5), Lane: "workflow/w", Status: core.Dead},
		{ID: id(6), Lane: "queue/q", Status: core.Dead},
		{ID: id(7), Lane: "handler/a", Status: core.Retryable, DueAt: noon},
		{ID: id(8), Lane: "handler/b", Status: core.Retryable, DueAt: noon.Add(time.Millisecond)},
		{ID: id(10), Lane: "handler/b", Status: core.Scheduled, DueAt: noon.Add(time.Hour)},
		{ID: id(12), Lane: "handler/a", Status: core.Canceled},
		{ID: id(11), Lane: "workflow/w", Status: core.Scheduled, RunID: "R2", Step: "s", DueAt: noon.Add(time.Hour)},
	}}}
	j := NewJobs(d, func() time.Time { return noon })
	j.Bell, j.Bulk = &core.Bell{}, d.fake
	return j, d
}

func TestRetryOfOneJob(t *testing.T) {
	const steps, only = "jobs of workflows are not retried, their runs are redriven", "; only jobs that are dead or canceled, or wait for a later attempt, can be retried"
	for _, tt := range []struct {
		id   core.ID
		why  string
		kind core.Kind
	}{
		{id(1), "", 0},
		{id(6), "", 0},
		{id(8), "", 0},
		{id(10), "", 0},
		{id(12), "", 0},
		{id(11), "job " + string(id(11)) + " is a step of workflow run R2 that waits until " + core.FormatTime(noon.Add(time.Hour)) +
			"; a wait is not shortened, but the run can be canceled", core.Invalid},
		{id(2), "job " + string(id(2)) + " is completed" + only, core.Invalid},
		{id(7), "job " + string(id(7)) + " is retryable and due already" + only, core.Invalid},
		{id(4), "job " + string(id(4)) + " is a step of workflow run R1; " + steps, core.Invalid},
		{id(5), steps, core.Invalid},
		{id(9), "job not found", core.NotFound},
	} {
		j, d := office()
		heard := j.Bell.Listen("handler/a", "handler/b", "queue/q", "workflow/w")
		var told []core.Fact
		j.Observe = func(f core.Fact) { told = append(told, f) }
		n, err := j.Retry(t.Context(), tt.id)
		if tt.why == "" {
			if lane := d.lane(tt.id); n != 1 || err != nil || !slices.Equal(heard.Rung(), []core.Lane{lane}) {
				t.Errorf("Retry(%s) = %d, %v; want 1, and the bell of %s rung", tt.id, n, err, lane)
			}
			if want := []core.Fact{core.Revived{ID: tt.id, Lane: d.lane(tt.id), Jobs: 1, Early: tt.id == id(8) || tt.id == id(10), Canceled: tt.id == id(12)}}; !slices.Equal(told, want) {
				t.Errorf("Retry(%s) reported %+v, want %+v", tt.id, told, want)
			}
			continue
		}
		if n != 0 || !core.IsKind(err, tt.kind) || err.Error() != tt.why || len(heard.Rung())+len(told) > 0 {
			t.Errorf("Retry(%s) = %d, %v; want %s", tt.id, n, err, tt.why)
		}
	}
}

func (d *drawer) lane(id core.ID) core.Lane {
	i := slices.IndexFunc(d.jobs, func(j core.Job) bool { return j.ID == id })
	return d.jobs[i].Lane
}

// Of two callers that retry a job, the second gets the error that the job is not dead any
// more.
func TestRetryOfAJobThatMoves(t *testing.T) {
	j, d := office()
	d.meanwhile = func() { d.jobs[0].Status = core.Available }
	n, err := j.Retry(t.Context(), id(1))
	if want := "job " + string(id(1)) + " is available and due already; only jobs that are dead or canceled, or wait for a later attempt, can be retried"; n != 0 || err == nil || err.Error() != want {
		t.Errorf("Retry = %d, %v; want %s", n, err, want)
	}
	j, d = office()
	d.meanwhile = func() { d.jobs[0].Status, d.jobs[0].DueAt = core.Completed, time.Time{} }
	if n, err := j.Retry(t.Context(), id(1)); n != 0 || !core.IsKind(err, core.Invalid) {
		t.Errorf("Retry of a job that is completed meanwhile = %d, %v; want a refusal", n, err)
	}
	j, d = office()
	d.meanwhile = func() { // it was retried, taken, and has failed
		d.jobs[0].Status, d.jobs[0].DueAt = core.Retryable, noon.Add(time.Hour)
		d.moved = true
	}
	if n, err := j.Retry(t.Context(), id(1)); n != 0 || !core.IsKind(err, core.Invalid) {
		t.Errorf("Retry of a job that another caller retried meanwhile = %d, %v; want a refusal", n, err)
	}
	j, d = office()
	d.meanwhile = func() { d.jobs = d.jobs[1:] }
	if n, err := j.Retry(t.Context(), id(1)); n != 0 || err != error(ErrJob) {
		t.Errorf("Retry of a job that is purged meanwhile = %d, %v; want ErrJob", n, err)
	}
}

func TestRetryOfAll(t *testing.T) {
	for lane, want := range map[core.Lane]int{"handler/a": 1, "queue/q": 1, "handler/idle": 0} {
		j, d := office()
		var told []core.Fact
		j.Observe = func(f core.Fact) { told = append(told, f) }
		got, err := j.RetryAll(t.Context(), lane)
		if len(told) != want || want > 0 && told[0] != (core.Revived{Lane: lane, Jobs: want}) {
			t.Errorf("RetryAll(%q) reported %+v", lane, told)
		}
		if got != (Retried{Jobs: want}) || err != nil {
			t.Errorf("RetryAll(%q) = %+v, %v; want %d", lane, got, err, want)
		}
		if c := d.rushed[0].Change; c.Action != core.AuditRetry || c.Target != string(lane) || d.rushed[0].Operation.Filter.Status != string(core.Dead) {
			t.Errorf("RetryAll(%q) began %+v", lane, d.rushed[0])
		}
	}
	j, d := office()
	d.unfinished = true
	if got, err := j.RetryAll(t.Context(), "handler/a"); got != (Retried{Jobs: 1, Going: id(99)}) || err != nil {
		t.Errorf("RetryAll that takes too long = %+v, %v; want the operation that goes on", got, err)
	}
	if got, err := j.RetryAll(t.Context(), "workflow/w"); got != (Retried{}) || err != error(errSteps) || d.jobs[3].Status != core.Dead {
		t.Errorf("RetryAll of a workflow = %+v, %v; want a refusal", got, err)
	}
}

// A job with many attempts is listed in pages, each attempt once.
func TestAttemptsInPages(t *testing.T) {
	for n, want := range map[int][]int{AttemptPage: {AttemptPage}, AttemptPage + 1: {AttemptPage, 1}, 3*AttemptPage - 1: {AttemptPage, AttemptPage, AttemptPage - 1}} {
		j, d := office()
		d.attempts[id(2)] = nil
		for i := range n {
			d.attempts[id(2)] = append(d.attempts[id(2)], core.Attempt{Number: i + 1})
		}
		var sizes []int
		for next, more := 1, true; more; {
			page, err := j.Attempts(t.Context(), id(2), next-1)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Items {
				if a.Number != next {
					t.Fatalf("attempt %d comes after %d", a.Number, next-1)
				}
				next++
			}
			sizes, more = append(sizes, len(page.Items)), page.More
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%d attempts: pages of %v, want %v", n, sizes, want)
		}
	}
}

func TestJobsAndAttempts(t *testing.T) {
	j, d := office()
	f := core.JobFilter{Status: core.Dead, Limit: 3}
	if page, err := j.List(t.Context(), f); len(page.Items) != 11 || !page.More || err != nil || d.asked[0] != f {
		t.Errorf("List = %+v, %v, asked for %+v", page, err, d.asked)
	}
	for id, want := range map[core.ID]int{id(1): 1, id(2): 0} {
		if got, err := j.Attempts(t.Context(), id, 0); len(got.Items) != want || got.More || err != nil {
			t.Errorf("Attempts(%s) = %v, %v, want %d", id, got, err, want)
		}
	}
	var errs [2]error
	_, errs[0] = j.Job(t.Context(), id(9))
	_, errs[1] = j.Attempts(t.Context(), id(9), 0)
	if want := [2]error{ErrJob, ErrJob}; errs != want {
		t.Errorf("of a job that is not there: %v, want ErrJob", errs)
	}
	d.err = errors.New("disk full")
	for _, id := range []core.ID{id(1), id(2)} {
		if _, err := j.Attempts(t.Context(), id, 0); !errors.Is(err, d.err) {
			t.Errorf("Attempts(%s) of a store that fails = %v", id, err)
		}
		if _, err := j.Retry(t.Context(), id); !errors.Is(err, d.err) {
			t.Errorf("Retry(%s) in a store that fails = %v", id, err)
		}
	}
}

// TestSentBody: the kept body of an attempt, or the reason why there is none.
func TestSentBody(t *testing.T) {
	j, d := office()
	if body, err := j.SentBody(t.Context(), id(1), 1); body != "kept" || err != nil {
		t.Errorf("SentBody = %q, %v", body, err)
	}
	for _, c := range []struct {
		id     core.ID
		number int
		want   string
	}{
		{id(1), 2, "no body is kept of attempt 2 of job " + string(id(1)) + ": with delivery.record: all, later attempts keep a body that is not the payload of the event"},
		{id(2), 1, "no body is kept of attempt 1"},
		{id(9), 1, "job not found"},
	} {
		if _, err := j.SentBody(t.Context(), c.id, c.number); !core.IsKind(err, core.NotFound) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("SentBody(%s, %d) = %v, want %s", c.id, c.number, err, c.want)
		}
	}
	d.err = errors.New("away")
	if _, err := j.SentBody(t.Context(), id(1), 1); !errors.Is(err, d.err) {
		t.Errorf("SentBody while the store is away: %v", err)
	}
}
