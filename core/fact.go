package core

import "time"

// A Fact is something that happened and is already stored. Services state facts,
// after the commit and once; logs, metrics and traces are made of them.
type Fact interface{ fact() }

// An Observer is told facts. It must not block and must be safe for concurrent
// use.
type Observer func(Fact)

// Accepted: an event was stored.
type Accepted struct {
	Event Event
	Jobs  int           // that were stored
	Asked []NewJob      // for these; fewer were stored if lanes had seen keys of theirs
	Took  time.Duration // from the first byte read to the commit; zero if it was not received

	// Parent is the span that the event was sent in. It is zero if its sender named none,
	// and if no spans are made: see [Event.Headers] for that of its intake.
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

// TurnedAway: a request with an event was not taken, for another reason than [Unverified].
type TurnedAway struct {
	Source string // "" if there is none of that name
	Kind   Kind   // zero if it was nothing that the sender could have done better
}

// ConnectionClosed: a connection of a client was closed because too many were open.
type ConnectionClosed struct {
	Why      ClosedFor
	ClientIP string // of an IPv6 client the first address of its /64 network
}

// A ClosedFor is the reason for closing a connection that its client would have kept.
type ClosedFor string

// Why connections are closed.
const (
	ClosedIdle    ClosedFor = "idle"    // it was the longest idle one, and a new connection needed its place
	ClosedRefused ClosedFor = "refused" // it came when there were too many connections, and none was idle
)

// Confirmed: a subscription to a topic was confirmed.
type Confirmed struct {
	Source, Topic string
}

// Unsubscribed: a topic told that its subscription has ended.
type Unsubscribed struct {
	Source, Topic string
}

// Skipped: slots of a cron source passed while nobody looked, and are too old to be
// made up for.
type Skipped struct {
	Source      string
	Slots       int
	First, Last time.Time
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
	Gate  Gate // as it stands now
	Reset bool // an operator closed it, no outcome
}

// Superseded: an attempt ended after its lease, or after its step was over; its outcome was
// not stored. Why says so of a step, in words for the log; of others it is empty.
type Superseded struct {
	Job Job
	Why string
}

// Released: jobs were given back untried.
type Released struct {
	Jobs int
	Why  string
}

// Pulled: a consumer of a queue received messages, or said what became of them.
type Pulled struct {
	Queue    string
	Action   PullAction
	Messages int
}

// A PullAction is what a consumer did.
type PullAction string

// What consumers do. A message that a nack makes dead is stated as [Settled] as well.
const (
	MessagesReceived PullAction = "received"
	MessagesAcked    PullAction = "acked"
	MessagesRetried  PullAction = "retried" // nacked, with attempts left
	MessagesDead     PullAction = "dead"    // nacked or run out, without
	MessagesExtended PullAction = "extended"
	MessagesReturned PullAction = "returned" // their consumer was gone before it had them
)

// StepMoved: something became of a step of a workflow run.
type StepMoved struct {
	Run     Run
	Event   Event     // that started the run
	Step    Step      // as it is now
	Attempt Attempt   // the call that ended, of a step that makes calls; zero if none did
	DueAt   time.Time // of its next attempt, if there will be one
}

// RunMoved: a workflow run has another status now, or begins anew.
type RunMoved struct {
	Run   Run
	Event Event // that started it; zero if nobody had to know it
}

// CalledIn: a callback came in.
type CalledIn struct {
	Result Callback
	Run    Run    // zero if the token is not good; only its ID is set if the callback was repeated
	Path   string // of the step that waited; "" if the callback was not received
}

// A Callback is the outcome of a callback.
type Callback string

// The outcomes of callbacks.
const (
	CallbackReceived Callback = "received"
	CallbackRepeated Callback = "repeated" // it was received before, with the same body
	CallbackUnknown  Callback = "unknown"  // its token is not, or no longer, good
)

// FilterFailed: the filter of a consumer gave no answer about a stored event. The consumer
// got no job for the event; a replay evaluates the filter again.
type FilterFailed struct {
	Event Event
	Undecided
}

// Recovered: jobs of an earlier process were made due again at start.
type Recovered struct {
	Jobs int
}

// Purged: records that were over for long enough are deleted.
type Purged struct {
	Rows int           // jobs, runs and events
	Took time.Duration // pauses included
	More bool          // are left, for the next pass
}

// Replayed: an operator gave a stored event to those who want it now.
type Replayed struct {
	Event Event
	Asked []NewJob // all of them were stored
}

// Revived: an operator brought dead jobs back, or had one tried before its time.
type Revived struct {
	ID    ID   // the one job; "" if it was all those of a lane
	Lane  Lane // "" if it was all jobs
	Jobs  int
	Early bool // the one job was not dead, but waited for its next attempt
}

// Drained: an operator deleted the messages of a queue.
type Drained struct {
	Queue    string
	Messages int
}

// Reloaded: a configuration was read again while the process runs.
type Reloaded struct {
	From   string // its path or URL, without credentials
	Result ReloadResult
	Err    error // why it was ignored; nil if it is followed
}

// A ReloadResult is what became of a configuration.
type ReloadResult string

// What becomes of one. Whatever is ignored leaves the one before as it was.
const (
	ReloadApplied     ReloadResult = "applied"
	ReloadUnchanged   ReloadResult = "unchanged"   // it is the one that is followed
	ReloadInvalid     ReloadResult = "invalid"     // ignored: it has errors
	ReloadForbidden   ReloadResult = "forbidden"   // ignored: it changes what a running process cannot or must not
	ReloadUnreachable ReloadResult = "unreachable" // nothing could be read
)

// Troubled: something failed that will be tried again by itself.
type Troubled struct {
	Doing string // "take", "settle", ...
	Err   error
}

// ClocksDiffer: the database's clock is a second or more from the machine's, or that has
// changed by so much since the last such fact. Stored times are the database's.
type ClocksDiffer struct {
	Ahead time.Duration // of the database's clock; below a second either way if the clocks agree again
}

// DatabaseClockJumped: the database's clock is not where it was expected. It was set, or the
// database is on another machine.
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
func (Superseded) fact()          {}
func (Released) fact()            {}
func (Purged) fact()              {}
func (Recovered) fact()           {}
func (Replayed) fact()            {}
func (Revived) fact()             {}
func (Drained) fact()             {}
func (Reloaded) fact()            {}
func (StepMoved) fact()           {}
func (RunMoved) fact()            {}
func (CalledIn) fact()            {}
func (Pulled) fact()              {}
func (Troubled) fact()            {}
func (FilterFailed) fact()        {}
