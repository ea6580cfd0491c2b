package store

import (
	"context"
	"sync"
	"time"
)

// callTimeout bounds each batch, so that a database that does not answer cannot
// hold a worker for ever.
const callTimeout = 10 * time.Second

// shared is how much longer a batch may take that begins with others. One context for
// all of a second costs them nothing, where one for each would be a hundredth of an
// event's CPU.
const deadlineShare = time.Second

// A patience is the context of batches that are not to end with their callers. The zero
// patience is ready for use.
type sharedDeadline struct {
	mu    sync.Mutex
	ctx   context.Context
	until time.Time // when it has less than callTimeout left
}

// context ends when callTimeout is over, or shared later.
func (p *sharedDeadline) context() context.Context {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil || !now.Before(p.until) {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout+deadlineShare)
		context.AfterFunc(ctx, cancel)
		p.ctx, p.until = ctx, now.Add(deadlineShare)
	}
	return p.ctx
}
