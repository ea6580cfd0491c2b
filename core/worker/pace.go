package worker

import (
	"sync/atomic"
	"time"
)

// A pace knows how long taking and sending take, as moving averages in nanoseconds.
type pace struct{ take, send atomic.Int64 }

func (p *pace) took(d time.Duration) { average(&p.take, d) }
func (p *pace) sent(d time.Duration) { average(&p.send, d) }

// average moves an average an eighth of the way to a new sample. So it follows a change of speed
// within about twenty samples, and one slow handler hardly moves it.
func average(a *atomic.Int64, d time.Duration) {
	old := a.Load()
	if old == 0 {
		old = int64(d)
	}
	a.Store(old + (int64(max(0, d))-old)/8) // a lost update is only a lost sample
}

// during returns how many sends end during one take (Little's law), at most limit.
func (p *pace) during(slots, limit int) int {
	take, send := p.take.Load(), p.send.Load()
	// No delivery has ended yet. Without a measurement nothing is taken ahead.
	if send == 0 {
		return 0
	}
	return int(min(int64(limit), int64(slots)*take/send))
}
