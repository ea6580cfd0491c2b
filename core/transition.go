package core

import (
	"context"
	"time"
)

// ErrorClass is the kind of a step's failure. The remedies of a step, retry and catch,
// match it.
type ErrorClass string

// The classes. Only "all" matches ClassData, ClassNoChoice and ClassFail.
const (
	Class5xx      ErrorClass = "5xx"
	Class4xx      ErrorClass = "4xx"       // and any other reply that is not 2xx
	ClassTimeout  ErrorClass = "timeout"   // no reply in time; no callback in time
	ClassNetwork  ErrorClass = "network"   // no reply at all
	ClassData     ErrorClass = "data"      // a path finds no value, or a text is too large
	ClassNoChoice ErrorClass = "no_choice" // no choice holds and there is no default
	ClassFail     ErrorClass = "fail"      // a step of type fail
)

// An EndKind is the kind of an attempt's end.
type EndKind int

// The kinds of ends.
const (
	Begun      EndKind = iota + 1 // the run's first job was taken; nothing was called yet
	Armed                         // a token was made for a callback; no receiver knows it yet
	Replied                       // the call of an http step, or the notice of a callback step, succeeded; Body is the reply
	Refused                       // the call failed, by Class
	Elapsed                       // the job's time has come; nothing was called
	CalledBack                    // the callback arrived, with Body; there is no job
)

// A StepEnd is the end of one attempt of a step, or an intermediate event of the attempt.
type StepEnd struct {
	// Job is the step's job, as it was taken, with the situation in which the attempt
	// began. For a callback only Situation is set.
	Job  TakenJob
	Kind EndKind
	At   time.Time

	// Attempt is the record of a call; zero if none was made.
	Attempt Attempt

	Body       []byte        // of the reply or callback, whole
	Class      ErrorClass    // of a failure; Attempt.Error has the words
	Final      bool          // trying again cannot help
	RetryAfter time.Duration // the Retry-After of the reply; zero if there was none

	// Hold is for how long the next job of the run may be leased at once: the worker has room for
	// it. Zero means that it has none.
	Hold time.Duration

	Token   string    // hash of a callback's token, for Armed
	Expires time.Time // when that token expires
	Receipt string    // of a callback, for CalledBack
}

// StepSettled is the result of storing a StepEnd.
type StepSettled struct {
	Lost bool   // nothing was stored: another worker stored the attempt's end, or the run has moved on
	Why  string // the reason for Lost, for the log

	// Status is the new status of the job. DueAt is when the job is due again, if it waits.
	Status Status
	DueAt  time.Time

	// Taken is the next job of the run if it was leased for the worker, see StepEnd.Hold; else nil.
	Taken *TakenJob

	// Next is the first due time of the other jobs that the end made or left to be tried again.
	// It is zero if there is none.
	Next time.Time
}

// A StepChange is the change that a transition makes to an existing step.
type StepChange struct {
	ID         ID
	Status     StepStatus
	Attempt    int
	Output     []byte
	Passes     bool // the Output is the step's State, which need not be stored again
	Error      string
	Carry      string
	Fan        Fan
	Last       bool
	FinishedAt time.Time
}

// A StepJob is a job for a step that has none yet. Its MaxAttempts is [Unlimited].
type StepJob struct {
	ID     ID     // the step's
	Status Status // Available, Scheduled or Retryable; empty means Available
	DueAt  time.Time
}

// A Taking names a new job that is to be leased in the commit that makes its transition.
type Taking struct {
	Job    ID        // one of Transition.Jobs that is Available and due; "" for none
	Source string    // of the run's event
	Until  time.Time // when the lease ends
}

// A JobChange is the change that a transition makes to a step's job, under any lease.
type JobChange struct {
	ID         ID
	Status     Status
	DueAt      time.Time // zero for a finished job
	Error      string
	FinishedAt time.Time // zero unless it is finished
}

// A Token lets a callback find its step.
type Token struct {
	Hash      string // SHA-256 of the token, in hexadecimal
	StepID    ID
	ExpiresAt time.Time
}

// An AttemptRecord is the attempt of a job under a lease, as it is stored.
type AttemptRecord struct {
	JobID ID
	Lease Lease
	Attempt
}

// A Transition is one atomic change of a run.
type Transition struct {
	// Mark names this transition. It is the same each time that the transition is sent.
	Mark ID

	// Seq is the run's Seq as the caller read it. The first entry has Seq + 1.
	Seq int

	// Run is the run after the transition. Its Seq is the Seq of the last entry.
	Run     Run
	Entries []Entry // at least one

	// Definition is the new definition of the run; its Hash is Run.Definition. Zero
	// means that the definition does not change.
	Definition Definition

	New     []Step
	Changed []StepChange

	// Apart allows the store to keep large States and Outputs of New and Changed apart from
	// the steps, each text once in the run. Kept are the names of the texts that the store
	// already keeps so: the StateNames and OutputNames of the steps that the caller read.
	// The store does not write those texts again.
	Apart bool
	Kept  []string

	Jobs    []StepJob
	Take    Taking // of one of Jobs
	JobsEnd []JobChange

	// Held are steps that end although a worker may hold their jobs and make a call. The
	// store notes when the lease of that worker ends: see Step.HeldUntil.
	Held []ID

	// Attempts end jobs, or leave them as they are. Once a step has succeeded, no later transition
	// has an attempt of its job.
	Attempts []AttemptRecord
	Tokens   []Token
	Disarm   []ID // steps whose tokens are not valid any more

	// Receipts are the receipts of the callbacks that the transition records. A receipt is
	// a hash of the token and the body of a callback.
	Receipts []string

	// GivesRise is an event with its jobs that the transition causes, such as the alert
	// about a run that failed. It is nil if there is none. Neither the event nor its jobs
	// have keys.
	GivesRise *Arrival

	// Facts are to be stated once the transition is stored. The store does not read them.
	Facts []Fact
}

// Runs stores the changes of workflow runs.
type Runs interface {
	// Definition returns the definition that was stored with the first run that follows
	// it.
	Definition(ctx context.Context, hash string) (Definition, error)

	// Situations returns the situations of steps, each read at one moment together with
	// the situations of the same run. Steps that do not exist are absent. It writes
	// nothing.
	Situations(ctx context.Context, steps []ID) (map[ID]Situation, error)

	// Survey returns the wanted steps of an epoch of a run, each once, in the order of
	// their ids. A wanted step that does not exist is absent. It writes nothing.
	Survey(ctx context.Context, run ID, epoch int, w Wanted) ([]Step, error)

	// Transit makes transitions of different runs, and returns for each of them whether it is
	// made, and whether the job of its Take has the lease. A transition is made if the run's
	// Seq equals the transition's Seq: then all of it takes effect, otherwise nothing does.
	// Sending a transition again after it was made changes nothing, even if the run has moved
	// on since, and returns that it is made. Of several transitions for the same Seq of a run,
	// exactly one is made.
	//
	// Attempts are recorded and jobs are changed under any lease of the jobs, and no outcome
	// or release under an older lease counts afterwards. New jobs wait in the lane of the
	// workflow, for the event of the run. The job of Take is leased at once, with the Mark as
	// its lease, unless a hold of its lane or source keeps it: then it waits like the others.
	Transit(ctx context.Context, ts ...Transition) ([]Transited, error)

	// Awaited returns the step for which a token is valid, by the token's hash. For a
	// token that has expired or expires now, for a disarmed token and for an unknown
	// token alike, the step is "". Awaited also returns the run that recorded a callback
	// with this receipt, as long as the run is stored.
	Awaited(ctx context.Context, now time.Time, hash, receipt string) (Awaiting, error)
}

// Transited is the result of a transition.
type Transited struct {
	Made  bool
	Taken bool // the job of Transition.Take has the lease

	// StateName is the name under which the store keeps the State of that job's step apart from the
	// step: see Step.StateName.
	StateName string
}

// Awaiting is the stored data about a callback.
type Awaiting struct {
	StepID ID // the step for which its token is valid; "" for none
	RunID  ID // the run that has recorded it; "" for none
}

// A Chronicle answers queries about runs.
type Chronicle interface {
	// Run returns one run.
	Run(ctx context.Context, id ID) (Run, error)

	// Runs lists runs newest first, without their outputs, paged like Events.
	Runs(ctx context.Context, f RunFilter) (Page[Run], error)

	// Steps lists at most limit steps of an epoch of a run, 1 to MaxPage, in the order of
	// their ids, beginning after the id after. A page ends once its States and Outputs
	// have MaxRead bytes together, but has at least one step if there is any.
	Steps(ctx context.Context, run ID, epoch int, after ID, limit int) (Page[Step], error)

	// Outline returns all steps of an epoch of a run, in the order of their ids, without State,
	// Output, Carry, Fan, Last and HeldUntil, and without names of texts.
	Outline(ctx context.Context, run ID, epoch int) ([]Step, error)

	// History lists the entries of a run after a Seq, oldest first: limit of them, 1 to
	// MaxPage, or fewer if there are no more.
	History(ctx context.Context, run ID, after, limit int) ([]Entry, error)
}
