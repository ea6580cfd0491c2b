package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the listings of runs, steps and histories that operators see. They compare whole
// pages with the rows that transitions wrote. A failure means that a run, step or entry is
// missing on a page, or shown twice.

const (
	saysRun     = "Run returns one run"
	saysRuns    = "Runs lists runs newest first, without their outputs, paged like Events"
	saysSteps   = "Steps lists at most limit steps of an epoch of a run, 1 to MaxPage, in the order of their ids, beginning after the id after"
	saysStops   = "A page ends once its States and Outputs have MaxRead bytes together, but has at least one step if there is any"
	saysOutline = "Outline returns all steps of an epoch of a run, in the order of their ids, without State, Output, Carry, Fan, Last and HeldUntil, and without names of texts"
	saysHistory = "History lists the entries of a run after a Seq, oldest first: limit of them, 1 to MaxPage, or fewer if there are no more"
)

// largesteps.go has the checks of steps.
var chronicle = role{name: "Chronicle", checks: []check{
	{saysRun, "", showRun},
	{saysRun, "none", showNoRun},
	{saysRuns, "", listRuns},
	{saysRuns, "by field", filterRuns},
	{saysRuns, "one by one", pageRuns},
	{saysRuns, "while runs are added", pageRunsMeanwhile},
	{saysSteps, "", listSteps},
	{saysStops, "", listLargeSteps},
	{saysOutline, "", outlineSteps},
	{saysHistory, "", listHistory},
	{saysHistory, "more than a page", listLongHistory},
	{saysHistory, "none", listNoHistory},
	{saysJobRun, "", showJobRun},
}}

// A run is read back with all its fields before and after it ended.
func showRun(r *rig) {
	s := r.newRun()
	r.equal("Run", r.run(s.Run.ID), s.Run)
	t := r.finished(s.Run, core.RunCompleted)
	r.mustTransit(t)
	r.equal("Run once completed", r.run(s.Run.ID), t.Run)
}

// Ids of steps and events are no ids of runs, although all ids look alike.
func showNoRun(r *rig) {
	s := r.newRun()
	for _, id := range []core.ID{s.Step.ID, s.Run.EventID, r.ids.Next()} {
		if _, err := r.store.Run(context.Background(), id); !core.IsKind(err, core.NotFound) {
			r.Errorf("Run(%s) = %v, want a refusal of kind NotFound", id, err)
		}
	}
}

// runOfEachStatus stores runs in each status, and returns them as they are listed, newest first.
func (r *rig) runOfEachStatus() (list []core.Run) {
	r.Helper()
	a := r.runArrival(defaultWorkflow, "billing")
	r.accept(a)
	for _, s := range pending(a) {
		list = append(list, s.Run)
	}
	for _, status := range []core.RunStatus{core.RunCompleted, core.RunFailed} {
		t := r.finished(r.newRun().Run, status)
		r.mustTransit(t)
		t.Run.Output = nil
		list = append(list, t.Run)
	}
	t := r.fullTransition(r.takeNewRunBeside())
	r.mustTransit(t)
	return newest(append(list, t.Run))
}

// takeNewRunBeside stores a new run, takes all due jobs of the workflow, and returns the new run's
// job.
func (r *rig) takeNewRunBeside() core.TakenJob {
	r.Helper()
	s := r.newRun()
	for _, j := range r.takeQuotas(r.runQuota(100)) {
		if j.ID == s.Step.ID {
			return j
		}
	}
	r.Fatalf("Take did not bring the job of a new run")
	return core.TakenJob{}
}

// Runs in each status are listed newest first.
func listRuns(r *rig) {
	want := r.runOfEachStatus()
	p := r.runs(core.RunFilter{})
	r.equal("Runs", p.Items, want)
	r.equal("Runs: More", p.More, false)
}

// Each field of a filter, and pairs of fields, select exactly the runs that match. Each
// combination uses another index.
func filterRuns(r *rig) {
	all := r.runOfEachStatus()
	choices := map[string]struct {
		f    core.RunFilter
		want func(core.Run) bool
	}{
		"a workflow": {core.RunFilter{Workflow: "billing"}, func(x core.Run) bool { return x.Workflow == "billing" }},
		"an event":   {core.RunFilter{EventID: all[0].EventID}, func(x core.Run) bool { return x.EventID == all[0].EventID }},
		"two at once": {core.RunFilter{Workflow: defaultWorkflow, Status: core.RunPending}, func(x core.Run) bool {
			return x.Workflow == defaultWorkflow && x.Status == core.RunPending
		}},
		"an event and a status": {core.RunFilter{EventID: all[4].EventID, Status: core.RunPending}, func(x core.Run) bool {
			return x.EventID == all[4].EventID && x.Status == core.RunPending
		}},
		"below an id":    {core.RunFilter{After: all[2].ID}, func(x core.Run) bool { return x.ID < all[2].ID }},
		"of no workflow": {core.RunFilter{Workflow: "nobody"}, func(core.Run) bool { return false }},
	}
	for _, s := range core.RunStatuses() {
		choices["status "+string(s)] = struct {
			f    core.RunFilter
			want func(core.Run) bool
		}{core.RunFilter{Status: s}, func(x core.Run) bool { return x.Status == s }}
	}
	for what, tc := range choices {
		r.equal("Runs: "+what, r.runs(tc.f).Items, filtered(all, tc.want))
	}
}

// Pages of one run lead through all of them. More is false on the last page only.
func pageRuns(r *rig) {
	want := r.runOfEachStatus()
	f := core.RunFilter{Limit: 1}
	for i := range want {
		p := r.runs(f)
		r.equal("Runs one by one", p.Items, want[i:i+1])
		r.equal("Runs one by one: More", p.More, i < len(want)-1)
		f.After = want[i].ID
	}
	r.equal("Runs after the last", len(r.runs(f).Items), 0)
}

// Runs that start while an operator turns pages must not shift the pages.
func pageRunsMeanwhile(r *rig) {
	want := r.runOfEachStatus()
	f := core.RunFilter{Limit: 2}
	var got []core.Run
	for more := true; more; {
		p := r.runs(f)
		got, more = append(got, p.Items...), p.More
		f.After = got[len(got)-1].ID
		r.newRun()
	}
	r.equal("Runs of the first page's time", got, want)
}

// History is called with every possible beginning and a limit of two. A second run has entries of
// the same numbers, which must not appear.
func listHistory(r *rig) {
	other := r.fullTransition(r.takeNewRun())
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(other, t)
	next := r.transitionOf(t.Run, core.EntrySucceeded, core.EntryCompleted)
	next.Entries[0].Path, next.Entries[0].Data = "fan/a/call", `{"by": "callback"}`
	next.Entries[1].At = r.now.Add(time.Second)
	r.mustTransit(next)
	want := append(t.Entries, next.Entries...)
	r.equal("History", r.history(t.Run.ID, 0, core.MaxPage), want)
	for after := range len(want) + 2 {
		r.equal(fmt.Sprint("History behind ", after), r.history(t.Run.ID, after, 2), want[min(after, len(want)):min(after+2, len(want))])
	}
}

// A history of more entries than a page is read without gaps or repetitions.
func listLongHistory(r *rig) {
	run := r.newRun().Run
	types := make([]core.EntryType, r.scaled(400))
	for i := range types {
		types[i] = core.EntryRetried
	}
	for range 3 {
		t := r.transitionOf(run, types...)
		r.mustTransit(t)
		run = t.Run
	}
	var got []core.Entry
	for more := true; more; {
		page := r.history(run.ID, len(got), 100)
		got, more = append(got, page...), len(page) == 100
	}
	r.equal("entries", len(got), run.Seq)
	for i, e := range got {
		r.equal("History: Seq", e.Seq, i+1)
	}
}

// A pending run and an unknown id have no entries, and asking for them is no error.
func listNoHistory(r *rig) {
	s := r.newRun()
	r.equal("History of a pending run", r.history(s.Run.ID, 0, 10), []core.Entry{})
	r.equal("History of no run", r.history(r.ids.Next(), 0, 10), []core.Entry{})
}
