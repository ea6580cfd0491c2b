package series

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// settled is how long after a minute its events are counted. An id is made before its event is
	// committed, so the event of a minute may be seen a little later.
	settled = 15 * time.Second

	// lookBack is how many minutes a Census counts at most in one tick. The first tick of a process
	// counts so many, since the one before it may be another process.
	lookBack = 5

	// CensusDelay is for how long a minute is over when its events are counted, if a Census ticks
	// once a minute. It has half a minute to spare.
	CensusDelay = settled + time.Minute + 30*time.Second
)

// EventStore is the part of a store that a Census uses.
type EventStore interface {
	Store
	Received(ctx context.Context, from, until time.Time, sources []string) (map[string]int, error)
}

// A Census counts the stored events of sources by minute. It is safe for concurrent use. Several of
// them may count the same minutes: they store the same.
type Census struct {
	store   EventStore
	clock   core.Clock
	sources []string

	mu   sync.Mutex
	next time.Time // the first minute that it has not counted
}

// NewCensus makes a Census of the sources with these names.
func NewCensus(store EventStore, clock core.Clock, sources []string) *Census {
	return &Census{store: store, clock: clock, sources: sources}
}

// Tick counts the minutes that are over, and that it has not counted: five at most. If it fails,
// the next tick counts them.
func (c *Census) Tick(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.clock().Add(-settled).Truncate(time.Minute)
	from := end.Add(-lookBack * time.Minute)
	if c.next.After(from) {
		from = c.next
	}
	var rows []core.LaneCounts
	for at := from; at.Before(end); at = at.Add(time.Minute) {
		counts, err := c.store.Received(ctx, at, at.Add(time.Minute), c.sources)
		if err != nil {
			return err
		}
		for source, n := range counts {
			rows = append(rows, core.LaneCounts{At: at.UTC(), Lane: core.SourceLane(source), Counts: core.Counts{Accepted: n}})
		}
	}
	for some := range slices.Chunk(rows, maxRows) {
		if err := c.store.CountMinutes(ctx, "", some); err != nil {
			return err
		}
	}
	c.next = end
	return nil
}
