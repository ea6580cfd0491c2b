package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// The longest time without requests: after a rate limit that names its time, and after an
// overload, which the database does not see the end of.
const (
	maxHold     = 5 * time.Minute
	maxOverload = 30 * time.Second
)

var errOverloaded = errors.New("the database asked for a pause")

// An overload is a time in which no batch is sent, because the database said that it has too
// many requests. It doubles while each request after it ends in another one. The zero overload
// is ready for use.
type overload struct {
	// seen is false until the first overload and after the last one is over. A database
	// without overloads costs each batch two loads of it, and no lock.
	seen atomic.Bool

	mu    sync.Mutex
	until time.Time     // no batch is sent before
	last  time.Duration // zero after a batch that succeeded
}

// begin keeps batches back for the time wait, or longer, and returns how long it will be.
func (o *overload) begin(wait time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if left := time.Until(o.until); left > 0 {
		return left // another request began it
	}
	if wait <= maxOverload {
		wait = min(max(wait, 2*o.last), maxOverload)
	}
	o.last = min(wait, maxHold)
	o.until = time.Now().Add(o.last)
	o.seen.Store(true)
	return o.last
}

// left is how long batches are still kept back, zero or less if they are not.
func (o *overload) left() time.Duration {
	if !o.seen.Load() {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Until(o.until)
}

// end notes a batch that succeeded: the next overload begins with a short time again. An
// overload that another request began meanwhile goes on.
func (o *overload) end() {
	if !o.seen.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = 0
	if time.Until(o.until) <= 0 {
		o.seen.Store(false)
	}
}
