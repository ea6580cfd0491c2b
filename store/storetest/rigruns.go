package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// Fixtures of workflow runs. rig.go has the other fixtures. The transitions made here are not
// those of a real workflow: they have as many parts as possible, because a store must take any
// transition that a later engine may send.

// defaultWorkflow is the workflow of runs unless a check names another.
const defaultWorkflow = "onboarding"

// definition returns the definition of a workflow. The hash is computed from the text, as in the
// engine, so the same workflow has the same definition in all checks.
func definition(workflow string) core.Definition {
	body := "name: " + workflow + "\n"
	return core.Definition{Hash: fmt.Sprintf("%x", sha256.Sum256([]byte(body))), Body: body}
}

// runArrival returns a new event with a run of each workflow. The timeout of each run is an hour.
// The first steps are named "first".
func (r *rig) runArrival(workflows ...string) core.Arrival {
	a, ids := core.Arrival{Event: r.event()}, r.ids.Block()
	a.Event.ID = ids.At(0)
	for i, w := range workflows {
		n := core.NewRun{ID: ids.At(uint32(2*i + 1)), Workflow: w, Definition: definition(w), StepID: ids.At(uint32(2*i + 2)), Step: "first", StepType: "http", Timeout: 60 * leaseTime}
		a.Runs = append(a.Runs, n)
		a.Jobs = append(a.Jobs, core.NewJob{ID: n.StepID, Lane: core.WorkflowLane(w), MaxAttempts: core.Unlimited})
	}
	return a
}

// pending returns the situations of the first steps of an arrival, as they must be stored. Checks
// compare the store's answers with it.
func pending(a core.Arrival) (all []core.Situation) {
	for _, n := range a.Runs {
		s := core.Situation{
			Run: core.Run{ID: n.ID, Workflow: n.Workflow, EventID: a.Event.ID, Definition: n.Definition.Hash, Status: core.RunPending,
				Epoch: 1, Step: n.Step, CreatedAt: a.Event.CreatedAt, DeadlineAt: a.Deadline(n)},
			Step: core.Step{ID: n.StepID, RunID: n.ID, Epoch: 1, Path: n.Step, Name: n.Step, Type: n.StepType, Status: core.StepReady, StartedAt: a.Event.CreatedAt},
		}
		all = append(all, s)
	}
	return all
}

// newRun stores a new run of the rig's workflow and returns the situation of its first step.
func (r *rig) newRun() core.Situation {
	r.Helper()
	a := r.runArrival(r.workflow)
	r.accept(a)
	return pending(a)[0]
}

// runQuota is a quota for n jobs of the rig's workflow.
func (r *rig) runQuota(n int) core.Quota {
	return core.Quota{Lane: core.WorkflowLane(r.workflow), N: n, Hold: leaseTime}
}

// takeNewRun stores a new run and takes its first job. The taken job comes with its situation,
// from which the next transition is made.
func (r *rig) takeNewRun() core.TakenJob {
	r.Helper()
	return r.takeOnly(r.newRun().Step.ID, r.runQuota(1))
}

// transitionOf returns a transition of a run as it was read, with an entry of each type. It
// advances Seq by the number of entries, as the engine does. The mark is a new id, so two calls
// return two different transitions for the same Seq.
func (r *rig) transitionOf(run core.Run, types ...core.EntryType) core.Transition {
	t := core.Transition{Mark: r.ids.Next(), Seq: run.Seq, Run: run, Apart: true}
	for i, e := range types {
		t.Entries = append(t.Entries, core.Entry{Seq: run.Seq + 1 + i, At: r.now, Epoch: run.Epoch, Type: e})
	}
	t.Run.Seq += len(types)
	if run.Status == core.RunPending {
		t.Run.Status, t.Run.StartedAt = core.RunRunning, r.now
	}
	return t
}

// step returns a new step of a run, at a path. Its state is long enough that a store may keep it
// in another table.
func (r *rig) step(run core.Run, path string, status core.StepStatus) core.Step {
	return core.Step{ID: r.ids.Next(), RunID: run.ID, Epoch: run.Epoch, Path: path, Name: path, Type: "http", Status: status,
		State: largeState(path), StartedAt: r.now}
}

// largeState returns a text of more than 2,000 bytes, which a store may keep in another table
// than the step.
func largeState(of string) []byte { return []byte(`{"of": "` + of + strings.Repeat(".", 2000) + `"}`) }

// fullTransition returns a transition after the first step of a run with each part that a
// transition can have. It ends that step and opens a parallel step with two branches: one waits
// for a callback, and the other is finished. Each part is marked with the transition's mark. So a
// check sees which of several transitions a row came from.
func (r *rig) fullTransition(j core.TakenJob) core.Transition {
	run := j.Situation.Run
	t := r.transitionOf(run, core.EntryStarted, core.EntrySucceeded, core.EntryFanned, core.EntryArmed)
	t.Entries[1].Path, t.Entries[1].Data = j.Situation.Step.Path, `{"mark": "`+string(t.Mark)+`"}`
	fan, call, over := r.step(run, "fan", core.StepRunning), r.step(run, "fan/a/call", core.StepWaiting), r.step(run, "fan/b/over", core.StepSucceeded)
	fan.Type, fan.Fan, fan.Carry = "parallel", core.Fan{Total: 2, Started: 2, Ended: 1, Bytes: len(`null`)}, `{"index": 3}`
	call.Type, call.ParentID, call.Branch, call.Attempt, call.Error = "callback", fan.ID, "a", 2, "network: refused"
	over.ParentID, over.Branch, over.Last, over.Output, over.FinishedAt = fan.ID, "b", true, []byte(`null`), r.now
	t.New = []core.Step{fan, call, over}
	t.Changed = []core.StepChange{changeOf(r.firstStepAfter(j, t))}
	t.Jobs = []core.StepJob{{ID: call.ID, Status: core.Scheduled, DueAt: r.now.Add(leaseTime)}}
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Completed, FinishedAt: r.now, Error: string(t.Mark)}}
	t.Attempts = []core.AttemptRecord{{JobID: j.ID, Lease: j.Lease, Attempt: r.called(j, string(t.Mark))}}
	t.Tokens = []core.Token{{Hash: tokenOf(call.ID), StepID: call.ID, ExpiresAt: r.now.Add(leaseTime)}}
	_, rises := r.riseOf(j)
	t.GivesRise = &rises
	t.Run.Step, t.Run.Written, t.Run.Writers = "fan of "+string(t.Mark), 3<<32, `{"fan":17}`
	return t
}

// firstStepAfter returns the first step of a run as a leap leaves it. A check compares it with the
// stored step.
func (r *rig) firstStepAfter(j core.TakenJob, t core.Transition) core.Step {
	s := ended(j.Situation.Step, r, core.StepSucceeded)
	s.Output = []byte(`"` + string(t.Mark) + `"`)
	return s
}

// called returns the attempt of a step's call, with the reply.
func (r *rig) called(j core.TakenJob, said string) core.Attempt {
	return core.Attempt{Number: j.Situation.Step.Attempt + 1, StatusCode: 200, Response: said, StartedAt: r.now}
}

// ended returns a step as it is after it ended with a status. A success has an output, and any
// other status has an error.
func ended(s core.Step, r *rig, status core.StepStatus) core.Step {
	s.Status, s.Attempt, s.FinishedAt = status, s.Attempt+1, r.now
	if status == core.StepSucceeded {
		s.Output = []byte(`{"from": "` + s.Path + `"}`)
	} else {
		s.Error = "status: 500"
	}
	return s
}

// changeOf returns the change that turns a stored step into s. The output is not sent if it equals
// the state: the store copies it then.
func changeOf(s core.Step) core.StepChange {
	passes := s.Output != nil && bytes.Equal(s.Output, s.State)
	return core.StepChange{ID: s.ID, Status: s.Status, Attempt: s.Attempt, Output: s.Output, Passes: passes, Error: s.Error, Carry: s.Carry,
		Fan: s.Fan, Last: s.Last, FinishedAt: s.FinishedAt}
}

// tokenOf returns the hash of the token that fixtures make for a step.
func tokenOf(step core.ID) string { return "token of " + string(step) }

// receiptOf returns the receipt that fixtures make for a step.
func receiptOf(step core.ID) string { return "receipt of " + string(step) }

// finished returns a transition that ends a run. A completed run has an output. A failed run has
// an error.
func (r *rig) finished(run core.Run, status core.RunStatus) core.Transition {
	t := r.transitionOf(run, core.EntryCompleted)
	t.Run.Status, t.Run.FinishedAt, t.Run.Output = status, r.now, []byte(`{"done": true}`)
	if status == core.RunFailed {
		t.Entries[0].Type, t.Run.Output, t.Run.Error = core.EntryFailed, nil, "step first: status: 500"
	}
	return t
}

// transit makes transitions and returns which of them are made. It ends the test on an error.
func (r *rig) transit(ts ...core.Transition) []bool {
	r.Helper()
	made := make([]bool, 0, len(ts))
	for _, t := range r.transited(ts...) {
		made = append(made, t.Made)
	}
	return made
}

// transited makes transitions and returns the results. It ends the test on an error.
func (r *rig) transited(ts ...core.Transition) []core.Transited {
	r.Helper()
	results, err := r.store.Transit(r.asked(), ts...)
	if err != nil {
		r.Fatalf("Transit of %d failed: %v", len(ts), err)
	}
	return results
}

// mustTransit makes transitions, all of which must be made. The test continues after a transition
// that is not made.
func (r *rig) mustTransit(ts ...core.Transition) {
	r.Helper()
	for i, made := range r.transit(ts...) {
		if !made {
			r.Errorf("Transit: the transition %d of run %s from %d is not made", i, ts[i].Run.ID, ts[i].Seq)
		}
	}
}

// wantNotMade checks that a transition is not made and changes nothing. It compares everything
// that the store shows, because a lost transition must leave no single row.
func (r *rig) wantNotMade(t core.Transition) {
	r.Helper()
	want := r.state()
	r.equal("Transit: made", r.transit(t), []bool{false})
	r.equal("state after a transition that is not made", r.state(), want)
	for _, token := range t.Tokens {
		r.equal("Awaited by a transition that is not made", r.awaited(token.Hash), core.ID(""))
	}
}

// situations returns the situations of steps. Steps that do not exist are absent.
func (r *rig) situations(steps ...core.ID) map[core.ID]core.Situation {
	r.Helper()
	got, err := r.store.Situations(context.Background(), steps)
	if err != nil {
		r.Fatalf("Situations(%v) failed: %v", steps, err)
	}
	return got
}

// situation returns the situation of a step, which must exist.
func (r *rig) situation(step core.ID) core.Situation {
	r.Helper()
	s, ok := r.situations(step)[step]
	if !ok {
		r.Fatalf("Situations(%s) has none of it", step)
	}
	return s
}

// survey returns the wanted steps of an epoch.
func (r *rig) survey(run core.ID, epoch int, w core.Wanted) []core.Step {
	r.Helper()
	got, err := r.store.Survey(context.Background(), run, epoch, w)
	if err != nil {
		r.Fatalf("Survey(%s, %d, %+v) failed: %v", run, epoch, w, err)
	}
	return got
}

// awaited returns the step for which a token is valid at the rig's time, or "".
func (r *rig) awaited(hash string) core.ID {
	r.Helper()
	return r.recorded(hash, "no receipt").StepID
}

// recorded looks up a token and a receipt. It returns the step of the token and the run of the
// receipt, each empty if there is none.
func (r *rig) recorded(hash, receipt string) core.Awaiting {
	r.Helper()
	found, err := r.store.Awaited(context.Background(), r.now, hash, receipt)
	if err != nil {
		r.Fatalf("Awaited(%s, %s) failed: %v", hash, receipt, err)
	}
	return found
}

// run returns a stored run with its output, and ends the test if there is none.
func (r *rig) run(id core.ID) core.Run {
	r.Helper()
	run, err := r.store.Run(context.Background(), id)
	if err != nil {
		r.Fatalf("Run(%s) failed: %v", id, err)
	}
	return run
}

// runs returns one page of runs.
func (r *rig) runs(f core.RunFilter) core.Page[core.Run] {
	r.Helper()
	p, err := r.store.Runs(context.Background(), f)
	if err != nil {
		r.Fatalf("Runs(%+v) failed: %v", f, err)
	}
	return p
}

// history returns at most limit entries of a run after a Seq.
func (r *rig) history(run core.ID, after, limit int) []core.Entry {
	r.Helper()
	got, err := r.store.History(context.Background(), run, after, limit)
	if err != nil {
		r.Fatalf("History(%s, %d, %d) failed: %v", run, after, limit, err)
	}
	return got
}

// A runView is everything that a store shows of a run.
type runView struct {
	Run     core.Run
	Steps   []core.Step // of all epochs
	History []core.Entry
	Awaited map[core.ID]string // valid tokens, by step

	Recorded []core.ID // steps with a stored receipt
}

// runView reads a run with all its rows, of all epochs. Two views are equal if a user sees the
// same run, except for its jobs.
func (r *rig) runView(run core.ID) runView {
	r.Helper()
	t := runView{Run: r.run(run), History: r.history(run, 0, core.MaxPage), Awaited: map[core.ID]string{}}
	for epoch := range t.Run.Epoch {
		t.Steps = append(t.Steps, r.survey(run, epoch+1, core.Wanted{All: true})...)
	}
	for _, s := range t.Steps {
		if r.armed != nil && !r.armed[s.ID] {
			continue
		}
		found := r.recorded(tokenOf(s.ID), receiptOf(s.ID))
		if found.StepID != "" {
			t.Awaited[found.StepID] = tokenOf(s.ID)
		}
		if found.RunID == run {
			t.Recorded = append(t.Recorded, s.ID)
		}
	}
	return t
}

// wantNoRun checks that no row of a run with this step is stored. A row of a deleted run that
// stays behind would never be found again, and a table would grow for ever.
func (r *rig) wantNoRun(run, step core.ID) {
	r.Helper()
	if _, err := r.store.Run(context.Background(), run); !core.IsKind(err, core.NotFound) {
		r.Errorf("Run(%s) = %v, want a refusal of kind NotFound", run, err)
	}
	r.equal("Survey of a deleted run", r.survey(run, 1, core.Wanted{All: true}), []core.Step{})
	r.equal("History of a deleted run", r.history(run, 0, 10), []core.Entry{})
	r.equal("Situations of a deleted run", r.situations(step), map[core.ID]core.Situation{})
	r.equal("Awaited of a deleted run", r.recorded(tokenOf(step), receiptOf(step)), core.Awaiting{})
}
