package core

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Status is the state of a job. Its values are the words of every interface: configuration,
// API, command line, metrics, logs and store.
type Status string

// The seven statuses of a job.
const (
	Available Status = "available" // due: never tried, brought back by an operator, or its time has come
	Scheduled Status = "scheduled" // waits for its time: a wait of a workflow, or a callback until its timeout
	Waiting   Status = "waiting"   // waits in its line for the jobs before it
	Running   Status = "running"   // a worker or consumer holds its lease
	Completed Status = "completed" // done; final
	Retryable Status = "retryable" // failed, waiting for its next attempt
	Dead      Status = "dead"      // it failed for good; only an operator brings it back
	Canceled  Status = "canceled"  // an operator ended it before it was done; only an operator brings it back
)

// Statuses lists all statuses in the order of a job's life.
func Statuses() []Status {
	return []Status{Available, Scheduled, Waiting, Running, Completed, Retryable, Dead, Canceled}
}

// ParseStatus reads a status as users write it. The error is a [Refusal] of kind [Invalid].
func ParseStatus(s string) (Status, error) {
	for _, known := range Statuses() {
		if s == string(known) {
			return known, nil
		}
	}
	return "", Refuse(Invalid, "status must be one of available, scheduled, waiting, running, completed, retryable, dead, canceled; not %q", s)
}

// Finished reports whether a job in this status is done: no worker takes it again.
func (s Status) Finished() bool { return s == Completed || s == Dead || s == Canceled }

// A Lane is the line in which a job waits. Each consumer has its own, so that the backlog
// of one consumer never delays another. It is written "handler/<name>", "queue/<name>",
// "workflow/<name>", or "alert/<id>" for alerts to people. The lanes of alerts are shown
// under other names: see [Places].
//
// "source/<name>" is the lane of a source. No job is in it: it only has a [Gate], for the hold
// of the source.
type Lane string

const (
	handlerLane  = "handler/"
	queueLane    = "queue/"
	workflowLane = "workflow/"
	alertLane    = "alert/"
	sourceLane   = "source/"
)

// QueueLane returns the lane of the queue with this name.
func QueueLane(name string) Lane { return Lane(queueLane + name) }

// Queue returns the name of the queue whose lane this is, or "" for the lane of any other
// consumer.
func (l Lane) Queue() string {
	name, ok := strings.CutPrefix(string(l), queueLane)
	if !ok {
		return ""
	}
	return name
}

// WorkflowLane returns the lane of the workflow with this name.
func WorkflowLane(name string) Lane { return Lane(workflowLane + name) }

// Workflow returns the name of the workflow whose lane this is, or "" for the lane of any
// other consumer.
func (l Lane) Workflow() string {
	name, ok := strings.CutPrefix(string(l), workflowLane)
	if !ok {
		return ""
	}
	return name
}

// AlertLane returns the lane of the alerts that go to one place. See [Places] for the id.
func AlertLane(id string) Lane { return Lane(alertLane + id) }

// Alert reports whether the lane holds alerts.
func (l Lane) Alert() bool { return strings.HasPrefix(string(l), alertLane) }

// SourceLane returns the lane of the source with this name. It has no jobs, and its gate has
// the hold of the source.
func SourceLane(name string) Lane { return Lane(sourceLane + name) }

// Source returns the name of the source whose lane this is, or "" for the lane of a consumer.
func (l Lane) Source() string {
	name, ok := strings.CutPrefix(string(l), sourceLane)
	if !ok {
		return ""
	}
	return name
}

// HandlerLane returns the lane of the handler with this name.
func HandlerLane(name string) Lane { return Lane(handlerLane + name) }

// Handler returns the name of the handler whose lane this is, or "" for the lane of any
// other consumer.
func (l Lane) Handler() string {
	name, ok := strings.CutPrefix(string(l), handlerLane)
	if !ok {
		return ""
	}
	return name
}

// Consumer returns the name of the lane in the API and the command line: the bare name of a
// handler, and the whole lane of any other consumer or of a source.
func (l Lane) Consumer() string {
	if name := l.Handler(); name != "" {
		return name
	}
	return string(l)
}

// Filter returns the configuration path of the filter of the lane's consumer, such as
// handlers.billing.filter.
func (l Lane) Filter() string {
	if name := l.Queue(); name != "" {
		return "queues." + name + ".filter"
	}
	return "handlers." + l.Handler() + ".filter"
}

// A Lease proves that its holder took a job and that no other process has taken the job
// since. Each Take makes a new one. A write that carries an older one changes nothing.
type Lease string

// Unlimited is the MaxAttempts of a job that never dies, however many attempts fail.
const Unlimited = math.MaxInt32

// A Ref names a job that was taken, by its id and by the lease under which it was taken. A
// Ref without a lease names the job under any lease.
type Ref struct {
	ID    ID
	Lease Lease
}

// A Job is the work that one event means for one consumer.
type Job struct {
	ID      ID
	EventID ID
	Lane    Lane
	Key     string // unique per lane; empty means none
	Line    string // the key of its [Line]; empty means none
	Status  Status

	// Attempt counts the attempts that were begun in the job's whole life. MaxAttempts is
	// the number of the last attempt, or [Unlimited]. Attempt exceeds MaxAttempts while the
	// last attempt is repeated: see Number and Spent.
	Attempt     int
	MaxAttempts int

	// Earlier counts the attempts that were begun before an operator last brought the job
	// back. It is 0 if that never happened. MaxAttempts - Earlier is the job's budget.
	Earlier int

	// DueAt is when the job may be tried next. While the job is running it is when the
	// lease ends. Zero means never.
	DueAt time.Time

	// ScheduledAt is when the newest attempt was due, also if the attempt was given back.
	// For a job that ended without an attempt it is when the job was due. It stays when the
	// job ends. It is zero before the first attempt, and for jobs of versions of the
	// gateway that did not store it. For a job that is Waiting it is the time before which the
	// job is not due, even if it is admitted earlier.
	ScheduledAt time.Time

	// Lease belongs to the worker or consumer that runs the job. It is empty while the job
	// does not run.
	Lease Lease

	// RunID and Step are the run and the path of the step for which the job is, if the job
	// is in the lane of a workflow. Only a [Ledger] sets them.
	RunID ID
	Step  string

	// Host is the host of the place to which an alert is posted. Only [Places] set it.
	Host string

	LastError  string // why the newest attempt failed; empty if no attempt failed
	CreatedAt  time.Time
	FinishedAt time.Time // when it became completed, dead or canceled; zero before
}

// MaxRepeats is how many times the last attempt of a job is repeated while its outcome is
// unknown. The outcome is unknown if the process ended, or the lease did: the receiver may
// have taken the delivery. The repeats are bounded, so that an event that crashes its
// gateway does not crash it forever.
const MaxRepeats = 2

// Number returns the number of the job's newest attempt, as users see it. A repeat of the
// last attempt has the number of that attempt. It is 0 before the first attempt.
func (j Job) Number() int { return min(j.Attempt, j.MaxAttempts) }

// Round returns the number of the job's newest attempt, counted from the last time that an
// operator brought the job back. It decides how long to wait for the next attempt. It
// equals Number if no operator brought the job back.
func (j Job) Round() int { return j.Number() - j.Earlier }

// Spent reports whether a job that was just taken is to be settled as dead, without an
// attempt. It is if the lease of its last attempt ended without an outcome, and the leases
// of MaxRepeats repeats did as well. A message of a queue is not repeated: a consumer that
// lets its lease end has failed. Expired returns the error of a spent job.
func (j Job) Spent() bool {
	over := j.Attempt - j.MaxAttempts
	return over > MaxRepeats || over > 0 && j.Lane.Queue() != ""
}

// Expired returns the error of a job that is [Job.Spent].
func (j Job) Expired() string {
	if j.Lane.Queue() != "" {
		return LeaseExpired
	}
	return ProcessEnded
}

// The errors of jobs that died because their last attempt never got an outcome.
// LeaseExpired is the error of a message, ProcessEnded of any other job.
const (
	LeaseExpired = "lease expired"
	ProcessEnded = LeaseExpired + ": the process ended three times before it stored the result of this attempt"
)

// A TakenJob is a job together with its event.
type TakenJob struct {
	Job
	Event Event

	// Bare says that the job comes without its event, because [Quota.Bytes] had no room for
	// the event.
	Bare bool

	// Unslotted is internal to a store: the job gave its slot of a line away.
	Unslotted bool

	StartAt time.Time // its earliest start; zero if it was taken without a [Pass] that has an interval
	Probe   bool      // it was taken with a Pass for a probe

	// Situation is the situation of the step for which a workflow's job is. It is zero for
	// other jobs, and if the step does not exist any more.
	Situation Situation
}

// An Attempt is the record of one try.
type Attempt struct {
	Number     int    // 1-based
	StatusCode int    // of the reply; 0 if there was none
	Error      string // class and detail; empty if the attempt succeeded
	Response   string // the kept part of the reply, at most MaxResponse bytes
	Duration   time.Duration
	StartedAt  time.Time

	// Exchange is the request and the reply; nil if it was not recorded.
	Exchange *Exchange
}

// MaxResponse is how many bytes of a reply an attempt keeps.
const MaxResponse = 4 << 10

// An Outcome is the end of one attempt: its record, and the next status of its job.
type Outcome struct {
	JobID   ID
	Lease   Lease // as taken
	Attempt Attempt

	// Status is Completed, Retryable or Dead.
	Status Status

	// DueAt is the time of the next try, for a Retryable outcome.
	DueAt time.Time

	// At is the time of settling.
	At time.Time

	// Lane is the lane of the job. Verdict is the result of the attempt for the lane's
	// gate. Probe says that the job was taken as a probe.
	Lane    Lane
	Verdict Verdict
	Probe   bool

	// Breaker has the numbers by which a failure moves the gate.
	Breaker Breaker

	// Line is the line of the job, with the limit that the configuration has now. StopsLine
	// says that a Dead job keeps its slot, so that no further job of its line is admitted.
	Line      Line
	StopsLine bool

	// GivesRise is an event with its jobs that this outcome causes, such as the alert about
	// a job that died. It is nil if there is none. Neither the event nor its jobs have
	// keys.
	GivesRise *Arrival
}

func (o Outcome) String() string {
	return fmt.Sprintf("job %s attempt %d: %s", o.JobID, o.Attempt.Number, o.Status)
}

// A Settlement is the result of [Worklist.Settle].
type Settlement struct {
	// Lost are the jobs whose outcome came too late: another caller has taken them since.
	Lost []ID

	// Gates are the gates of the lanes in which an attempt failed or a probe ended, as they
	// are afterwards.
	Gates map[Lane]Gate
}
