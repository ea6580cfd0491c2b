package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// scenarioRuns is the part of the [scenario] with workflow runs. It sends every statement of a
// transition, alone and together with statements of another run, for transitions that are made,
// repeated and lost.
func scenarioRuns(p *play) {
	p.acceptRuns("flow", "", 2)
	p.acceptRuns("rare", "d7", 1)
	p.acceptRuns("rare", "d7", 1)
	p.acceptRuns("rare again", "d7", 0)
	p.take("w", "flow/0", "flow/1", "rare/0")
	late := p.endRun("flow/0", core.RunCompleted)
	fan := p.fanOut("flow/0")
	p.transitions("a fan", true, fan)
	p.transitions("a fan again", true, fan)
	p.transitions("one that is too late", false, late)
	p.transitions("two runs", true, p.retryRun("rare/0"), p.retryRun("flow/1"))
	p.transitions("a fan once more", true, fan)
	p.advance(leaseTime)
	p.take("w", "flow/0/call", "flow/1", "rare/0")
	joins := p.joinBranches("flow/0")
	p.transitions("a join beside an end", true, joins, p.endRun("rare/0", core.RunFailed))
	p.transitions("a fan at last", true, fan, joins)
	p.transitions("an end beside one that is too late", true, p.endRun("flow/0", core.RunCompleted))
	p.transitions("a redrive", true, p.redriveRun("rare/0"))
	p.take("w", "rare/0 anew")
	p.transitions("the last end", true, p.endRun("flow/1", core.RunFailed))
	p.acceptRuns("flow", "", 2)
}

// acceptRuns accepts an event under a name with runs, and checks that the given number of them is
// stored: none if the event repeats another.
func (p *play) acceptRuns(name, delivery string, stored int) {
	p.Helper()
	a, again := p.arrivals[name]
	if !again {
		a = p.runArrival(defaultWorkflow, defaultWorkflow)
		if stored == 1 {
			a.Runs, a.Jobs = a.Runs[:1], a.Jobs[:1]
		}
		a.Event.Source, a.Event.DeliveryID = p.source, delivery
		p.names[a.Event.ID] = name
		for i := range a.Runs {
			n := &a.Runs[i]
			job := fmt.Sprintf("%s/%d", name, i)
			n.Workflow, a.Jobs[i].Lane = p.lanes["w"].Workflow(), p.lanes["w"]
			p.names[n.ID], p.names[n.StepID] = "run of "+job, job
			p.wantRuns[job] = pending(a)[i].Run
			p.unrecorded[n.StepID] = true
		}
		p.arrivals[name] = a
	}
	want := core.Receipt{EventID: a.Event.ID, Jobs: stored}
	if stored == 0 {
		want = core.Receipt{EventID: p.arrivals["rare"].Event.ID, Duplicate: true}
	}
	p.acceptAs(name, a, want)
}

// transitions sends transitions, and checks that all or none of them are made.
func (p *play) transitions(what string, made bool, ts ...core.Transition) {
	p.Helper()
	p.step("transit "+what, func() error {
		got, err := p.store.Transit(context.Background(), ts...)
		for i := range got {
			p.equal(p.name+": made", got[i].Made, made)
		}
		return err
	})
}

// nextTransition returns a transition of the run that began with a job. The play then expects the run as
// after this transition.
func (p *play) nextTransition(name string, types ...core.EntryType) core.Transition {
	t := p.transitionOf(p.wantRuns[name], types...)
	for i := range t.Entries {
		t.Entries[i].Path, t.Entries[i].Data = name, fmt.Sprintf(`{"n": %d}`, i)
	}
	p.wantRuns[name] = t.Run
	return t
}

// addStep adds a step with a name to a transition, and a job if due is set.
func (p *play) addStep(t *core.Transition, name string, s core.Step, due time.Time) core.ID {
	p.names[s.ID] = name
	t.New = append(t.New, s)
	if !due.IsZero() {
		t.Jobs = append(t.Jobs, core.StepJob{ID: s.ID, DueAt: due})
		p.unrecorded[s.ID] = true
	}
	return s.ID
}

// endStep ends the step and the job of a name, with an attempt.
func (p *play) endStep(t *core.Transition, name string, change core.JobChange) {
	j := p.heldJobs[name]
	change.ID = j.ID
	t.JobsEnd = append(t.JobsEnd, change)
	t.Attempts = append(t.Attempts, core.AttemptRecord{JobID: j.ID, Lease: j.Lease,
		Attempt: core.Attempt{Number: p.attemptsBegun[name], Error: change.Error, Response: "said", StartedAt: p.now}})
	status := map[core.Status]core.StepStatus{core.Completed: core.StepSucceeded, core.Dead: core.StepFailed, core.Retryable: core.StepReady}
	c := core.StepChange{ID: j.ID, Status: status[change.Status], Attempt: p.attemptsBegun[name], Error: change.Error, FinishedAt: change.FinishedAt}
	if change.Status == core.Completed {
		c.Output = []byte(`{"n": 1}`)
	}
	t.Changed = append(t.Changed, c)
}

// fanOut ends the first step of a run and opens a parallel step with two branches, of which one
// calls and the other is finished. It raises an alert.
func (p *play) fanOut(name string) core.Transition {
	t := p.nextTransition(name, core.EntryStarted, core.EntrySucceeded, core.EntryFanned)
	p.endStep(&t, name, core.JobChange{Status: core.Completed, FinishedAt: p.now})
	fan := p.stepInside(t.Run, "fan", "", core.StepRunning)
	fan.Fan = core.Fan{Total: 2, Started: 2, Ended: 1, Bytes: 2}
	id := p.addStep(&t, name+"/fan", fan, time.Time{})
	call := p.stepInside(t.Run, "fan/call", id, core.StepWaiting)
	p.addStep(&t, name+"/call", call, p.now.Add(leaseTime))
	done := p.stepInside(t.Run, "fan/done", id, core.StepSucceeded)
	done.Last, done.Output, done.FinishedAt = true, []byte(`{}`), p.now
	p.addStep(&t, name+"/done", done, time.Time{})
	p.armed[call.ID] = true
	t.Tokens = []core.Token{{Hash: tokenOf(call.ID), StepID: call.ID, ExpiresAt: p.now.Add(2 * leaseTime)}}
	alert := p.arrivalNamed("told of "+name, "", []string{"c:"})
	t.GivesRise = &alert
	return t
}

// stepInside returns a new step of a run, within the parent if one is named.
func (p *play) stepInside(run core.Run, path string, parent core.ID, status core.StepStatus) core.Step {
	s := p.rig.step(run, path, status)
	s.ParentID = parent
	return s
}

// retryRun makes the first job of a run due again.
func (p *play) retryRun(name string) core.Transition {
	t := p.nextTransition(name, core.EntryStarted, core.EntryRetried)
	p.endStep(&t, name, core.JobChange{Status: core.Retryable, DueAt: p.now.Add(leaseTime), Error: "network: refused"})
	return t
}

// joinBranches ends the branch that calls, and with it the parallel step.
func (p *play) joinBranches(name string) core.Transition {
	t := p.nextTransition(name, core.EntrySucceeded, core.EntrySucceeded)
	p.endStep(&t, name+"/call", core.JobChange{Status: core.Completed, FinishedAt: p.now})
	t.Changed[0].Last = true
	for id, known := range p.names {
		if known == name+"/fan" {
			t.Changed = append(t.Changed, core.StepChange{ID: id, Status: core.StepSucceeded, Output: []byte(`{}`),
				Fan: core.Fan{Total: 2, Started: 2, Ended: 2, Bytes: 10}, FinishedAt: p.now})
		}
	}
	t.Disarm = []core.ID{p.heldJobs[name+"/call"].ID}
	return t
}

// endRun ends a run, and its first job if the run failed.
func (p *play) endRun(name string, status core.RunStatus) core.Transition {
	before := p.wantRuns[name]
	t := p.finished(before, status)
	if before.Seq == 0 {
		return t // the play uses it as a transition that is not made
	}
	p.wantRuns[name] = t.Run
	if status == core.RunFailed {
		p.endStep(&t, name, core.JobChange{Status: core.Dead, Error: "status: 500", FinishedAt: p.now})
	}
	return t
}

// redriveRun takes a failed run into its next epoch.
func (p *play) redriveRun(name string) core.Transition {
	t := p.nextTransition(name, core.EntryRedriven)
	t.Run.Status, t.Run.Epoch, t.Run.Error, t.Run.FinishedAt = core.RunPending, 2, "", time.Time{}
	j := p.heldJobs[name]
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Completed, Error: "status: 500", FinishedAt: p.now}}
	p.addStep(&t, name+" anew", p.rig.step(t.Run, "first", core.StepReady), p.now)
	p.wantRuns[name] = t.Run
	return t
}

// A sceneRun is a run in a scene.
type sceneRun struct {
	Run     core.Run
	Steps   []core.Step
	History []core.Entry
	Awaited []string // steps with a valid token
}

// sceneRuns returns the runs of a play, by the names of their first jobs.
func (p *play) sceneRuns() map[string]sceneRun {
	p.Helper()
	all := map[string]sceneRun{}
	for _, run := range p.runs(core.RunFilter{Workflow: p.lanes["w"].Workflow(), Limit: core.MaxPage}).Items {
		t := p.runView(run.ID)
		c := sceneRun{Run: t.Run, Steps: t.Steps, History: t.History}
		name := func(id *core.ID) { *id = core.ID(p.names[*id]) }
		for i := range c.Steps {
			s := &c.Steps[i]
			if t.Awaited[s.ID] != "" {
				c.Awaited = append(c.Awaited, p.names[s.ID])
			}
			for _, id := range []*core.ID{&s.ID, &s.RunID, &s.ParentID} {
				name(id)
			}
		}
		name(&c.Run.ID)
		name(&c.Run.EventID)
		c.Run.Workflow = ""
		all[string(c.Run.ID)] = c
	}
	return all
}
