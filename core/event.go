package core

import "time"

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

// An Arrival is an event together with the jobs it gives rise to, about to be
// accepted. The jobs' ids, lanes, keys and budgets are decided; everything else
// about them follows from being new.
type Arrival struct {
	Event Event
	Jobs  []NewJob
	Runs  []NewRun // each with its job among Jobs

	// Undecided are the consumers that get no job since their filters gave no answer. A
	// store does not look at them.
	Undecided []Undecided
}

// Undecided is a consumer of which it is not known whether it wants an event.
type Undecided struct {
	Lane Lane
	Why  error // of the filter
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
