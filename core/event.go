package core

import (
	"strings"
	"time"
)

// DefaultSource is the source of the short intake route, POST /events/{event_type}.
const DefaultSource = "app"

// AlertSource is the source of events that the gateway makes itself, to tell people
// that something is wrong. No configured source can be called that.
const AlertSource = "_alerts"

// CronTick is the type of the events of cron sources.
const CronTick = "cron.tick"

// An Event is one thing that happened, as it was received.
type Event struct {
	ID     ID
	Source string // name of the configured source it came in through
	Type   string // 1 to 128 of [A-Za-z0-9._:/-]

	// Payload is the body byte for byte as received. It is UTF-8 text without
	// NUL bytes, usually JSON, but nothing here depends on that.
	Payload []byte

	// Binary says that Payload is any bytes: it is no UTF-8 text, or has a NUL byte.
	Binary bool

	// ContentType of Payload as the sender gave it; empty if it gave none.
	ContentType string

	// Headers kept with the event: CloudEvents attributes (ce-*), trace context
	// and the provider's ids, under lower-case names. Never credentials.
	Headers map[string]string

	// DeliveryID is the sender's own name for this delivery, unique per source;
	// empty if there is none. A second event with the same one is a duplicate.
	DeliveryID string

	// CreatedAt is when the event was received, in milliseconds precision. It is at
	// most a minute later than the time in the id; a store sees to it that it is at most a
	// minute earlier.
	CreatedAt time.Time
}

// NoData reports whether the event is a CloudEvent that came without data: its payload is
// empty, and not a text that is empty.
func (e *Event) NoData() bool {
	return len(e.Payload) == 0 && e.Headers["ce-specversion"] != "" && !strings.HasPrefix(e.ContentType, "text/")
}

// Opaque reports whether the payload has no JSON view but null: it is any bytes, or there is no
// data.
func (e *Event) Opaque() bool { return e.Binary || e.NoData() }

// An Arrival is an event together with the jobs it gives rise to, about to be
// accepted. The jobs' ids, lanes, keys and budgets are decided; everything else
// about them follows from being new.
type Arrival struct {
	Event Event
	Jobs  []NewJob
	Runs  []NewRun // each with its job among Jobs

	// Undecided are the consumers whose filters gave no answer, and which get no job. A store
	// ignores them.
	Undecided []Undecided
}

// An Undecided is a consumer whose filter gave no answer about an event.
type Undecided struct {
	Lane Lane
	Why  error // of the filter
}

// A Declined is a consumer of an event's source that does not want the event.
type Declined struct {
	Lane Lane
	Why  string // in words, for people
}

// A NewJob is a job that does not exist yet.
type NewJob struct {
	ID   ID
	Lane Lane

	// Key makes the job unique in its lane: a lane that has seen the key gets no
	// second job for it. Empty means no key.
	Key string

	// MaxAttempts is how often the job may be taken before it is dead; at least 1.
	MaxAttempts int
}

// A Receipt tells what became of an arrival.
type Receipt struct {
	// EventID names the stored event: the arrival's own, or the one it repeats.
	EventID ID

	// Duplicate says that the arrival repeats a stored event and left no trace.
	Duplicate bool

	// Jobs is the number of jobs created; 0 for a duplicate.
	Jobs int
}
