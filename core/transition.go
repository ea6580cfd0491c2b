package core

import (
	"context"
	"time"
)

// ErrorClass is what kind of failure a step met. Remedies are chosen by it.
type ErrorClass string

// The classes. ClassData, ClassNoChoice and ClassFail are matched by "all" only.
const (
	Class5xx      ErrorClass = "5xx"
	Class4xx      ErrorClass = "4xx"       // and any other reply that is not 2xx
	ClassTimeout  ErrorClass = "timeout"   // no reply in time; no callback in time
	ClassNetwork  ErrorClass = "network"   // no reply at all
	ClassData     ErrorClass = "data"      // a path leads nowhere, or something is too large
	ClassNoChoice ErrorClass = "no_choice" // no choice holds and there is no default
	ClassFail     ErrorClass = "fail"      // a step of type fail
)

// An EndKind is what an attempt of a step came to.
type EndKind int

// The kinds of ends.
const (
	Begun      EndKind = iota + 1 // nothing is done yet: the run's first job was taken
	Armed                         // nobody is told yet: a token was made for a callback
	Replied                       // the call of an http step succeeded, with Body; or that of a callback step
	Refused                       // the call failed, by Class
	Elapsed                       // nothing was called: the job's time has come
	CalledBack                    // the callback came, with Body; there is no job
)

// A StepEnd is the end of one attempt of a step, or something on the way to it.
type StepEnd struct {
	// Job is the step's, as it was taken, with the situation in which the attempt began;
	// of a callback only Situation is set.
	Job  TakenJob
	Kind EndKind
	At   time.Time

	// Attempt is the record of a call; zero if none was made.
	Attempt Attempt

	Body       []byte        // of the reply or callback, whole
	Class      ErrorClass    // of a failure; Attempt.Error has the words
	Final      bool          // trying again cannot help
	RetryAfter time.Duration // how long the called one asked to be left alone

	Token   string    // hash of a callback's token, for Armed
	Expires time.Time // of that token
	Receipt string    // of a callback, for CalledBack
}

// StepSettled is what became of a StepEnd.
type StepSettled struct {
	Lost bool   // it changed nothing: another worker stored the attempt's end, or the run has moved on
	Why  string // it is lost, in words for the log

	// Status is what it made of the job, DueAt when that is due again if it waits.
	Status Status
	DueAt  time.Time

	// Next is when the first of the jobs is due that it made or left to be tried again;
	// zero if there is none.
	Next time.Time
}

// A StepChange is what a transition makes of a step that exists.
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

// A StepJob is a job for a step that has none yet. It never dies of its attempts.
type StepJob struct {
	ID     ID     // the step's
	Status Status // Available, Scheduled or Retryable; empty means Available
	DueAt  time.Time
}

// A JobChange is what a transition makes of a step's job, whoever holds it.
type JobChange struct {
	ID         ID
	Status     Status
	DueAt      time.Time // zero of a job that is finished
	Error      string
	FinishedAt time.Time // zero unless it is finished
}

// A Token lets a callback find its step.
type Token struct {
	Hash      string // SHA-256 of the token, in hexadecimal
	StepID    ID
	ExpiresAt time.Time
}

// An AttemptRecord is the attempt of a job under a lease.
type AttemptRecord struct {
	JobID ID
	Lease Lease
	Attempt
}

// A Transition takes a run from one state to the next, whole or not at all.
type Transition struct {
	// Mark names this transition, in all sendings of it.
	Mark ID

	// Seq is that of the run as it was read; the first entry is Seq + 1.
	Seq int

	// Run is what becomes of it. Its Seq is that of the last entry.
	Run     Run
	Entries []Entry // at least one

	// Definition is what the run follows from now on; its Hash is Run.Definition. Zero means
	// that the run follows what it followed before.
	Definition Definition

	New     []Step
	Changed []StepChange

	// Apart allows the store to keep large States and Outputs of New and Changed apart from
	// the steps, each once in the run. Kept are the names of texts that the store already
	// keeps so: the StateNames and OutputNames of steps of the run that were read. The store
	// does not write those texts again.
	Apart bool
	Kept  []string

	Jobs    []StepJob
	JobsEnd []JobChange

	// Held are steps that end although a worker may hold their jobs, and make a call. The
	// store notes until when the lease of that worker lasts: see Step.HeldUntil.
	Held []ID

	Attempts []AttemptRecord
	Tokens   []Token
	Disarm   []ID // steps of which no token is good any more

	// Receipts are those of the callbacks that the transition records. A receipt is a hash
	// of the token and the body of a callback.
	Receipts []string

	// GivesRise is an event with its jobs that comes of it, such as the alert about a
	// run that failed; nil if there is none. Neither has keys.
	GivesRise *Arrival

	// Facts are to be stated once it is stored. The store does not look at them.
	Facts []Fact
}

// Runs is where workflow runs move.
type Runs interface {
	// Definition returns what was stored with the first run that follows it.
	Definition(ctx context.Context, hash string) (Definition, error)

	// Situations returns the situations of steps, each read at one moment together
	// with those of the same run. Steps that do not exist are absent. It writes nothing.
	Situations(ctx context.Context, steps []ID) (map[ID]Situation, error)

	// Survey returns the wanted steps of an epoch of a run, each once, in the order of
	// their ids. What is wanted and does not exist is absent. It writes nothing.
	Survey(ctx context.Context, run ID, epoch int, w Wanted) ([]Step, error)

	// Transit makes transitions, of different runs, and tells for each whether it is
	// made. It is if the run's Seq is what the transition says it was; then all of it
	// takes effect, else nothing does. Making one again that is made changes nothing,
	// whatever has become of the run since, and tells that it is made. Of several for
	// one Seq of a run exactly one is made.
	//
	// Attempts are recorded and jobs are changed whoever holds the jobs; no outcome or
	// release under an older lease counts afterwards. New jobs wait in the lane of the
	// workflow, for the event of the run.
	Transit(ctx context.Context, ts ...Transition) ([]bool, error)

	// Awaited returns the step that a token is good for, by the token's hash. A token
	// that expires now or has expired, one that was disarmed, and one that
	// never was are not told apart: the step is "". Awaited also returns the run that
	// recorded a callback with this receipt: for as long as the run is stored.
	Awaited(ctx context.Context, now time.Time, hash, receipt string) (Awaiting, error)
}

// Awaiting is what a store knows of a callback.
type Awaiting struct {
	StepID ID // that its token is good for; "" for none
	RunID  ID // that has recorded it; "" for none
}

// A Chronicle answers questions about runs.
type Chronicle interface {
	// Run returns one run.
	Run(ctx context.Context, id ID) (Run, error)

	// Runs lists runs newest first, without their outputs, paged like Events.
	Runs(ctx context.Context, f RunFilter) (Page[Run], error)

	// Steps lists at most limit steps of an epoch of a run, 1 to MaxPage, in the order of
	// their ids, beginning after the id after. It stops once their States and Outputs have
	// MaxRead bytes together, but returns at least one step if there is one.
	Steps(ctx context.Context, run ID, epoch int, after ID, limit int) (Page[Step], error)

	// History lists the entries of a run behind a Seq, oldest first: limit of them, 1 to
	// MaxPage, or fewer if there are no more.
	History(ctx context.Context, run ID, after, limit int) ([]Entry, error)
}
