package core

import (
	"strings"
	"time"
)

// DefaultSource is the source of the short intake route, POST /events/{event_type}.
const DefaultSource = "app"

// AlertSource is the source of events that the gateway makes itself: to alert people to a
// failure, and to have an [Operation] done. No configured source can have this name.
const AlertSource = "_alerts"

// CronTick is the type of the events of cron sources.
const CronTick = "cron.tick"

// An Event is one message, as the gateway received it.
type Event struct {
	ID     ID
	Source string // name of the configured source it came in through
	Type   string // 1 to 128 of [A-Za-z0-9._:/-]

	// Payload is the body byte for byte as received. It is usually JSON, but nothing here depends on
	// that.
	Payload []byte

	// Binary says that Payload is not text: it is not valid UTF-8, or it has a NUL byte.
	Binary bool

	// ContentType of Payload as the sender gave it; empty if it gave none.
	ContentType string

	// Headers are kept with the event, under lower-case names: CloudEvents attributes
	// (ce-*), the trace context and the provider's ids. They never include credentials.
	Headers map[string]string

	// DeliveryID is the sender's own id of this delivery, unique per source. It is empty if
	// there is none. A second event with the same DeliveryID is a duplicate.
	DeliveryID string

	// CreatedAt is when the event was received, in milliseconds precision. It is at most a
	// minute later than the time in the id; the code that makes the event ensures that. It
	// is also at most a minute earlier; the store ensures that.
	CreatedAt time.Time
}

// NoData reports whether the event is a CloudEvent without data. A text/* payload that is
// empty is data.
func (e *Event) NoData() bool {
	return len(e.Payload) == 0 && e.Headers["ce-specversion"] != "" && !strings.HasPrefix(e.ContentType, "text/")
}

// Opaque reports whether the JSON view of the payload is null. That holds for binary
// payloads and for CloudEvents without data.
func (e *Event) Opaque() bool { return e.Binary || e.NoData() }

// An Arrival is an event together with its jobs and runs, before it is stored. The jobs'
// ids, lanes, keys and budgets are decided. All other fields of a job follow from its being
// new.
type Arrival struct {
	Event Event
	Jobs  []NewJob
	Runs  []NewRun // each with its job among Jobs

	// Undecided are the consumers whose filters failed with an error. They get no job. A
	// store ignores this field.
	Undecided []Undecided
}

// An Undecided is a consumer whose filter failed with an error for an event.
type Undecided struct {
	Lane Lane
	Why  error // of the filter
}

// A Declined is a consumer of an event's source that does not want the event.
type Declined struct {
	Lane Lane
	Why  string // in words, for people
}

// A NewJob is a job before it is stored.
type NewJob struct {
	ID   ID
	Lane Lane

	// Key makes the job unique in its lane: a lane that has seen the key gets no
	// second job for it. Empty means no key.
	Key string

	// MaxAttempts is how many times the job may be taken before it is dead; at least 1.
	MaxAttempts int

	// DueAt is when a delayed job is due. Until then its status is Scheduled. A time that is not
	// after the event's, such as zero, means at once.
	DueAt time.Time

	// Line is the line of the lane in which the job takes the next place.
	Line Line
}

// Due returns when a job of the arrival is due.
func (a Arrival) Due(j NewJob) time.Time {
	if j.DueAt.After(a.Event.CreatedAt) {
		return j.DueAt
	}
	return a.Event.CreatedAt
}

// Deadline returns the deadline of a run of the arrival, which counts from the due time of its
// first job; zero for a run without a timeout.
func (a Arrival) Deadline(r NewRun) time.Time {
	if r.Timeout <= 0 {
		return time.Time{}
	}
	begins := a.Event.CreatedAt
	for _, j := range a.Jobs {
		if j.ID == r.StepID {
			begins = a.Due(j)
		}
	}
	return begins.Add(r.Timeout)
}

// MaxDelay bounds the delay of a job, from its event on.
const MaxDelay = 365 * 24 * time.Hour

// A Receipt is the result of accepting an arrival.
type Receipt struct {
	// EventID names the stored event: the arrival's own, or the earlier event that it
	// repeats.
	EventID ID

	// Duplicate says that the arrival repeats a stored event. Nothing of it was stored.
	Duplicate bool

	// Jobs is the number of jobs created; 0 for a duplicate.
	Jobs int

	// Taken is the number of these jobs that this process has taken already, so that no bell
	// needs to ring for them. A store leaves it at 0.
	Taken int
}
