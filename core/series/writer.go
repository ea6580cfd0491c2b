package series

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

const (
	// maxRows bounds the rows of one batch.
	maxRows = 500

	// writeTime bounds one pass. The next pass writes the rest.
	writeTime = 10 * time.Second

	// spread is the time after a minute in which processes write it, not all at the same moment.
	spread = 3 * time.Second

	// WriteDelay is for how long a minute is over when all processes have stored it, if nothing
	// holds them up.
	WriteDelay = spread + 2*time.Second
)

// Store is the part of a store that a Writer uses.
type Store interface {
	CountMinutes(ctx context.Context, process core.ID, counts []core.LaneCounts) error
}

// Deps are the dependencies of a Writer.
type Deps struct {
	Store   Store
	Clock   core.Clock
	Observe core.Observer

	// Process names this process in the rows. No two processes have the same name.
	Process core.ID
}

// A Writer stores the counts of a Counter. It is safe for concurrent use.
type Writer struct {
	Deps
	counter *Counter
	mu      sync.Mutex // held during a pass
}

// NewWriter makes the Writer of a Counter. A Counter has one Writer.
func NewWriter(d Deps, c *Counter) *Writer { return &Writer{Deps: d, counter: c} }

// Run stores each minute when it is over, until ctx is done. It reports errors as [core.Troubled].
// A minute that could not be stored is tried again a minute later.
func (w *Writer) Run(ctx context.Context) {
	for {
		now := w.Clock()
		over := now.Truncate(time.Minute).Add(time.Minute)
		select {
		case <-time.After(over.Sub(now) + rand.N(spread)):
		case <-ctx.Done():
			return
		}
		if err := w.WriteFinished(ctx); err != nil && ctx.Err() == nil {
			w.Observe(core.Troubled{Doing: "count minutes", Err: err})
		}
	}
}

// WriteFinished stores the minutes that are over and have counts that are not stored. So it writes
// at most once a minute, however often it is called.
func (w *Writer) WriteFinished(ctx context.Context) error { return w.write(ctx, w.Clock()) }

// WriteAll stores all counts, also those of the present minute.
func (w *Writer) WriteAll(ctx context.Context) error { return w.write(ctx, w.Clock().Add(time.Minute)) }

// write stores the counts of the minutes that are over at a time, the oldest first.
func (w *Writer) write(ctx context.Context, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	below := minuteOf(at)
	for rows := range slices.Chunk(w.counter.unwritten(below), maxRows) {
		counts := make([]core.LaneCounts, len(rows))
		for i, r := range rows {
			counts[i] = core.LaneCounts{At: r.At, Lane: r.Lane, Counts: r.total}
		}
		if err := w.Store.CountMinutes(ctx, w.Process, counts); err != nil {
			return err
		}
		w.counter.wrote(rows)
	}
	w.counter.forget(min(below, minuteOf(w.Clock())))
	return nil
}

// A row has the counts of a lane that are to be written. Its Counts are in no row of the store yet, and
// total is all that was counted.
type row struct {
	core.LaneCounts
	total core.Counts
	of    *cell
}

// Unwritten returns the counts that are not stored yet, by time and lane.
func (c *Counter) Unwritten() (counts []core.LaneCounts) {
	if c == nil {
		return nil
	}
	for _, r := range c.unwritten(minuteOf(c.clock()) + 2*minuteMillis) {
		counts = append(counts, r.LaneCounts)
	}
	return counts
}

// unwritten returns rows of the minutes that begin before a time in Unix milliseconds, by time and
// lane.
func (c *Counter) unwritten(below int64) (rows []row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, m := range c.minutes {
		if at >= below {
			continue
		}
		add := func(lane core.Lane, l *cell) {
			if l.counted != l.written {
				rows = append(rows, row{core.LaneCounts{At: time.UnixMilli(at).UTC(), Lane: lane, Counts: l.counted.Sub(l.written)}, l.counted, l})
			}
		}
		for name, s := range m.sources {
			add(core.SourceLane(name), s)
		}
		for lane, l := range m.lanes {
			add(lane, l)
		}
	}
	order.Sort(rows, func(a, b row) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Lane, b.Lane)) })
	return rows
}

// wrote notes that rows are stored.
func (c *Counter) wrote(rows []row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range rows {
		r.of.written = r.total
	}
}

// forget drops the minutes that begin before a time and are stored. A fact that comes later begins
// the minute anew; its row in the store keeps the higher counts.
func (c *Counter) forget(below int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, m := range c.minutes {
		if at < below && m.stored() {
			delete(c.minutes, at)
			if c.newest == m {
				c.newest = nil
			}
		}
	}
}

// stored reports whether all counts of a minute are stored.
func (m *minute) stored() bool {
	for _, s := range m.sources {
		if s.counted != s.written {
			return false
		}
	}
	for _, l := range m.lanes {
		if l.counted != l.written {
			return false
		}
	}
	return true
}
