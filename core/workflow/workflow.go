// Package workflow is the state machine of workflow runs.
package workflow

import (
	"errors"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A Definition is a compiled workflow. It never changes and is safe for concurrent use.
type Definition struct {
	config config.Workflow
}

// Compile makes a definition of a workflow as [config.Load] or [config.ParseDefinition] returned it.
func Compile(w config.Workflow) (*Definition, error) { return &Definition{w}, nil }

// Name is the workflow's.
func (d *Definition) Name() string { return d.config.Name }

// First is the name of the first step.
func (d *Definition) First() string { return d.config.Steps[0].Name }

// Timeout is until the deadline of a run; zero if it has none.
func (d *Definition) Timeout() time.Duration { return time.Duration(d.config.Timeout) * time.Second }

// Check says what params a payload lacks or has with a wrong type, one line each, at most ten; nil if it fits.
func (d *Definition) Check(payload *expr.Document) []string { return nil }

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

// Task says what a job asks for.
func (d *Definition) Task(job core.TakenJob, now time.Time) Task { return Stale }

// A Request is a call of a step.
type Request struct {
	Method  string // GET, POST, PUT, PATCH or DELETE
	URL     string
	Headers map[string]string // the step's own
	Body    []byte            // JSON; nil for GET

	// Key is constant over retries and crashes, and new on redrive: "<run>.<epoch>.<path>".
	Key string
}

// Request is the call an http step makes. An error is of class data and final.
func (d *Definition) Request(job core.TakenJob) (Request, error) { return Request{}, nil }

// Notice is the call by which a callback step tells its token: it is to be posted to address. Its URL is empty if
// nobody is to be told. An error is of class data and final.
func (d *Definition) Notice(job core.TakenJob, token, address string) (Request, error) {
	return Request{}, nil
}

// Expiry is when a token that is issued now for the callback step of a job expires.
func (d *Definition) Expiry(job core.TakenJob, now time.Time) time.Time { return now }

// A View is what is known of a run.
type View struct {
	Event core.Event // that started it
	Run   core.Run

	// Situations are those of the steps whose ends are to be told, by their id.
	Situations map[core.ID]core.Situation

	// Steps were read because they were wanted, of the run's epoch.
	Steps []core.Step
	Have  core.Wanted
}

// A Move is what ends make of a run.
type Move struct {
	// Missing is what has to be read first: if anything is, the rest is void.
	Missing core.Wanted

	Transition core.Transition

	// Lost are the ends, by their place, that change nothing: somebody else has told
	// how the attempt ended, or the run has moved on.
	Lost []int

	// Moved is false if there is no transition to make, since all ends are lost.
	Moved bool
}

// A Pen has what a move is written with.
type Pen struct {
	Mint func() core.ID
	Now  time.Time
	// Obituary is what comes of a run that failed, such as an alert; nil if nothing does.
	Obituary func(core.Run, core.Step, core.Event) *core.Arrival
}

// Advance moves a run past ends of its steps, in their order.
func (d *Definition) Advance(p Pen, v View, ends ...core.StepEnd) Move { return Move{} }

// The refusals of operators' wishes.
var (
	ErrNotFailed = errors.New("")
	ErrFinished  = errors.New("")
)

// Redrive begins a failed run anew: from its first step, or from where it failed.
func (d *Definition) Redrive(p Pen, v View, fromFailed bool) (Move, error) { return Move{}, nil }

// Cancel ends a run that is not finished as failed.
func (d *Definition) Cancel(p Pen, v View) (Move, error) { return Move{}, nil }

// Graph is the workflow as a Mermaid flowchart.
func (d *Definition) Graph() string { return "" }
