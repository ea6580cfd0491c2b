// Package series counts accepted events and ended deliveries in each minute, by source and
// consumer, for curves of the last hour and day.
//
// The idea to know: counting costs the services nothing but a look-up in a map. A [Counter] is an
// observer of the facts that the services state anyway. It keeps the counts of the last minutes
// in memory, and writes the minutes that are over in one batch, in the background. A process that
// is killed loses the minutes that it has not written. So the counts are for pictures, and not
// for accounts.
//
// The counts are absolute: a row has all that the process counted in a minute. So a row can be
// written again with more, and a batch can be sent twice.
//
// A [Census] is for functions. The function that accepts events writes no counts, since its sender
// would wait for that. Another function counts the stored events instead.
//
// The names are bounded: events are only accepted from configured sources, and jobs are only made
// for configured consumers.
//
// The package imports core and core/order only.
package series

import (
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// maxUnwritten is how many minutes a Counter keeps while they cannot be written. Older ones are
// lost.
const maxUnwritten = 60

// A Counter counts the facts of a process by minute. It is safe for concurrent use. A nil Counter
// counts nothing.
type Counter struct {
	clock core.Clock

	mu      sync.Mutex
	newest  *minute           // the minute of the last fact
	minutes map[int64]*minute // by their beginnings, in Unix milliseconds
}

// A minute has the counts of one minute.
type minute struct {
	at      int64
	sources map[string]*cell
	lanes   map[core.Lane]*cell
}

// A cell has the counts of a source or consumer in a minute, and how much of them is stored.
type cell struct{ counted, written core.Counts }

// New makes a Counter. Minutes begin by clock, which shows the database's time.
func New(clock core.Clock) *Counter {
	return &Counter{clock: clock, minutes: map[int64]*minute{}}
}

// Observe counts a fact. It is a [core.Observer].
func (c *Counter) Observe(f core.Fact) {
	if c == nil {
		return
	}
	switch f := f.(type) {
	case core.Accepted:
		if f.Event.Source != core.AlertSource { // the gateway's own events
			c.source(f.Event.Source)
		}
	case core.Settled:
		c.settled(f)
	case core.Pulled:
		switch f.Action {
		case core.MessagesAcked:
			c.lane(core.QueueLane(f.Queue), core.Counts{Completed: f.Messages})
		case core.MessagesRetried: // dead messages come as Settled
			c.lane(core.QueueLane(f.Queue), core.Counts{Failed: f.Messages})
		}
	case core.StepMoved:
		if f.Attempt.Error != "" {
			c.lane(core.WorkflowLane(f.Run.Workflow), core.Counts{Failed: 1})
		}
	case core.RunMoved:
		switch f.Run.Status {
		case core.RunCompleted:
			c.lane(core.WorkflowLane(f.Run.Workflow), core.Counts{Completed: 1})
		case core.RunFailed:
			c.lane(core.WorkflowLane(f.Run.Workflow), core.Counts{Dead: 1})
		}
	}
}

// settled counts the end of an attempt of a handler or at a message. The steps of workflows come as
// [core.StepMoved]. Alerts and operations are no consumers.
func (c *Counter) settled(f core.Settled) {
	if l := f.Job.Lane; l.Handler() == "" && l.Queue() == "" {
		return
	}
	switch f.Outcome.Status {
	case core.Completed:
		c.lane(f.Job.Lane, core.Counts{Completed: 1})
	case core.Retryable:
		c.lane(f.Job.Lane, core.Counts{Failed: 1})
	case core.Dead:
		c.lane(f.Job.Lane, core.Counts{Failed: 1, Dead: 1})
	}
}

// source counts an event of a source.
func (c *Counter) source(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.now()
	s := m.sources[name]
	if s == nil {
		s = new(cell)
		m.sources[name] = s
	}
	s.counted.Accepted++
}

// lane adds to the counts of a consumer.
func (c *Counter) lane(lane core.Lane, n core.Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.now()
	l := m.lanes[lane]
	if l == nil {
		l = new(cell)
		m.lanes[lane] = l
	}
	l.counted = l.counted.Add(n)
}

// now returns the counts of the present minute. If there are too many minutes, it drops the oldest.
func (c *Counter) now() *minute {
	at := minuteOf(c.clock())
	if c.newest != nil && c.newest.at == at {
		return c.newest
	}
	m := c.minutes[at]
	if m == nil {
		m = &minute{at: at, sources: map[string]*cell{}, lanes: map[core.Lane]*cell{}}
		c.minutes[at] = m
		for len(c.minutes) > maxUnwritten {
			delete(c.minutes, oldest(c.minutes))
		}
	}
	c.newest = m
	return m
}

// oldest returns the beginning of the first of some minutes.
func oldest(minutes map[int64]*minute) (first int64) {
	for at := range minutes {
		if first == 0 || at < first {
			first = at
		}
	}
	return first
}

const minuteMillis = int64(time.Minute / time.Millisecond)

// minuteOf returns the beginning of the minute of a time, in Unix milliseconds.
func minuteOf(t time.Time) int64 {
	ms := t.UnixMilli()
	return ms - ms%minuteMillis
}
