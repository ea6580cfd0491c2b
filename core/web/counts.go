package web

import (
	"sync"
	"sync/atomic"

	"github.com/go-chi/httprate"
)

// Counts are what handlers count together. When one takes the place of another, while the
// requests of that one still end, they bound both as if they were one, and no client's
// rate begins anew. The zero Counts is ready to use.
type Counts struct {
	inbound slots // one taken by every request being served, but for polls
	polls   slots // one taken by every poll being served

	mu        sync.Mutex
	limiter   *httprate.RateLimiter
	perSecond int // that the limiter was made for
}

// limit is who counts the requests of client addresses, nil without a limit. It begins
// anew when the limit changes: what was counted belongs to another one.
func (c *Counts) limit(perSecond int) *httprate.RateLimiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if perSecond != c.perSecond {
		c.limiter, c.perSecond = newLimiter(perSecond), perSecond
	}
	return c.limiter
}

// slots is how many requests of a kind are being served.
type slots struct{ taken atomic.Int64 }

// enter takes one of at most so many slots, if there is one free.
func (s *slots) enter(most int) bool {
	for {
		n := s.taken.Load()
		if n >= int64(most) {
			return false
		}
		if s.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *slots) leave() { s.taken.Add(-1) }
