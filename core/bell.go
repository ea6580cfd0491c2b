package core

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Bell tells takers in this process that lanes have new work, so that they need
// not poll for it. The zero Bell is ready to use and a nil one rings for nobody.
type Bell struct {
	mu        sync.RWMutex
	listeners map[Lane][]*Listener
	others    []*Listener // of lanes that nobody else listens to
}

// A Listener hears lanes being rung. What it has not been asked for yet is
// remembered, each lane once.
type Listener struct {
	// C receives after a lane was rung.
	C <-chan struct{}

	c      chan struct{}
	mu     sync.Mutex
	rung   map[Lane]bool
	coming map[Lane]time.Time // the earliest of each lane
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

// Others has a listener hear the lanes as well that nobody listens to.
func (b *Bell) Others(l *Listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.others = append(b.others, l)
}

// Leave ends what Listen and Others began. What the listener has not been asked for is
// heard by those who are left for the lane, as if it were rung now.
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

// without is a new list: one that is being rung stays as it is.
func without(all []*Listener, l *Listener) []*Listener {
	return slices.DeleteFunc(slices.Clone(all), func(other *Listener) bool { return other == l })
}

// Ring wakes the listeners of a lane that has work now. It never blocks.
func (b *Bell) Ring(lane Lane) { b.each(lane, func(l *Listener) { l.rung[lane] = true }) }

// RingAt tells the listeners of a lane that the lane has work from a later time on, which
// no look at the store may have shown them yet. It never blocks.
func (b *Bell) RingAt(lane Lane, at time.Time) {
	b.each(lane, func(l *Listener) {
		if known, ok := l.coming[lane]; !ok || at.Before(known) {
			l.coming[lane] = at
		}
	})
}

// each notes something at each listener of a lane, and wakes it.
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

// Rung returns the lanes that were rung for work now since it was last asked.
func (l *Listener) Rung() []Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	lanes := slices.Sorted(maps.Keys(l.rung))
	clear(l.rung)
	return lanes
}

// Coming returns the lanes that were rung for work at a later time since it was last asked,
// each with the earliest such time. It is empty if there are none.
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
