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
	p.begin("flow", "", 2)
	p.begin("rare", "d7", 1)
	p.begin("rare", "d7", 1)
	p.begin("rare again", "d7", 0)
	p.take("w", "flow/0", "flow/1", "rare/0")
	late := p.ends("flow/0", core.RunCompleted)
	fan := p.fans("flow/0")
	p.transits("a fan", true, fan)
	p.transits("a fan again", true, fan)
	p.transits("one that is too late", false, late)
	p.transits("two runs", true, p.retries("rare/0"), p.retries("flow/1"))
	p.transits("a fan once more", true, fan)
	p.wait(hold)
	p.take("w", "flow/0/call", "flow/1", "rare/0")
	joins := p.joins("flow/0")
	p.transits("a join beside an end", true, joins, p.ends("rare/0", core.RunFailed))
	p.transits("a fan at last", true, fan, joins)
	p.transits("an end beside one that is too late", true, p.ends("flow/0", core.RunCompleted))
	p.transits("a redrive", true, p.redrives("rare/0"))
	p.take("w", "rare/0 anew")
	p.transits("the last end", true, p.ends("flow/1", core.RunFailed))
	p.begin("flow", "", 2)
}

// begin accepts an event under a name with runs, and checks that the given number of them is
// stored: none if the event repeats another.
func (p *play) begin(name, delivery string, stored int) {
	p.Helper()
	a, again := p.arrivals[name]
	if !again {
		a = p.starts(flow, flow)
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
			p.told[job] = pending(a)[i].Run
			p.acks[n.StepID] = true
		}
		p.arrivals[name] = a
	}
	want := core.Receipt{EventID: a.Event.ID, Jobs: stored}
	if stored == 0 {
		want = core.Receipt{EventID: p.arrivals["rare"].Event.ID, Duplicate: true}
	}
	p.answer(name, a, want)
}

// transits sends transitions, and checks that all or none of them are made.
func (p *play) transits(what string, made bool, ts ...core.Transition) {
	p.Helper()
	p.step("transit "+what, func() error {
		got, err := p.store.Transit(context.Background(), ts...)
		for i := range got {
			p.equal(p.name+": made", got[i], made)
		}
		return err
	})
}

// moves returns a transition of the run that began with a job. The play then expects the run as
// after this transition.
func (p *play) moves(name string, types ...core.EntryType) core.Transition {
	t := p.move(p.told[name], types...)
	for i := range t.Entries {
		t.Entries[i].Path, t.Entries[i].Data = name, fmt.Sprintf(`{"n": %d}`, i)
	}
	p.told[name] = t.Run
	return t
}

// opens adds a step with a name to a transition, and a job if due is set.
func (p *play) opens(t *core.Transition, name string, s core.Step, due time.Time) core.ID {
	p.names[s.ID] = name
	t.New = append(t.New, s)
	if !due.IsZero() {
		t.Jobs = append(t.Jobs, core.StepJob{ID: s.ID, DueAt: due})
		p.acks[s.ID] = true
	}
	return s.ID
}

// over ends the step and the job of a name, with an attempt.
func (p *play) over(t *core.Transition, name string, change core.JobChange) {
	j := p.hands[name]
	change.ID = j.ID
	t.JobsEnd = append(t.JobsEnd, change)
	t.Attempts = append(t.Attempts, core.AttemptRecord{JobID: j.ID, Lease: j.Lease,
		Attempt: core.Attempt{Number: p.begun[name], Error: change.Error, Response: "said", StartedAt: p.now}})
	status := map[core.Status]core.StepStatus{core.Completed: core.StepSucceeded, core.Dead: core.StepFailed, core.Retryable: core.StepReady}
	c := core.StepChange{ID: j.ID, Status: status[change.Status], Attempt: p.begun[name], Error: change.Error, FinishedAt: change.FinishedAt}
	if change.Status == core.Completed {
		c.Output = []byte(`{"n": 1}`)
	}
	t.Changed = append(t.Changed, c)
}

// fans ends the first step of a run and opens a parallel step with two branches, of which one
// calls and the other is finished. It raises an alert.
func (p *play) fans(name string) core.Transition {
	t := p.moves(name, core.EntryStarted, core.EntrySucceeded, core.EntryFanned)
	p.over(&t, name, core.JobChange{Status: core.Completed, FinishedAt: p.now})
	fan := p.inside(t.Run, "fan", "", core.StepRunning)
	fan.Fan = core.Fan{Total: 2, Started: 2, Ended: 1, Bytes: 2}
	id := p.opens(&t, name+"/fan", fan, time.Time{})
	call := p.inside(t.Run, "fan/call", id, core.StepWaiting)
	p.opens(&t, name+"/call", call, p.now.Add(hold))
	done := p.inside(t.Run, "fan/done", id, core.StepSucceeded)
	done.Last, done.Output, done.FinishedAt = true, []byte(`{}`), p.now
	p.opens(&t, name+"/done", done, time.Time{})
	t.Tokens = []core.Token{{Hash: tokenOf(call.ID), StepID: call.ID, ExpiresAt: p.now.Add(2 * hold)}}
	told := p.arrive("told of "+name, "", []string{"c:"})
	t.GivesRise = &told
	return t
}

// inside returns a new step of a run, within the parent if one is named.
func (p *play) inside(run core.Run, path string, parent core.ID, status core.StepStatus) core.Step {
	s := p.rig.step(run, path, status)
	s.ParentID = parent
	return s
}

// retries makes the first job of a run due again.
func (p *play) retries(name string) core.Transition {
	t := p.moves(name, core.EntryStarted, core.EntryRetried)
	p.over(&t, name, core.JobChange{Status: core.Retryable, DueAt: p.now.Add(hold), Error: "network: refused"})
	return t
}

// joins ends the branch that calls, and with it the parallel step.
func (p *play) joins(name string) core.Transition {
	t := p.moves(name, core.EntrySucceeded, core.EntrySucceeded)
	p.over(&t, name+"/call", core.JobChange{Status: core.Completed, FinishedAt: p.now})
	t.Changed[0].Last = true
	for id, known := range p.names {
		if known == name+"/fan" {
			t.Changed = append(t.Changed, core.StepChange{ID: id, Status: core.StepSucceeded, Output: []byte(`{}`),
				Fan: core.Fan{Total: 2, Started: 2, Ended: 2, Bytes: 10}, FinishedAt: p.now})
		}
	}
	t.Disarm = []core.ID{p.hands[name+"/call"].ID}
	return t
}

// ends ends a run, and its first job if the run failed.
func (p *play) ends(name string, status core.RunStatus) core.Transition {
	before := p.told[name]
	t := p.finished(before, status)
	if before.Seq == 0 {
		return t // the play uses it as a transition that is not made
	}
	p.told[name] = t.Run
	if status == core.RunFailed {
		p.over(&t, name, core.JobChange{Status: core.Dead, Error: "status: 500", FinishedAt: p.now})
	}
	return t
}

// redrives takes a failed run into its next epoch.
func (p *play) redrives(name string) core.Transition {
	t := p.moves(name, core.EntryRedriven)
	t.Run.Status, t.Run.Epoch, t.Run.Error, t.Run.FinishedAt = core.RunPending, 2, "", time.Time{}
	j := p.hands[name]
	t.JobsEnd = []core.JobChange{{ID: j.ID, Status: core.Completed, Error: "status: 500", FinishedAt: p.now}}
	p.opens(&t, name+" anew", p.rig.step(t.Run, "first", core.StepReady), p.now)
	p.told[name] = t.Run
	return t
}

// A chapter is a run in a scene.
type chapter struct {
	Run     core.Run
	Steps   []core.Step
	History []core.Entry
	Awaited []string // steps with a valid token
}

// chapters returns the runs of a play, by the names of their first jobs.
func (p *play) chapters() map[string]chapter {
	p.Helper()
	all := map[string]chapter{}
	for _, run := range p.runs(core.RunFilter{Workflow: p.lanes["w"].Workflow(), Limit: core.MaxPage}).Items {
		t := p.tale(run.ID)
		c := chapter{Run: t.Run, Steps: t.Steps, History: t.History}
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
