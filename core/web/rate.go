package web

import (
	"net/netip"
	"sync"
	"time"
)

// A rate bounds how many requests pass a second, for each client apart. The second of a
// client begins with its first request, and the next second with its first request after
// that. So exactly the limit passes in the first second after silence, in any time at most
// the limit and one burst of it, and a refused client need not wait for more than a second.
//
// A window that slides over the seconds of the clock was rejected: it counts the second
// before as evenly spread, and refuses requests of a client that keeps to its limit. A
// token bucket was rejected too: it fills up again during a burst, and lets up to twice the
// limit pass in the first second.
type rate struct {
	perSecond int
	begun     time.Time // windows count the time from here

	mu     sync.Mutex
	turned time.Duration         // when recent began
	recent map[netip.Addr]window // that began since turned
	older  map[netip.Addr]window // that began before, in part over
}

// A window is one second of a client.
//
// An example with a limit of 3 (x passes, - is refused):
//
//	seconds   0         1         2
//	          xxx--     |xxx-     |x
//	          first     next window begins with the first request after the second
type window struct {
	begun  time.Duration
	passed int
}

// over reports whether the second of a window has passed.
func (w window) over(now time.Duration) bool { return now-w.begun >= time.Second }

// maxRated bounds the clients in each of the two maps of a rate: 5 MiB in all. If more
// clients come within a second, the rate forgets some of the first ones, which get a new
// second. It never refuses a client because of the requests of other clients.
const maxRated = 32 << 10

// newRate returns a rate; nil if perSecond is zero, which is no limit.
func newRate(perSecond int) *rate {
	if perSecond == 0 {
		return nil
	}
	return &rate{perSecond: perSecond, begun: time.Now(), recent: map[netip.Addr]window{}}
}

// pass counts a request of a client, and reports whether it is within the limit. Refused
// requests do not count. All requests of the zero address count as one client's.
func (l *rate) pass(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.begun)
	// The two maps take turns, so that windows that are over are dropped together, without a
	// timer for each client.
	if now-l.turned >= time.Second {
		l.turn(now)
	}
	in := l.recent
	w, known := in[client]
	if !known {
		in = l.older
		w, known = in[client]
	}
	switch {
	case !known || w.over(now):
		l.begin(client, now)
	case w.passed >= l.perSecond:
		return false
	default:
		w.passed++
		in[client] = w
	}
	return true
}

// begin begins a second of a client, with one request.
func (l *rate) begin(client netip.Addr, now time.Duration) {
	if _, known := l.recent[client]; !known && len(l.recent) >= maxRated {
		l.turn(now)
	}
	l.recent[client] = window{begun: now, passed: 1}
}

// turn drops the older windows, and makes the recent windows the older ones. If the last turn is
// a second ago, all windows that it drops are over.
func (l *rate) turn(now time.Duration) {
	l.turned, l.older, l.recent = now, l.recent, map[netip.Addr]window{}
}
