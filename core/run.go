package core

import (
	"time"
)

// RunStatus is the state of a workflow run. Its values are the words of every interface,
// like those of [Status].
type RunStatus string

// The five statuses of a run.
const (
	RunPending   RunStatus = "pending"   // no worker has taken its first job yet
	RunRunning   RunStatus = "running"   // some step is under way, or waits
	RunCompleted RunStatus = "completed" // final
	RunFailed    RunStatus = "failed"    // only a redrive brings it back
	RunCanceled  RunStatus = "canceled"  // an operator ended it; only a redrive brings it back
)

// RunStatuses lists all statuses in the order of a run's life.
func RunStatuses() []RunStatus {
	return []RunStatus{RunPending, RunRunning, RunCompleted, RunFailed, RunCanceled}
}

// ParseRunStatus reads a status as users write it. The error is a [Refusal] of kind
// [Invalid].
func ParseRunStatus(s string) (RunStatus, error) {
	for _, known := range RunStatuses() {
		if s == string(known) {
			return known, nil
		}
	}
	return "", Refuse(Invalid, "status must be one of pending, running, completed, failed, canceled; not %q", s)
}

// Finished reports whether no step of a run in this status continues.
func (s RunStatus) Finished() bool { return s == RunCompleted || s.Redrivable() }

// Redrivable reports whether a run in this status can be redriven.
func (s RunStatus) Redrivable() bool { return s == RunFailed || s == RunCanceled }

// A Definition is a workflow as it was configured when a run of it began. It never changes.
// A run follows it to its end, also after the configuration has changed.
type Definition struct {
	Hash string // of Body, SHA-256 in hexadecimal; its name in the store
	Body string // see config.Config.Definition
}

// A Run is one execution of a workflow, for one event.
type Run struct {
	ID         ID
	Workflow   string // name of the workflow
	EventID    ID     // the event that started it, which its first step receives
	Definition string // hash of the Definition it follows
	Status     RunStatus

	// Epoch is 1, and one more after each redrive. Steps belong to an epoch.
	Epoch int

	// Seq is the number of the newest entry of its history, or 0 if it has none. The first
	// caller to add the next entry changes the run: see [Runs.Transit].
	Seq int

	// Written is about how many bytes the run has written in all its epochs. Writers has
	// the bytes of each step with large texts, in a format of package workflow. It is empty
	// if no step has large texts.
	Written int
	Writers string

	Step   string // name of the newest step on the workflow's own list, also after the run ended
	Output []byte // JSON; nil until the run is completed

	// Error is why the run failed, and begins with the step. It is "canceled" if the run
	// was canceled. It is already set while a failing run executes the steps of on_failure.
	// Otherwise it is empty.
	Error string

	DeadlineAt time.Time // no step starts after it; zero if there is none
	CreatedAt  time.Time
	StartedAt  time.Time // when its first job was taken; zero before
	FinishedAt time.Time // zero unless it is finished
}

// A NewRun is a run before it is stored, in an [Arrival]. Its first step and that step's
// job have the same id: the id of one of the arrival's jobs.
type NewRun struct {
	ID         ID
	Workflow   string
	Definition Definition
	StepID     ID
	Step       string        // name of the first step
	StepType   string        // its type, as in Step.Type
	Timeout    time.Duration // until its deadline, from the event's time on; zero for no deadline
}

// StepStatus is the state of a step of a run.
type StepStatus string

// The statuses of a step.
const (
	StepReady     StepStatus = "ready"     // its job waits for a worker or a retry; or it waits for its turn in a map, without a job
	StepRunning   StepStatus = "running"   // its call is under way, or its branches are
	StepWaiting   StepStatus = "waiting"   // for a time, or for a callback
	StepSucceeded StepStatus = "succeeded" // final
	StepFailed    StepStatus = "failed"    // final, also if the run continued with another step
	StepCanceled  StepStatus = "canceled"  // final: another branch failed, or an operator canceled the run
	StepSkipped   StepStatus = "skipped"   // final: the deadline of the run came
)

// Open reports whether a step in this status may still continue.
func (s StepStatus) Open() bool { return s == StepReady || s == StepRunning || s == StepWaiting }

// A Step is one execution of a step of the definition, in one run.
type Step struct {
	ID    ID // also the id of its job, if it has one
	RunID ID
	Epoch int

	// ParentID is the parallel or map step of the same epoch that contains the step. Branch
	// is the name of the branch in it, or the index of the item. Both are empty for a step
	// on the workflow's own list.
	ParentID ID
	Branch   string

	// Path names the execution, once per run and epoch. An example is
	// "prepare/parcels/pack/17/pack-item". It ends with #2 if the run executes the step
	// there for the second time.
	Path string
	Name string
	Type string // http, choice, parallel, map, wait, callback or fail

	Status  StepStatus
	Attempt int    // number of recorded ends of attempts
	State   []byte // JSON that it received; nil means the event's payload
	Output  []byte // JSON that it passed on; nil before, and if it failed and the run did not continue from it
	Error   string // class and detail of the last failure; empty if there was none

	// StateName and OutputName are the names under which the store keeps State and Output
	// apart from the step. A name is empty if the store keeps the text with the step.
	StateName  string
	OutputName string

	// Carry is data that passes from step to step beside the state, in a format of package
	// workflow. It is empty if there is none.
	Carry string

	Fan  Fan  // of a parallel or map step that has begun
	Last bool // it ended its branch: its Output is the output of the branch

	StartedAt  time.Time // when the run reached it
	FinishedAt time.Time // zero while it is open

	// HeldUntil is when the lease of a worker ends that held the step's job while the step
	// was ended without the worker: see Transition.Held. Until then the call may be under
	// way. It is zero if no worker held the job. Only [Chronicle.Steps], and [Runs.Survey]
	// of all steps, set it.
	HeldUntil time.Time
}

// A Fan counts the branches of a parallel step, or the items of a map step.
type Fan struct {
	Total   int
	Started int // the first branches or items; the others wait for their turn
	Ended   int // that succeeded
	Bytes   int // of the outputs of the ended ones
}

// A Situation is a step with its run and the steps around it, read at one moment.
type Situation struct {
	Run  Run
	Step Step

	// Above are the parallel and map steps that contain the step, the innermost first,
	// without their State and Output.
	Above []Step
}

// Wanted selects the steps of a run to read. A step is read if one field or more selects
// it.
type Wanted struct {
	All    bool // all steps of the epoch
	Open   bool // the steps that have not ended
	Failed bool // the steps that failed
	IDs    []ID
	Paths  []string
	Leaves []ID // steps that ended a branch of one of these steps
}

// Nothing reports whether no step is selected.
func (w Wanted) Nothing() bool {
	return !w.All && !w.Open && !w.Failed && len(w.IDs) == 0 && len(w.Paths) == 0 && len(w.Leaves) == 0
}

// And returns a Wanted that selects the steps that w or v selects.
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

// An EntryType is the kind of an entry.
type EntryType string

// The changes of runs and their steps.
const (
	EntryStarted    EntryType = "started"         // the run: its first job was taken
	EntryCompleted  EntryType = "completed"       // the run
	EntryFailed     EntryType = "failed"          // the run
	EntryCanceled   EntryType = "canceled"        // the run
	EntryOnFailure  EntryType = "on_failure"      // the run fails because of a step, and continues with the step of on_failure
	EntryRedriven   EntryType = "redriven"        // the run, into a new epoch
	EntryArmed      EntryType = "token_issued"    // a callback step
	EntryWaiting    EntryType = "waiting"         // a callback step whose url was sent
	EntryRetried    EntryType = "retry_scheduled" // an attempt failed
	EntrySucceeded  EntryType = "step_succeeded"
	EntryLate       EntryType = "answered_late" // a call failed after its step had ended
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
