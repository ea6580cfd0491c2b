package store

import (
	"context"
	"sync"
	"time"
)

// callTimeout bounds each batch, so that a database that does not answer cannot block a worker
// for ever.
const callTimeout = 10 * time.Second

// deadlineShare is for how long new batches share a context, and so how much longer than
// callTimeout the first of them may take. A context with a timer for each batch costs 1 % of an
// event's CPU.
const deadlineShare = time.Second

// A sharedDeadline makes contexts for batches that must not end with their callers' contexts.
// The zero value is ready for use.
type sharedDeadline struct {
	mu    sync.Mutex // guards the fields below
	ctx   context.Context
	until time.Time // when ctx has less than callTimeout left
}

// context returns a context with at least callTimeout and at most deadlineShare more. It
// cancels itself at its deadline, so no caller has to release its timer.
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
