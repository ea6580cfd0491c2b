package alert

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// The maximum lengths of the kept parts of an error, in UTF-16 code units.
const (
	maxError = 1000

	// maxCause and maxPath are for the message. It must have room for the remedy, also in
	// the shortest format with every character escaped.
	maxCause = 100
	maxPath  = 200
)

// Obituaries are the alerts about jobs that died and workflow runs that failed. They are
// stored in the commit that makes the job dead or the run failed. So none is missing, and
// none is about a living job. Obituaries are safe for concurrent use. Nil Obituaries make
// no alerts.
type Obituaries struct{ mailing }

// NewObituaries returns the Obituaries for the places that want alerts about dead jobs,
// with maxAttempts attempts to deliver each, at least 1. It returns nil if no place wants
// them.
func NewObituaries(ids *core.IDs, maxAttempts int, places []Place) *Obituaries {
	m := mailing{kind: DLQ, ids: ids, lanes: wanting(DLQ, places), maxAttempts: maxAttempts}
	if len(m.lanes) == 0 {
		return nil
	}
	return &Obituaries{m}
}

// Of returns the alert about a job that an outcome makes dead. It returns nil if the
// outcome leaves the job in another status. It returns nil for an alert itself: an alert
// about a place that is down could not reach that place. The alert contains nothing of the
// event's payload, except words of the receiver's error. Its own payload has at most 8 KiB;
// the error is one line of it, cut if it is long.
//
// Each call makes new ids. So a caller that settles an outcome calls Of once for it, and keeps
// the result as GivesRise, even if it sends the outcome several times. After the outcome is
// stored, and not if it is lost, the caller rings the bell for the lanes of the jobs, and states
// the event as [core.Accepted].
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

// OfRun returns the alert about a workflow run that fails at a step. Step is zero if the
// run fails at none. It returns nil if the run has another status. The rules of
// [Obituaries.Of] apply to it too. It is not called for a run that an operator cancels,
// because the operator knows that.
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

// jobOf returns the job of a step, for a type that always has one.
func jobOf(step core.Step) string {
	switch step.Type {
	case "http", "callback", "wait":
		return string(step.ID)
	}
	return ""
}

// runMessage says which step of which run failed, and how to continue the run. A run is
// redriven as a whole, never one of its jobs, because the run knows its position.
func runMessage(run core.Run, step core.Step) string {
	where, cause := "", run.Error
	if step.Path != "" {
		where, cause = " at step "+fit(step.Path, maxPath, nil), cmp.Or(step.Error, run.Error)
	}
	return fmt.Sprintf("Workflow run %s of %q failed%s: %s. To go on: gateway workflow-runs redrive %s --from failed",
		run.ID, run.Workflow, where, fit(cause, maxCause, nil), run.ID)
}

// A consumer is the owner of a job: a handler, a queue, or another kind.
type consumer struct {
	handler, queue string

	name  string // in words
	retry bool   // whether an operator can retry the job
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

// message says which job of which consumer died, and how to retry it.
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
