package web

import (
	"sync"
	"time"
)

// Counts are the shared counts of successive handlers. When a handler replaces another one
// whose requests have not ended, their requests count together against the limits, and the
// rates of clients do not begin again. The zero Counts is ready to use.
type Counts struct {
	inbound   slots   // requests whose body has arrived, and which are being served
	arriving  slots   // requests whose large body is on its way
	operating slots   // requests of operators
	callbacks slots   // callbacks that are being served
	calling   slots   // callbacks whose large body is on its way
	small     slots   // requests from behind a proxy whose small body is on its way
	polls     polls   // requests for messages
	outflow   outflow // bytes of replies

	mu        sync.Mutex
	limiter   *rate
	perSecond int // the rate for which the limiter was made
}

// Polls returns the number of requests for messages that are being served.
func (c *Counts) Polls() int { return c.polls.count() }

// Unwritten returns the number of bytes of replies that are being made or written.
func (c *Counts) Unwritten() int { return c.outflow.bytes() }

// limit returns the counter of requests by client address, nil without a limit. If the
// limit changes, the counter begins again.
func (c *Counts) limit(perSecond int) *rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if perSecond != c.perSecond {
		c.limiter, c.perSecond = newRate(perSecond), perSecond
	}
	return c.limiter
}

// How long a request waits for a slot. The gateway serves a request in milliseconds, so a
// request that has waited for a second meets an overloaded gateway.
const (
	servePatience  = time.Second
	arrivePatience = 5 * time.Second // large bodies of other requests arrive meanwhile
)

// A pool is a set of slots that handlers share, with a bound on the slots that requests of one
// handler hold.
type pool struct {
	slots *slots
	bound bound
}

// A budget lists the pools that requests of a kind take a slot of, in this order. A request
// takes the slots of serving while the gateway serves it. A request with a large body takes
// slots of arriving as well while its body arrives, and before those of serving. Other
// requests take no slot until their body is there.
type budget struct {
	serving  []pool
	arriving []pool
}

// budgets are the budgets of a handler. Large bodies that are arriving have at most half of
// max_inbound, and those of one client a fourth. Callbacks have half of max_inbound beside it,
// and those of one client a fourth; of these, large bodies that are arriving have half, and
// those of one client a fourth of this half. Requests of operators can take long, so they
// have a bound within max_inbound: the other slots are always left for events. A share is
// at least one slot. Large bodies have at least two, and callbacks four, so that one client
// cannot have them all.
//
// With max_inbound 100 the slots of all clients, and of one client, are:
//
//	events, serving            100        100
//	large bodies, arriving      50         25
//	operators, serving          25         12
//	callbacks, serving          50         25
//	their large bodies          25          6
type budgets struct {
	intake    budget // events, acks and the like
	operators budget // the management API
	callbacks budget // each is bounded, since the gateway must look a token up to verify it
	small     pool   // small bodies on their way, from behind a proxy
}

func newBudgets(c *Counts, maxInbound int) budgets {
	// part returns a pool with shares of max_inbound: 1/most of it for all clients, at least least
	// slots, and 1/each of it for one client, at least one slot.
	part := func(s *slots, least, most, each int, patience time.Duration) pool {
		return pool{s, bound{most: max(least, maxInbound/most), each: max(1, maxInbound/each), patience: patience}}
	}
	inbound := pool{&c.inbound, bound{most: maxInbound, patience: servePatience}}
	arriving := part(&c.arriving, 2, 2, 4, arrivePatience)
	operating := part(&c.operating, 1, 4, 8, servePatience)
	return budgets{
		intake:    budget{serving: []pool{inbound}, arriving: []pool{arriving}},
		operators: budget{serving: []pool{operating, inbound}, arriving: []pool{arriving}},
		callbacks: budget{serving: []pool{part(&c.callbacks, 4, 2, 4, servePatience)}, arriving: []pool{part(&c.calling, 2, 4, 16, arrivePatience)}},
		small:     pool{&c.small, bound{most: MaxConnections, each: MaxConnections / 16}},
	}
}
