package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// EachRunStatement makes a store send every statement about runs at least once. It makes one
// transition with each part that a transition can have, reads the run by each method, and purges
// two runs.
func EachRunStatement(t *testing.T, s core.Store) {
	t.Helper()
	r := newRig(t, s, Options{})
	r.now = core.SystemClock().UTC().Truncate(time.Millisecond)
	ctx := context.Background()
	lane := core.WorkflowLane("each-statement")
	token := string(r.ids.Next())
	first := core.NewRun{
		ID: r.ids.Next(), Workflow: lane.Workflow(), Definition: core.Definition{Hash: "each statement", Body: "steps: []"},
		StepID: r.ids.Next(), Step: "first", Timeout: time.Hour,
	}
	r.accept(core.Arrival{Event: r.event(), Jobs: []core.NewJob{{ID: first.StepID, Lane: lane, MaxAttempts: core.Unlimited}}, Runs: []core.NewRun{first}})
	job := r.takeOnly(first.StepID, core.Quota{Lane: lane, N: 1, Hold: leaseTime})

	outer := core.Step{ID: r.ids.Next(), RunID: first.ID, Epoch: 1, Path: "outer", Name: "outer", Type: "map", Status: core.StepRunning, StartedAt: r.now}
	inner := core.Step{ID: r.ids.Next(), RunID: first.ID, Epoch: 1, ParentID: outer.ID, Path: "outer/0/inner", Name: "inner", Type: "callback", Status: core.StepReady, StartedAt: r.now}
	outer.State, inner.State = largeState("outer"), largeState("inner")
	next := core.Step{ID: r.ids.Next(), RunID: first.ID, Epoch: 1, Path: "next", Name: "next", Type: "http", Status: core.StepReady, StartedAt: r.now}
	run := job.Situation.Run
	run.Status, run.Seq, run.StartedAt = core.RunRunning, 2, r.now
	_, rises := r.riseOf(core.TakenJob{})
	eachTransit(r, core.Transition{
		Mark: r.ids.Next(), Run: run, Apart: true,
		Entries: []core.Entry{{Seq: 1, At: r.now, Epoch: 1, Type: core.EntryStarted}, {Seq: 2, At: r.now, Epoch: 1, Type: core.EntryFanned, Path: "outer"}},
		New:     []core.Step{outer, inner},
		Changed: []core.StepChange{{ID: first.StepID, Status: core.StepSucceeded, Output: []byte(`{}`), Last: true, FinishedAt: r.now}},
		Jobs:    []core.StepJob{{ID: inner.ID, Status: core.Scheduled, DueAt: r.now.Add(24 * time.Hour)}},
		JobsEnd: []core.JobChange{{ID: first.StepID, Status: core.Completed, FinishedAt: r.now}},
		Attempts: []core.AttemptRecord{{JobID: first.StepID, Lease: job.Lease, Attempt: core.Attempt{Number: 1, StatusCode: 500, Error: "status: 500", StartedAt: r.now}},
			{JobID: first.StepID, Lease: "recorded", Attempt: core.Attempt{Number: 2, StartedAt: r.now, Exchange: exchange("kept")}}},
		Tokens:   []core.Token{{Hash: token, StepID: inner.ID, ExpiresAt: r.now.Add(leaseTime)}},
		Receipts: []string{receiptOf(inner.ID)},
		Held:     []core.ID{first.StepID},
		Disarm:   []core.ID{first.StepID}, GivesRise: &rises,
	})
	eachRunQuestion(r, first, inner, token)
	run.Seq = 3
	eachTransit(r, core.Transition{Mark: r.ids.Next(), Seq: 2, Run: run, Entries: []core.Entry{{Seq: 3, At: r.now, Epoch: 1, Type: core.EntrySucceeded}},
		New: []core.Step{next}, Jobs: []core.StepJob{{ID: next.ID, DueAt: r.now}}, Take: core.Taking{Job: next.ID, Source: "shop", Until: r.now.Add(leaseTime)}})

	again := first
	again.ID, again.StepID = r.ids.Next(), r.ids.Next()
	r.accept(core.Arrival{Event: r.event(), Jobs: []core.NewJob{{ID: again.StepID, Lane: lane, MaxAttempts: core.Unlimited}}, Runs: []core.NewRun{again}})
	over := core.Run{ID: again.ID, Status: core.RunFailed, Epoch: 1, Seq: 1, FinishedAt: time.UnixMilli(1300).UTC()}
	eachTransit(r, core.Transition{Mark: r.ids.Next(), Run: over, Entries: []core.Entry{{Seq: 1, At: r.now, Epoch: 1, Type: core.EntryFailed}},
		JobsEnd: []core.JobChange{{ID: again.StepID, Status: core.Completed, FinishedAt: r.now}}})

	// A run that seems to have a long history is purged first, and alone.
	run.Status, run.Seq, run.FinishedAt = core.RunCompleted, 1_000_000, time.UnixMilli(1200).UTC()
	eachTransit(r, core.Transition{Mark: r.ids.Next(), Seq: 3, Run: run,
		Entries: []core.Entry{{Seq: 4, At: r.now, Epoch: 1, Type: core.EntryCompleted}},
		JobsEnd: []core.JobChange{{ID: next.ID, Status: core.Completed, FinishedAt: r.now}}})
	for range 2 {
		if _, _, err := s.Purge(ctx, time.UnixMilli(1600), 10); err != nil {
			r.Errorf("Purge = %v, want none", err)
		}
	}
	gatesBeside(r)

	// A later call on the same store takes its own jobs.
	r.now = r.now.Add(time.Hour)
	r.takeCount("an hour later", 0, core.Quota{Lane: lane, N: 1, Hold: leaseTime})
}

// eachTransit makes a transition, and ends the test if it is not made.
func eachTransit(r *rig, t core.Transition) {
	r.Helper()
	if made, err := r.store.Transit(context.Background(), t); err != nil || len(made) != 1 || !made[0].Made {
		r.Fatalf("Transit(%s) = %v, %v; want it to be made", t.Mark, made, err)
	}
}

// eachRunQuestion reads a run, its steps, tokens and history by each method and filter.
func eachRunQuestion(r *rig, n core.NewRun, inner core.Step, token string) {
	r.Helper()
	ctx, s := context.Background(), r.store
	situations, err := s.Situations(ctx, []core.ID{inner.ID})
	if err != nil || len(situations[inner.ID].Above) != 1 {
		r.Errorf("Situations = %+v, %v", situations, err)
	}
	for _, w := range []core.Wanted{{All: true}, {Open: true, Failed: true, IDs: []core.ID{inner.ID}, Paths: []string{inner.Path}, Leaves: []core.ID{inner.ParentID}}} {
		if steps, err := s.Survey(ctx, n.ID, 1, w); err != nil || len(steps) < 2 {
			r.Errorf("Survey(%+v) = %v, %v", w, steps, err)
		}
	}
	if page, err := s.Steps(ctx, n.ID, 1, "", 10); err != nil || len(page.Items) != 3 {
		r.Errorf("Steps = %v, %v", page, err)
	}
	if steps, err := s.Outline(ctx, n.ID, 1); err != nil || len(steps) != 3 {
		r.Errorf("Outline = %v, %v", steps, err)
	}
	if found, err := s.Awaited(ctx, r.now, token, receiptOf(inner.ID)); err != nil || found != (core.Awaiting{StepID: inner.ID, RunID: n.ID}) {
		r.Errorf("Awaited = %+v, %v; want %q of %q", found, err, inner.ID, n.ID)
	}
	if _, err := s.Definition(ctx, n.Definition.Hash); err != nil {
		r.Errorf("Definition = %v", err)
	}
	if _, err := s.Run(ctx, n.ID); err != nil {
		r.Errorf("Run = %v", err)
	}
	if entries, err := s.History(ctx, n.ID, 0, 10); err != nil || len(entries) != 2 {
		r.Errorf("History = %v, %v", entries, err)
	}
	for _, f := range []core.RunFilter{{}, {Status: core.RunRunning}, {EventID: n.ID}, {Workflow: n.Workflow, After: n.ID}, {Workflow: "none", Status: core.RunFailed, EventID: n.ID}} {
		if _, err := s.Runs(ctx, f); err != nil {
			r.Errorf("Runs(%+v) = %v", f, err)
		}
	}
}
