package core

import (
	"context"
	"time"
)

// Action is the act of an [Operation] on each of its matches.
type Action string

// The actions.
const (
	RetryAction   Action = "retry"   // makes dead or canceled jobs available again
	ReplayAction  Action = "replay"  // gives new jobs to stored events
	CancelAction  Action = "cancel"  // ends jobs that wait
	RedriveAction Action = "redrive" // begins failed or canceled runs again
)

// ParseAction reads an action as users write it. The error is a [Refusal] of kind [Invalid].
func ParseAction(s string) (Action, error) {
	switch a := Action(s); a {
	case RetryAction, ReplayAction, CancelAction, RedriveAction:
		return a, nil
	}
	return "", Refuse(Invalid, "action must be one of retry, replay, cancel, redrive; not %q", s)
}

// OperationState is the state of an operation.
type OperationState string

// The states of an operation. Only a running one changes.
const (
	OperationRunning  OperationState = "running"
	OperationFinished OperationState = "finished" // it looked at all that it may match
	OperationCanceled OperationState = "canceled" // an operator ended it
	OperationFailed   OperationState = "failed"   // it cannot go on; Error says why
)

// The rates of operations, in matches a second.
//
// DefaultRate is a tenth of the deliveries that one process makes to a fast handler, so that an
// operation takes a small part of the time that live events have.
const (
	DefaultRate = 100
	MaxRate     = 1000
)

// How many matches one slice of an operation acts on at most.
const (
	MaxSlice = 100  // of an operation with a rate, and of a replay, whose events have several jobs each
	MaxRush  = 1000 // of another one without a rate
)

// OperationLane is the lane of the jobs that do operations. It has one job for each operation
// that runs.
const OperationLane Lane = "operation/all"

// Operation reports whether the lane holds the jobs of operations.
func (l Lane) Operation() bool { return l == OperationLane }

// OperationEvent is the beginning of the types of the events of operations, before the action.
// The source of these events is [AlertSource], and an event has the id of its operation.
const OperationEvent = "operation."

// An OperationFilter selects the matches of an operation. Zero fields select everything.
type OperationFilter struct {
	Lane   Lane   // of jobs; of runs, the lane of their workflow
	Status string // of jobs or runs

	// Source and Type belong to the event, also to the event of a job or run.
	Source, Type string

	// Since and Until select events that were received, and jobs and runs that were made, at or
	// after Since and before Until.
	Since, Until time.Time

	Error string // text that the last error of a job, or the error of a run, contains

	// Only a replay has the fields below.

	// Match is an expression in the language of a handler's filter, about the event.
	Match string

	DeliveryID string // the sender's id of the event: see [EventFilter]

	// First and Last select the events from one id to another, both included. A replay without a
	// rate fixes its events with them.
	First, Last ID
}

// An Operation is work on all jobs, events or runs that a filter selects. It is stored, and done
// slice by slice.
type Operation struct {
	ID     ID
	Action Action
	Filter OperationFilter
	To     []Lane // the only consumers that a replay makes jobs for; empty means all
	Rate   int    // matches acted on in a second, 1 to MaxRate; 0 is as many as the database takes
	By     string // its actor: the name of a token, or "os:" and a user; empty if it is not known

	// CreatedAt bounds its matches, and so does the ID: a record that was made, died or failed later is
	// none. So it never acts on a job that it made or retried itself. A record that is stored when the
	// operation is made is earlier, also if the clock of another process is some seconds ahead.
	CreatedAt time.Time

	State OperationState
	Error string // why it failed

	// Seq counts its slices. Cursor is where the next slice begins, in the words of the code
	// that makes slices.
	Seq    int
	Cursor string

	Looked  int // jobs, events or runs that it looked at
	Acted   int // matches that it acted on
	Skipped int // matches that it left alone, for instance because a worker holds them

	StartedAt  time.Time // of its first slice; zero before
	FinishedAt time.Time // when its state became final; zero before
}

// A Slice is one step of an operation.
type Slice struct {
	// Operation is the operation as the caller read it. Its ID and Seq fence the slice.
	Operation Operation

	// Mark names this slice. It is the same each time that the slice is sent.
	Mark ID

	// Jobs are the matches of a retry or cancel, as they were read: at most MaxRush. A retry
	// reads only the jobs' ids, statuses, lanes and lines, and needs dead or canceled ones.
	Jobs []Job

	// Arrivals are the matches of a replay, each with at least one job. They are stored as by
	// [Operations.Replay].
	Arrivals []Arrival

	// Acted are further matches that the caller has acted on already.
	Acted int

	// The operation after the slice, if all Jobs were acted on.
	Cursor          string
	Looked, Skipped int // added to the counts
	State           OperationState
	Error           string
}

// A FinishedWalk selects dead or canceled jobs, for a walk through all of them.
type FinishedWalk struct {
	Status Status // Dead or Canceled
	Lane   Lane   // the walk begins in this lane; "" begins at the first one
	Only   bool   // only that lane
	From   ID     // jobs of every lane with this id or a higher one
	Below  ID     // and below this id
	After  ID     // in Lane, only jobs above this id
	Limit  int    // 1 to MaxPage
}

// An EventKind is the source and the type of an event.
type EventKind struct{ Source, Type string }

// An OperationLog stores operations and does their slices.
type OperationLog interface {
	// BeginOperation stores an operation, and the arrival whose job does it, whole or not at
	// all. Beginning the same operation again changes nothing.
	BeginOperation(ctx context.Context, op Operation, a Arrival) error

	// Operation returns one operation. A missing operation is refused as NotFound.
	Operation(ctx context.Context, id ID) (Operation, error)

	// OperationList lists operations newest first; if after is set, only those below that id.
	OperationList(ctx context.Context, after ID, limit int) (Page[Operation], error)

	// EndOperation makes a running operation canceled, or failed if why is not empty, and
	// returns the operation. An operation in a final state stays as it is. No slice that
	// is sent after it changes anything.
	EndOperation(ctx context.Context, now time.Time, id ID, why string) (Operation, error)

	// DoSlice acts on the matches of a slice and counts them in one commit, and returns the
	// operation afterwards. It changes nothing if the operation is not running, or if its Seq is
	// not that of the slice. So of several slices with one Seq, and however often each is sent,
	// exactly one takes effect.
	//
	// A retry revives jobs as [Operations.Retry] does, and a cancel ends them as
	// [Operations.Cancel] does. A job is acted on only if its status allows that when the slice
	// takes effect, and if no other transaction locks it. Steps of workflows are left alone, and
	// so are the jobs of operations. A replay stores new jobs as [Operations.Replay] does, for
	// the events that are still stored.
	//
	// The cursor, the state and the counts of the slice are stored only if the slice acted on
	// all of its jobs. Otherwise the caller reads from the old cursor again: it then finds the
	// matches that are left. An event that is not stored any more is no match.
	DoSlice(ctx context.Context, now time.Time, s Slice) (Operation, error)

	// FinishedJobs returns jobs of a walk, lane by lane in the order of their names, and in each
	// lane in the order of their ids. Fewer than Limit jobs are the last ones. It does not
	// return the jobs of workflows.
	FinishedJobs(ctx context.Context, w FinishedWalk) ([]Job, error)

	// KindsOf returns the sources and types of events by their ids. Events that are not stored
	// are absent.
	KindsOf(ctx context.Context, events []ID) (map[ID]EventKind, error)

	// PurgeOperations deletes operations that reached a final state before the given time.
	PurgeOperations(ctx context.Context, before time.Time) error
}
