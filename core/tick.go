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
}

// A Report is what a tick did.
type Report struct {
	Completed int // attempts that succeeded
	Failed    int // attempts that failed, dead jobs included
	Dead      int // jobs that died
	Released  int // jobs given back untried
	Lost      int // outcomes that came after their lease had ended
}
