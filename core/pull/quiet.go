package pull

import (
	"context"
	"sync"
)

// A crew is what runs beside its callers.
type crew struct {
	mu   sync.Mutex
	n    int
	gone chan struct{} // closed when nobody is at work any more; nil if nobody is
}

// Go has something done.
func (c *crew) Go(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n == 1 {
		c.gone = make(chan struct{})
	}
	go func() {
		defer c.leave()
		do()
	}()
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 {
		close(c.gone)
		c.gone = nil
	}
}

// left is closed once all is done that is being done now.
func (c *crew) left() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n > 0 {
		return c.gone
	}
	done := make(chan struct{})
	close(done)
	return done
}

// Quiet returns when nothing runs beside the callers of p, as long as nobody waits for
// messages: a process that is stopped between its requests, and goes on later or never,
// must not be stopped in the middle of taking some. While somebody waits it returns at
// once, since then there is a request that the process goes on for, and whoever waits
// last does this after it. When ctx is done it returns its error.
func (p *Puller) Quiet(ctx context.Context) error {
	came := p.arrival()
	if came == nil {
		return nil
	}
	select {
	case <-p.work.left():
		return nil
	case <-came:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrival is closed when a consumer comes; it is nil if one is there.
func (p *Puller) arrival() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		if len(l.waiting) > 0 {
			return nil
		}
	}
	if p.came == nil {
		p.came = make(chan struct{})
	}
	return p.came
}

// arrived tells of a consumer to those who wait until there is none.
func (p *Puller) arrived() {
	if p.came != nil {
		close(p.came)
		p.came = nil
	}
}
