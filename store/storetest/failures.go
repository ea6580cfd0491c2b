package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// failures returns the failed jobs that a filter selects.
func (r *rig) failures(f core.FailureFilter) core.Page[core.FailedJob] {
	r.Helper()
	p, err := r.store.Failures(context.Background(), f)
	if err != nil {
		r.Fatalf("Failures(%+v) failed: %v", f, err)
	}
	return p
}

// failed returns the failed jobs of the stock that match, newest first.
func (s *stock) failed(match func(core.Job) bool) (out []core.FailedJob) {
	for _, j := range newest(s.jobs) {
		if (j.Status == core.Dead || j.Status == core.Retryable) && match(j) {
			out = append(out, core.FailedJob{ID: j.ID, Lane: j.Lane, Status: j.Status, Error: j.LastError})
		}
	}
	return out
}

func anyJob(core.Job) bool { return true }

// wantFailures fails unless Failures returns exactly these jobs.
func (r *rig) wantFailures(f core.FailureFilter, want []core.FailedJob) {
	r.Helper()
	r.equal("Failures("+shortened(f)+")", r.failures(f), core.Page[core.FailedJob]{Items: want})
}

// Dead jobs are listed together with jobs that wait for another attempt. One of those has no error,
// since its worker vanished.
func listFailures(r *rig) {
	want := r.stock.failed(anyJob)
	if len(want) < 4 {
		r.Fatalf("the stock has %d failed jobs, which is too few", len(want))
	}
	r.wantFailures(core.FailureFilter{}, want)
}

// A lane selects its failed jobs of every status.
func filterFailures(r *rig) {
	for _, lane := range []core.Lane{r.lane, "handler/slow", "handler/tried", "queue/mail", "handler/nobody", "handler"} {
		r.wantFailures(core.FailureFilter{Lane: lane}, r.stock.failed(func(j core.Job) bool { return j.Lane == lane }))
	}
}

// Since includes its time and Until excludes it, by the times in the ids of the jobs.
func filterFailureTimes(r *rig) {
	at, ms := r.stock.by["dead"].ID.Time(), time.Millisecond
	for _, f := range []core.FailureFilter{
		{Since: at}, {Since: at.Add(ms)}, {Until: at}, {Until: at.Add(ms)}, {Since: at, Until: at.Add(ms)}, {Since: at.Add(-ms), Until: at}, {Since: at, Until: at},
		{Since: at, Until: at.Add(ms), Lane: r.lane}, {Since: at.Add(ms), Lane: "handler/slow"}, {Until: at.Add(ms), Lane: "handler/tried"},
	} {
		r.wantFailures(f, r.stock.failed(func(j core.Job) bool {
			made := j.ID.Time()
			return !made.Before(f.Since) && (f.Until.IsZero() || made.Before(f.Until)) && (f.Lane == "" || j.Lane == f.Lane)
		}))
	}
}

// A limit below the number of failed jobs selects the newest ones.
func limitFailures(r *rig) {
	all := r.stock.failed(anyJob)
	for n := 1; n <= len(all)+1; n++ {
		r.equal("Failures, at most "+nth(n-1), r.failures(core.FailureFilter{Limit: n}), core.Page[core.FailedJob]{Items: all[:min(n, len(all))], More: n < len(all)})
	}
	lane := r.stock.failed(func(j core.Job) bool { return j.Lane == r.lane })
	r.equal("Failures of a lane, at most one", r.failures(core.FailureFilter{Lane: r.lane, Limit: 1}), core.Page[core.FailedJob]{Items: lane[:1], More: len(lane) > 1})
}

// An error with more bytes is cut, and no character of it is cut in two.
func cutFailures(r *rig) {
	var want []core.FailedJob
	for _, tc := range []struct{ text, kept string }{
		{strings.Repeat("x", core.MaxFailureText), strings.Repeat("x", core.MaxFailureText)},
		{strings.Repeat("x", core.MaxFailureText+1), strings.Repeat("x", core.MaxFailureText)},
		{strings.Repeat("x", core.MaxFailureText-1) + "é", strings.Repeat("x", core.MaxFailureText-1)},
		{strings.Repeat("é", core.MaxFailureText), strings.Repeat("é", core.MaxFailureText/2)},
	} {
		for _, status := range []core.Status{core.Dead, core.Retryable} {
			j := r.taken().Job
			o := r.ended(j, status)
			o.Attempt.Error = tc.text
			r.settle(o)
			want = append(want, core.FailedJob{ID: j.ID, Lane: j.Lane, Status: status, Error: tc.kept})
		}
	}
	r.wantFailures(core.FailureFilter{}, newest(want))
}

// Some lanes have many failed jobs, and others few. The newest jobs of all lanes together are
// selected, however many a lane has of them.
func limitFailuresOfLanes(r *rig) {
	var all []core.FailedJob
	for i, lane := range []core.Lane{"handler/a", "queue/b", "handler/a", "handler/a", "handler/c", "handler/a", "handler/a", "queue/b", "handler/a", "handler/a", "handler/a"} {
		status := core.Dead
		if i%4 == 1 {
			status = core.Retryable
		}
		r.lane = lane
		j := r.settled(status)
		all = append(all, core.FailedJob{ID: j.ID, Lane: lane, Status: status, Error: j.LastError})
	}
	all = newest(all)
	for n := 1; n <= len(all)+1; n++ {
		r.equal("Failures, at most "+nth(n-1), r.failures(core.FailureFilter{Limit: n}), core.Page[core.FailedJob]{Items: all[:min(n, len(all))], More: n < len(all)})
	}
	r.equal("Failures, with a limit beyond MaxFailures", r.failures(core.FailureFilter{Limit: core.MaxFailures + 1}), core.Page[core.FailedJob]{Items: all})
}
