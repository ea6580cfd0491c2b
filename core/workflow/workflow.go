package workflow

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Task is the action that the job of a step needs.
type Task int

// The tasks.
const (
	Stale  Task = iota // none: the run has moved on; close the job
	Begin              // the run is pending: settle a Begun end and ask again
	Elapse             // settle an Elapsed end
	Call               // make the Request, then settle its end
	Notify             // issue a token, settle an Armed end, make the Notice, then settle its end
)

// A View is the stored data of a run that the caller has read.
type View struct {
	Event core.Event // that started it
	Run   core.Run

	// Situations has the situations of the steps whose attempts ended, by the steps' ids.
	Situations map[core.ID]core.Situation

	// Steps are the steps that Missing asked for, of the run's epoch. Have is all that was
	// asked for, so that steps that do not exist are not asked for again.
	Steps []core.Step
	Have  core.Wanted
}

// A Move is the effect of ends on a run.
type Move struct {
	// Missing are the steps to be read first. Unless it is empty, the other fields are
	// void.
	Missing core.Wanted

	Transition core.Transition

	// Lost are the ends that change nothing, by their index. Another worker has stored the
	// end of the attempt, or the run has moved on. The value is the reason, for the log.
	Lost map[int]string

	// Moved is false if there is no transition to make, since all ends are lost.
	Moved bool
}

// A Pen makes the ids, the time and the alerts of a move.
type Pen struct {
	Mint func() core.ID
	Now  time.Time

	// Obituary returns the event about a run that failed, such as an alert; nil if there is
	// none. The step is the step that failed, or the step whose end came after the
	// deadline. Obituary is not called for a run that an operator canceled.
	Obituary func(core.Run, core.Step, core.Event) *core.Arrival
}

// The refusals of operators' requests.
var (
	ErrNotFailed error = core.Refuse(core.Invalid, "only failed and canceled runs can be redriven")
	ErrPurpose   error = core.Refuse(core.Invalid, "the run ended in a step of type fail that no catch led to, and would end there again; redrive it from the start")
	ErrFinished  error = core.Refuse(core.Invalid, "the run is finished")
	ErrBegun     error = core.Refuse(core.Invalid, "the run is under way")
)

// Limits of a run.
const (
	maxState   = 1 << 20 // bytes of a state, an input, a result or an output
	maxItems   = 1000    // of a map step
	maxEntries = 10_000  // of the history, in each epoch
	maxTaken   = 20      // times that a job is taken without an end, before the step fails
	maxEnters  = 100     // inline steps that are entered in one move
	maxWork    = 4 << 20 // bytes of JSON that a move reads and writes, before jobs do the rest
	maxWait    = 365 * 24 * time.Hour
)

// Task returns the task of a job.
func (d *Definition) Task(job core.TakenJob, now time.Time) Task {
	run, row := job.Situation.Run, job.Situation.Step
	s := d.at(row.Path)
	// The order matters: a job of another epoch is stale even if the run is pending again.
	switch {
	case s == nil || run.Status.Finished() || run.Epoch != row.Epoch || !row.Status.Open():
		return Stale
	case run.Status == core.RunPending:
		return Begin
	case passed(run.DeadlineAt, now) || takenTooOften(job):
		return Elapse
	}
	// Only now does the type of the step decide.
	return s.kind.task(job, now)
}

// passed reports whether a deadline has come. A zero deadline never comes.
func passed(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// takenTooOften reports whether a job was taken so many times without an end that its step probably
// crashes the workers. A waiting callback step does not count: its job is taken without a
// crash.
func takenTooOften(job core.TakenJob) bool {
	row := job.Situation.Step
	ends := row.Attempt + readCarry(row.Carry).Back
	if row.Type == "callback" { // its attempts are taken twice: to send the token, and when it expires
		return row.Status != core.StepWaiting && job.Attempt > row.Attempt+ends+maxTaken
	}
	return job.Attempt > ends+maxTaken
}

// A Request is the call of a step.
type Request struct {
	Method  string // GET, POST, PUT, PATCH or DELETE
	URL     string
	Headers map[string]string // as configured in the step
	Body    []byte            // JSON; nil for GET

	// Key is "<run>.<epoch>.<path>", with the epoch in which the run reached the step: see
	// visitOf. It is constant over retries, crashes and redrives from the failed step. A
	// redrive from the start reaches all steps anew. Any redrive reaches callback steps
	// anew, since their tokens are new.
	Key string
}
