package core

import (
	"time"
)

// RunStatus is where a workflow run stands. The values are the words of every
// interface, as those of [Status] are.
type RunStatus string

// The five statuses of a run.
const (
	RunPending   RunStatus = "pending"   // nobody has taken its first job yet
	RunRunning   RunStatus = "running"   // some step is under way, or waits
	RunCompleted RunStatus = "completed" // final
	RunFailed    RunStatus = "failed"    // only a redrive brings it back
	RunCanceled  RunStatus = "canceled"  // an operator ended it; only a redrive brings it back
)

// RunStatuses lists all of them in the order of a run's life.
func RunStatuses() []RunStatus {
	return []RunStatus{RunPending, RunRunning, RunCompleted, RunFailed, RunCanceled}
}

// ParseRunStatus reads a status as users write it.
func ParseRunStatus(s string) (RunStatus, error) {
	for _, known := range RunStatuses() {
		if s == string(known) {
			return known, nil
		}
	}
	return "", Refuse(Invalid, "status must be one of pending, running, completed, failed, canceled; not %q", s)
}

// Finished reports whether no step of a run in this status goes on.
func (s RunStatus) Finished() bool { return s == RunCompleted || s.Redrivable() }

// Redrivable reports whether a run in this status can be redriven.
func (s RunStatus) Redrivable() bool { return s == RunFailed || s == RunCanceled }

// A Definition is a workflow as it was configured when a run of it began. It never
// changes: a run follows it to its end, whatever the configuration says by then.
type Definition struct {
	Hash string // of Body, SHA-256 in hexadecimal; its name in the store
	Body string // see config.Config.Definition
}

// A Run is one way through a workflow, for one event.
type Run struct {
	ID         ID
	Workflow   string // its name
	EventID    ID     // what started it, and what its first step receives
	Definition string // hash of the Definition it follows
	Status     RunStatus

	// Epoch is 1, and one more after each redrive. Steps belong to an epoch.
	Epoch int

	// Seq is the number of the newest entry of its history; 0 if it has none. Whoever
	// adds the next one may change the run: see [Runs.Transit].
	Seq int

	// Written is about how many bytes the run has written in all its epochs. Writers has the
	// bytes of each step with large texts, in the form of package workflow; it is empty if
	// there is none.
	Written int
	Writers string

	Step   string // of the workflow's own list, the one it has come to or ended with
	Output []byte // JSON, once completed

	// Error is why the run failed, beginning with the step. It is "canceled" if the run was
	// canceled. It is set already while a run that fails is at the steps of on_failure. Else it is
	// empty.
	Error string

	DeadlineAt time.Time // after it no step starts; zero if there is none
	CreatedAt  time.Time
	StartedAt  time.Time // when its first job was taken; zero before
	FinishedAt time.Time // zero unless it is finished
}

// A NewRun is a run that does not exist yet, of an [Arrival]. Its first step and
// that step's job have the same id: that of one of the arrival's jobs.
type NewRun struct {
	ID         ID
	Workflow   string
	Definition Definition
	StepID     ID
	Step       string        // name of the first step
	StepType   string        // its type, as in Step.Type
	Timeout    time.Duration // until its deadline, from the event's time on; zero for none
}

// StepStatus is where a step of a run stands.
type StepStatus string

// The statuses of a step.
const (
	StepReady     StepStatus = "ready"     // has a job that waits for a worker or a retry, or waits for its turn in a map
	StepRunning   StepStatus = "running"   // its call is under way, or its branches are
	StepWaiting   StepStatus = "waiting"   // for a time, or for a callback
	StepSucceeded StepStatus = "succeeded" // final
	StepFailed    StepStatus = "failed"    // final, also if the run went on elsewhere
	StepCanceled  StepStatus = "canceled"  // final: another branch failed, or somebody canceled the run
	StepSkipped   StepStatus = "skipped"   // final: the deadline of the run came
)

// Open reports whether a step in this status may still go on.
func (s StepStatus) Open() bool { return s == StepReady || s == StepRunning || s == StepWaiting }

// A Step is one visit of a run to a step of its workflow.
type Step struct {
	ID    ID // also that of its job, if it has one
	RunID ID
	Epoch int

	// ParentID is the parallel or map step of the same epoch that it is in, Branch the
	// name of the branch or the index of the item there; both empty on the workflow's own
	// list.
	ParentID ID
	Branch   string

	// Path names the visit, once per run and epoch: "prepare/parcels/pack/17/pack-item",
	// with #2 at the end at a second visit of that step there.
	Path string
	Name string
	Type string // http, choice, parallel, map, wait, callback or fail

	Status  StepStatus
	Attempt int    // ends of attempts that are recorded
	State   []byte // JSON that it received; nil stands for the event's payload
	Output  []byte // JSON that it passed on; nil before, and if it failed and the run did not go on from it
	Error   string // class and detail of what failed last; empty if nothing did

	// StateName and OutputName are the names under which the store keeps State and Output
	// apart from the step. A name is empty if the store keeps the text with the step.
	StateName  string
	OutputName string

	// Carry is what goes along from step to step beside the state, in the form of
	// package workflow; empty for nothing.
	Carry string

	Fan  Fan  // of a parallel or map step that has begun
	Last bool // it ended its branch: its Output is the branch's

	StartedAt  time.Time // when the run came to it
	FinishedAt time.Time // zero while it is open

	// HeldUntil is when the lease of a worker ends that held the step's job while the step was
	// ended without the worker: see Transition.Held. Until then the call may be under way. It
	// is zero if no worker held the job. Steps and Survey of all steps tell it, nothing else.
	HeldUntil time.Time
}

// A Fan counts the branches of a parallel step, or the items of a map step.
type Fan struct {
	Total   int
	Started int // of the first ones; those behind wait for their turn
	Ended   int // that succeeded
	Bytes   int // of the outputs of those that ended
}

// A Situation is a step with all that surrounds it, read at one moment.
type Situation struct {
	Run  Run
	Step Step

	// Above are the parallel and map steps that it is in, the innermost first, without
	// their State and Output.
	Above []Step
}

// Wanted says which steps of a run to read.
type Wanted struct {
	All    bool // those of the epoch
	Open   bool // those that are not over
	Failed bool // those that failed
	IDs    []ID
	Paths  []string
	Leaves []ID // those that ended a branch of one of these
}

// Nothing reports whether no step is wanted.
func (w Wanted) Nothing() bool {
	return !w.All && !w.Open && !w.Failed && len(w.IDs) == 0 && len(w.Paths) == 0 && len(w.Leaves) == 0
}

// And is what either wants.
func (w Wanted) And(v Wanted) Wanted {
	return Wanted{
		All: w.All || v.All, Open: w.Open || v.Open, Failed: w.Failed || v.Failed,
		IDs:    append(append([]ID{}, w.IDs...), v.IDs...),
		Paths:  append(append([]string{}, w.Paths...), v.Paths...),
		Leaves: append(append([]ID{}, w.Leaves...), v.Leaves...),
	}
}

// An Entry is one line of a run's history.
type Entry struct {
	Seq   int // from 1, without gaps
	At    time.Time
	Epoch int
	Type  EntryType
	Path  string // of the step it is about; empty if about the run
	Data  string // JSON object with details; empty for none
}

// An EntryType is what an entry tells.
type EntryType string

// What happens to runs and their steps.
const (
	EntryStarted    EntryType = "started"         // the run: its first job was taken
	EntryCompleted  EntryType = "completed"       // the run
	EntryFailed     EntryType = "failed"          // the run
	EntryCanceled   EntryType = "canceled"        // the run
	EntryOnFailure  EntryType = "on_failure"      // the run fails because of a step, and goes on with the step of on_failure
	EntryRedriven   EntryType = "redriven"        // the run, into a new epoch
	EntryArmed      EntryType = "token_issued"    // a callback step
	EntryWaiting    EntryType = "waiting"         // a callback step whose url was told
	EntryRetried    EntryType = "retry_scheduled" // an attempt failed
	EntrySucceeded  EntryType = "step_succeeded"
	EntryLate       EntryType = "answered_late" // a call failed whose step was over before the answer came
	EntryStepFailed EntryType = "step_failed"
	EntryFanned     EntryType = "branches_started" // a parallel or map step
)

// A RunFilter selects runs. Zero fields select everything.
type RunFilter struct {
	Status   RunStatus
	Workflow string
	EventID  ID
	After    ID  // continue below this id
	Limit    int // 1 to MaxPage; 0 means DefaultPage
}
