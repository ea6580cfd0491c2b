package pull

import (
	"context"
	"sync"
)

// A crew tracks goroutines that outlive the call that started them.
type crew struct {
	mu   sync.Mutex
	n    int
	gone chan struct{} // closed when the last goroutine ends; nil if none runs
}

// Go calls do on a new goroutine.
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

// left returns a channel that is closed when no goroutine runs any more.
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

// Quiet returns when no goroutine of p runs. It is for a process that is stopped between
// requests, and continues later or never: the process must not be stopped during a Take.
//
// While a consumer waits, Quiet returns at once: that consumer's request keeps the process
// running, and the handler of the last such request calls Quiet again. Quiet also returns
// when a consumer arrives. When ctx is done, Quiet returns the error of ctx.
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

// arrival returns a channel that is closed when a consumer arrives; nil if one is waiting
// now.
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

// arrived closes the channel of [Puller.arrival]. The caller holds p.mu.
func (p *Puller) arrived() {
	if p.came != nil {
		close(p.came)
		p.came = nil
	}
}
