package alert

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// How much of an error is kept, in UTF-16 code units.
const (
	maxError = 1000

	// maxCause and maxPath are for the message, which is to have room for how to help,
	// also in the shortest format with every character escaped.
	maxCause = 100
	maxPath  = 200
)

// Obituaries are the alerts about jobs that died and workflow runs that failed. They
// are stored in the commit that makes the job dead or the run failed: none is missing,
// and none tells of one that lives. They are safe for concurrent use; nil ones are
// never written.
type Obituaries struct{ mailing }

// NewObituaries makes them for the places that want to be told of dead jobs, with
// so many attempts to deliver each, at least 1. They are nil if no place does.
func NewObituaries(ids *core.IDs, maxAttempts int, places []Place) *Obituaries {
	m := mailing{kind: DLQ, ids: ids, lanes: wanting(DLQ, places), maxAttempts: maxAttempts}
	if len(m.lanes) == 0 {
		return nil
	}
	return &Obituaries{m}
}

// Of is the alert about a job that an outcome makes dead; nil if it leaves the job
// in another status, and if the job is an alert itself, since a place that is down
// would otherwise be told that it is. It holds nothing of the event's payload but
// what the receiver has put into the words of its error. Its own payload has at most
// 8 KiB; the error is one line of it, the end of a long one missing.
//
// Its ids are new each time. So whoever settles asks once for each outcome, and
// keeps the answer as its GivesRise however often it is sent. Once the outcome is
// stored, and not if it is lost, the bell is to be rung for the lanes of the jobs,
// and the event to be stated as [core.Accepted].
func (b *Obituaries) Of(job core.TakenJob, o core.Outcome) *core.Arrival {
	if b == nil || o.Status != core.Dead || job.Lane.Alert() || job.Event.Source == core.AlertSource {
		return nil
	}
	who := consumerOf(job.Lane)
	a := b.arrivalAbout(&job.Event, notice{
		Message:   who.message(job.ID, o.Attempt),
		Source:    job.Event.Source,
		EventID:   string(job.EventID),
		EventType: job.Event.Type,
		Handler:   who.handler,
		Queue:     who.queue,
		JobID:     string(job.ID),
		Attempts:  o.Attempt.Number,
		Error:     fit(o.Attempt.Error, maxError, nil),
	}, o.At)
	return &a
}

// OfRun is the alert about a workflow run that fails at a step, which is zero if it
// fails at none; nil if the run has another status. What is said of [Obituaries.Of]
// holds for it too. It is for what nobody chose: a run that an operator cancels is not
// to be told of.
func (b *Obituaries) OfRun(run core.Run, step core.Step, event core.Event) *core.Arrival {
	if b == nil || run.Status != core.RunFailed || event.Source == core.AlertSource {
		return nil
	}
	a := b.arrivalAbout(&event, notice{
		Message:   runMessage(run, step),
		Source:    event.Source,
		EventID:   string(run.EventID),
		EventType: event.Type,
		Workflow:  run.Workflow,
		JobID:     jobOf(step),
		Attempts:  step.Attempt,
		Error:     fit(run.Error, maxError, nil),
	}, run.FinishedAt)
	return &a
}

// jobOf is the job of a step, of a type that always has one.
func jobOf(step core.Step) string {
	switch step.Type {
	case "http", "callback", "wait":
		return string(step.ID)
	}
	return ""
}

// runMessage says what failed of what, and what makes it go on. A run is brought back
// whole, never a job of it, as it knows where it has come to.
func runMessage(run core.Run, step core.Step) string {
	where, cause := "", run.Error
	if step.Path != "" {
		where, cause = " at step "+fit(step.Path, maxPath, nil), cmp.Or(step.Error, run.Error)
	}
	return fmt.Sprintf("Workflow run %s of %q failed%s: %s. To go on: gateway workflow-runs redrive %s --from failed",
		run.ID, run.Workflow, where, fit(cause, maxCause, nil), run.ID)
}

// A consumer is whose job it is: a handler, a queue, or something else.
type consumer struct {
	handler, queue string

	name  string // in words
	retry bool   // whether the job can be brought back
}

func consumerOf(lane core.Lane) consumer {
	kind, name, _ := strings.Cut(string(lane), "/")
	switch kind {
	case "handler":
		return consumer{handler: name, name: fmt.Sprintf("handler %q", name), retry: true}
	case "queue":
		return consumer{queue: name, name: fmt.Sprintf("queue %q", name), retry: true}
	}
	return consumer{name: fmt.Sprintf("lane %q", lane)}
}

// message says what died of what, and what brings it back.
func (c consumer) message(id core.ID, last core.Attempt) string {
	attempts := "1 attempt"
	if last.Number != 1 {
		attempts = fmt.Sprintf("%d attempts", last.Number)
	}
	text := fmt.Sprintf("Job %s for %s is dead after %s", id, c.name, attempts)
	if last.Error != "" {
		text += ": " + fit(last.Error, maxCause, nil)
	}
	if c.retry {
		text += fmt.Sprintf(". To try it again: gateway jobs retry %s", id)
	}
	return text
}
