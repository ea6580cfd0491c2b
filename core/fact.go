package core

import "time"

// A Fact is something that happened and is already stored. Services state a fact once,
// after the commit. Logs, metrics and traces are made from facts.
type Fact interface{ fact() }

// An Observer receives facts. It must not block and must be safe for concurrent use.
type Observer func(Fact)

// Accepted: an event was stored.
type Accepted struct {
	Event Event
	Jobs  int           // number of stored jobs
	Asked []NewJob      // the requested jobs; fewer are stored if lanes had seen their keys
	Took  time.Duration // from the first byte read to the commit; zero if it was not received

	// Parent is the span that the sender named, as the parent of the event's intake. It is
	// zero if the sender named none, and if no spans are made. [Event.Headers] has the span
	// of the intake itself.
	Parent Span
}

// Repeated: an event was recognised as a duplicate and left out.
type Repeated struct {
	Source, Type string
	First        ID // the event it repeats
}

// Unverified: an event was refused because its sender could not be verified.
type Unverified struct {
	Source, Reason, ClientIP string
}

// TurnedAway: a request with an event was refused, for another reason than [Unverified].
type TurnedAway struct {
	Source string // "" if no source has the requested name
	Kind   Kind   // zero if the sender did nothing wrong
}

// ConnectionClosed: a connection of a client was closed because too many were open.
type ConnectionClosed struct {
	Why      ClosedFor
	ClientIP string // of an IPv6 client the first address of its /64 network
}

// A ClosedFor is the reason for closing a connection that its client would have kept open.
type ClosedFor string

// The reasons for closing connections.
const (
	ClosedIdle    ClosedFor = "idle"    // it was the longest idle one, and a new connection needed its place
	ClosedRefused ClosedFor = "refused" // it came when there were too many connections, and none was idle
)

// Confirmed: a subscription to a topic was confirmed.
type Confirmed struct {
	Source, Topic string
}

// Unsubscribed: a topic reported that its subscription has ended.
type Unsubscribed struct {
	Source, Topic string
}

// Skipped: slots of a cron source passed while no process watched the schedule, and they
// are too old to be fired now; or they passed while an operator held the source.
type Skipped struct {
	Source      string
	Slots       int
	First, Last time.Time
	Held        bool // the source was held
}

// Settled: an attempt ended and its outcome is stored.
type Settled struct {
	Job     Job // as taken
	Event   Event
	Outcome Outcome
}

// BreakerMoved: a circuit breaker opened or closed.
type BreakerMoved struct {
	Lane  Lane
	Gate  Gate // after the move
	Reset bool // an operator closed it, not an outcome
}

// LaneHeld: an operator held a lane, also that of a source, or changed the end or the reason of its hold.
type LaneHeld struct {
	Hold Hold
}

// LaneReleased: an operator ended the hold of a lane.
type LaneReleased struct {
	Lane Lane
}

// LineSkipped: an operator let the line of a dead job go on.
type LineSkipped struct {
	Job Job
}

// Superseded: an attempt ended after its lease, or after its step was over, so its outcome
// was not stored. Why gives the reason for the log if the job is for a step. It is empty
// for other jobs.
type Superseded struct {
	Job Job
	Why string
}

// Released: a worker gave jobs back untried.
type Released struct {
	Jobs int
	Why  string
}

// Pulled: a consumer of a queue received, acknowledged, nacked or extended messages.
type Pulled struct {
	Queue    string
	Action   PullAction
	Messages int
}

// A PullAction is the kind of a consumer's request.
type PullAction string

// The actions of consumers. A message that a nack makes dead is stated as [Settled] as
// well.
const (
	MessagesReceived PullAction = "received"
	MessagesAcked    PullAction = "acked"
	MessagesRetried  PullAction = "retried" // nacked, with attempts left
	MessagesDead     PullAction = "dead"    // nacked without attempts left, or their last lease ended
	MessagesExtended PullAction = "extended"
	MessagesReturned PullAction = "returned" // given back because the consumer disconnected before the response was written
)

// StepMoved: the status of a step of a workflow run changed.
type StepMoved struct {
	Run     Run
	Event   Event     // that started the run
	Step    Step      // after the change
	Attempt Attempt   // the call that ended, of a step that makes calls; zero if no call ended
	DueAt   time.Time // of its next attempt, if there will be one
}

// RunMoved: the status of a workflow run changed, or the run was redriven.
type RunMoved struct {
	Run   Run
	Event Event // that started the run; zero if this process did not read it
}

// CalledIn: a callback request arrived.
type CalledIn struct {
	Result Callback
	Run    Run    // zero if the token is not valid; only its ID is set if the callback was repeated
	Path   string // of the waiting step; "" if the callback was not received
}

// A Callback is the outcome of a callback.
type Callback string

// The outcomes of callbacks.
const (
	CallbackReceived Callback = "received"
	CallbackRepeated Callback = "repeated" // it was received before, with the same body
	CallbackUnknown  Callback = "unknown"  // its token is not valid, or no longer
)

// FilterFailed: the filter of a consumer failed with an error for a stored event. The
// consumer got no job for the event. A replay evaluates the filter again.
type FilterFailed struct {
	Event Event
	Undecided
}

// Recovered: at its start a process made the jobs of an earlier process due again.
type Recovered struct {
	Jobs int
}

// Purged: old finished records were deleted.
type Purged struct {
	Rows int           // jobs, runs and events
	Took time.Duration // pauses included
	More bool          // whether old records are left, for the next pass
}

// Replayed: an operator had a stored event matched against the consumers of the present
// configuration, which got new jobs.
type Replayed struct {
	Event Event
	Asked []NewJob // all of them were stored
}

// EventCanceled: an operator ended the jobs of an event that waited, and its pending runs.
type EventCanceled struct {
	ID      ID
	Jobs    int // that were canceled, without the jobs of workflows
	Running int // jobs that were left alone, because a worker or consumer holds them
	Runs    int // that were canceled
}

// Revived: an operator brought dead jobs back or a canceled one, or had a waiting job tried early.
type Revived struct {
	ID       ID   // of the only job; "" if all dead jobs of a lane were revived
	Lane     Lane // "" if the dead jobs of all lanes were revived
	Jobs     int
	Early    bool // the only job was neither dead nor canceled, but waited for its next attempt
	Canceled bool // the only job was canceled
}

// OperationBegun: an operator began an operation.
type OperationBegun struct {
	Operation Operation
}

// OperationEnded: an operation finished or failed, or an operator ended it.
type OperationEnded struct {
	Operation Operation
}

// Drained: an operator deleted the messages of a queue.
type Drained struct {
	Queue    string
	Messages int
}

// Reloaded: a running process read its configuration again.
type Reloaded struct {
	By     ReloadCause
	From   string // path or URL of the configuration, without credentials
	Result ReloadResult
	Err    error // the reason for ignoring it; nil if it is followed
}

// A ReloadCause is why a process reads its configuration again.
type ReloadCause string

// The causes.
const (
	BySignal ReloadCause = "signal" // SIGHUP, which a person or a program sent
	ByChange ReloadCause = "change" // the document at an address changed, or could not be read
)

// A ReloadResult is the result of reading a configuration again.
type ReloadResult string

// The results of a reload. Unless it is applied, the process keeps its present
// configuration.
const (
	ReloadApplied     ReloadResult = "applied"
	ReloadUnchanged   ReloadResult = "unchanged"   // it equals the present configuration
	ReloadInvalid     ReloadResult = "invalid"     // ignored: it has errors
	ReloadForbidden   ReloadResult = "forbidden"   // ignored: a running process cannot or must not make this change
	ReloadUnreachable ReloadResult = "unreachable" // the configuration could not be read
)

// Troubled: an operation failed, and the service will try it again.
type Troubled struct {
	Doing string // "take", "settle", ...
	Err   error
}

// ClocksDiffer: the database's clock and the machine's clock differ by a second or more, or
// their difference changed by a second or more since the last such fact. Stored times are
// the database's.
type ClocksDiffer struct {
	Ahead time.Duration // of the database's clock; below a second either way if the clocks agree again
}

// DatabaseClockJumped: the database's clock shows another time than expected. It was set,
// or the database moved to another machine.
type DatabaseClockJumped struct {
	By time.Duration // negative if it was set back
}

func (Accepted) fact()            {}
func (Repeated) fact()            {}
func (Unverified) fact()          {}
func (TurnedAway) fact()          {}
func (ConnectionClosed) fact()    {}
func (ClocksDiffer) fact()        {}
func (DatabaseClockJumped) fact() {}
func (Confirmed) fact()           {}
func (Unsubscribed) fact()        {}
func (Skipped) fact()             {}
func (Settled) fact()             {}
func (BreakerMoved) fact()        {}
func (LaneHeld) fact()            {}
func (LaneReleased) fact()        {}
func (LineSkipped) fact()         {}
func (Superseded) fact()          {}
func (Released) fact()            {}
func (Purged) fact()              {}
func (Recovered) fact()           {}
func (Replayed) fact()            {}
func (EventCanceled) fact()       {}
func (Revived) fact()             {}
func (OperationBegun) fact()      {}
func (OperationEnded) fact()      {}
func (Drained) fact()             {}
func (Reloaded) fact()            {}
func (StepMoved) fact()           {}
func (RunMoved) fact()            {}
func (CalledIn) fact()            {}
func (Pulled) fact()              {}
func (Troubled) fact()            {}
func (FilterFailed) fact()        {}
