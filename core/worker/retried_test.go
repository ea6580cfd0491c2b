package worker

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A dead job that an operator retried has the same number of attempts and the same backoff as
// a new job. Its attempt numbers go on from the earlier ones.
func TestOutcomeOfARetriedJob(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	retry := core.Retry{Max: 3, Interval: time.Minute}
	for attempt, want := range map[int]time.Duration{6: time.Minute, 7: 2 * time.Minute, 8: 0} {
		job := core.TakenJob{Job: core.Job{ID: "J", Lease: "L", Attempt: attempt, MaxAttempts: 8, Earlier: 5}}
		o := outcome(&job, retry, Reply{StatusCode: 500}, at, at)
		if o.Attempt.Number != attempt || (o.Status == core.Dead) != (want == 0) {
			t.Errorf("attempt %d of 8, 5 before it was retried: %s after attempt %d", attempt, o.Status, o.Attempt.Number)
		}
		if wait := o.DueAt.Sub(at); want > 0 && (wait < want*8/10 || wait > want*12/10) {
			t.Errorf("attempt %d of 8, 5 before it was retried: due after %v, want about %v", attempt, wait, want)
		}
	}
}

// A process of an earlier version counts the attempts of a retried job from 1 again. The
// backoff of such a job is that after its first attempt.
func TestBackoffOfAJobThatAnOlderProcessRetried(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	job := core.TakenJob{Job: core.Job{ID: "J", Lease: "L", Attempt: 2, MaxAttempts: 8, Earlier: 5}}
	o := outcome(&job, core.Retry{Max: 3, Interval: time.Minute}, Reply{StatusCode: 500}, at, at)
	if wait := o.DueAt.Sub(at); wait < 48*time.Second || wait > 72*time.Second {
		t.Errorf("due after %v, want about a minute", wait)
	}
}
