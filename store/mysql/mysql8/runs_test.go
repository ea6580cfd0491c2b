package mysql8

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// checkRuns starts n runs, makes two transitions of each, and purges them.
func checkRuns(t *testing.T, s core.Store, ids *core.IDs, now time.Time, n int) {
	t.Helper()
	ctx, name := t.Context(), fmt.Sprint("flow ", n)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	definition := core.Definition{Hash: fmt.Sprint("hash ", n), Body: "steps"}
	a := arrival(ids, now, core.WorkflowLane(name), n)
	for _, j := range a.Jobs {
		a.Runs = append(a.Runs, core.NewRun{
			ID: ids.Next(), Workflow: name, Definition: definition, StepID: j.ID, Step: "first", StepType: "http", Timeout: time.Hour,
		})
	}
	_, err := s.Accept(ctx, a)
	must("Accept", err)
	if d, err := s.Definition(ctx, definition.Hash); err != nil || d != definition {
		t.Errorf("Definition = %+v, %v, want %+v", d, err, definition)
	}
	taken, err := s.Take(ctx, now, []core.Quota{{Lane: core.WorkflowLane(name), N: n, Hold: time.Minute}})
	must("Take", err)
	var steps []core.ID
	for _, j := range taken {
		steps = append(steps, j.ID)
		if j.Situation.Step.Path != "first" || j.Situation.Run.Workflow != name {
			t.Errorf("taken with %+v, want the first step of %s", j.Situation, name)
		}
	}
	found, err := s.Situations(ctx, steps)
	must("Situations", err)
	if len(found) != n {
		t.Fatalf("Situations = %d, want %d", len(found), n)
	}
	var first, second []core.Transition
	for _, j := range taken {
		one, two := transitions(ids, now, j)
		first, second = append(first, one), append(second, two)
	}
	for _, ts := range [][]core.Transition{first, first, second} {
		made, err := s.Transit(ctx, ts...)
		must("Transit", err)
		if len(made) != n || slices.Contains(made, core.Transited{}) {
			t.Errorf("Transit = %v, want all made", made)
		}
		done := ts[0].Run.Status == core.RunCompleted
		found, err := s.Awaited(ctx, now, first[0].Tokens[0].Hash, receiptOf(first[0]))
		if err != nil || (found.StepID == "") != done || (found.RunID == "") == done {
			t.Errorf("Awaited = %+v, %v with the run %s", found, err, ts[0].Run.Status)
		}
	}
	run := first[0].Run
	all, err := s.Survey(ctx, run.ID, 1, core.Wanted{All: true, Open: true, Failed: true,
		IDs: steps, Paths: []string{"first", "second"}, Leaves: []core.ID{first[0].New[0].ID}})
	must("Survey", err)
	if len(all) != 2 {
		t.Errorf("Survey = %d steps, want 2", len(all))
	}
	for _, w := range []core.Wanted{{Open: true}, {Failed: true}, {IDs: steps}, {Paths: []string{"first", "second"}}, {Leaves: steps}} {
		_, err = s.Survey(ctx, run.ID, 1, w)
		must("Survey", err)
	}
	if got, err := s.Run(ctx, run.ID); err != nil || got.Status != core.RunCompleted {
		t.Errorf("Run = %+v, %v, want it completed", got, err)
	}
	if page, err := s.Runs(ctx, core.RunFilter{Status: core.RunCompleted, Workflow: name}); err != nil || len(page.Items) != n {
		t.Errorf("Runs = %+v, %v, want %d", page, err, n)
	}
	if entries, err := s.History(ctx, run.ID, 0, 10); err != nil || len(entries) != 3 {
		t.Errorf("History = %+v, %v, want 3 entries", entries, err)
	}
	_, _, err = s.Purge(ctx, now.Add(time.Hour), 100)
	must("Purge", err)
	if _, err := s.Run(ctx, run.ID); !core.IsKind(err, core.NotFound) {
		t.Errorf("Run after a purge = %v, want not found", err)
	}
}

// transitions returns two transitions of a job's run: one to a second step that waits for a
// callback, and one to the run's end.
func transitions(ids *core.IDs, now time.Time, j core.TakenJob) (first, second core.Transition) {
	run, step := j.Situation.Run, j.Situation.Step
	next := core.Step{
		ID: ids.Next(), RunID: run.ID, Epoch: 1, Path: "second", Name: "second", Type: "callback",
		Status: core.StepWaiting, State: []byte(`"` + strings.Repeat("x", 2000) + `"`), StartedAt: now, // large enough to be kept apart
	}
	alarm := arrival(ids, now, core.AlertLane("x"), 1)
	run.Status, run.StartedAt, run.Step, run.Seq = core.RunRunning, now, "second", 2
	first = core.Transition{
		Mark: ids.Next(), Run: run, Apart: true,
		Entries:   []core.Entry{{Seq: 1, At: now, Epoch: 1, Type: core.EntryStarted}, {Seq: 2, At: now, Epoch: 1, Type: core.EntrySucceeded, Path: "first"}},
		New:       []core.Step{next},
		Changed:   []core.StepChange{{ID: step.ID, Status: core.StepSucceeded, Attempt: 1, Output: []byte("{}"), FinishedAt: now}},
		Jobs:      []core.StepJob{{ID: next.ID, DueAt: now.Add(time.Hour)}},
		JobsEnd:   []core.JobChange{{ID: step.ID, Status: core.Completed, FinishedAt: now}},
		Attempts:  []core.AttemptRecord{{JobID: step.ID, Lease: j.Lease, Attempt: core.Attempt{Number: 1, StatusCode: 200, StartedAt: now}}},
		Tokens:    []core.Token{{Hash: string(next.ID), StepID: next.ID, ExpiresAt: now.Add(time.Hour)}},
		GivesRise: &alarm,
	}
	run.Status, run.FinishedAt, run.Seq, run.Output = core.RunCompleted, now, 3, []byte("{}")
	second = core.Transition{
		Mark: ids.Next(), Seq: 2, Run: run,
		Entries: []core.Entry{{Seq: 3, At: now, Epoch: 1, Type: core.EntryCompleted}},
		Changed: []core.StepChange{{ID: next.ID, Status: core.StepSucceeded, Attempt: 1, Output: []byte("{}"), Last: true, FinishedAt: now}},
		JobsEnd: []core.JobChange{{ID: next.ID, Status: core.Completed, FinishedAt: now}},
		Disarm:  []core.ID{next.ID},
		Held:    []core.ID{next.ID},

		Receipts: []string{receiptOf(first)},
	}
	return first, second
}

func receiptOf(first core.Transition) string { return "receipt of " + string(first.New[0].ID) }
