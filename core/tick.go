package core

import "time"

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

	// End is when the process is stopped, whatever runs then: nothing is started that may
	// take longer, and no lease is longer than it has to be. Zero means that it goes on.
	End time.Time
}

// A Report is what a tick did.
type Report struct {
	Completed int // attempts that succeeded
	Failed    int // attempts that failed, dead jobs included
	Dead      int // jobs that died
	Released  int // jobs given back untried
	Lost      int // outcomes that came after their lease had ended
}
