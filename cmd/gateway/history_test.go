package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

func TestHistory(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   core.Status
		begun    int   // attempts begun, of at most 3
		recorded []int // attempt numbers, one second apart
		want     string
	}{
		{"never tried", core.Available, 0, nil, ""},
		{"all recorded", core.Completed, 2, []int{1, 2}, "1 2"},
		{"first one running", core.Running, 1, nil, "1:running"},
		{"running again", core.Running, 2, []int{1}, "1 2:running"},
		{"lease ran out", core.Retryable, 1, nil, "1:lost"},
		{"gap in the middle", core.Dead, 3, []int{1, 3}, "1 2:lost 3"},
		{"gap at the start", core.Completed, 3, []int{3}, "1-2:lost 3"},
		{"last one repeated", core.Running, 4, []int{1, 2}, "1 2 3:running"},
		{"taken with none left", core.Running, 4 + core.MaxRepeats, []int{1, 2}, "1 2 3:lost"},
		{"brought back", core.Available, 0, []int{1, 2, 3}, "1 2 3"},
		{"brought back and running", core.Running, 1, []int{1, 2, 3}, "1 2 3 1:running"},
		{"brought back and tried", core.Completed, 2, []int{1, 2, 3, 1, 2}, "1 2 3 1 2"},
		{"brought back, gap", core.Completed, 2, []int{1, 2, 3, 2}, "1 2 3 1:lost 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := core.Job{Status: c.status, Attempt: c.begun, MaxAttempts: 3}
			var attempts []core.Attempt
			for i, n := range c.recorded {
				attempts = append(attempts, core.Attempt{Number: n, StartedAt: time.Unix(int64(i), 0)})
			}
			if got := drawn(history(j, attempts)); got != c.want {
				t.Errorf("history = %q, want %q", got, c.want)
			}
		})
	}
}

// TestHistoryClockSetBack: numbers decide the order where they differ.
func TestHistoryClockSetBack(t *testing.T) {
	j := core.Job{Status: core.Completed, Attempt: 2, MaxAttempts: 3}
	attempts := []core.Attempt{{Number: 1, StartedAt: time.Unix(9, 0)}, {Number: 2, StartedAt: time.Unix(1, 0)}}
	if got, want := drawn(history(j, attempts)), "1 2"; got != want {
		t.Errorf("history = %q, want %q", got, want)
	}
}

// TestHistoryOfStep: a worker may take a step's job without a call, and a call without an
// outcome is not listed.
func TestHistoryOfStep(t *testing.T) {
	for _, c := range []struct {
		status   core.Status
		begun    int
		recorded []int
		want     string
	}{
		{core.Available, 0, nil, ""},
		{core.Completed, 1, nil, ""}, // a wait
		{core.Retryable, 3, []int{1}, "1"},
		{core.Running, 3, []int{1}, "1 3:running"},   // the second call has no outcome
		{core.Completed, 5, []int{1, 2, 1}, "1 2 1"}, // a callback that timed out and was requested again
	} {
		j := core.Job{Lane: core.WorkflowLane("ship"), Status: c.status, Attempt: c.begun, MaxAttempts: core.Unlimited}
		var attempts []core.Attempt
		for i, n := range c.recorded {
			attempts = append(attempts, core.Attempt{Number: n, StartedAt: time.Unix(int64(i), 0)})
		}
		if got := drawn(history(j, attempts)); got != c.want {
			t.Errorf("history of a %s job taken %d times = %q, want %q", c.status, c.begun, got, c.want)
		}
	}
}

// TestHistoryOfMessage: neither an ack nor an expired lease leaves a record.
func TestHistoryOfMessage(t *testing.T) {
	for _, c := range []struct {
		status core.Status
		begun  int
		nacked []int
		want   string
	}{
		{core.Completed, 1, nil, "1:acked"},
		{core.Completed, 4, []int{2}, "1:unanswered 2 3:unanswered 4:acked"},
		{core.Retryable, 70_000, nil, "1-70000:unanswered"},
		{core.Running, 3, []int{1}, "1 2:unanswered 3:running"},
		{core.Completed, 2, []int{2}, "1:unanswered 2"},
	} {
		j := core.Job{Lane: core.QueueLane("orders"), Status: c.status, Attempt: c.begun, MaxAttempts: core.Unlimited}
		var attempts []core.Attempt
		for _, n := range c.nacked {
			attempts = append(attempts, core.Attempt{Number: n})
		}
		if got := drawn(history(j, attempts)); got != c.want {
			t.Errorf("history of a %s message after %d receives = %q, want %q", c.status, c.begun, got, c.want)
		}
	}
}

func drawn(entries []entry) string {
	short := map[string]string{underWay: "running", acked: "acked", noWord: "unanswered", noRecord: "lost"}
	var words []string
	for _, e := range entries {
		if e.record == nil {
			words = append(words, e.numbers()+":"+short[e.remark])
			continue
		}
		words = append(words, fmt.Sprint(e.record.Number))
	}
	return strings.Join(words, " ")
}
