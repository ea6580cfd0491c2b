package core

import (
	"context"
	"time"
)

// A Budget bounds a tick. The zero Budget works until nothing is due, then
// returns: a function passes its deadline, the long-lived binary a rest time.
type Budget struct {
	// Until is when to stop starting new work; zero means no limit.
	Until time.Time

	// Rest is the longest wait before looking for work again when there is none;
	// zero means to return instead of waiting.
	Rest time.Duration

	// Brief has a tick with a Rest return as soon as nothing is due, nothing that the
	// store knows of will be before Until, and nothing has come for a moment. With a zero
	// Until it waits for nothing but that moment. It returns the error that it was trying
	// again when its time was over.
	Brief bool

	// Stay decides when a Brief tick of a worker returns, in place of the rule above; nil
	// leaves it at that. It is asked while nothing is due or under way, and is told the last
	// look. It returns when the tick is to look and ask again, or zero for the tick to return.
	// Whatever it returns the tick looks when Next of that look is due, after Rest, and ends
	// at Until.
	Stay func(ctx context.Context, last Look) (again time.Time)

	// Looked is called after each look of a worker's tick, whether or not attempts are under
	// way. The tick begins the next look by the returned time at the latest. A zero time is no
	// bound. A nil Looked bounds nothing.
	Looked func(ctx context.Context, last Look) (by time.Time)

	// Room is how long an attempt may take that another process would begin. Looks tell of
	// jobs for which this process has too little time left only if their attempts take less
	// than Room.
	Room time.Duration

	// End is when the process is stopped, whatever runs then: nothing is started that may
	// take longer, and no lease is longer than it has to be. Zero means that it goes on.
	End time.Time
}

// A Look is what a worker's tick learned when it asked the store what is due.
type Look struct {
	Began time.Time

	// Next is when the first job will be due that is not due yet, and whose attempt can be
	// over by the budget's End; zero if there is none.
	Next time.Time

	// Beyond is when the first job is due, or has been due, whose attempt cannot be over by
	// the budget's End but takes less than its Room; zero if there is none.
	Beyond time.Time
}

// A Report is what a tick did.
type Report struct {
	Completed int // attempts that succeeded
	Failed    int // attempts that failed, dead jobs included
	Dead      int // jobs that died
	Released  int // jobs given back untried
	Lost      int // outcomes that came after their lease had ended
}
