package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// next is the job that is due next; nil if there is none.
func (w *world) next() *job {
	var first *job
	for _, s := range w.ordered() {
		j := w.jobs[s.ID]
		if j == nil || j.due.IsZero() || j.status == core.Running {
			continue
		}
		if first == nil || j.due.Before(first.due) {
			first = j
		}
	}
	return first
}

// take takes a job, as a worker does.
func (w *world) take(j *job) core.TakenJob {
	j.attempt++
	j.status, j.until = core.Running, w.now.Add(time.Minute)
	lease := core.Lease(fmt.Sprintf("lease-%d", j.attempt))
	s, _ := w.situation(j.id)
	return core.TakenJob{Job: core.Job{ID: j.id, Attempt: j.attempt, Lease: lease}, Event: w.event, Situation: s}
}

// refresh returns a job with the present situation.
func (w *world) refresh(t core.TakenJob) core.TakenJob {
	t.Situation, _ = w.situation(t.ID)
	return t
}

// A reply is the result of a call.
type reply struct {
	status int // 0: none
	class  core.ErrorClass
	body   string
	pause  time.Duration
}

// A receiver answers calls.
type receiver func(path string, r Request) reply

// attempt executes a job up to its end, without settling it. It returns false if the job is
// stale.
func (w *world) attempt(t core.TakenJob, r receiver) (core.StepEnd, bool) {
	if w.d.Task(t, w.now) == Begin {
		w.settle(core.StepEnd{Job: t, Kind: core.Begun, At: w.now})
		t = w.refresh(t)
	}
	end := core.StepEnd{Job: t, At: w.now, Kind: core.Elapsed}
	path := t.Situation.Step.Path
	switch w.d.Task(t, w.now) {
	case Stale:
		return end, false
	case Call:
		request, err := w.d.Request(t)
		return answered(end, r, path, request, err), true
	case Notify:
		return w.notify(t, r)
	}
	return end, true
}

func (w *world) notify(t core.TakenJob, r receiver) (core.StepEnd, bool) {
	token := fmt.Sprintf("%s-%d", t.ID, t.Attempt)
	request, err := w.d.Notice(t, token, "http://gateway/callback/"+token)
	end := core.StepEnd{Job: t, At: w.now, Kind: core.Armed, Token: token, Expires: w.d.Expiry(t, w.now)}
	if err == nil && request.URL == "" {
		return end, true
	}
	if err == nil {
		w.settle(end)
		t = w.refresh(t)
	}
	end = core.StepEnd{Job: t, At: w.now}
	if w.d.Task(t, w.now) == Stale { // the history was full
		return end, false
	}
	return answered(end, r, t.Situation.Step.Path, request, err), true
}

// answered returns the end of a call.
func answered(e core.StepEnd, r receiver, path string, request Request, err error) core.StepEnd {
	if err != nil {
		e.Kind, e.Class, e.Final = core.Refused, core.ClassData, true
		e.Attempt.Error = "data: " + err.Error()
		return e
	}
	answer := r(path, request)
	e.Attempt = core.Attempt{Number: e.Job.Situation.Step.Attempt + 1, StatusCode: answer.status, StartedAt: e.At}
	if answer.status/100 == 2 {
		e.Kind, e.Body = core.Replied, []byte(answer.body)
		return e
	}
	e.Kind, e.Class, e.RetryAfter = core.Refused, answer.class, answer.pause
	e.Attempt.Error = fmt.Sprintf("status: %d", answer.status)
	switch {
	case answer.status == 0:
		e.Attempt.Error = string(answer.class) + ": gone"
	case answer.status >= 500:
		e.Class = core.Class5xx
	default:
		e.Class = core.Class4xx
	}
	return e
}

// play lets jobs come to their ends one after another, until there are none but of
// steps that wait for a callback, or none at all. The clock goes to where they are due.
func (w *world) play(r receiver) {
	for range 100_000 {
		j := w.next()
		if j == nil || w.steps[j.id].Type == "callback" && w.steps[j.id].Status == core.StepWaiting {
			return
		}
		w.step(j, r)
	}
	w.t.Fatal("the run does not end")
}

// step lets the next job come to its end.
func (w *world) step(j *job, r receiver) {
	if j.due.After(w.now) {
		w.log("-- %s later\n", j.due.Sub(w.now))
		w.now = j.due
	}
	if end, ok := w.attempt(w.take(j), r); ok {
		if lost := w.settle(end); len(lost) > 0 {
			w.t.Fatalf("an end of %s is lost", w.steps[j.id].Path)
		}
	} else if !w.run.Status.Finished() {
		w.t.Fatalf("the job of %s is stale", w.steps[j.id].Path)
	}
}

// callback posts a callback with the newest token of a step.
func (w *world) callback(path, body string) bool {
	for _, s := range w.ordered() {
		if s.Path != path || s.Epoch != w.run.Epoch {
			continue
		}
		for _, token := range w.tokens {
			if token.StepID == s.ID && token.ExpiresAt.After(w.now) {
				now, _ := w.situation(s.ID)
				end := core.StepEnd{Job: core.TakenJob{Situation: now}, Kind: core.CalledBack, At: w.now, Body: []byte(body)}
				return len(w.settle(end)) == 0
			}
		}
	}
	return false
}

func (w *world) redrive(fromFailed bool) error {
	var err error
	m := w.complete(View{Event: w.event, Run: w.run}, func(v View) (m Move) {
		m, err = w.d.Redrive(w.pen(), v, fromFailed)
		return m
	})
	if err == nil {
		w.apply(m.Transition)
	}
	return err
}

// recast redrives a run with another definition.
func (w *world) recast(d *Definition, fromFailed bool) error {
	var err error
	m := w.complete(View{Event: w.event, Run: w.run}, func(v View) (m Move) {
		m, err = d.Recast(w.pen(), v, fromFailed, core.Definition{Hash: "another"})
		return m
	})
	if err == nil {
		w.d = d
		w.apply(m.Transition)
	}
	return err
}

func (w *world) cancel() error {
	var err error
	m := w.complete(View{Event: w.event, Run: w.run}, func(v View) (m Move) {
		m, err = w.d.Cancel(w.pen(), v)
		return m
	})
	if err == nil {
		w.apply(m.Transition)
	}
	return err
}

// summary is the state of the run and its steps.
func (w *world) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run: %s, epoch %d, at %s\n", w.run.Status, w.run.Epoch, w.run.Step)
	if w.run.Error != "" {
		fmt.Fprintf(&b, "error: %s\n", w.run.Error)
	}
	if w.run.Output != nil {
		fmt.Fprintf(&b, "output: %s\n", w.run.Output)
	}
	for _, s := range w.ordered() {
		if s.Epoch != w.run.Epoch {
			continue
		}
		fmt.Fprintf(&b, "%s: %s %s, %d attempts", s.Path, s.Type, s.Status, s.Attempt)
		if j := w.jobs[s.ID]; j != nil {
			fmt.Fprintf(&b, ", job %s", j.status)
			if j.lastErr != "" {
				fmt.Fprintf(&b, " (%s)", j.lastErr)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
