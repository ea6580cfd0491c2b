package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// One play of the scenario of the fault tests, and the content of the store after each of its
// steps. See [RunFaults].

// A play is one run of the scenario. Events, jobs, steps and runs have names, such as "first/0"
// for the first job of the event "first", which are the same in each play. So the contents of a
// store after two plays can be compared, although each play has its own ids, lanes and leases.
type play struct {
	*rig
	fault         *Fault
	run           int
	source        string
	lanes         map[string]core.Lane
	short         map[core.Lane]core.Lane // the short names of the lanes
	base          int                     // the depth of the store before the play
	arrivals      map[string]core.Arrival
	names         map[core.ID]string
	outcomes      map[core.ID]core.Outcome // of the newest attempt, by job
	heldJobs      map[string]core.Job      // taken jobs by name
	probes        map[string]bool          // which of them are probes
	attemptsBegun map[string]int           // attempts begun, by name
	lostTakes     map[string]bool          // jobs whose Take lost its answer, which costs them an attempt
	unrecorded    map[core.ID]bool         // jobs that are acked or drained in the play, and jobs of runs
	wantRuns      map[string]core.Run      // runs as they must be stored, by the names of their first jobs

	name    string
	how     faultKind
	turns   []int // by step: the number of its next statement, or batch, to fail; 0 once all have failed
	stride  int   // how far to advance that number after each fault
	last    int   // the last step with a fault
	faulted int   // the number of steps with a fault
	record  bool
	states  []scene // before the first step and after each step, if record is set
	clean   []scene // the states of a play without faults
	steps   int
}

// newPlay prepares a play in the rig's store. Its rig is a copy, so that the time of one play does
// not move that of another.
func newPlay(r *rig, f *Fault, run int) *play {
	own := *r
	// The maps are empty: names are given as the scenario makes its rows.
	p := &play{
		rig: &own, fault: f, run: run, source: fmt.Sprint("source-", run), lanes: map[string]core.Lane{}, short: map[core.Lane]core.Lane{},
		arrivals: map[string]core.Arrival{}, names: map[core.ID]string{}, outcomes: map[core.ID]core.Outcome{},
		heldJobs: map[string]core.Job{}, probes: map[string]bool{}, attemptsBegun: map[string]int{}, lostTakes: map[string]bool{},
		unrecorded: map[core.ID]bool{}, wantRuns: map[string]core.Run{}, last: -faultDistance,
	}
	for _, l := range []string{"a", "b", "c", "d", "w"} {
		p.lanes[l] = playLane(l, run)
		p.short[p.lanes[l]] = core.Lane(l)
	}
	p.armed, p.base = map[core.ID]bool{}, r.depth()
	return p
}

// playLane returns a lane of the play, by its short name. The lane "w" is a workflow's.
func playLane(name string, run int) core.Lane {
	if name == "w" {
		return core.WorkflowLane(fmt.Sprint("w-", run))
	}
	return core.Lane(fmt.Sprintf("handler/%s-%d", name, run))
}

// A scene is the content of a store after a step of a play, under names that are the same in each
// play. Values that differ between plays, such as ids and leases, are left out or replaced by
// names.
type scene struct {
	Events    []string
	Depth     int // unfinished jobs of the play, also of jobs without an event
	Jobs      map[string]sceneJob
	Marks     map[string]core.Mark
	Gates     map[string]core.Gate
	Runs      map[string]sceneRun
	lostTakes map[string]bool
}

// A sceneJob is a job in a scene.
type sceneJob struct {
	core.Job
	Attempts []core.Attempt
}

// It has as few statements as possible, because it is read twice for each fault.
func (p *play) scene() scene {
	p.Helper()
	s := scene{Jobs: map[string]sceneJob{}, Marks: map[string]core.Mark{}, Gates: map[string]core.Gate{}, lostTakes: p.lostTakes}
	events := p.events(core.EventFilter{Source: p.source, Limit: core.MaxPage}).Items
	for _, e := range events {
		s.Events = append(s.Events, p.names[e.ID])
	}
	s.Depth = p.depth() - p.base
	jobs := p.jobsOf(ids(events)...)
	var all []core.ID
	for _, of := range jobs {
		all = append(all, ids(of)...)
	}
	attempts := p.attemptsOf(all...)
	for _, of := range jobs {
		for _, j := range of {
			tries := attempts[j.ID]
			p.wantConsistent(j, tries)
			key := p.names[j.ID]
			j = bare(j)
			j.ID, j.EventID, j.Lane, j.RunID = "", core.ID(p.names[j.EventID]), p.short[j.Lane], core.ID(p.names[j.RunID])
			if p.lostTakes[key] {
				j = withoutLostTake(j)
			}
			s.Jobs[key] = sceneJob{Job: j, Attempts: tries}
		}
	}
	looks := p.outlooks(slices.Collect(maps.Values(p.lanes))...)
	for name, lane := range p.lanes {
		if g := looks[lane].Gate; g != (core.Gate{}) {
			g.MovedBy = core.ID(p.names[g.MovedBy])
			s.Gates[name] = g
		}
	}
	for _, m := range p.marks(p.source+"/a", p.source+"/b") {
		name := strings.TrimPrefix(m.Source, p.source)
		m.Source = name
		s.Marks[name] = m
	}
	s.Runs = p.sceneRuns()
	return s
}

// withoutLostTake returns a job without the effects of a Take whose answer was lost: the job
// counts an attempt that no worker made. Whether the lost Take took effect is the only difference
// that a fault may leave.
func withoutLostTake(j core.Job) core.Job {
	if j.Status == core.Available {
		j.Status = core.Retryable
	}
	j.MaxAttempts -= j.Earlier
	j.Attempt, j.Earlier = 0, 0
	return j
}

// equalScene compares scenes. It ignores the effects of lost Takes on both sides. The receiver is
// the scene after the fault, and other that of the clean play.
func (s scene) equalScene(other scene) bool {
	jobs := map[string]sceneJob{}
	for name, j := range other.Jobs {
		if s.lostTakes[name] {
			j.Job = withoutLostTake(j.Job)
		}
		jobs[name] = j
	}
	return s.Depth == other.Depth && equalValues(s.Events, other.Events) && equalValues(s.Jobs, jobs) && equalValues(s.Marks, other.Marks) && equalValues(s.Gates, other.Gates) &&
		equalValues(s.Runs, other.Runs)
}

// wantConsistent checks that a job and its attempts are consistent after any fault. These rules
// hold in any state, also in one that no clean play reaches.
func (p *play) wantConsistent(j core.Job, tries []core.Attempt) {
	p.Helper()
	name := p.names[j.ID]
	if (j.Lease != "") != (j.Status == core.Running) {
		p.Errorf("%s: job %s is %s with lease %q", p.name, name, j.Status, j.Lease)
	}
	if j.FinishedAt.IsZero() == j.Status.Finished() || j.DueAt.IsZero() != j.Status.Finished() {
		p.Errorf("%s: job %s is %s, finished at %v, due at %v", p.name, name, j.Status, j.FinishedAt, j.DueAt)
	}
	if len(tries) > p.attemptsBegun[name] {
		p.Errorf("%s: job %s has %d attempts recorded, want at most %d", p.name, name, len(tries), p.attemptsBegun[name])
	}
	if j.Status == core.Completed && p.unrecorded[j.ID] {
		return // an ack leaves no attempt
	}
	if j.Status == core.Canceled {
		return // canceled before, between or after attempts
	}
	if n := len(tries); j.Status.Finished() && (n == 0 || (tries[n-1].Error == "") != (j.Status == core.Completed)) {
		p.Errorf("%s: job %s is %s with the attempts %v", p.name, name, j.Status, tries)
	}
}

// step makes a call, and makes it again if it fails. After a fault it compares the store with the
// clean play, before and after the repetition.
func (p *play) step(name string, call func() error) {
	p.Helper()
	p.steps++
	p.name = fmt.Sprintf("step %d, %s", p.steps, name)
	struck, err := p.callWithFault(call)
	if struck {
		p.afterFault(err)
	}
	if err != nil {
		if err := call(); err != nil {
			p.Fatalf("%s: repeated after a fault = %v, want none", p.name, err)
		}
		p.wantScene("repeated after a fault", p.steps)
	}
	if p.record {
		p.states = append(p.states, p.scene())
	}
}

// callWithFault makes the call of a step and reports whether a statement failed. A statement
// fails if some statements of the step have not failed in earlier plays, and if the last fault of
// this play is at least faultDistance steps ago. A later play then fails a later statement of the
// step.
func (p *play) callWithFault(call func() error) (bool, error) {
	if p.turns == nil || p.turns[p.steps] == 0 || p.steps < p.last+faultDistance {
		return false, call()
	}
	p.fault.arm(p.how, p.turns[p.steps])
	err := call()
	p.fault.disarm()
	if !p.fault.hasStruck() {
		p.turns[p.steps] = 0
		return false, err
	}
	p.turns[p.steps] += p.stride
	p.last, p.faulted = p.steps, p.faulted+1
	return true, err
}

// afterFault checks that the failed step changed everything or nothing. A call that returned no
// error must have changed everything.
func (p *play) afterFault(err error) {
	p.Helper()
	got := p.scene()
	if !got.equalScene(p.clean[p.steps]) && (err == nil || !got.equalScene(p.clean[p.steps-1])) {
		p.Errorf("%s: after the fault (%v) the store shows half of it: %+v", p.name, err, got)
	}
}

// wantScene compares the store with the state of the clean play after a step. It compares part by
// part, so that the failure names the part that differs.
func (p *play) wantScene(when string, step int) {
	p.Helper()
	if p.clean == nil {
		return
	}
	if got, want := p.scene(), p.clean[step]; !got.equalScene(want) {
		p.equal(p.name+", "+when, got.Jobs, want.Jobs)
		p.equal(p.name+", "+when, got.Events, want.Events)
		p.equal(p.name+", "+when+": depth", got.Depth, want.Depth)
		p.equal(p.name+", "+when, got.Marks, want.Marks)
		p.equal(p.name+", "+when, got.Gates, want.Gates)
		p.equal(p.name+", "+when, got.Runs, want.Runs)
	}
}
