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
	Accept(ctx context.Context, a Arrival) (Receipt, error)
}

// A Quota asks for up to N due jobs of a lane.
type Quota struct {
	Lane Lane
	N    int

	// Hold is how long the taken jobs are leased.
	Hold time.Duration
}

// A Worklist hands out due work and records what became of it.
type Worklist interface {
	// Due tells when the next job of each lane is due: in the past if one is due
	// already, the end of the lease for a running one. Lanes in which nothing
	// waits are absent. It writes nothing.
	Due(ctx context.Context, lanes []Lane) (map[Lane]time.Time, error)

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
	Take(ctx context.Context, now time.Time, quotas []Quota) ([]TakenJob, error)

	// Settle ends attempts: each outcome is recorded as an attempt and gives its
	// job the status, due time and error it says. An outcome whose lease is no
	// longer the job's changes nothing, and its job id is returned in lost.
	// Settling the same outcome again changes nothing and is not lost.
	Settle(ctx context.Context, outcomes ...Outcome) (lost []ID, err error)

	// Release gives taken jobs back untried: their attempt is uncounted and they
	// are due at the given time. A job whose lease is no longer the one it was
	// taken under stays as it is.
	Release(ctx context.Context, due time.Time, jobs ...Job) error

	// Recover makes every running job of the lanes due at once, and returns how
	// many there were. It is sound only while the caller is the sole taker of
	// those lanes, as a process that starts on its own database file is.
	Recover(ctx context.Context, now time.Time, lanes []Lane) (int, error)
}

// Limits of a page of a listing.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// An EventFilter selects events. Zero fields select everything.
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
	After   ID  // continue below this id
	Limit   int // 1 to MaxPage; 0 means DefaultPage
}

// A Page is one page of a listing, newest first.
type Page[T any] struct {
	Items []T
	More  bool // whether there are older ones
}

// A Ledger answers questions. A running job whose lease is over at the time of
// asking is shown as retryable, which is what it is.
type Ledger interface {
	// Event returns one event with its payload.
	Event(ctx context.Context, id ID) (Event, error)

	// Events lists events newest first, without their payloads and headers.
	// Following After from page to page shows every event that existed at the
	// first page exactly once, whatever is accepted meanwhile.
	Events(ctx context.Context, f EventFilter) (Page[Event], error)

	// Job returns one job.
	Job(ctx context.Context, id ID) (Job, error)

	// Jobs lists jobs newest first, paged like Events.
	Jobs(ctx context.Context, f JobFilter) (Page[Job], error)

	// Attempts lists the attempts of a job, oldest first; none for an unknown job.
	Attempts(ctx context.Context, job ID) ([]Attempt, error)

	// Depth is the number of jobs that are not finished.
	Depth(ctx context.Context) (int, error)
}

// Upkeep is what operators and start-up do to a store.
type Upkeep interface {
	// Retry makes dead jobs available at once, with their whole budget of
	// attempts, and returns how many. A zero id means all dead jobs, those of one
	// lane if lane is set. Jobs that are not dead stay as they are.
	Retry(ctx context.Context, now time.Time, id ID, lane Lane) (int, error)

	// Migrate brings the schema up to date. It may run in several processes at
	// once and any number of times. A database of a newer version is refused.
	Migrate(ctx context.Context) error

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error
}

// A Store is all of it. Services ask for the roles they use.
type Store interface {
	Inbox
	Worklist
	Ledger
	Upkeep
	Close() error
}
