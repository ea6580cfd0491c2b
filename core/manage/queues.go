// Package manage has the services of operators: they look at events, replay and export
// them; look at jobs and revive dead ones; look at queues and empty them; look at workflow
// runs, redrive and cancel them; and read the state and the news of the gateway. It imports
// core, core/order and core/operate.
//
// The idea to know: the management API and the command line use the same services, so that
// both show the same data and refuse requests in the same words. A service knows the
// configuration, and the store has the records.
package manage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// A Store has the methods of a store that Queues uses.
type Store interface {
	Job(ctx context.Context, id core.ID) (core.Job, error)
	Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error)
	Ended(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error)
	Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error)
	DeadLetters(ctx context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error)
	Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (int, error)
	Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (int, error)
}

// The refusals of missing records.
var (
	ErrQueue = core.Refuse(core.NotFound, "queue not found")
	ErrJob   = core.Refuse(core.NotFound, "job not found")
)

// drainChunk is how many messages are deleted in one commit. It is small enough that
// senders and consumers do not notice the deletion.
const drainChunk = 1000

// aheadMost is how far the clock that made a message's id may be ahead of this one. It was
// another process's clock, or has been set back.
const aheadMost = 24 * time.Hour

// A Queue is a queue as it is configured.
type Queue struct {
	Name, Source string
	Events       []string      // accepted types, exact or with * wildcards; none means all
	Visibility   time.Duration // for how long a received message is invisible to other consumers
	MaxAttempts  int           // receives after which a message is dead; 0 means no limit
}

// A Listed is a queue with the numbers of its messages.
type Listed struct {
	Queue
	core.Tally
	core.Ended
}

// Gone reports whether the queue was removed from the configuration, and has only earlier
// messages. Then only its name is known.
func (q Queue) Gone() bool { return q.Source == "" }

// Depth returns how many messages are visible or in flight.
func (l Listed) Depth() int { return l.Pending + l.Processing }

// Queues are the configured queues. A removed queue is still accessible by its name, as
// long as it has messages that are pending, in flight or dead. They can be looked at,
// revived for a later configuration, and deleted. Queues is safe for concurrent use.
type Queues struct {
	// Bell rings for a queue that gets messages back or is drained; it may be nil.
	Bell *core.Bell

	// Observe receives a fact for each retry and each deletion; it may be nil.
	Observe core.Observer

	// Bulk does the operations of a Retry of all.
	Bulk Bulk

	store  Store
	clock  core.Clock
	queues []Queue // by name
}

// NewQueues makes the service of these queues, in any order.
func NewQueues(store Store, clock core.Clock, queues []Queue) *Queues {
	queues = slices.Clone(queues)
	order.Sort(queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return &Queues{store: store, clock: clock, queues: queues}
}

// List returns all queues, by name.
func (q *Queues) List(ctx context.Context) ([]Listed, error) { return q.list(ctx, q.queues) }

// Queue returns one queue. The error for a queue that is neither configured nor has
// messages is [ErrQueue], here and below.
func (q *Queues) Queue(ctx context.Context, name string) (Listed, error) {
	queue, configured := q.configured(name)
	if !configured && !couldBeQueue(name) {
		return Listed{}, ErrQueue
	}
	listed, err := q.list(ctx, []Queue{queue})
	if err != nil {
		return Listed{}, err
	}
	if !configured && listed[0].Tally == (core.Tally{}) && listed[0].Ended == (core.Ended{}) {
		return Listed{}, ErrQueue
	}
	return listed[0], nil
}

// configured returns the queue as it is configured. For any other name it returns false.
func (q *Queues) configured(name string) (queue Queue, ok bool) {
	i := slices.IndexFunc(q.queues, func(queue Queue) bool { return queue.Name == name })
	if i < 0 {
		return Queue{Name: name}, false
	}
	return q.queues[i], true
}

// couldBeQueue reports whether a text can be the name of a queue. Some databases reject
// other texts in queries.
func couldBeQueue(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
	})
}

func (q *Queues) list(ctx context.Context, queues []Queue) ([]Listed, error) {
	listed, lanes := make([]Listed, len(queues)), make([]core.Lane, len(queues))
	if len(listed) == 0 {
		return listed, nil
	}
	for i, queue := range queues {
		lanes[i] = core.QueueLane(queue.Name)
	}
	var ended map[core.Lane]core.Ended
	var errEnded error
	var beside sync.WaitGroup // each round trip to a database over HTTP takes long
	beside.Go(func() {
		errEnded = core.Contain(func() (err error) {
			ended, err = q.store.Ended(ctx, lanes)
			return err
		})
	})
	tallies, err := q.store.Tallies(ctx, q.clock(), lanes)
	beside.Wait()
	if err := cmp.Or(err, errEnded); err != nil {
		return nil, err
	}
	for i, queue := range queues {
		listed[i] = Listed{queue, tallies[lanes[i]], ended[lanes[i]]}
	}
	return listed, nil
}

// Peek returns up to limit messages, 1 to [core.MaxPage], that a consumer would
// receive now, in that order, and leaves them as they are.
func (q *Queues) Peek(ctx context.Context, name string, limit int) ([]core.TakenJob, error) {
	lane, err := q.lane(ctx, name)
	if err != nil {
		return nil, err
	}
	return q.store.Peek(ctx, q.clock(), lane, limit)
}

// DeadLetters lists the dead messages of a queue newest first, those below the id
// after if that is set. Limit is 1 to [core.MaxPage]; 0 means [core.DefaultPage].
func (q *Queues) DeadLetters(ctx context.Context, name string, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	lane, err := q.lane(ctx, name)
	if err != nil {
		return core.Page[core.TakenJob]{}, err
	}
	return q.store.DeadLetters(ctx, lane, after, limit)
}

// Retry makes dead messages of a queue visible again, with all their attempts, and returns
// their number. An empty id means all of them, by an operation: see [Operations.Do]. Otherwise it is the
// message with this id, also if that message is canceled or only not visible yet. Other messages do not
// count. An id of another queue is refused with [core.NotFound].
func (q *Queues) Retry(ctx context.Context, name string, id core.ID) (Retried, error) {
	lane, err := q.lane(ctx, name)
	if err != nil {
		return Retried{}, err
	}
	if id == "" {
		op, err := q.Bulk.Do(ctx, Rush{Operation: retryOf(lane), Change: change(core.AuditRetryQueue, string(lane))})
		return retriedOf(op, q.Observe, lane), err
	}
	job, err := q.owns(ctx, lane, id)
	if err != nil {
		return Retried{}, err
	}
	n, err := q.store.Retry(audited(ctx, core.AuditRetryQueue, string(lane), "message", string(id)), q.clock(), id, lane)
	if n > 0 {
		q.Bell.Ring(lane)
		tell(q.Observe, core.Revived{ID: id, Lane: lane, Jobs: n, Early: !job.Status.Finished(), Canceled: job.Status == core.Canceled})
	}
	return Retried{Jobs: n}, err
}

// owns returns a job of a lane, and refuses one of another lane.
func (q *Queues) owns(ctx context.Context, lane core.Lane, id core.ID) (core.Job, error) {
	job, err := q.store.Job(ctx, id)
	if core.IsKind(err, core.NotFound) || err == nil && job.Lane != lane {
		err = ErrJob
	}
	return job, err
}

// Drain deletes the messages of a queue, visible, in flight and dead, and returns their
// number. Messages that are sent meanwhile may stay. After an error it returns the number
// of messages that it had deleted.
func (q *Queues) Drain(ctx context.Context, name string) (int, error) {
	lane, err := q.lane(ctx, name)
	if err != nil {
		return 0, err
	}
	below := core.FirstID(q.clock().Add(aheadMost))
	ctx = audited(ctx, core.AuditDrain, string(lane)) // one entry for all its commits
	for total := 0; ; {
		n, err := q.store.Drain(ctx, lane, below, drainChunk)
		total += n
		if err != nil || n < drainChunk {
			if total > 0 {
				q.Bell.Ring(lane) // messages that arrived meanwhile may be the next of their lines
				tell(q.Observe, core.Drained{Queue: name, Messages: total})
			}
			return total, err
		}
	}
}

// tell states a fact, if there is an observer.
func tell(o core.Observer, f core.Fact) {
	if o != nil {
		o(f)
	}
}

// lane returns the lane of an existing queue.
func (q *Queues) lane(ctx context.Context, name string) (core.Lane, error) {
	if _, ok := q.configured(name); !ok {
		if _, err := q.Queue(ctx, name); err != nil {
			return "", err
		}
	}
	return core.QueueLane(name), nil
}
