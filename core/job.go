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

// The six statuses of a job.
const (
	Available Status = "available" // due: never tried, brought back by an operator, or its time has come
	Scheduled Status = "scheduled" // waits for its time: a wait of a workflow, or a callback until its timeout
	Running   Status = "running"   // somebody holds its lease
	Completed Status = "completed" // done; final
	Retryable Status = "retryable" // failed, waiting for its next attempt
	Dead      Status = "dead"      // given up on; only an operator brings it back
)

// Statuses lists all of them in the order of a job's life.
func Statuses() []Status {
	return []Status{Available, Scheduled, Running, Completed, Retryable, Dead}
}

// ParseStatus reads a status as users write it.
func ParseStatus(s string) (Status, error) {
	for _, known := range Statuses() {
		if s == string(known) {
			return known, nil
		}
	}
	return "", Refuse(Invalid, "status must be one of available, scheduled, running, completed, retryable, dead; not %q", s)
}

// Finished reports whether a job in this status waits for nothing any more.
func (s Status) Finished() bool { return s == Completed || s == Dead }

// A Lane is the line a job waits in: one per consumer, so that one consumer's
// backlog never stands before another's. It is written "handler/<name>",
// "queue/<name>", "workflow/<name>", or "alert/<id>" for messages to people. The lanes
// of alerts are shown under other names: see [Places].
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

// Filter is the configuration path of the filter of the lane's consumer, such as
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

	// Attempt is how often an attempt was begun in the job's whole life, MaxAttempts the
	// number of the last attempt, or [Unlimited]. Attempt exceeds MaxAttempts while the last
	// attempt is repeated; see Number and Spent.
	Attempt     int
	MaxAttempts int

	// Earlier is how many of the attempts were begun before an operator brought the job back
	// last; 0 if that never happened. MaxAttempts - Earlier is the job's budget.
	Earlier int

	// DueAt is when the job next wants attention: when it may be tried, or, while
	// it is running, when its lease ends. Zero means never.
	DueAt time.Time

	// ScheduledAt is when the newest attempt was due, also if it was given back, or when the
	// job was due that ended without one. It stays when the job ends. It is zero before the
	// first attempt, and if an earlier version of the gateway stored that.
	ScheduledAt time.Time

	// Lease is held by whoever runs the job; empty otherwise.
	Lease Lease

	// RunID and Step are the run and the path of the step there that the job is for, of
	// a job in the lane of a workflow, where a [Ledger] tells them.
	RunID ID
	Step  string

	// Host is that of the place to which an alert is posted, where [Places] tell it.
	Host string

	LastError  string // why the newest attempt failed; empty if none did
	CreatedAt  time.Time
	FinishedAt time.Time // when it became completed or dead; zero before
}

// MaxRepeats is how often the last attempt of a job is repeated because its outcome is
// unknown: its process ended, or its lease did. The job's receiver may have taken it. The
// repeats end, so that an event which kills its gateway does not kill it forever.
const MaxRepeats = 2

// Number is the number of the job's newest attempt, as users see it: a repeat of the last
// attempt has the number of that attempt. It is 0 before the first attempt.
func (j Job) Number() int { return min(j.Attempt, j.MaxAttempts) }

// Round is the number of the job's newest attempt since an operator brought it back last,
// which decides how long to wait for the next one. It is Number if no operator brought it back.
func (j Job) Round() int { return j.Number() - j.Earlier }

// Spent reports whether a job that was just taken is not to be tried but to be settled as
// dead: the lease of its last attempt ended without an outcome, and so did those of
// MaxRepeats repeats. A message of a queue is not repeated, since a consumer that lets its
// lease end has failed. Expired is the error of a spent job.
func (j Job) Spent() bool {
	over := j.Attempt - j.MaxAttempts
	return over > MaxRepeats || over > 0 && j.Lane.Queue() != ""
}

// Expired is the error of a job that is [Job.Spent].
func (j Job) Expired() string {
	if j.Lane.Queue() != "" {
		return LeaseExpired
	}
	return ProcessEnded
}

// The errors of jobs that died because their last attempt never reported back:
// LeaseExpired of a message, ProcessEnded of any other job.
const (
	LeaseExpired = "lease expired"
	ProcessEnded = LeaseExpired + ": the process ended during this attempt three times"
)

// A TakenJob is a job together with the event it is about.
type TakenJob struct {
	Job
	Event Event

	// Bare says that the job comes without its event, since [Quota.Bytes] had no room for it.
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

	// Breaker is the numbers by which a failure moves the gate.
	Breaker Breaker

	// GivesRise is an event with its jobs that comes of this outcome, such as the
	// alert about a job that died; nil if there is none. Neither event nor jobs have
	// keys.
	GivesRise *Arrival
}

func (o Outcome) String() string {
	return fmt.Sprintf("job %s attempt %d: %s", o.JobID, o.Attempt.Number, o.Status)
}
