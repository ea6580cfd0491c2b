package core

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Status is where a job stands. The values are the words of every interface:
// configuration, API, command line, metrics, logs and store.
type Status string

// The five statuses of a job.
const (
	Available Status = "available" // never tried, or brought back by an operator
	Running   Status = "running"   // somebody holds its lease
	Completed Status = "completed" // done; final
	Retryable Status = "retryable" // failed, waiting for its next attempt
	Dead      Status = "dead"      // given up on; only an operator brings it back
)

// Statuses lists all of them in the order of a job's life.
func Statuses() []Status {
	return []Status{Available, Running, Completed, Retryable, Dead}
}

// ParseStatus reads a status as users write it.
func ParseStatus(s string) (Status, error) {
	for _, known := range Statuses() {
		if s == string(known) {
			return known, nil
		}
	}
	return "", Refuse(Invalid, "status must be one of available, running, completed, retryable, dead; not %q", s)
}

// Finished reports whether a job in this status waits for nothing any more.
func (s Status) Finished() bool { return s == Completed || s == Dead }

// A Lane is the line a job waits in: one per consumer, so that one consumer's
// backlog never stands before another's. It is written "handler/<name>",
// "queue/<name>", "workflow/<name>", or "alert/<id>" for what is told to people.
type Lane string

const (
	handlerLane  = "handler/"
	queueLane    = "queue/"
	workflowLane = "workflow/"
	alertLane    = "alert/"
)

// QueueLane is the lane of the queue with this name.
func QueueLane(name string) Lane { return Lane(queueLane + name) }

// Queue is the name of the queue whose lane this is, or "" if it is the lane of
// something else.
func (l Lane) Queue() string {
	name, ok := strings.CutPrefix(string(l), queueLane)
	if !ok {
		return ""
	}
	return name
}

// WorkflowLane is the lane of the workflow with this name.
func WorkflowLane(name string) Lane { return Lane(workflowLane + name) }

// Workflow is the name of the workflow whose lane this is, or "" if it is the lane of
// something else.
func (l Lane) Workflow() string {
	name, ok := strings.CutPrefix(string(l), workflowLane)
	if !ok {
		return ""
	}
	return name
}

// AlertLane is the lane of the alerts that go to one place.
func AlertLane(id string) Lane { return Lane(alertLane + id) }

// Alert reports whether the lane holds alerts.
func (l Lane) Alert() bool { return strings.HasPrefix(string(l), alertLane) }

// HandlerLane is the lane of the handler with this name.
func HandlerLane(name string) Lane { return Lane(handlerLane + name) }

// Handler is the name of the handler whose lane this is, or "" if it is the lane
// of something else.
func (l Lane) Handler() string {
	name, ok := strings.CutPrefix(string(l), handlerLane)
	if !ok {
		return ""
	}
	return name
}

// Consumer is the lane as the API and the command line name it: handlers by
// their bare name, everything else by the whole lane.
func (l Lane) Consumer() string {
	if name := l.Handler(); name != "" {
		return name
	}
	return string(l)
}

// Filter is where the configuration has the filter of the lane's consumer, as in
// handlers.billing.filter.
func (l Lane) Filter() string {
	if name := l.Queue(); name != "" {
		return "queues." + name + ".filter"
	}
	return "handlers." + l.Handler() + ".filter"
}

// A Lease is the proof that its holder took a job and nobody has taken it since.
// Each Take makes a new one; a write that carries an older one changes nothing.
type Lease string

// Unlimited is the MaxAttempts of a job that never dies of its attempts.
const Unlimited = math.MaxInt32

// A Ref names a job that was taken: by its id, and by the lease it was taken under.
// Without a lease it means whoever holds the job.
type Ref struct {
	ID    ID
	Lease Lease
}

// A Job is one piece of work an event gave rise to.
type Job struct {
	ID      ID
	EventID ID
	Lane    Lane
	Key     string // unique per lane; empty means none
	Status  Status

	// Attempt is the number of attempts begun, MaxAttempts how many there may be.
	Attempt     int
	MaxAttempts int

	// DueAt is when the job next wants attention: when it may be tried, or, while
	// it is running, when its lease ends. Zero means never.
	DueAt time.Time

	// Lease is held by whoever runs the job; empty otherwise.
	Lease Lease

	// RunID and Step are the run and the path of the step there that the job is for, of
	// a job in the lane of a workflow, where a [Ledger] tells them.
	RunID ID
	Step  string

	LastError  string // why the newest attempt failed; empty if none did
	CreatedAt  time.Time
	FinishedAt time.Time // when it became completed or dead; zero before
}

// Spent reports whether a job that was just taken had no attempt left: it ran,
// its lease ended without an outcome, and that was its last one. Such a job is
// to be settled as dead with [LeaseExpired], not tried.
func (j Job) Spent() bool { return j.Attempt > j.MaxAttempts }

// LeaseExpired is the error of a job that died because its last attempt never
// reported back.
const LeaseExpired = "lease expired"

// A TakenJob is a job together with the event it is about.
type TakenJob struct {
	Job
	Event Event

	// Bare says that the event was left out, since there was no room for it in
	// [Quota.Bytes].
	Bare bool

	StartAt time.Time // not before; zero if it was taken without a [Pass] that has an interval
	Probe   bool      // it was taken with a Pass for a probe

	// Situation is that of the step a job of a workflow is for. It is zero for any
	// other, and if there is no such step any more.
	Situation Situation
}

// An Attempt is how one try went.
type Attempt struct {
	Number     int    // 1-based
	StatusCode int    // of the reply; 0 if there was none
	Error      string // class and detail; empty if the attempt succeeded
	Response   string // what was kept of the reply, at most MaxResponse bytes
	Duration   time.Duration
	StartedAt  time.Time
}

// MaxResponse is how many bytes of a reply an attempt keeps.
const MaxResponse = 4 << 10

// An Outcome is the end of one attempt: what happened, and where it leaves the job.
type Outcome struct {
	JobID   ID
	Lease   Lease // as taken
	Attempt Attempt

	// Status is Completed, Retryable or Dead.
	Status Status

	// DueAt is when to try again, for a Retryable outcome.
	DueAt time.Time

	// At is the time of settling.
	At time.Time

	// Lane is that of the job. Verdict is what the attempt tells its gate, and Probe
	// whether it was taken for that.
	Lane    Lane
	Verdict Verdict
	Probe   bool

	// GivesRise is an event with its jobs that comes of this outcome, such as the
	// alert about a job that died; nil if there is none. Neither event nor jobs have
	// keys.
	GivesRise *Arrival
}

func (o Outcome) String() string {
	return fmt.Sprintf("job %s attempt %d: %s", o.JobID, o.Attempt.Number, o.Status)
}
