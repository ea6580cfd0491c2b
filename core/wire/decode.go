package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/units"
)

// The way back, for whoever asks a gateway: what a record was made of, as far as it
// holds that.

// Core is the page of a listing.
func (e Events) Core() core.Page[core.Event] {
	return core.Page[core.Event]{Items: List(e.Events, EventSummary.Core), More: e.More}
}

// Core is the event, without payload and headers.
func (e EventSummary) Core() core.Event {
	return core.Event{ID: e.ID, Source: e.Source, Type: e.EventType, DeliveryID: string(e.IdempotencyKey), CreatedAt: e.CreatedAt.Time}
}

// Core is the event with its jobs and runs. Its payload is byte for byte what was
// received, but for bytes that are not UTF-8 and white space that a writer left out.
func (e Event) Core() (manage.Told, error) {
	event := core.Event{
		ID: e.ID, Source: e.Source, Type: e.EventType,
		DeliveryID: string(e.IdempotencyKey), CreatedAt: e.CreatedAt.Time,
	}
	if err := setPayload(&event, e.Payload, e.PayloadEncoding); err != nil {
		return manage.Told{}, err
	}
	event.Headers, event.ContentType = headersFrom(e.Headers)
	return manage.Told{
		Event:    event,
		Jobs:     List(e.Jobs, Job.Core),
		Runs:     List(e.WorkflowRuns, Run.Core),
		Waits:    waitsOf(e.Jobs),
		Attempts: triesOf(e.Jobs),
		Declined: declinedOf(e.Declined),
	}, nil
}

// triesOf are the attempts of jobs that tell theirs; nil if none of them does.
func triesOf(jobs []Job) map[core.ID][]core.Attempt {
	var attempts map[core.ID][]core.Attempt
	for _, j := range jobs {
		if j.Attempts == nil {
			continue
		}
		if attempts == nil {
			attempts = map[core.ID][]core.Attempt{}
		}
		attempts[j.ID] = List(j.Attempts, Attempt.Core)
	}
	return attempts
}

func declinedOf(all []Declined) (declined []core.Declined) {
	for _, d := range all {
		declined = append(declined, core.Declined{Lane: LaneOf(d.Handler), Why: d.Reason})
	}
	return declined
}

// waitsOf is what those of the jobs wait for that tell it.
func waitsOf(jobs []Job) map[core.ID]manage.Wait {
	var waits map[core.ID]manage.Wait
	for _, j := range jobs {
		if j.Waiting == nil {
			continue
		}
		if waits == nil {
			waits = map[core.ID]manage.Wait{}
		}
		waits[j.ID] = manage.Wait{For: j.Waiting.For, Until: j.Waiting.Until.Time}
	}
	return waits
}

// headersFrom takes the content type out of headers, where [Headers] put it.
func headersFrom(all map[string]string) (headers map[string]string, contentType string) {
	headers = maps.Clone(all)
	contentType = headers["content-type"]
	delete(headers, "content-type")
	return headers, contentType
}

// Core is the page of a listing.
func (j Jobs) Core() manage.JobPage {
	return manage.JobPage{Page: core.Page[core.Job]{Items: List(j.Jobs, Job.Core), More: j.More}, Waits: waitsOf(j.Jobs)}
}

// Core is the job. The ScheduledAt of a job that waits is not told.
func (j Job) Core() core.Job {
	job := core.Job{
		ID: j.ID, EventID: j.EventID, Lane: LaneOf(strings.TrimSuffix(j.Handler, "/"+j.Step)), Status: j.Status,
		Attempt: j.Attempt, MaxAttempts: attemptsOf(j.MaxAttempts), Earlier: j.Earlier, RunID: j.RunID, Step: j.Step, Host: j.Host,
		LastError: string(j.LastError), CreatedAt: j.CreatedAt.Time, FinishedAt: j.CompletedAt.Time,
	}
	switch at := j.ScheduledAt.Time; {
	case j.Status.Finished():
		job.ScheduledAt = at
	case j.Status == core.Running && !j.LeaseEndsAt.IsZero():
		job.ScheduledAt, job.DueAt = at, j.LeaseEndsAt.Time
	default: // an older server tells there when the lease ends
		job.DueAt = at
	}
	return job
}

// LaneOf is the lane of what [core.Lane.Consumer] calls this: no handler has a slash in
// its name.
func LaneOf(consumer string) core.Lane {
	if strings.Contains(consumer, "/") {
		return core.Lane(consumer)
	}
	return core.HandlerLane(consumer)
}

// ParseConsumer is [LaneOf] of what somebody typed, false if no consumer can be called so.
func ParseConsumer(text string) (core.Lane, bool) {
	lane := LaneOf(text)
	_, name, _ := strings.Cut(string(lane), "/")
	known := lane.Handler() != "" || lane.Queue() != "" || lane.Workflow() != "" || lane.Alert()
	return lane, known && name != "" && !strings.ContainsFunc(name, unnamed)
}

// unnamed reports whether no consumer has a character in its name. Not every database can
// be asked for any text.
func unnamed(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
}

// attemptsOf is how many attempts a budget is.
func attemptsOf(budget *int) int {
	if budget == nil {
		return core.Unlimited
	}
	return *budget
}

// Core is the attempt.
func (a Attempt) Core() core.Attempt {
	attempt := core.Attempt{
		Number: a.Attempt, Error: string(a.Error), Response: string(a.Response),
		Duration: time.Duration(a.DurationMS) * time.Millisecond, StartedAt: a.CreatedAt.Time,
	}
	if a.StatusCode != nil {
		attempt.StatusCode = *a.StatusCode
	}
	return attempt
}

// Core is the page of a listing.
func (r Runs) Core() core.Page[core.Run] {
	return core.Page[core.Run]{Items: List(r.Runs, Run.Core), More: r.More}
}

// Core is the run as it is listed.
func (r Run) Core() core.Run {
	return core.Run{
		ID: r.ID, Workflow: r.Workflow, EventID: r.EventID, Status: r.Status, Epoch: r.Epoch, Step: string(r.CurrentStep),
		Error: string(r.Error), CreatedAt: r.CreatedAt.Time, StartedAt: r.StartedAt.Time, FinishedAt: r.CompletedAt.Time,
	}
}

// Core is the run with its steps and history.
func (r RunStory) Core() manage.Inspected {
	run := r.Run.Core()
	run.Output = orNone(r.Output)
	next, err := manage.ParsePlace(r.Next)
	if err != nil {
		next = manage.Place{} // from a server that is not a gateway
	}
	return manage.Inspected{Run: run, Steps: List(r.Steps, Step.Core), History: List(r.History, Entry.Core), Next: next}
}

// Untold is how many branches a step has that was a record: none tells.
const Untold = -1

// Core is the step. The Total of its Fan is [Untold].
func (s Step) Core() core.Step {
	return core.Step{
		Fan:  core.Fan{Total: Untold},
		Name: s.Name, Path: s.Path, Type: s.Type, Status: s.Status, Attempt: s.Attempt, State: orNone(s.Input), Output: orNone(s.Output),
		Error: string(s.Error), StartedAt: s.StartedAt.Time, FinishedAt: s.CompletedAt.Time,
	}
}

// Core is the entry.
func (e Entry) Core() core.Entry {
	return core.Entry{Seq: e.Seq, At: e.At.Time, Epoch: e.Epoch, Type: e.Type, Path: string(e.Step), Data: string(orNone(e.Data))}
}

// orNone is a document, nil for null.
func orNone(doc json.RawMessage) []byte {
	if string(doc) == "null" {
		return nil
	}
	return doc
}

// Core is the queue with its numbers.
func (q Queue) Core() (manage.Listed, error) {
	visibility, err := units.ParseDuration(string(q.VisibilityTimeout))
	if err != nil {
		return manage.Listed{}, fmt.Errorf("visibility_timeout: %w", err)
	}
	return manage.Listed{
		Queue: manage.Queue{Name: q.Name, Source: string(q.Source), Events: q.Events, Visibility: visibility.Duration},
		Tally: core.Tally{Pending: q.Pending, Processing: q.Processing, Dead: q.Dead},
	}, nil
}

// Core is the message, and its event as far as that is told. A payload that is a string
// is taken for text unless the content type says that it is JSON.
func (m Message) Core() (core.TakenJob, error) {
	event := core.Event{ID: m.EventID, Type: m.EventType}
	event.Headers, event.ContentType = headersFrom(m.Headers)
	encoding := m.PayloadEncoding
	if encoding == "" && !saysJSON(event.ContentType) && bytes.HasPrefix(m.Payload, []byte(`"`)) {
		encoding = PayloadText
	}
	if err := setPayload(&event, m.Payload, encoding); err != nil {
		return core.TakenJob{}, err
	}
	return core.TakenJob{Event: event, Job: core.Job{
		ID: m.ID, EventID: m.EventID, Attempt: m.Attempt, MaxAttempts: attemptsOf(m.MaxAttempts),
		LastError: string(m.LastError), CreatedAt: m.CreatedAt.Time, FinishedAt: m.CompletedAt.Time,
	}}, nil
}

func saysJSON(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType) // of one that is malformed the beginning
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// Core is what a look found.
func (n News) Core() manage.News {
	return manage.News{
		Events:   List(n.Events, EventSummary.Core),
		Jobs:     List(n.Jobs, Job.Core),
		Next:     manage.Cursor{Event: n.Cursor.Event, Finished: n.Cursor.Finished.Time, Job: core.ID(n.Cursor.Job)},
		More:     n.More,
		Followed: n.Followed,
	}
}

// Core is what was replayed.
func (r Replayed) Core() manage.Replayed {
	span := manage.Span{First: core.ID(r.First), Last: core.ID(r.Last)}
	return manage.Replayed{Looked: r.Looked, Events: r.Events, Jobs: r.Jobs, Span: span, Next: core.ID(r.Next)}
}
