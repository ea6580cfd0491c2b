package mysql8

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// checkArchive reads n events back, and gives them new jobs.
func checkArchive(t *testing.T, s core.Store, ids *core.IDs, now time.Time, n int) {
	t.Helper()
	ctx, lane := t.Context(), core.HandlerLane(fmt.Sprint("archived ", n))
	want := func(what string, got int, err error, want int) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", what, got, err, want)
		}
	}
	f := core.EventFilter{Source: fmt.Sprint("archive ", n), Type: "t", Since: now, Until: now.Add(time.Second)}
	var events []core.ID
	var again []core.Arrival
	for range n {
		a := arrival(ids, now, lane, 2)
		a.Event.Source = f.Source
		if _, err := s.Accept(ctx, a); err != nil {
			t.Fatal(err)
		}
		events = append(events, a.Event.ID)
		a.Jobs = arrival(ids, now, lane, 1).Jobs
		again = append(again, a)
	}
	for i, place := range []int{1, n, n + 1} {
		if id, err := s.Nth(ctx, f, place); err != nil || id != []core.ID{events[n-1], events[0], events[0]}[i] {
			t.Errorf("Nth(%d) = %q, %v", place, id, err)
		}
	}
	page, err := s.Read(ctx, events[0], f)
	want("Read", len(page.Items), err, n)
	of, err := s.JobsOf(ctx, events)
	want("JobsOf", len(of[events[0]]), err, 2)
	tried, err := s.AttemptsOf(ctx, []core.ID{of[events[0]][0].ID})
	want("AttemptsOf", len(tried), err, 0)
	for range 2 {
		got, err := s.Replay(ctx, now, again...)
		want("Replay", got, err, n)
	}
	taken, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: n, Hold: time.Minute}})
	want("Take", len(taken), err, n)
	_, err = s.Settle(ctx, outcomes(taken, core.Completed, now.Add(time.Hour))...)
	want("Settle", 0, err, 0)
	finished, err := s.Finished(ctx, now.Add(time.Hour), "", n)
	want("Finished", len(finished.Items), err, n)
	listed, err := s.Jobs(ctx, core.JobFilter{Status: core.Available, Lane: lane})
	want("Jobs", len(listed.Items), err, 2*n)
	if completed, err := s.Completed(ctx); err != nil || completed < n {
		t.Errorf("Completed = %d, %v, want at least %d", completed, err, n)
	}
	for _, mine := range []bool{true, false} {
		if got, err := s.Turn(ctx, now, lane.Handler(), time.Minute); got != mine || err != nil {
			t.Errorf("Turn = %v, %v, want %v", got, err, mine)
		}
	}
}

// checkLarge purges a job and a run that seem to have more rows than one batch may delete.
func checkLarge(t *testing.T, s core.Store, ids *core.IDs, now time.Time, n int) {
	t.Helper()
	ctx, lane := t.Context(), core.QueueLane(fmt.Sprint("large ", n))
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := s.Accept(ctx, arrival(ids, now, lane, 1))
	must("Accept", err)
	taken, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: 1, Hold: time.Minute}})
	must("Take", err)
	dead := outcomes(taken, core.Dead, now.Add(-24*time.Hour))
	dead[0].Attempt.Number = 1_000_000
	_, err = s.Settle(ctx, dead...)
	must("Settle", err)

	workflow := fmt.Sprint("large ", n)
	a := arrival(ids, now, core.WorkflowLane(workflow), 2)
	for _, j := range a.Jobs {
		a.Runs = append(a.Runs, core.NewRun{ID: ids.Next(), Workflow: workflow, Definition: core.Definition{Hash: "large", Body: "steps"},
			StepID: j.ID, Step: "first", StepType: "http"})
	}
	_, err = s.Accept(ctx, a)
	must("Accept", err)
	taken, err = s.Take(ctx, now, []core.Quota{{Lane: core.WorkflowLane(workflow), N: 2, Hold: time.Minute}})
	must("Take", err)
	for i, j := range taken {
		first, second := transitions(ids, now, j)
		first.Tokens[0].ExpiresAt = now.Add(-24 * time.Hour)
		second.Disarm, second.Run.Seq, second.Run.FinishedAt = nil, 1_000_000, now.Add(-24*time.Hour)
		for _, tr := range []core.Transition{first, second}[:2-i] { // the other run goes on
			made, err := s.Transit(ctx, tr)
			if must("Transit", err); !made[0].Made {
				t.Fatal("Transit is not made")
			}
		}
	}
	for range 5 {
		_, _, err = s.Purge(ctx, now.Add(-time.Hour), 100)
		must("Purge", err)
	}
	if _, err := s.Run(ctx, taken[0].Situation.Run.ID); !core.IsKind(err, core.NotFound) {
		t.Errorf("Run after a purge = %v, want not found", err)
	}
}
