package store

import (
	"context"
	"sync"

	"github.com/eventgateway/gateway/core"
)

// Bounds of one group: enough to make the sync negligible, little enough that a
// group never takes long or much memory.
const (
	maxGroup      = 128     // items
	maxGroupBytes = 4 << 20 // of payload
)

// A coalescer turns calls that come while a batch is being written into the next
// batch. There is one committer: the first caller commits its own item at once,
// on its own goroutine, and whoever arrives meanwhile goes together after it.
type coalescer[T, R any] struct {
	commit func(context.Context, []T) ([]R, error)
	size   func(T) int

	mu      sync.Mutex
	waiting []*waiter[T, R]
	busy    bool
}

type waiter[T, R any] struct {
	item   T
	result R
	err    error
	done   chan struct{}
}

func newCoalescer[T, R any](commit func(context.Context, []T) ([]R, error), size func(T) int) *coalescer[T, R] {
	return &coalescer[T, R]{commit: commit, size: size}
}

// do commits one item, alone or with others, and returns its result. A caller
// that gives up while waiting gets its context's error; its item may be
// committed all the same.
func (c *coalescer[T, R]) do(ctx context.Context, item T) (R, error) {
	w := &waiter[T, R]{item: item, done: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, w)
	lead := !c.busy
	c.busy = true
	c.mu.Unlock()

	if lead {
		c.commitNext()
	}
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

// commitNext commits what waits now. What came meanwhile is left to a goroutine
// of its own, so that a leading caller is not kept for the others' sake.
func (c *coalescer[T, R]) commitNext() {
	c.commitGroup(c.next())
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		go c.commitNext()
		return
	}
	c.busy = false
}

// next takes the longest run of waiting items that fits in a group.
func (c *coalescer[T, R]) next() []*waiter[T, R] {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for n < len(c.waiting) && n < maxGroup {
		bytes += c.size(c.waiting[n].item)
		if n > 0 && bytes > maxGroupBytes {
			break
		}
		n++
	}
	group := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	if len(c.waiting) == 0 {
		c.waiting = nil // let the array go
	}
	return group
}

// commitGroup commits a group, and, if something in it was refused, each item
// alone, so that a bad one fails only itself. A database that is not available
// would refuse each alone as well.
func (c *coalescer[T, R]) commitGroup(group []*waiter[T, R]) {
	items := make([]T, len(group))
	for i, w := range group {
		items[i] = w.item
	}
	results, err := c.commit(context.Background(), items)
	if err != nil && len(group) > 1 && !core.IsKind(err, core.Unavailable) {
		for i := range group {
			c.commitGroup(group[i : i+1])
		}
		return
	}
	for i, w := range group {
		if w.err = err; err == nil {
			w.result = results[i]
		}
		close(w.done)
	}
}
