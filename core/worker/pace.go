package worker

import (
	"sync/atomic"
	"time"
)

// A pace knows how long taking jobs and sending one take. A job is taken by a claim, or in the commit that
// stores it.
type pace struct{ take, send average }

// during returns how many sends end during one take, at most limit.
func (p *pace) during(slots, limit int) int {
	return ending(slots, p.take.get(), p.send.get(), limit)
}

// ending returns how many attempts end during a time (Little's law), at most limit, if some are always
// under way and each takes as long as send. Before the first one has ended it is 0.
func ending(underWay int, during, send time.Duration, limit int) int {
	if send == 0 {
		return 0
	}
	return int(min(int64(limit), int64(underWay)*int64(during)/int64(send)))
}

// An average is a moving average of times, zero before the first.
type average struct{ nanos atomic.Int64 }

func (a *average) get() time.Duration { return time.Duration(a.nanos.Load()) }

// add moves the average an eighth of the way to a new sample. So it follows a change of speed within about
// twenty samples, and one slow handler hardly moves it.
func (a *average) add(d time.Duration) {
	old := a.nanos.Load()
	if old == 0 {
		old = int64(d)
	}
	a.nanos.Store(old + (int64(max(0, d))-old)/8) // a lost update is only a lost sample
}
