package web

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A bound limits [slots]. It may change while slots are taken, since the configuration may
// change.
type bound struct {
	most     int           // slots in all
	each     int           // slots of one client; zero means as many as there are
	patience time.Duration // how long a request waits for a slot
}

// slots counts by client the requests that are at the same stage of being served. A request
// that finds no free slot waits in the line of its client. A slot that becomes free goes to
// the next line in turn, not to the longest: a client with a thousand requests gets as many
// slots as a client with one request, until the latter has been served.
//
// The zero slots is ready to use.
//
// An example with one slot: client A has 200 requests in its line, and B sends one. B's request
// is served after at most one more of A's, since the lines take turns.
type slots struct {
	mu      sync.Mutex
	bound   bound // of the newest request
	taken   int
	of      map[netip.Addr]int // slots by client, counted only where each bounds them
	lines   []*line            // the next in turn is first; none is empty
	waiting int
}

// A line is the requests of one client that wait, the oldest first.
type line struct {
	client netip.Addr
	asking []*asking
}

// An asking is one request that waits.
type asking struct {
	granted chan bool // gets true when it has a slot, and false when it must not wait any longer
}

// How many requests may wait for slots of the same kind at the same time. A request that
// waits has at most a small body in memory. If too many wait, the newest request of the
// longest line must go.
const (
	maxWaiting     = 1024
	maxWaitingEach = 256 // of one client
)

// enter takes a slot, and reports whether the request has one. It waits at most for the
// patience of the bound, and not at all if too many wait already.
func (s *slots) enter(ctx context.Context, client netip.Addr, b bound) bool {
	s.mu.Lock()
	// The newest request has the newest configuration.
	s.bound = b
	// The usual way: a slot is free, and no request waits for one.
	if s.waiting == 0 && s.free(client) {
		s.take(client)
		s.mu.Unlock()
		return true
	}
	a := s.line(client)
	s.grant() // slots may be free for other clients than those in the lines
	s.mu.Unlock()
	return a != nil && s.await(ctx, client, a, b.patience)
}

// leave gives a slot back.
func (s *slots) leave(client netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if n, counted := s.of[client]; n > 1 {
		s.of[client] = n - 1
	} else if counted {
		delete(s.of, client)
	}
	s.grant()
}

// free reports whether a client may take a slot now. The caller holds mu.
func (s *slots) free(client netip.Addr) bool {
	return s.taken < s.bound.most && (s.bound.each == 0 || s.of[client] < s.bound.each)
}

// take counts a slot for a client. The caller holds mu.
func (s *slots) take(client netip.Addr) {
	s.taken++
	if s.bound.each == 0 {
		return
	}
	if s.of == nil {
		s.of = map[netip.Addr]int{}
	}
	s.of[client]++
}

// line puts a request into the line of its client. It returns nil if too many requests wait.
func (s *slots) line(client netip.Addr) *asking {
	if s.bound.patience <= 0 || s.bound.most <= 0 {
		return nil
	}
	i := slices.IndexFunc(s.lines, func(l *line) bool { return l.client == client })
	length := 0
	if i >= 0 {
		length = len(s.lines[i].asking)
	}
	if length >= maxWaitingEach || s.waiting >= maxWaiting && !s.makeRoom(length) {
		return nil
	}
	a := &asking{granted: make(chan bool, 1)}
	if i < 0 {
		s.lines = append(s.lines, &line{client, []*asking{a}})
	} else {
		s.lines[i].asking = append(s.lines[i].asking, a)
	}
	s.waiting++
	return a
}

// makeRoom turns the newest request of the longest line away, for a request of a client whose
// line has length requests. It returns false if that line would become as long as the longest.
func (s *slots) makeRoom(length int) bool {
	longest := slices.MaxFunc(s.lines, func(a, b *line) int { return len(a.asking) - len(b.asking) })
	last := len(longest.asking) - 1
	if last <= length {
		return false
	}
	longest.asking[last].granted <- false
	longest.asking = slices.Delete(longest.asking, last, last+1)
	s.waiting--
	return true
}

// grant gives free slots to the lines in turn.
func (s *slots) grant() {
	for i := 0; i < len(s.lines); {
		l := s.lines[i]
		if !s.free(l.client) {
			i++
			continue
		}
		s.take(l.client)
		l.asking[0].granted <- true
		s.waiting--
		// The line goes to the end, unless it is empty now.
		s.lines = slices.Delete(s.lines, i, i+1)
		if l.asking = slices.Delete(l.asking, 0, 1); len(l.asking) > 0 {
			s.lines = append(s.lines, l)
		}
	}
}

// await waits until a request has its slot, and reports whether it has.
func (s *slots) await(ctx context.Context, client netip.Addr, a *asking, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case has := <-a.granted:
		return has
	case <-timer.C:
	case <-ctx.Done():
	}
	// A request that is not in its line any more has been answered meanwhile. Then granted has the
	// answer, and a slot that it was given must not be lost.
	return !s.withdraw(client, a) && <-a.granted
}

// withdraw takes a request out of its line, and reports whether the request was still in it.
func (s *slots) withdraw(client netip.Addr, a *asking) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.lines, func(l *line) bool { return l.client == client })
	if i < 0 {
		return false
	}
	l := s.lines[i]
	j := slices.Index(l.asking, a)
	if j < 0 {
		return false
	}
	s.waiting--
	if l.asking = slices.Delete(l.asking, j, j+1); len(l.asking) == 0 {
		s.lines = slices.Delete(s.lines, i, i+1)
	}
	return true
}
