package web

import (
	"sync"
	"time"

	"github.com/go-chi/httprate"
)

// Counts are what handlers count together. When one takes the place of another, while the
// requests of that one still end, they bound both as if they were one, and no client's
// rate begins anew. The zero Counts is ready to use.
type Counts struct {
	inbound   slots   // requests whose body is there, and which are being served
	arriving  slots   // requests whose large body is on its way
	operating slots   // requests of operators
	callbacks slots   // callbacks
	small     slots   // requests from behind a proxy whose small body is on its way
	polls     polls   // requests for messages
	outflow   outflow // bytes of replies

	mu        sync.Mutex
	limiter   *httprate.RateLimiter
	perSecond int // that the limiter was made for
}

// Polls is how many requests for messages are being served.
func (c *Counts) Polls() int { return c.polls.count() }

// Unwritten is how many bytes replies have that are being made or written.
func (c *Counts) Unwritten() int { return c.outflow.bytes() }

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

// How long a request waits for a slot. Requests are served in milliseconds, so that one
// which has waited for a second waits in a gateway that has too much to do.
const (
	servePatience  = time.Second
	arrivePatience = 5 * time.Second // others send large bodies meanwhile
)

// A pool is slots that handlers share, and how many of them one handler gives away.
type pool struct {
	slots *slots
	bound bound
}

// A budget is what requests of a kind take slots of while they are served, in this order,
// and what those take as well whose large body is on its way. The others take nothing
// until their body is there.
type budget struct {
	serving  []pool
	arriving []pool
}

// budgets are those of a handler. One client gets at most a fourth of the slots for bodies
// that are on their way, and all clients half. Requests of operators can take
// long, so they have a bound of their own: the other slots are always left for events.
type budgets struct {
	intake    budget // events, acks and the like
	operators budget // the management API
	callbacks budget // of which each is bounded, since a token proves itself only when it is looked up
	small     pool   // small bodies on their way, from behind a proxy
}

func newBudgets(c *Counts, maxInbound int) budgets {
	part := func(s *slots, most, each int, patience time.Duration) pool {
		return pool{s, bound{most: max(1, maxInbound/most), each: max(1, maxInbound/each), patience: patience}}
	}
	inbound := pool{&c.inbound, bound{most: maxInbound, patience: servePatience}}
	arriving := part(&c.arriving, 2, 4, arrivePatience)
	operating := part(&c.operating, 4, 8, servePatience)
	return budgets{
		intake:    budget{serving: []pool{inbound}, arriving: []pool{arriving}},
		operators: budget{serving: []pool{operating, inbound}, arriving: []pool{arriving}},
		callbacks: budget{serving: []pool{part(&c.callbacks, 2, 4, servePatience)}},
		small:     pool{&c.small, bound{most: MaxConnections, each: MaxConnections / 16}},
	}
}
