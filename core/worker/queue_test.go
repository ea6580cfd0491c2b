package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestWithdrawLeavesProbes: withdraw leaves probes in the queue, wherever they stand. The
// worker may learn that a breaker opened while a probe of the same lane waits for a slot.
func TestWithdrawLeavesProbes(t *testing.T) {
	for _, waiting := range []string{"", "p", "a", "pa", "ap", "apb", "papbp"} {
		q := newQueue(1, []core.Lane{lane})
		for _, r := range waiting {
			q.put(time.Time{}, []*core.TakenJob{{Job: core.Job{ID: core.ID(r), Lane: lane}, Probe: r == 'p'}})
		}
		withdrawn, rest := q.withdraw(lane), q.end()
		isProbe := func(j *core.TakenJob) bool { return j.Probe }
		if len(withdrawn)+len(rest) != len(waiting) || slices.ContainsFunc(withdrawn, isProbe) || !allOf(rest, isProbe) {
			t.Errorf("of %q %d were withdrawn and %d are left, want all but the probes", waiting, len(withdrawn), len(rest))
		}
	}
}

func allOf(jobs []*core.TakenJob, is func(*core.TakenJob) bool) bool {
	return !slices.ContainsFunc(jobs, func(j *core.TakenJob) bool { return !is(j) })
}
