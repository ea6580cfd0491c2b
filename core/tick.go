package core

import (
	"context"
	"time"
)

// A Budget bounds a tick, which is one round of a service that looks for due work and does
// it. The zero Budget works until no work is due, and returns then. A function passes its
// deadline; the long-lived binary passes a rest time.
type Budget struct {
	// Until is when the tick stops starting new work. Zero means no limit.
	Until time.Time

	// Rest is about the longest wait between two looks for work while no work is due: a worker
	// makes each wait up to a quarter shorter or longer. Zero means to return instead of waiting.
	Rest time.Duration

	// Brief makes a tick with a Rest return as soon as three conditions hold: no work is
	// due, the store knows of no work that will be due before Until, and no new work has
	// arrived for a moment. With a zero Until it waits for that moment only. If its time
	// ends during retries after an error, it returns that error.
	Brief bool

	// Stay decides when a Brief tick of a worker returns, in place of the rule above. Nil
	// keeps that rule. The tick calls Stay with its last look while no work is due or under
	// way. Stay returns when the tick is to look and ask again, or zero to make the tick
	// return. In each case the tick looks when Next of that look is due, and after Rest. The
	// tick ends at Until.
	Stay func(ctx context.Context, last Look) (again time.Time)

	// Looked is called after each look of a worker's tick, also while attempts are under
	// way. The tick begins the next look by the returned time at the latest. A zero time is
	// no bound, and a nil Looked bounds nothing.
	Looked func(ctx context.Context, last Look) (by time.Time)

	// Room is the longest attempt that another process could begin. A job may need more
	// time than this process has left. A look reports such a job only if its attempt takes
	// less than Room.
	Room time.Duration

	// End is when the process is stopped, together with everything that runs then. The tick
	// starts no attempt that may take longer, and takes no lease that is longer than
	// necessary. Zero means that the process is not stopped.
	End time.Time
}

// A Look is one reading of the store by a worker's tick: which jobs are due, and when.
type Look struct {
	Began time.Time

	// Next is when the next job becomes due whose attempt can end by the budget's End. It
	// is zero if there is none. Jobs that are due already do not count.
	Next time.Time

	// Beyond is when the first job is or was due whose attempt cannot end by the budget's
	// End but takes less than its Room. It is zero if there is none.
	Beyond time.Time
}

// A Report counts the results of a tick.
type Report struct {
	Completed int // attempts that succeeded
	Failed    int // attempts that failed, dead jobs included
	Dead      int // jobs that died
	Released  int // jobs given back untried
	Lost      int // outcomes that came after their lease had ended
}
