package core

import (
	"context"
	"time"
)

// The roles of a store. Each method is a transition of the state table, whole or
// not at all, never a row operation; one intake touches events and jobs
// together, so the cut is by role, not by entity. store/storetest holds one
// sub-test per sentence below and is the definition of what a store is.
//
// Errors: a [Refusal] of kind [Unavailable] means that the database could not be
// reached or could not write and that the same call may succeed later; of kind
// [NotFound] that the named row does not exist. Every other error is a defect or
// a misuse.

// MaxTogether is how many arrivals AcceptAll accepts at most.
const MaxTogether = 1000

// An Inbox takes events in.
type Inbox interface {
	// Accept stores an event and the jobs it gives rise to, whole or not at all.
	// When it returns without error, both are on stable storage.
	//
	// An arrival without jobs is stored all the same. Accepting the same arrival
	// again stores nothing and answers as the first time. An arrival whose
	// delivery id its source has already seen is a duplicate: nothing is stored
	// and the receipt names the first event. A job whose key its lane has already
	// seen is left out; if every job of an arrival is left out that way, the
	// arrival is a duplicate as well. Of simultaneous arrivals with the same
	// delivery id or key exactly one is stored.
	//
	// The runs of an arrival are stored with it: pending, in their first epoch, each
	// with its first step, which is ready and receives the event, and its definition,
	// unless that is stored already.
	//
	// An event whose id was made more than a minute after it was received is stored as
	// received at the time in its id. The clock was set back meanwhile, and ids grow on as if
	// it had not been; so events of a time are those with ids of that time.
	Accept(ctx context.Context, a Arrival) (Receipt, error)

	// AcceptAll accepts arrivals as Accept does, one after the other, but in one commit: all of
	// them or none. The receipts are in the order of the arrivals, of which each may repeat an
	// earlier one. Of no arrivals it stores nothing. There are at most MaxTogether.
	AcceptAll(ctx context.Context, arrivals []Arrival) ([]Receipt, error)
}

// A Quota asks for up to N due jobs of a lane.
type Quota struct {
	Lane Lane
	N    int

	// Hold is how long the taken jobs are leased.
	Hold time.Duration

	// Pass is what to show at the lane's gate; nil takes nothing unless it is wide open.
	Pass *Pass

	// Bytes bounds the text of the events that come with the jobs of a queue, in bytes
	// together. Zero means no bound.
	Bytes int
}

// A Worklist hands out due work and records what became of it.
type Worklist interface {
	// Due tells when the next job of each lane is due: in the past if one is due
	// already, the end of the lease for a running one. It tells how the lanes' gates
	// stand as well. Lanes in which nothing waits and whose gate is the zero Gate are
	// absent. It writes nothing.
	Due(ctx context.Context, lanes []Lane) (map[Lane]Outlook, error)

	// Take leases due jobs of the given lanes, each lane's longest due first and
	// never more than its quota, until now + Hold, and counts the attempt. They
	// come with their events, lane by lane in the order asked. A job is due once
	// its due time has passed or is now; a running job whose lease is over is due
	// like any other. No job is held under two leases at once, whoever takes at
	// the same time. Taking from an empty or unknown lane, or with a quota of
	// zero, brings nothing.
	//
	// A running job with all its attempts behind it is taken too, so that its
	// end is recorded: see [Job.Spent].
	//
	// A job of a workflow comes with the situation of its step.
	//
	// Jobs beyond Quota.Bytes come without their events, and the caller gives them back: see
	// [TakenJob.Bare]. The first job comes with its event however large the event is.
	//
	// Nothing is taken without a Pass from a lane whose breaker is open or has closed
	// less than RampTime ago. With a Pass that has an interval, jobs are taken only
	// while the breaker is closed and if the gate's next start (see [Gate.StartAt]) is
	// at most Pass.Ahead away. The first of them is to start then, each further one an
	// interval later, and the gate's NextAt comes to be an interval after the last: so
	// no two that are taken with a Pass start closer, whoever takes them. Nothing is
	// taken if Pass.Closed is not the gate's ClosedAt.
	//
	// With a Pass for a probe one job is taken, if the breaker is open and
	// [Gate.ProbeAt] has come. Until Pass.Probe later there is no other: of any number
	// who ask at the same time, one gets it.
	Take(ctx context.Context, now time.Time, quotas []Quota) ([]TakenJob, error)

	// Settle ends attempts: each outcome is recorded as an attempt and gives its
	// job the status, due time and error it says. An outcome whose lease is no
	// longer the job's changes nothing, and its job id is returned as lost.
	// Settling the same outcome again changes nothing and is not lost.
	//
	// What an outcome gives rise to is stored in the same commit, if the outcome is.
	//
	// The outcomes' verdicts move the gates of their lanes, in the order given. A
	// success sets Failures back, a failure adds one. The one that makes them at least
	// Breaker.Failures opens the breaker until Breaker.Cooldown after it. While it is
	// open only the outcome of its newest probe counts: a failure keeps it open for
	// another Breaker.Cooldown, a success closes it, and one without a verdict makes
	// room for the next probe at once.
	Settle(ctx context.Context, outcomes ...Outcome) (Settlement, error)

	// CloseBreakers sets the failures of lanes back and closes those of their breakers that
	// are open, as a success of a probe would. It returns the lanes whose breakers it
	// closed, sorted. Closing again at the same time returns the same. The outcome of a
	// probe that is under way counts like that of any other delivery.
	CloseBreakers(ctx context.Context, now time.Time, lanes ...Lane) ([]Lane, error)

	// Release gives taken jobs back untried: their attempt is uncounted and they
	// are due at the given time. A job whose lease is no longer the one it was
	// taken under stays as it is. After a probe that is given back there may be
	// another at the given time.
	Release(ctx context.Context, due time.Time, jobs ...Job) error

	// Recover makes every running job of the lanes due at once, and returns how
	// many there were. It is sound only while the caller is the sole taker of
	// those lanes, as a process that starts on its own database file is.
	Recover(ctx context.Context, now time.Time, lanes []Lane) (int, error)

	// Lapsed returns up to limit running jobs of the lanes whose lease is over and
	// which have no attempt left, each lane's longest over first, with their events. To
	// whoever would take them they are [Job.Spent]; where nobody takes they are found
	// here. It writes nothing, and what else waits in the lanes costs it nothing.
	Lapsed(ctx context.Context, now time.Time, lanes []Lane, limit int) ([]TakenJob, error)

	// Strays tells in which lanes jobs wait that are not among the known ones, and
	// since when: the first time that Strays found them so. A lane that is known at
	// a later call, to whichever process, is no stray any more, and begins anew if it
	// becomes one again. The gates of lanes that have been strays for StrayTime are set
	// back, so that nothing is in the way of who ends their jobs; until then another
	// process may know them, and their gates stay as they are.
	Strays(ctx context.Context, now time.Time, known []Lane) (map[Lane]time.Time, error)
}

// A Counter is where consumers of a queue hand back what they took. What is said of
// refs holds for all its methods: they mean running jobs of the lane, also those whose
// lease is over as long as nobody has taken them since. One with a lease that is no
// longer the job's means nothing, nor does one for a job of another lane, one that
// does not run, or none at all. A job that several refs mean counts once.
type Counter interface {
	// Ack makes the jobs that refs mean completed, and returns how many. Of several
	// that ack a job at the same time one counts it.
	Ack(ctx context.Context, now time.Time, lane Lane, refs []Ref) (int, error)

	// Extend lets the leases of the jobs that refs mean end at another time, later or
	// earlier, and returns how many. They stay the same leases.
	Extend(ctx context.Context, end time.Time, lane Lane, refs []Ref) (int, error)

	// Held returns the jobs that refs mean, with their events, in the order of their
	// ids. It writes nothing.
	Held(ctx context.Context, lane Lane, refs []Ref) ([]TakenJob, error)
}

// A Settlement is what became of outcomes.
type Settlement struct {
	// Lost are the jobs whose outcome came too late: somebody else has taken them.
	Lost []ID

	// Gates are those of the lanes of which an attempt failed or a probe ended, as
	// they stand afterwards.
	Gates map[Lane]Gate
}

// A Mark says up to when the slots of a cron source are dealt with.
type Mark struct {
	Source   string
	Schedule string // its schedule and zone, as [Calendar.Mark] was told
	Until    time.Time
}

// A Calendar remembers how far the cron sources have come, so that a slot which
// became due while nobody looked can be told from one that was fired.
type Calendar interface {
	// Marks returns the marks of those sources that have one. It writes nothing.
	Marks(ctx context.Context, sources []string) (map[string]Mark, error)

	// Mark sets marks, whole or not at all. A mark only moves forward: one that is
	// not later than what is stored for the same schedule changes nothing. With
	// another schedule it replaces what is stored, whatever the times.
	Mark(ctx context.Context, marks ...Mark) error
}

// Limits of a page of a listing.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// MaxDepth bounds what it costs to ask how many jobs wait.
const MaxDepth = 100_000

// An EventFilter selects events. Zero fields select everything. One that was received more
// than a minute after its id was made, which is for its maker to see to, may be left out if
// Since or Until is set.
type EventFilter struct {
	Source, Type string
	Since, Until time.Time // received at or after Since, before Until
	After        ID        // continue below this id
	Limit        int       // 1 to MaxPage; 0 means DefaultPage
}

// A JobFilter selects jobs. Zero fields select everything.
type JobFilter struct {
	Status  Status
	Lane    Lane
	EventID ID

	// Since and Until select jobs that were made at or after Since, before Until, by the
	// time in their ids.
	Since, Until time.Time

	After ID  // continue below this id
	Limit int // 1 to MaxPage; 0 means DefaultPage
}

// A Page is one page of a listing, newest first.
type Page[T any] struct {
	Items []T
	More  bool // whether there are older ones
}

// A Ledger answers questions. A running job whose lease is over at the time of
// asking is shown as retryable, which is what it is. A scheduled job whose time has come is
// shown as available.
type Ledger interface {
	// Event returns one event with its payload.
	Event(ctx context.Context, id ID) (Event, error)

	// Events lists events newest first, without their payloads and headers. Those
	// of [AlertSource] are listed only if the filter asks for them.
	// Following After from page to page shows every event that existed at the
	// first page exactly once, whatever is accepted meanwhile.
	Events(ctx context.Context, f EventFilter) (Page[Event], error)

	// Job returns one job. Of a workflow's, this and Jobs tell the run and step.
	Job(ctx context.Context, id ID) (Job, error)

	// Jobs lists jobs newest first, paged like Events.
	Jobs(ctx context.Context, f JobFilter) (Page[Job], error)

	// Attempts lists the attempts of a job, oldest first; none for an unknown job.
	Attempts(ctx context.Context, job ID) ([]Attempt, error)

	// Depth is the number of jobs that are not finished. It counts up to MaxDepth.
	Depth(ctx context.Context) (int, error)

	// Tallies counts the jobs of lanes, each number up to MaxDepth. Of the jobs of a lane
	// that are not finished it looks at MaxDepth, those that are due first. Lanes
	// without jobs have the zero Tally.
	Tallies(ctx context.Context, now time.Time, lanes []Lane) (map[Lane]Tally, error)

	// Peek returns the jobs of a lane that are due, longest due first, with their
	// events: those that Take would bring, in its order, but as they are. Limit is 1 to
	// MaxPage. The list ends before the job whose event would make it exceed MaxRead, but
	// has one job at least if there is one.
	Peek(ctx context.Context, now time.Time, lane Lane, limit int) ([]TakenJob, error)

	// DeadLetters lists the dead jobs of a lane newest first, with their events, those
	// below the id after if that is set. Limit is as in a JobFilter. A page ends before the
	// job whose event would make it exceed MaxRead, but has one job at least if there is one.
	DeadLetters(ctx context.Context, lane Lane, after ID, limit int) (Page[TakenJob], error)

	// Finished lists jobs that finished at the given time or later, the one that finished
	// first first, of several at the same time the one with the lowest id. Of those at the
	// given time it leaves out the ones up to the id after, if that is set. Limit is as in
	// a JobFilter. Of alerts it lists none.
	Finished(ctx context.Context, since time.Time, after ID, limit int) (Page[Job], error)

	// Completed is the number of completed jobs that are still stored. It counts up to
	// MaxDepth, and beside more than ten times as many dead ones it may be too high.
	Completed(ctx context.Context) (int, error)
}

// A Tally is how many jobs of a lane there are that are not completed.
type Tally struct {
	Pending    int // due, or waiting for their next attempt
	Processing int // held under a lease that is not over
	Dead       int

	// Retryable is how many of the pending ones have failed before, or lost their taker.
	Retryable int

	// Scheduled is how many of the pending ones only wait for their time.
	Scheduled int

	// OldestDue is since when the one that is due longest is due; zero if none is due.
	OldestDue time.Time
}

// Available is how many of the pending ones were not tried yet, or wait no longer for
// their time.
func (t Tally) Available() int { return t.Pending - t.Retryable - t.Scheduled }

// MaxRead is about how many bytes of payloads and headers one [Archive.Read], [Ledger.Peek]
// or [Ledger.DeadLetters] returns.
const MaxRead = 4 << 20

// An Archive gives back what was received.
type Archive interface {
	// Nth returns the id of the nth newest event that the filter selects, n from 1, or of
	// the oldest one if there are fewer; "" if there is none. After and Limit of the
	// filter do not count. It reads as many entries of an index as there are newer events.
	Nth(ctx context.Context, f EventFilter, n int) (ID, error)

	// Read returns events in full, the oldest first: those with the given id or a higher
	// one that the filter selects, at most f.Limit, and no more once MaxRead is reached,
	// but one at least if there is one. More tells whether there are others. After of the
	// filter does not count.
	Read(ctx context.Context, from ID, f EventFilter) (Page[Event], error)

	// JobsOf returns the jobs of events, each event's in the order of their ids. Events
	// without jobs are absent.
	JobsOf(ctx context.Context, events []ID) (map[ID][]Job, error)

	// AttemptsOf returns the attempts of jobs, each job's the oldest first. Jobs without
	// attempts are absent. The kept parts of replies are left out.
	AttemptsOf(ctx context.Context, jobs []ID) (map[ID][]Attempt, error)
}

// TurnHorizon is by how much the clock of whoever took a turn may be ahead of one's own.
const TurnHorizon = time.Hour

// Upkeep is what operators and start-up do to a store.
type Upkeep interface {
	// Retry makes dead jobs available at once, with their whole budget of
	// attempts, and returns how many. The attempts of a retried job are counted on from
	// those before, see [Job.Earlier]. A zero id means all dead jobs, those of one
	// lane if lane is set. The job with the given id is due at once, and counts, also if it
	// waits for a later attempt, of which it has as many as before, or for its time. Other jobs that are not
	// dead stay as they are. Every lane that is
	// a stray begins anew, so that jobs which are brought back wait their StrayTime
	// again. Jobs of workflows stay dead: their runs are redriven instead.
	Retry(ctx context.Context, now time.Time, id ID, lane Lane) (int, error)

	// Replay stores new jobs and runs for events that are stored already, and returns how
	// many jobs, those of runs included. Of each arrival only the event's id counts, and
	// its jobs and runs are due now. No job has a key. An event that is not stored gets
	// none. Replaying the same arrivals again stores nothing and returns the same.
	Replay(ctx context.Context, now time.Time, arrivals ...Arrival) (int, error)

	// Turn tells whether it is the caller's turn to do what has this name: of any number
	// who ask, in whatever process, one is told so, and until hold later nobody else. A
	// turn that ends more than TurnHorizon later than one that begins now was taken before
	// the clock was set back, and is over. Names are few and constant.
	Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error)

	// Purge deletes jobs that finished before the given time, with their attempts, runs
	// that finished before it, with their steps and history, and events received before
	// it of which no job and no run is left. It deletes at most limit jobs and as many
	// runs, with their events, and as many other events, the oldest first, and returns
	// how many of all there were. Jobs and runs that are not finished stay, with their
	// events. A delivery id or key is new again once its row is gone. Definitions stay. A
	// gate without failures whose times have all passed before the given one is the zero
	// Gate again. However much there is, a call looks at a bounded part, and the next one
	// goes on from there: more tells whether there is a part that was not looked at.
	Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error)

	// Drain deletes jobs of a lane that are not completed and whose id is below the
	// given one, with their attempts, and returns how many: at most limit, and fewer only
	// if no more are left. Whoever holds one of them holds nothing any more. Their
	// events stay until they are purged.
	Drain(ctx context.Context, lane Lane, below ID, limit int) (int, error)

	// Migrate brings the schema up to date. It may run in several processes at
	// once and any number of times. A database of a newer version is refused.
	Migrate(ctx context.Context) error

	// Schema tells up to which step the schema of the database has come, and up to which
	// Migrate brings it. That of an empty database is at step 0, and one that misses a step
	// at the step before that. A database of a newer version has come further. It changes
	// nothing.
	Schema(ctx context.Context) (have, want int, err error)

	// Rehearse does work of a kind with rows of its own, and deletes these in the same
	// commit. It sends the statements of that work, and fails while they fail. No other
	// caller sees the rows. It ends when ctx is done.
	Rehearse(ctx context.Context, w Work) error

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
}

// Work is a kind of writes on which a gateway lives.
type Work string

// The kinds of work.
const (
	Intake      Work = "intake"      // [Inbox.Accept]: events, their jobs and runs
	Deliveries  Work = "deliveries"  // [Worklist.Take] and [Worklist.Settle]: claims of jobs, attempts, gates
	Transitions Work = "transitions" // [Runs.Transit]: runs, steps, their history, texts and tokens
	Turns       Work = "turns"       // [Upkeep.Turn]
)

// A Store is all of it. Services ask for the roles they use.
type Store interface {
	Inbox
	Worklist
	Counter
	Calendar
	Runs
	Ledger
	Archive
	Chronicle
	Upkeep
	Close() error
}
