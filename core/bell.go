package core

import "sync"

// A Bell tells takers in this process that a lane has new work, so that they
// need not poll for it. It carries no news but "look again": a ring that nobody
// waits for is remembered once, never queued. The zero Bell is ready to use and
// a nil one rings for nobody.
type Bell struct {
	mu        sync.RWMutex
	listeners map[Lane][]chan struct{}
}

// Listen returns a channel that receives after any of the lanes was rung. It
// stays registered for the life of the Bell.
func (b *Bell) Listen(lanes ...Lane) <-chan struct{} {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners == nil {
		b.listeners = map[Lane][]chan struct{}{}
	}
	for _, l := range lanes {
		b.listeners[l] = append(b.listeners[l], c)
	}
	return c
}

// Ring wakes whoever listens to the lane. It never blocks.
func (b *Bell) Ring(lane Lane) {
	if b == nil {
		return
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, c := range b.listeners[lane] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
