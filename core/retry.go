package core

import (
	"math/rand/v2"
	"time"
)

// MaxBackoff is the longest time between two attempts. It bounds every policy and every
// reply's Retry-After.
const MaxBackoff = 24 * time.Hour

// A Retry is a policy: the number of attempts, and the wait between them.
type Retry struct {
	Max      int           // attempts in all, at least 1
	Interval time.Duration // base of the wait
	Fixed    bool          // wait Interval each time, instead of doubling it
}

// Delay returns how long to wait after the attempt with this 1-based number failed. It is
// Interval, doubled for each earlier attempt unless Fixed, then ±20 %, and at most
// MaxBackoff. The arithmetic saturates: no number of attempts makes it negative.
func (r Retry) Delay(attempt int) time.Duration {
	return jitter(r.base(attempt), rand.Float64())
}

func (r Retry) base(attempt int) time.Duration {
	d := min(max(r.Interval, 0), MaxBackoff)
	if r.Fixed {
		return d
	}
	for i := 1; i < attempt && d > 0 && d < MaxBackoff; i++ {
		d = min(2*d, MaxBackoff)
	}
	return d
}

// A Backoff is the last wait of a service that repeats a failed call of the store. The zero
// Backoff has not waited yet. A service that goes on after a success sets it to zero again.
// Attempts at jobs follow a [Retry] instead.
type Backoff time.Duration

// Next returns the next wait: 50 ms at first, then twice the last one, up to 2 s.
func (b *Backoff) Next() time.Duration {
	*b = min(max(2*(*b), Backoff(50*time.Millisecond)), Backoff(2*time.Second))
	return time.Duration(*b)
}

// jitter spreads d evenly over 80 to 120 % of itself for u in [0, 1), so that jobs that
// failed together do not come back together.
func jitter(d time.Duration, u float64) time.Duration {
	return min(time.Duration(float64(d)*(0.8+0.4*u)), MaxBackoff)
}
