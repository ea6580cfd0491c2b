// Package pull serves queues. Consumers receive messages, may wait for messages while a queue
// is empty, and answer with ack, nack or extend. The package imports core only.
//
// The idea to know: a queue is a lane, and a consumer claims jobs from it as a worker does. A
// worker settles a job with the handler's reply, a consumer with an ack or a nack. A message
// without an answer becomes visible again when its lease, the visibility timeout, has ended.
//
// The consumers of a queue stand in one line, and one claim at a time serves the whole line.
// Consumers that arrive while a Take is under way share the next Take. So 16 busy consumers
// share their Takes as a group commit shares a write, and 1,000 waiting consumers cause no
// Takes while nothing is due. A line without consumers has no goroutine, and a waiting
// consumer holds no database connection.
//
// For each consumer a Take begins after its arrival, for it alone or together with others. If
// the Take returns no messages, the consumer is parked until one of these:
//
//   - A message is accepted in this process. It is taken in the commit that stores it, for the first
//     consumer (express.go), unless many events come at the same time.
//   - The bell rings: a message was accepted, nacked or given back in this process.
//   - A message that the line knows of becomes due, after a nack's delay or at a lease's end, or
//     because the message before it in its line of equal keys has ended.
//   - A look finds due messages. There is one look for all queues each Rest.
//   - The consumer's wait is over.
//
// A consumer has a [Room] for its messages, so that unread replies do not fill the memory. If
// no consumer of a line has room, the line is blocked until bytes come back.
//
// Where to change something: line.go and room.go decide which consumer gets which messages,
// watch.go decides when to look, answer.go has ack, nack and extend, and quiet.go tracks
// goroutines that outlive a call.
package pull

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Bounds of a Request and of an ack, nack or extend.
const (
	MaxWait  = 30 * time.Second
	MaxBatch = 100  // messages at once
	MaxRefs  = 1000 // ids in one ack, nack or extend
)

// Bounds of a visibility timeout and of a delay.
const (
	MinVisibility = time.Millisecond
	MaxVisibility = 7 * 24 * time.Hour
)

// A Worklist is the part of a store that this package uses.
type Worklist interface {
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error)
	Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error)
	Release(ctx context.Context, due time.Time, jobs ...core.Job) error
	core.Counter
	AckLined(ctx context.Context, now time.Time, lane core.Lane, limit int, refs []core.Ref) (int, error)
}

// A Queue is a configured queue.
type Queue struct {
	Name       string
	Visibility time.Duration // how long a received message is invisible to other consumers
	Lines      core.LineRules
}

// Deps are the dependencies of a Puller.
type Deps struct {
	Worklist Worklist
	Bell     *core.Bell // rung when lanes get work; may be nil
	Clock    core.Clock
	Observe  core.Observer

	// Obituary makes an arrival of a message that died, such as an alert. The arrival is
	// stored in the commit that ends the message. Obituary may be nil and may return nil.
	Obituary func(core.TakenJob, core.Outcome) *core.Arrival

	// Rest is the mean time between two looks, and so about the longest time until a consumer
	// gets a message that another process stored. Each wait differs from Rest by up to 25 %.
	// Zero means one second.
	Rest time.Duration
}

// A Puller serves queues. Its methods may be called concurrently.
type Puller struct {
	Deps
	heard  *core.Listener
	nudged chan struct{} // tells the watcher that its state has changed
	work   crew

	closing context.Context // done once closed
	stop    context.CancelFunc

	mu       sync.Mutex       // guards the fields below
	lines    map[string]*line // by queue; the map itself does not change
	came     chan struct{}    // closed when the next consumer arrives; nil if no caller waits for that
	closed   bool
	watching bool
	looking  bool
	looked   time.Time       // when the newest look began
	freed    <-chan struct{} // closed when blocked lines may find room; nil if no line is blocked
	lookAt   time.Time       // when the next look is due
}

// New makes a Puller for these queues. Call its Close at the end.
func New(d Deps, queues []Queue) *Puller {
	d.Bell = cmp.Or(d.Bell, &core.Bell{})
	d.Rest = cmp.Or(d.Rest, time.Second)
	p := &Puller{Deps: d, lines: make(map[string]*line, len(queues)), nudged: make(chan struct{}, 1)}
	var lanes []core.Lane
	for _, q := range queues {
		l := &line{Queue: q, lane: core.QueueLane(q.Name)}
		p.lines[q.Name] = l
		lanes = append(lanes, l.lane)
	}
	p.heard = d.Bell.Listen(lanes...)
	p.closing, p.stop = context.WithCancel(context.Background())
	return p
}

// ErrQueue is the error for a queue that is not configured.
var ErrQueue = core.Refuse(core.NotFound, "queue not found")

// A Request is a consumer's request for messages.
type Request struct {
	Queue string
	N     int           // messages at most, 1 to MaxBatch
	Wait  time.Duration // for the first message, at most MaxWait
	Room  Room          // for the messages; nil means no bound
}

// Receive returns up to r.N messages. If there are none, it waits for messages, up to r.Wait.
// It returns no messages and no error if none came. Consumers are served in the order of
// their arrival.
//
// A consumer whose room has no bytes for one message waits as on an empty queue. It gets the
// error of its room when the wait is over: Receive reports an empty queue only if the queue
// is empty. A consumer with little room gets fewer messages.
//
// If the store is unavailable, a consumer with a wait waits for the store as well, and gets
// the error when the wait is over. When ctx is done, Receive returns the error of ctx, and
// messages that were taken meanwhile are given back. An unknown queue is refused with
// [ErrQueue], and an N or Wait out of bounds with [core.Invalid].
func (p *Puller) Receive(ctx context.Context, r Request) ([]core.TakenJob, error) {
	l, ok := p.lines[r.Queue]
	switch {
	case !ok:
		return nil, ErrQueue
	case r.N < 1 || r.N > MaxBatch:
		return nil, core.Refuse(core.Invalid, "batch must be a number from 1 to %d, not %d", MaxBatch, r.N)
	case r.Wait < 0 || r.Wait > MaxWait:
		return nil, core.Refuse(core.Invalid, "wait must be a duration from 0s to 30s, not %v", r.Wait)
	}
	got := p.stand(ctx, l, r)
	if ctx.Err() != nil {
		p.Return(ctx, r.Queue, got.messages)
		return nil, ctx.Err()
	}
	p.state(l, core.MessagesReceived, len(got.messages))
	return got.messages, got.err
}

// returnTime is how long Return tries to give messages back. Messages that it could not give
// back become visible again after their visibility timeout, and have lost an attempt.
const returnTime = 10 * time.Second

// Return gives back messages that did not reach their consumer. They are visible at once, and
// the attempt does not count. Return does so even if ctx is done. If the store is
// unavailable, it tries for 10 seconds.
func (p *Puller) Return(ctx context.Context, queue string, messages []core.TakenJob) {
	l := p.lines[queue]
	if l == nil || len(messages) == 0 {
		return
	}
	jobs := make([]core.Job, len(messages))
	for i, m := range messages {
		jobs[i] = m.Job
	}
	// The consumer has disconnected, so its ctx is usually done. Without the release its messages
	// would stay invisible until their leases end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	for trouble := core.Backoff(0); ctx.Err() == nil; {
		err := p.Worklist.Release(ctx, p.Clock(), jobs...)
		if err == nil {
			p.state(l, core.MessagesReturned, len(messages))
			if p.awaits(l, p.Clock()); p.closing.Err() != nil {
				p.Bell.Ring(l.lane) // another Puller may serve the queue now
			}
			return
		}
		p.Observe(core.Troubled{Doing: "release", Err: err})
		// Any other error would come again. Then the leases end, and the attempts count.
		if !core.IsKind(err, core.Unavailable) {
			return
		}
		select {
		case <-time.After(trouble.Next()):
		case <-ctx.Done():
		}
	}
}

// state reports the number of messages of an action, unless it is zero.
func (p *Puller) state(l *line, did core.PullAction, messages int) {
	if messages > 0 {
		p.Observe(core.Pulled{Queue: l.Name, Action: did, Messages: messages})
	}
}

// closeTime is how long Close waits for calls of the store under way.
const closeTime = 5 * time.Second

// Close answers all waiting consumers with no messages, and later ones as soon as they
// arrive. It returns when the messages of the Takes under way are given back, or after 5
// seconds. Another Puller that listens to the same bell then hears of the lanes.
func (p *Puller) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.Bell.Leave(p.heard)
	select {
	case <-p.work.left():
	case <-time.After(closeTime):
	}
}
