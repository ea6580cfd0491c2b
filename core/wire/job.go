package wire

import (
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/curl"
	"github.com/eventgateway/gateway/core/manage"
)

// Jobs is a page of a listing.
type Jobs struct {
	Jobs []Job `json:"jobs"`
	More bool  `json:"has_more"`
}

// JobsOf returns the record of a page.
func JobsOf(page manage.JobPage) Jobs {
	return Jobs{List(page.Items, func(j core.Job) Job { return WaitingOf(j, page.Waits[j.ID]) }), page.More}
}

// FoundJobs is a page of a search: see [manage.FoundJobs].
type FoundJobs struct {
	Jobs
	Scanned int  `json:"scanned"`
	Next    Text `json:"next"` // the last scanned job
}

// FoundJobsOf returns the record of a page of a search.
func FoundJobsOf(f manage.FoundJobs) FoundJobs {
	return FoundJobs{JobsOf(f.JobPage), f.Scanned, Text(f.Next)}
}

// EventJobs is the jobs of one event.
type EventJobs struct {
	Jobs []Job `json:"jobs"`
}

// A Job is a job of a handler, a message of a queue, or the job of a step.
type Job struct {
	ID          core.ID     `json:"id"`
	EventID     core.ID     `json:"event_id"`
	Handler     string      `json:"handler"`         // see Consumer
	Host        string      `json:"host,omitempty"`  // of the place to which an alert is posted
	Queue       string      `json:"queue,omitempty"` // of a message only
	Line        string      `json:"line,omitempty"`  // of a job of a line only, its key
	Status      core.Status `json:"status"`
	Attempt     int         `json:"attempt"`
	MaxAttempts *int        `json:"max_attempts"`              // null: unlimited
	Earlier     int         `json:"earlier_attempts,omitzero"` // see core.Job
	ScheduledAt Time        `json:"scheduled_at"`              // see scheduled
	LeaseEndsAt Time        `json:"lease_ends_at,omitzero"`    // of a running job only
	CompletedAt Time        `json:"completed_at"`
	LastError   Text        `json:"last_error"`
	CreatedAt   Time        `json:"created_at"`
	RunID       core.ID     `json:"workflow_run_id,omitempty"` // of a step only
	Step        string      `json:"step,omitempty"`            // of a step only, its path

	// Waiting is absent if the job does not wait.
	Waiting *Wait `json:"waiting,omitempty"`

	// Attempts are absent if the request did not ask for them. MoreAttempts says that these are only
	// the first ones.
	Attempts     []Attempt `json:"attempts,omitzero"`
	MoreAttempts bool      `json:"has_more_attempts,omitzero"`
}

// JobOf returns the record of a job, without its attempts.
func JobOf(j core.Job) Job {
	record := Job{
		ID:          j.ID,
		EventID:     j.EventID,
		Handler:     Consumer(j),
		Host:        j.Host,
		Queue:       j.Lane.Queue(),
		Line:        j.Line,
		Status:      j.Status,
		Attempt:     j.Number(),
		MaxAttempts: budget(j),
		Earlier:     j.Earlier,
		ScheduledAt: Time{scheduled(j)},
		CompletedAt: Time{j.FinishedAt},
		LastError:   Text(j.LastError),
		CreatedAt:   Time{j.CreatedAt},
		RunID:       j.RunID,
		Step:        j.Step,
	}
	// The end of the lease is when another worker may take the job, so it says how long an
	// operator has to wait for a worker that vanished.
	if j.Status == core.Running {
		record.LeaseEndsAt = Time{j.DueAt}
	}
	return record
}

// scheduled returns when a waiting job is due, or when the newest attempt of any other job
// was due.
func scheduled(j core.Job) time.Time {
	if j.Status == core.Running || j.Status.Finished() {
		return j.ScheduledAt
	}
	return j.DueAt
}

// A Wait is the reason and the end of a job's wait.
//
// A script reads it to tell a job that waits for its backoff from one behind an open breaker.
type Wait struct {
	For   manage.Hindrance `json:"for"`
	Until Time             `json:"until"`

	Since  Time    `json:"since,omitzero"`   // of a hold, or of a line that is stopped
	Reason string  `json:"reason,omitempty"` // of a hold with a reason only
	Source string  `json:"source,omitempty"` // of the hold of a source only
	Job    core.ID `json:"job,omitempty"`    // of a line only, see manage.Wait
	Place  int     `json:"place,omitzero"`   // of a line only, if it is known
}

// WaitingOf returns the record of a job with its wait.
func WaitingOf(j core.Job, w manage.Wait) Job {
	record := JobOf(j)
	// A job that does not wait has no member for it, so scripts test for its presence.
	if w != (manage.Wait{}) {
		record.Waiting = &Wait{w.For, Time{w.Until}, Time{w.Since}, w.Reason, w.Source, w.Job, w.Place}
	}
	return record
}

// StoryOf returns the record of a job with its wait and its attempts.
func StoryOf(j core.Job, w manage.Wait, attempts []core.Attempt) Job {
	record := WaitingOf(j, w)
	record.Attempts = List(attempts, AttemptOf)
	return record
}

// Consumer returns the consumer of a job: the bare name of a handler, queue/<name>,
// workflow/<name>/<step>, or alert/<number> for a place of alerts.
func Consumer(j core.Job) string {
	if j.Step != "" {
		return j.Lane.Consumer() + "/" + j.Step
	}
	return j.Lane.Consumer()
}

// budget returns the number of a job's last attempt, nil if it is unlimited.
func budget(j core.Job) *int {
	if j.MaxAttempts == core.Unlimited {
		return nil
	}
	return &j.MaxAttempts
}

// Attempts is a page of the attempts at a job.
type Attempts struct {
	Attempts []Attempt `json:"attempts"`
	More     bool      `json:"has_more"`
}

// AttemptsOf returns the record of a page.
func AttemptsOf(page core.Page[core.Attempt]) Attempts {
	return Attempts{List(page.Items, AttemptOf), page.More}
}

// An Attempt is the record of one try.
type Attempt struct {
	Attempt    int   `json:"attempt"`
	StatusCode *int  `json:"status_code"` // null if there was no reply
	Error      Text  `json:"error"`
	DurationMS int64 `json:"duration_ms"`
	Response   Text  `json:"response"` // the kept part of the reply
	CreatedAt  Time  `json:"created_at"`

	// Request and ResponseHeaders are absent if the exchange was not recorded. ResponseHeaders are
	// also absent if there was no reply.
	Request         *Request          `json:"request,omitzero"`
	ResponseHeaders map[string]string `json:"response_headers,omitzero"`
}

// A Request is the request of an attempt, with secrets masked. See [core.Exchange].
type Request struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
	BodySize   int               `json:"body_size"`
	BodySHA256 Text              `json:"body_sha256"` // null without a body
	BodyKept   int               `json:"body_kept"`   // bytes of the body that are kept
	Cut        bool              `json:"cut"`         // the URL, or headers of either side, are not complete
	Unmasked   []string          `json:"unmasked,omitempty"`
}

// AttemptOf returns the record of an attempt.
func AttemptOf(a core.Attempt) Attempt {
	record := Attempt{
		Attempt:    a.Number,
		Error:      Text(a.Error),
		DurationMS: a.Duration.Milliseconds(),
		Response:   Text(a.Response),
		CreatedAt:  Time{a.StartedAt},
	}
	// 0 is no status of HTTP: the attempt got no reply, or the handler is gRPC.
	if a.StatusCode != 0 {
		record.StatusCode = &a.StatusCode
	}
	if x := a.Exchange; x != nil {
		record.Request = &Request{x.Method, x.URL, x.Headers, x.BodySize, Text(x.BodySHA256), x.KeptBody, x.Cut, x.Unmasked}
		record.ResponseHeaders = x.ReplyHeaders
	}
	return record
}

// A Curl is a command for a POSIX shell that sends a recorded request again. Variables are the shell's
// variables that stand for masked values.
type Curl struct {
	Command   string   `json:"command"`
	Variables []string `json:"variables"`
}

// CurlOf returns the record of a command.
func CurlOf(c *curl.Command) Curl {
	return Curl{c.Text(), List(c.Variables, func(v curl.Variable) string { return v.Name })}
}

// SentBody is the kept part of a body that an attempt sent.
type SentBody struct {
	Body string `json:"body"`
}
