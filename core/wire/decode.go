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

// The conversion back, for clients of a gateway: each Core returns the value of which a
// record was made, as far as the record contains it. A command may talk to a gateway of another
// version: a field that the gateway does not send is zero, and a field that the command does not
// know is ignored.

// Core returns the page of a listing.
func (e Events) Core() core.Page[core.Event] {
	return core.Page[core.Event]{Items: List(e.Events, EventSummary.Core), More: e.More}
}

// Core returns the page of a search.
func (f Found) Core() manage.Found {
	return manage.Found{Page: f.Events.Core(), Scanned: f.Scanned, Next: core.ID(f.Next)}
}

// Core returns the event, without payload and headers.
func (e EventSummary) Core() core.Event {
	return core.Event{ID: e.ID, Source: e.Source, Type: e.EventType, DeliveryID: string(e.IdempotencyKey), CreatedAt: e.CreatedAt.Time}
}

// Core returns the event with its jobs and runs. Its payload has the received bytes, except
// for bytes that are not UTF-8 and white space that a writer left out.
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

// triesOf returns the attempts of the jobs that have a list of them; nil if none has.
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

// declinedOf returns the consumers that do not want an event; nil if there are none.
func declinedOf(all []Declined) (declined []core.Declined) {
	for _, d := range all {
		declined = append(declined, core.Declined{Lane: LaneOf(d.Handler), Why: d.Reason})
	}
	return declined
}

// waitsOf returns the waits of the jobs that have one.
func waitsOf(jobs []Job) map[core.ID]manage.Wait {
	var waits map[core.ID]manage.Wait
	for _, j := range jobs {
		if j.Waiting == nil {
			continue
		}
		if waits == nil {
			waits = map[core.ID]manage.Wait{}
		}
		waits[j.ID] = manage.Wait{For: j.Waiting.For, Until: j.Waiting.Until.Time, Since: j.Waiting.Since.Time, Reason: j.Waiting.Reason, Source: j.Waiting.Source, Job: j.Waiting.Job, Place: j.Waiting.Place}
	}
	return waits
}

// Core returns the hold.
func (h Hold) Core() core.Hold {
	return core.Hold{Lane: LaneOf(h.Target), Since: h.Since.Time, Until: h.Until.Time, Reason: string(h.Reason)}
}

// headersFrom separates the content type from the headers. It undoes [Headers].
func headersFrom(all map[string]string) (headers map[string]string, contentType string) {
	headers = maps.Clone(all)
	// The map is a copy: the record keeps its headers, and the event gets those without the type.
	contentType = headers["content-type"]
	delete(headers, "content-type")
	return headers, contentType
}

// Core returns the page of a listing.
func (j Jobs) Core() manage.JobPage {
	return manage.JobPage{Page: core.Page[core.Job]{Items: List(j.Jobs, Job.Core), More: j.More}, Waits: waitsOf(j.Jobs)}
}

// Core returns the page of a search.
func (f FoundJobs) Core() manage.FoundJobs {
	return manage.FoundJobs{JobPage: f.Jobs.Core(), Scanned: f.Scanned, Next: core.ID(f.Next)}
}

// Core returns the job. It has no ScheduledAt if it waits.
func (j Job) Core() core.Job {
	// The handler of a step's job is its lane and the step's path: see Consumer.
	job := core.Job{
		ID: j.ID, EventID: j.EventID, Lane: LaneOf(strings.TrimSuffix(j.Handler, "/"+j.Step)), Line: j.Line, Status: j.Status,
		Attempt: j.Attempt, MaxAttempts: attemptsOf(j.MaxAttempts), Earlier: j.Earlier, RunID: j.RunID, Step: j.Step, Host: j.Host,
		LastError: string(j.LastError), CreatedAt: j.CreatedAt.Time, FinishedAt: j.CompletedAt.Time,
	}
	switch at := j.ScheduledAt.Time; {
	case j.Status.Finished():
		job.ScheduledAt = at
	case j.Status == core.Running && !j.LeaseEndsAt.IsZero():
		job.ScheduledAt, job.DueAt = at, j.LeaseEndsAt.Time
	// A waiting job is due then.
	default: // an older server puts the end of the lease there
		job.DueAt = at
	}
	return job
}

// LaneOf returns the lane whose [core.Lane.Consumer] this is. A handler's name has no
// slash.
func LaneOf(consumer string) core.Lane {
	if strings.Contains(consumer, "/") {
		return core.Lane(consumer)
	}
	return core.HandlerLane(consumer)
}

// ParseConsumer is [LaneOf] for the input of a user. It returns false if no consumer can
// have that name.
func ParseConsumer(text string) (core.Lane, bool) {
	lane := LaneOf(text)
	_, name, _ := strings.Cut(string(lane), "/")
	known := lane.Handler() != "" || lane.Queue() != "" || lane.Workflow() != "" || lane.Alert()
	return lane, known && name != "" && !strings.ContainsFunc(name, unnamed)
}

// ParseTarget returns the lane of the target of a hold: a consumer, except a place for alerts, or
// "source/" and the name of a source. It returns false if no such target can have that name.
func ParseTarget(text string) (core.Lane, bool) {
	if name := core.Lane(text).Source(); name != "" {
		return core.Lane(text), !strings.ContainsFunc(name, unnamed)
	}
	lane, ok := ParseConsumer(text)
	return lane, ok && !lane.Alert()
}

// unnamed reports whether no name of a consumer or a source can contain a character. Some databases reject
// such texts in queries.
func unnamed(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
}

// attemptsOf returns a budget as a number of attempts.
func attemptsOf(budget *int) int {
	if budget == nil {
		return core.Unlimited
	}
	return *budget
}

// Core returns the attempt.
func (a Attempt) Core() core.Attempt {
	attempt := core.Attempt{
		Number: a.Attempt, Error: string(a.Error), Response: string(a.Response),
		Duration: time.Duration(a.DurationMS) * time.Millisecond, StartedAt: a.CreatedAt.Time,
	}
	if a.StatusCode != nil {
		attempt.StatusCode = *a.StatusCode
	}
	if r := a.Request; r != nil {
		attempt.Exchange = &core.Exchange{Method: r.Method, URL: r.URL, Headers: r.Headers, ReplyHeaders: a.ResponseHeaders, Cut: r.Cut,
			BodySize: r.BodySize, BodySHA256: string(r.BodySHA256), KeptBody: r.BodyKept, Unmasked: r.Unmasked}
	}
	return attempt
}

// Core returns the page of a listing.
func (r Runs) Core() core.Page[core.Run] {
	return core.Page[core.Run]{Items: List(r.Runs, Run.Core), More: r.More}
}

// Core returns the run as it is listed.
func (r Run) Core() core.Run {
	return core.Run{
		ID: r.ID, Workflow: r.Workflow, EventID: r.EventID, Status: r.Status, Epoch: r.Epoch, Step: string(r.CurrentStep),
		Error: string(r.Error), CreatedAt: r.CreatedAt.Time, StartedAt: r.StartedAt.Time, FinishedAt: r.CompletedAt.Time,
	}
}

// Core returns the run with its steps and history.
func (r RunStory) Core() manage.Inspected {
	run := r.Run.Core()
	run.Output = orNone(r.Output)
	// A page that names no valid place is the last one for the caller.
	next, err := manage.ParsePlace(r.Next)
	if err != nil {
		next = manage.Place{} // from a server that is not a gateway
	}
	return manage.Inspected{Run: run, Steps: List(r.Steps, Step.Core), History: List(r.History, Entry.Core), Next: next}
}

// Untold is the number of branches of a step that was a record: records do not contain it.
const Untold = -1

// Core returns the step. The Total of its Fan is [Untold].
func (s Step) Core() core.Step {
	return core.Step{
		Fan:  core.Fan{Total: Untold},
		Name: s.Name, Path: s.Path, Type: s.Type, Status: s.Status, Attempt: s.Attempt, State: orNone(s.Input), Output: orNone(s.Output),
		Error: string(s.Error), StartedAt: s.StartedAt.Time, FinishedAt: s.CompletedAt.Time,
	}
}

// Core returns the entry.
func (e Entry) Core() core.Entry {
	return core.Entry{Seq: e.Seq, At: e.At.Time, Epoch: e.Epoch, Type: e.Type, Path: string(e.Step), Data: string(orNone(e.Data))}
}

// orNone returns a document, or nil for null.
func orNone(doc json.RawMessage) []byte {
	if string(doc) == "null" {
		return nil
	}
	return doc
}

// Core returns the queue with its numbers.
func (q Queue) Core() (manage.Listed, error) {
	visibility, err := units.ParseDuration(string(q.VisibilityTimeout))
	if err != nil {
		return manage.Listed{}, fmt.Errorf("visibility_timeout: %w", err)
	}
	return manage.Listed{
		Queue: manage.Queue{Name: q.Name, Source: string(q.Source), Events: q.Events, Visibility: visibility.Duration},
		Tally: core.Tally{Pending: q.Pending, Processing: q.Processing},
		Ended: core.Ended{Dead: q.Dead, Canceled: q.Canceled},
	}, nil
}

// Core returns the message, with its event as far as the record contains it. A payload that
// is a string is text, unless the content type is JSON.
func (m Message) Core() (core.TakenJob, error) {
	event := core.Event{ID: m.EventID, Type: m.EventType}
	event.Headers, event.ContentType = headersFrom(m.Headers)
	encoding := m.PayloadEncoding
	// Messages do not say that a payload is text, since consumers go by the content type.
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

// saysJSON reports whether a content type stands for JSON, also in a derived format such as
// application/cloudevents+json.
func saysJSON(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType) // of a malformed type the beginning
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// Core returns the result of a look.
func (n News) Core() manage.News {
	return manage.News{
		Events:   List(n.Events, EventSummary.Core),
		Jobs:     List(n.Jobs, Job.Core),
		Next:     manage.Cursor{Event: n.Cursor.Event, Finished: n.Cursor.Finished.Time, Job: core.ID(n.Cursor.Job)},
		More:     n.More,
		Followed: n.Followed,
	}
}

// Core returns the counts and runs of a cancel.
func (c Canceled) Core() manage.Canceled {
	return manage.Canceled{
		Event:        c.EventID,
		Cancellation: core.Cancellation{Canceled: c.Canceled, Running: c.Running, Finished: c.Finished},
		CanceledRuns: c.CanceledRuns, RunningRuns: c.RunningRuns,
	}
}

// Core returns the numbers of a replay.
func (r Replayed) Core() manage.Replayed {
	// The client asks again with this span, from Next on, until nothing is left.
	span := manage.Span{First: core.ID(r.First), Last: core.ID(r.Last)}
	return manage.Replayed{Looked: r.Looked, Events: r.Events, Jobs: r.Jobs, Span: span, Next: core.ID(r.Next), Going: core.ID(r.Operation)}
}
