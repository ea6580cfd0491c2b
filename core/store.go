package core

import (
	"context"
	"time"
)

// The roles of a store. Each method is a transition of the state table, whole or not at
// all, and never a row operation. One intake touches events and jobs together, so the cut
// is by role and not by entity. store/storetest has one sub-test for each sentence below.
// That suite defines a store.
//
// Errors: a [Refusal] of kind [Unavailable] means that the database could not be reached or
// could not write, and that the same call may succeed later. A Refusal of kind [NotFound]
// means that the named row does not exist. Every other error is a defect or a misuse.

// MaxTogether is how many arrivals AcceptAll accepts at most.
const MaxTogether = 1000

// An Inbox stores events.
type Inbox interface {
	// Accept stores an event with its jobs, whole or not at all. When it returns without
	// error, both are on stable storage.
	//
	// An arrival without jobs is stored as well. Accepting the same arrival again stores
	// nothing and answers as the first time. A delayed job is stored with status Scheduled,
	// and no Take gets it before its time. An arrival is a duplicate if its source has
	// already seen its delivery id: nothing is stored, and the receipt names the first
	// event. A job is left out if its lane has already seen its key; if every job of an
	// arrival is left out, the arrival is a duplicate as well. Of simultaneous arrivals
	// with the same delivery id or key, exactly one is stored.
	//
	// A job of a line is admitted if its line has a free slot and no job waits in it. Any
	// other job of a line is stored with status Waiting at the end of its line, and no Take
	// gets it before it is admitted. The jobs of a line are in the order of their commits.
	//
	// The runs of an arrival are stored with it: pending, in their first epoch, each with
	// its ready first step, which receives the event, and with its definition, unless
	// that is stored already.
	//
	// If an event's id was made more than a minute after the event was received, the
	// event is stored as received at the time in its id. The clock was set back between
	// the two times, and ids grow on as if it had not been: so the events of a period are
	// the events with ids of that period.
	Accept(ctx context.Context, a Arrival) (Receipt, error)

	// AcceptAll accepts arrivals as Accept does, one after the other, but in one commit:
	// all of them or none. The receipts are in the order of the arrivals, and an arrival
	// may repeat an earlier one of the same call. Without arrivals it stores nothing. The
	// caller passes at most MaxTogether arrivals.
	AcceptAll(ctx context.Context, arrivals []Arrival) ([]Receipt, error)
}

// An Express stores events whose jobs are taken at once.
type Express interface {
	// AcceptAndTake accepts an arrival as Accept does, and takes jobs of it in the same commit. holds
	// has these jobs, each with how long it is leased from now on. They come as from Take.
	//
	// A job is taken if a Take without a Pass would take it now. A job with a key, a line or a
	// delay is not taken, and neither is a job of a workflow. Jobs that are not taken are stored
	// as by Accept. Nothing is taken of an arrival that is a duplicate, or that was accepted before.
	//
	// If the error leaves open whether the arrival was stored, the jobs that may have been taken
	// come with it. Release gives back those that were.
	AcceptAndTake(ctx context.Context, now time.Time, a Arrival, holds map[ID]time.Duration) (Receipt, []TakenJob, error)
}

// A Quota asks for up to N due jobs of a lane.
type Quota struct {
	Lane Lane
	N    int

	// Hold is how long the taken jobs are leased.
	Hold time.Duration

	// Pass is shown at the lane's gate. With nil, jobs are taken only through a closed gate
	// whose breaker is not in its [RampTime].
	Pass *Pass

	// Lines is the limit of the lane's lines; 0 if the lane has none. See [Line].
	Lines int

	// Bytes bounds the text of the events that come with the jobs of a queue, in bytes
	// together. Zero means no bound.
	Bytes int
}

// A Worklist leases due work and records its outcomes.
type Worklist interface {
	// Due returns when the next job of each lane is due: in the past if a job is due
	// already, and the end of the lease for a running job. It returns the gates of the
	// lanes as well. A lane is absent if no job waits in it and its gate is the zero
	// Gate. Once a Take has met a job of a held source, the end of that hold counts as the
	// job's due time. It writes nothing.
	Due(ctx context.Context, lanes []Lane) (map[Lane]Outlook, error)

	// Take leases due jobs of the given lanes until now + Hold, the longest due of each
	// lane first and never more than its quota, and counts their attempts. The jobs come
	// with their events, lane by lane in the requested order. A job is due once its due
	// time has passed or is now; a running job whose lease is over is due like any other.
	// No job is held under two leases at once, however many callers take at the same
	// time. Taking from an empty or unknown lane, or with a quota of zero, returns no
	// jobs.
	//
	// A running job whose last attempt is over is taken too, so that its end is recorded:
	// see [Job.Spent].
	//
	// A job of a workflow comes with the situation of its step.
	//
	// Jobs beyond Quota.Bytes come without their events, and the caller releases them:
	// see [TakenJob.Bare]. The first job comes with its event however large the event is.
	//
	// No job is taken whose event came from a held source.
	//
	// Nothing is taken from a lane that is held. Nothing is taken without a Pass from a lane
	// whose breaker is open or has closed less than RampTime ago, nor from one whose hold has
	// ended less than RampTime ago, unless it is a queue's. With a Pass that has an interval,
	// jobs are taken only while the breaker is closed and the gate's next start (see
	// [Gate.StartAt]) is at most Pass.Ahead away. The first of the jobs is to start then and each further one an
	// interval later, and the gate's NextAt becomes an interval after the last start: so
	// no two jobs that any callers take with a Pass start closer together. Nothing is
	// taken if Pass.Closed is not the gate's ClosedAt.
	//
	// With Quota.Lines a job that gave its slot away is taken only if its line has a free slot
	// for it. Else it waits at the front of its line, and its attempt does not count.
	//
	// With a Pass for a probe one job is taken, if the breaker is open and [Gate.ProbeAt]
	// has come. No other probe is taken until Pass.Probe later: of any number of
	// simultaneous callers, one gets the job.
	Take(ctx context.Context, now time.Time, quotas []Quota) ([]TakenJob, error)

	// Settle ends attempts: each outcome is recorded as an attempt and gives its job the
	// status, due time and error it says. An outcome whose lease is no longer the job's
	// changes nothing, and its job id is returned as lost. Settling the same outcome
	// again changes nothing and is not lost.
	//
	// The event and jobs in GivesRise are stored in the same commit, if the outcome is
	// stored.
	//
	// A job that ends gives its slot to the next job of its line, which is due at once or when
	// its delay is over. A job that is to be retried keeps its slot if the limit of its line
	// is 1, and gives it away otherwise. A dead job keeps its slot if the outcome says that it
	// stops its line.
	//
	// The outcomes' verdicts move the gates of their lanes, in the order given. A success
	// resets Failures to 0, and a failure adds 1. The failure that makes them at least
	// Breaker.Failures opens the breaker for Breaker.Cooldown. Each opening sets OpenedAt and
	// counts in Openings, and both stay when a probe fails and when the breaker closes, so
	// that no opening is missed by a process that looks later. While the breaker is open,
	// only the outcome of its newest probe counts: a failure keeps the breaker open for
	// another Breaker.Cooldown, a success closes it, and an outcome without a verdict
	// permits the next probe at once.
	Settle(ctx context.Context, outcomes ...Outcome) (Settlement, error)

	// CloseBreakers resets the failures of lanes to 0 and closes their open breakers, as
	// the success of a probe would. It returns the lanes whose breakers it closed,
	// sorted. Closing again at the same time returns the same. The outcome of a probe
	// that is under way then counts like the outcome of any other delivery.
	CloseBreakers(ctx context.Context, now time.Time, lanes ...Lane) ([]Lane, error)

	// Release gives taken jobs back untried: their attempt is uncounted, and they are due
	// at the given time. A job stays as it is if its lease is no longer the lease under
	// which it was taken. After a probe is released, the next probe may be taken at the
	// given time.
	Release(ctx context.Context, due time.Time, jobs ...Job) error

	// Recover makes every running job of the lanes due at once, and returns the number of
	// these jobs. The caller must be the only process that takes from those lanes, such
	// as a process that starts on its own database file.
	Recover(ctx context.Context, now time.Time, lanes []Lane) (int, error)

	// Lapsed returns up to limit running jobs of the lanes, with their events, whose
	// lease is over and whose last attempt is used up, the longest over of each lane
	// first. A Take would return these jobs as [Job.Spent]; Lapsed finds them in lanes
	// from which no process takes. It writes nothing, and other jobs in the lanes do not
	// make it slower.
	Lapsed(ctx context.Context, now time.Time, lanes []Lane, limit int) ([]TakenJob, error)

	// Strays returns the lanes in which jobs wait and which are not among the known ones,
	// each with the time at which Strays first found it so. A lane is no stray any more
	// once any process passes it as known, and its time begins anew if it becomes a stray
	// again. Strays resets the gates of lanes that have been strays for StrayTime, so
	// that no gate delays the worker that ends their jobs, except that lanes stay held;
	// before that the gates stay as they are, since another process may know the lanes.
	Strays(ctx context.Context, now time.Time, known []Lane) (map[Lane]time.Time, error)
}

// A Counter settles and extends the jobs that consumers of a queue have received. For all
// its methods, a ref means a running job of the lane, also after the job's lease is over,
// until another caller takes the job. A ref is ignored if its lease is stale, if its job
// is in another lane or not running, or if the job does not exist. A job that several
// refs mean counts once.
type Counter interface {
	// Ack completes the jobs that refs mean, and returns their number. Of several callers
	// that ack a job at the same time, one counts it.
	Ack(ctx context.Context, now time.Time, lane Lane, refs []Ref) (int, error)

	// Extend moves the ends of the leases of the jobs that refs mean, to a later or an
	// earlier time, and returns the number of these jobs. The leases keep their values.
	Extend(ctx context.Context, end time.Time, lane Lane, refs []Ref) (int, error)

	// Held returns the jobs that refs mean, with their events, in the order of their ids.
	// It writes nothing.
	Held(ctx context.Context, lane Lane, refs []Ref) ([]TakenJob, error)
}

// A Mark says up to when the slots of a cron source are dealt with. Package alert keeps marks
// of its own beside them. Their names contain a slash, as no name of a source does.
type Mark struct {
	Source   string
	Schedule string // its schedule and zone, as [Calendar.Mark] received them
	Until    time.Time
}

// A Calendar stores up to when the slots of the cron sources are dealt with, so that a
// process finds the slots that became due while no process watched.
type Calendar interface {
	// Marks returns the marks of the given sources; a source without a mark is absent. It
	// writes nothing.
	Marks(ctx context.Context, sources []string) (map[string]Mark, error)

	// Mark sets marks, whole or not at all. A mark only moves forward: a mark that is not
	// later than the stored mark for the same schedule changes nothing. A mark with
	// another schedule replaces the stored mark, also if it is earlier.
	Mark(ctx context.Context, marks ...Mark) error
}

// A Ledger answers queries about events and jobs. A running job whose lease is over at
// the time of the query is shown as retryable, since any worker may take it. A scheduled
// job whose time has come is shown as available.
type Ledger interface {
	// Event returns one event with its payload.
	Event(ctx context.Context, id ID) (Event, error)

	// Events lists events newest first, without their payloads and headers. The events of
	// [AlertSource] are listed only if the filter asks for them. A caller that follows
	// After from page to page sees every event that existed at the first page exactly
	// once, also while events are accepted. A filter with a DeliveryID selects at most one
	// event of each source.
	Events(ctx context.Context, f EventFilter) (Page[Event], error)

	// Job returns one job. For a job of a workflow, this method and Jobs return the run
	// and step as well.
	Job(ctx context.Context, id ID) (Job, error)

	// Jobs lists jobs newest first, paged like Events.
	Jobs(ctx context.Context, f JobFilter) (Page[Job], error)

	// Attempts lists the attempts of a job, oldest first; an unknown job has none. It leaves out the
	// first skip of them, and returns at most limit, 1 to MaxPage. The exchanges that were recorded
	// come with them, without the kept parts of bodies.
	Attempts(ctx context.Context, job ID, skip, limit int) ([]Attempt, error)

	// SourcesOf returns the sources of events. Events that are not stored are absent.
	SourcesOf(ctx context.Context, events []ID) (map[ID]string, error)

	// Failures lists the jobs that are dead or shown as retryable, newest first, with the first
	// MaxFailureText bytes of their errors. More says whether there are older ones. Of the
	// unfinished jobs of a lane it reads the jobs that are due last, up to FailureReach; More is
	// true as well if a lane has more of them.
	Failures(ctx context.Context, f FailureFilter) (Page[FailedJob], error)

	// Finished lists the jobs that finished at the given time or later, in the order of
	// finishing, and jobs of the same time in the order of their ids. If after is set, it
	// leaves out the jobs of exactly the given time up to that id. Limit is as in a
	// JobFilter. It lists no alerts.
	Finished(ctx context.Context, since time.Time, after ID, limit int) (Page[Job], error)
}

// A Backlog counts jobs by lane and state, and shows the jobs that wait in a lane. It shows
// statuses as a [Ledger] does.
type Backlog interface {
	// Depth is the number of jobs that are not finished. It counts up to MaxDepth.
	Depth(ctx context.Context) (int, error)

	// Tallies counts the unfinished jobs of lanes, each number up to MaxDepth. It reads at
	// most MaxDepth unfinished jobs of a lane, the first due of them. Lanes without such jobs
	// have the zero Tally.
	Tallies(ctx context.Context, now time.Time, lanes []Lane) (map[Lane]Tally, error)

	// Ended counts the dead and the canceled jobs of lanes, each number up to MaxDepth.
	// Lanes without such jobs have the zero Ended.
	Ended(ctx context.Context, lanes []Lane) (map[Lane]Ended, error)

	// Peek returns the jobs of a lane that are due, longest due first, with their events:
	// the jobs that Take would return, in its order, without leasing them. Limit is 1 to
	// MaxPage. The list ends before the job whose event would make it exceed MaxRead, but
	// has at least one job if any is due.
	Peek(ctx context.Context, now time.Time, lane Lane, limit int) ([]TakenJob, error)

	// DeadLetters lists the dead jobs of a lane newest first, with their events; if after
	// is set, only jobs below that id. Limit is as in a JobFilter. A page ends before the
	// job whose event would make it exceed MaxRead, but has at least one job if there is
	// any.
	DeadLetters(ctx context.Context, lane Lane, after ID, limit int) (Page[TakenJob], error)

	// Completed is the number of completed jobs that are still stored. It counts up to
	// MaxDepth.
	Completed(ctx context.Context) (int, error)
}

// MaxRead is about how many bytes of payloads and headers one [Archive.Read], [Archive.ReadNewest],
// [Backlog.Peek] or [Backlog.DeadLetters] returns.
const MaxRead = 4 << 20

// An Archive returns stored events in full, with their jobs and attempts.
type Archive interface {
	// Nth returns the id of the nth newest event that the filter selects, n from 1, or
	// the id of the oldest one if there are fewer; "" if the filter selects none. Nth
	// ignores the filter's After and Limit. It reads as many entries of an index as there
	// are newer events.
	Nth(ctx context.Context, f EventFilter, n int) (ID, error)

	// Read returns events in full, the oldest first: the selected events with the given
	// id or a higher one, at most f.Limit of them and no more once they have MaxRead
	// bytes, but at least one if there is any. More says whether there are further
	// events. Read ignores the filter's After.
	Read(ctx context.Context, from ID, f EventFilter) (Page[Event], error)

	// ReadNewest returns events in full, the newest first: the selected events below f.After,
	// or all of them if that is empty, with the bounds of Read.
	ReadNewest(ctx context.Context, f EventFilter) (Page[Event], error)

	// Newest returns the highest id of the stored events, jobs and runs, and the latest time at
	// which one of the stored jobs and runs finished. They are "" and zero if nothing is stored,
	// or finished.
	Newest(ctx context.Context) (id ID, finished time.Time, err error)

	// JobsOf returns the jobs of events, each event's in the order of their ids. Events
	// without jobs are absent.
	JobsOf(ctx context.Context, events []ID) (map[ID][]Job, error)

	// AttemptsOf returns the attempts of jobs, each job's the oldest first. Jobs without
	// attempts are absent. The kept parts of replies and the exchanges are left out.
	AttemptsOf(ctx context.Context, jobs []ID) (map[ID][]Attempt, error)

	// SentBody returns the kept part of the body that an attempt of a job sent. It is "" if none
	// was kept, or if there is no such attempt. Of several attempts with the number, the newest
	// one counts.
	SentBody(ctx context.Context, job ID, number int) (string, error)
}

// TurnHorizon bounds how far the clock of the process that took a turn may be ahead of the
// reader's clock.
const TurnHorizon = time.Hour

// Operations are the changes that operators ask for.
type Operations interface {
	// Retry makes dead jobs available at once, with their whole budget of attempts, and
	// returns how many. The attempts of a retried job are numbered on from the earlier
	// ones: see [Job.Earlier]. An empty id means all dead jobs, or the dead jobs of one
	// lane if lane is set. The job with the given id is due at once, and counts, also if
	// it waits for a later attempt or for its time: it keeps the attempts that it had
	// left. The job with the given id is revived like a dead one if it is canceled. Any
	// other job that is not dead stays as it is. A dead job that stops its line goes on with
	// its slot, and any other job of a line enters the line at its end. The StrayTime of every stray
	// lane begins anew, so that revived jobs wait for all of it. Jobs of workflows stay
	// dead, because their runs are redriven instead.
	Retry(ctx context.Context, now time.Time, id ID, lane Lane) (int, error)

	// Replay stores new jobs and runs for events that are stored already, and returns the
	// number of jobs, including the jobs of runs. Of each arrival's event it reads only
	// the id, and the arrival's jobs and runs are due now. No job has a key. An event
	// that is not stored gets no jobs. Replaying the same arrivals again stores nothing
	// and returns the same.
	Replay(ctx context.Context, now time.Time, arrivals ...Arrival) (int, error)

	// Cancel gives the waiting jobs of an event the status Canceled, and returns how many
	// jobs of the event it canceled, how many run, and how many had finished before. A job
	// waits if it is available, scheduled, waiting or retryable, or if its lease is over.
	// Running jobs whose lease is not over stay as they are. The slots of canceled jobs go to
	// the next jobs of their lines. The jobs of workflows stay as they
	// are and are not counted, because their runs are canceled instead. Of a Cancel and a
	// Take at the same time, exactly one gets each job. A canceled job has no lease, so
	// that no outcome, ack or release counts afterwards. Canceling again changes nothing,
	// and returns the same at the same time. A missing event is refused as NotFound.
	Cancel(ctx context.Context, now time.Time, event ID) (Cancellation, error)

	// Drain deletes jobs of a lane that are neither completed nor canceled and whose id is
	// below the given one, with their attempts, and returns the number of deleted jobs: at
	// most limit, and fewer only if no more are left. The slots of deleted jobs go to the jobs
	// of their lines that are left. A lease of a deleted job is void. The events of
	// the jobs stay until they are purged.
	Drain(ctx context.Context, lane Lane, below ID, limit int) (int, error)
}

// A Cancellation is the result of [Operations.Cancel]. It counts jobs of the event, except
// jobs of workflows.
type Cancellation struct {
	Canceled int // the call ended them
	Running  int // a worker or consumer holds them; they were left alone
	Finished int // they were completed, dead or canceled before the call
}

// Holds stops lanes and lets them go on.
type Holds interface {
	// Hold holds a lane from now on, until the given time or, if that is zero, until a
	// person ends it. Jobs that were taken before stay taken, and their outcomes count. A
	// lane that is held already keeps the time since which it is held, and gets the new end
	// and reason. Holding again with the same arguments changes nothing.
	//
	// The lane of a source, such as "source/shop", holds the jobs of its events in every lane,
	// and no others. They keep their statuses, due times and attempts.
	Hold(ctx context.Context, now time.Time, lane Lane, until time.Time, reason string) error

	// Unhold ends the holds of lanes as if their breakers closed now, and returns the lanes
	// that it released, sorted. Unholding again at the same time returns the same.
	//
	// The jobs of a source that is not held any more are taken as if it had not been. A lane in
	// which a Take met some of them begins slowly, as after a hold of the lane.
	Unhold(ctx context.Context, now time.Time, lanes ...Lane) ([]Lane, error)

	// Holding returns the holds that have not ended, by lane.
	Holding(ctx context.Context, now time.Time) ([]Hold, error)
}

// Upkeep has the operations of the start of a process, and its regular duties.
type Upkeep interface {
	// Turn asks for the turn to do the duty with this name: exactly one caller, in any
	// process, gets true, and every other caller gets false until hold has passed. A
	// stored turn that ends more than TurnHorizon later than a turn that begins now was
	// taken before the clock was set back, and is over. The caller uses few names, which
	// are constants.
	Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error)

	// Purge deletes three kinds of records: jobs that finished before the given time,
	// with their attempts; runs that finished before it, with their steps and history;
	// and events received before it of which no job and no run is left. A call deletes at
	// most limit jobs and as many runs, with their events, and as many other events, the
	// oldest first, and returns the number of deleted jobs, runs and events together.
	// Jobs and runs that are not finished stay, with their events. A dead job that stops its
	// line stays too. A delivery id or key
	// counts as new again once its row is deleted. Definitions are kept. A gate becomes
	// the zero Gate again if it has no failures and all its times are before the given
	// time. Each call reads a bounded part of the tables, and the next call continues
	// after it: more says whether a part is left unread.
	Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error)

	// Migrate brings the schema up to date. It may run in several processes at once and
	// any number of times. It refuses a database of a newer version.
	Migrate(ctx context.Context) error

	// Schema returns the step that the schema of the database has reached, and the step
	// to which Migrate brings it. The schema of an empty database is at step 0, and a
	// schema that lacks a step is at the step before. A database of a newer version has a
	// higher step than Migrate brings it to. It changes nothing.
	Schema(ctx context.Context) (have, want int, err error)

	// Rehearse does work of the given kind with rows of its own, and deletes these rows
	// in the same commit. It sends the statements of that work, and returns an error
	// while they fail. No other caller sees the rows. It ends when ctx is done.
	Rehearse(ctx context.Context, w Work) error

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
}

// Work is a kind of writes that a gateway depends on.
type Work string

// The kinds of work.
const (
	Intake      Work = "intake"      // [Inbox.Accept]: events, their jobs and runs
	Deliveries  Work = "deliveries"  // [Worklist.Take] and [Worklist.Settle]: claims of jobs, attempts, gates
	Transitions Work = "transitions" // [Runs.Transit]: runs, steps, their history, texts and tokens
	Turns       Work = "turns"       // [Upkeep.Turn]
)

// A Store has all roles. Services ask for the roles that they use.
type Store interface {
	Inbox
	Express
	Worklist
	Counter
	Calendar
	Runs
	Ledger
	Backlog
	Archive
	Chronicle
	Operations
	OperationLog
	Minutes
	Holds
	Lines
	Audit
	Upkeep
	Close() error
}
