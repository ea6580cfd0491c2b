package workflow

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Task is what the job of a step asks for.
type Task int

// The tasks.
const (
	Stale  Task = iota // nothing: the run has moved on; the job is to be closed
	Begin              // the run is pending: settle a Begun end and ask again
	Elapse             // settle an Elapsed end
	Call               // make the Request, then settle how it ended
	Notify             // issue a token, settle an Armed end, make the Notice, then settle how it ended
)

// A View is what is known of a run.
type View struct {
	Event core.Event // that started it
	Run   core.Run

	// Situations are those of the steps whose ends are to be told, by their id.
	Situations map[core.ID]core.Situation

	// Steps were read because they were wanted, of the run's epoch. Have is what was
	// wanted, so that what is not there is not asked for again.
	Steps []core.Step
	Have  core.Wanted
}

// A Move is what ends make of a run.
type Move struct {
	// Missing is what has to be read first: if anything is, the rest is void.
	Missing core.Wanted

	Transition core.Transition

	// Lost are the ends, by their place, that change nothing: somebody else has told
	// how the attempt ended, or the run has moved on. The value says why, for the log.
	Lost map[int]string

	// Moved is false if there is no transition to make, since all ends are lost.
	Moved bool
}

// A Pen has what a move is written with.
type Pen struct {
	Mint func() core.ID
	Now  time.Time

	// Obituary is what comes of a run that failed, such as an alert; nil if nothing does.
	// The step is the one that failed, or the one whose end found the deadline over. It
	// is not asked about a run that an operator canceled.
	Obituary func(core.Run, core.Step, core.Event) *core.Arrival
}

// The refusals of operators' wishes.
var (
	ErrNotFailed error = core.Refuse(core.Invalid, "only failed and canceled runs can be redriven")
	ErrPurpose   error = core.Refuse(core.Invalid, "the run ended in a step of type fail that no catch led to, and would end there again; redrive it from the start")
	ErrFinished  error = core.Refuse(core.Invalid, "the run is finished")
)

// Limits of a run.
const (
	maxState   = 1 << 20 // bytes of a state, an input, a result, an output
	maxItems   = 1000    // of a map step
	maxEntries = 10_000  // of the history, in each epoch
	maxTaken   = 20      // times that a job is taken without an end, before that is one
	maxEnters  = 100     // steps that need nobody and are entered in one move
	maxWork    = 4 << 20 // bytes of JSON that a move reads and writes before others do the rest
	longest    = 365 * 24 * time.Hour
)

// Task says what a job asks for.
func (d *Definition) Task(job core.TakenJob, now time.Time) Task {
	run, row := job.Situation.Run, job.Situation.Step
	s := d.at(row.Path)
	switch {
	case s == nil || run.Status.Finished() || run.Epoch != row.Epoch || !row.Status.Open():
		return Stale
	case run.Status == core.RunPending:
		return Begin
	case over(run.DeadlineAt, now) || worn(job):
		return Elapse
	}
	return s.kind.task(job, now)
}

// over reports whether a deadline has come.
func over(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// worn reports whether the job of a step was taken so often without an end that the step
// must be what ends its workers. A callback step that waits is taken without that.
func worn(job core.TakenJob) bool {
	row := job.Situation.Step
	ends := row.Attempt + readCarry(row.Carry).Back
	if row.Type == "callback" { // whose attempts are taken twice: to tell the token, and when it expires
		return row.Status != core.StepWaiting && job.Attempt > row.Attempt+ends+maxTaken
	}
	return job.Attempt > ends+maxTaken
}

// A Request is a call of a step.
type Request struct {
	Method  string // GET, POST, PUT, PATCH or DELETE
	URL     string
	Headers map[string]string // the step's own
	Body    []byte            // JSON; nil for GET

	// Key is "<run>.<epoch>.<path>", with the epoch in which the run came to the step. It is
	// constant over retries, crashes and redrives from the failed step. A redrive from the
	// start comes to all steps anew, and any redrive to callback steps, whose tokens are new.
	Key string
}
