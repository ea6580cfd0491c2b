package core

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Bell tells the workers of this process that lanes have new work, so that they need not
// poll the store for it. The zero Bell is ready to use. Rings of a nil Bell have no effect.
type Bell struct {
	mu        sync.RWMutex
	listeners map[Lane][]*Listener
	others    []*Listener // of lanes without a listener of their own
}

// A Listener receives the rings of its lanes. It remembers each rung lane once, until Rung
// or Coming returns it.
type Listener struct {
	// C receives a value after a lane was rung. It holds one value at most.
	C <-chan struct{}

	c      chan struct{}
	mu     sync.Mutex
	rung   map[Lane]bool
	coming map[Lane]time.Time // the earliest time of each lane
}

// Listen returns a listener for the lanes. It stays registered until it leaves.
func (b *Bell) Listen(lanes ...Lane) *Listener {
	c := make(chan struct{}, 1)
	l := &Listener{C: c, c: c, rung: map[Lane]bool{}, coming: map[Lane]time.Time{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners == nil {
		b.listeners = map[Lane][]*Listener{}
	}
	for _, lane := range lanes {
		b.listeners[lane] = append(b.listeners[lane], l)
	}
	return l
}

// Others also gives the listener the rings of all lanes that have no listener of their own.
func (b *Bell) Others(l *Listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.others = append(b.others, l)
}

// Leave ends the registrations by Listen and Others. The Bell rings the lanes that the
// listener still remembers once more, for the remaining listeners.
func (b *Bell) Leave(l *Listener) {
	b.mu.Lock()
	for lane, all := range b.listeners {
		if all = without(all, l); len(all) > 0 {
			b.listeners[lane] = all
		} else {
			delete(b.listeners, lane)
		}
	}
	b.others = without(b.others, l)
	b.mu.Unlock()
	for _, lane := range l.Rung() {
		b.Ring(lane)
	}
	for lane, at := range l.Coming() {
		b.RingAt(lane, at)
	}
}

// without returns a new list without l. It leaves the given list alone, since each may be
// reading it.
func without(all []*Listener, l *Listener) []*Listener {
	return slices.DeleteFunc(slices.Clone(all), func(other *Listener) bool { return other == l })
}

// Ring wakes the listeners of a lane that has work now. It never blocks.
func (b *Bell) Ring(lane Lane) { b.each(lane, func(l *Listener) { l.rung[lane] = true }) }

// RingAt tells the listeners of a lane that the lane has work from a later time on. A
// listener's last read of the store may be too old to show that work. RingAt never blocks.
func (b *Bell) RingAt(lane Lane, at time.Time) {
	b.each(lane, func(l *Listener) {
		if known, ok := l.coming[lane]; !ok || at.Before(known) {
			l.coming[lane] = at
		}
	})
}

// each calls note for each listener of a lane, and wakes the listener.
func (b *Bell) each(lane Lane, note func(*Listener)) {
	if b == nil {
		return
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	heard := b.listeners[lane]
	if len(heard) == 0 {
		heard = b.others
	}
	for _, l := range heard {
		l.hear(note)
	}
}

func (l *Listener) hear(note func(*Listener)) {
	l.mu.Lock()
	note(l)
	l.mu.Unlock()
	select {
	case l.c <- struct{}{}:
	default:
	}
}

// Rung returns the lanes that have work now, and forgets them. They are sorted.
func (l *Listener) Rung() []Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	lanes := slices.Sorted(maps.Keys(l.rung))
	clear(l.rung)
	return lanes
}

// Coming returns the lanes that have work at a later time, each with the earliest such
// time, and forgets them. It returns nil if there are none.
func (l *Listener) Coming() map[Lane]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.coming) == 0 {
		return nil
	}
	all := maps.Clone(l.coming)
	clear(l.coming)
	return all
}
