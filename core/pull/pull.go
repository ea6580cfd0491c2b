// Package pull serves queues: consumers receive messages, waiting for some if there
// are none, and say what became of them. It imports core only.
//
// The idea to know: a queue is a lane, and a consumer is one more taker of it. What a
// worker does with a handler's answer, a consumer does with an ack or a nack; a message
// that nobody answers for comes back when its lease, the visibility timeout, is over.
//
// Consumers of a queue stand in one line, and one claimer takes for all of them: while
// a Take is under way, those who come gather for the next. So it is with sixteen busy
// consumers as with a group commit, and a thousand who wait ask the store nothing. A
// line with nobody in it has no goroutine, and who waits holds no connection.
//
// For each that comes a Take begins, for it alone or with others. If that brings it
// nothing, it is parked until
//
//   - the bell rings: something was accepted, nacked or given back in this process,
//   - a message comes due that was known to, after a nack's delay or at a lease's end,
//   - the look that is made each Rest, one for all queues, finds messages due,
//   - or its wait is over.
//
// A consumer has a [Room] for its messages, so that unread replies do not fill the memory. If
// no consumer of a line has room, the line is blocked until bytes come back.
//
// Where to change something: who gets what in line.go and room.go, when to look in watch.go, what
// an ack, nack or extend leads to in answer.go, what runs beside all that in quiet.go.
package pull

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Bounds of what consumers ask for.
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

// A Worklist is what of a store's worklist and counter this package uses.
type Worklist interface {
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error)
	Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error)
	Release(ctx context.Context, due time.Time, jobs ...core.Job) error
	core.Counter
}

// A Queue is one as consumers know it.
type Queue struct {
	Name       string
	Visibility time.Duration // how long a message that was received is invisible to others
}

// Deps is what queues work with.
type Deps struct {
	Worklist Worklist
	Bell     *core.Bell // rung when lanes get work; may be nil
	Clock    core.Clock
	Observe  core.Observer

	// Obituary is what comes of a message that died, such as an alert; it is stored in
	// the commit that ends it. Nil means that nothing does, and so may it.
	Obituary func(core.TakenJob, core.Outcome) *core.Arrival

	// Rest is how long a consumer waits at most for what another process stored, give or
	// take a quarter. Zero means a second.
	Rest time.Duration
}

// A Puller serves queues. It is safe for concurrent use.
type Puller struct {
	Deps
	heard  *core.Listener
	nudged chan struct{} // there is something new for the watcher
	work   crew

	closing context.Context // done once closed
	stop    context.CancelFunc

	mu       sync.Mutex       // guards what follows
	lines    map[string]*line // by queue; the map itself stays as it is
	came     chan struct{}    // closed when the next consumer comes; nil if nobody asked for that
	closed   bool
	watching bool
	looking  bool
	looked   time.Time       // when the newest look began
	freed    <-chan struct{} // closed when blocked lines may find room; nil if no line is blocked
	lookAt   time.Time       // when the next is to
}

// New makes one.
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

// ErrQueue is the refusal of a queue that is not configured.
var ErrQueue = core.Refuse(core.NotFound, "queue not found")

// A Request is what a consumer asks for.
type Request struct {
	Queue string
	N     int           // messages at most, 1 to MaxBatch
	Wait  time.Duration // for the first message, at most MaxWait
	Room  Room          // for the messages; nil means no bound
}

// Receive returns messages. If there are none it waits for some, up to the request's Wait. No
// messages after the wait is no error. The consumer that came first is served first.
//
// A consumer whose room has no bytes for one message waits as on an empty queue. It gets the
// error of its room when the wait is over: Receive reports an empty queue only if the queue
// is empty. A consumer with little room gets fewer messages.
//
// If the store is unavailable, who may wait does so, for the store too, and gets the
// error when the wait is over. When ctx is done, Receive returns its error, and messages
// that were taken meanwhile are given back.
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

// returnTime is how long to try to give messages back. The visibility timeout of those
// that could not be does it then, and they have lost an attempt.
const returnTime = 10 * time.Second

// Return gives messages back whose consumer did not get them: they are visible at once
// and the attempt is not counted. It does so even if ctx is done, and tries for 10
// seconds if the store is unavailable.
func (p *Puller) Return(ctx context.Context, queue string, messages []core.TakenJob) {
	l := p.lines[queue]
	if l == nil || len(messages) == 0 {
		return
	}
	jobs := make([]core.Job, len(messages))
	for i, m := range messages {
		jobs[i] = m.Job
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	for trouble := backoff(0); ctx.Err() == nil; {
		err := p.Worklist.Release(ctx, p.Clock(), jobs...)
		if err == nil {
			p.state(l, core.MessagesReturned, len(messages))
			if p.awaits(l, p.Clock()); p.closing.Err() != nil {
				p.Bell.Ring(l.lane) // somebody else may serve the queue now
			}
			return
		}
		p.Observe(core.Troubled{Doing: "release", Err: err})
		if !core.IsKind(err, core.Unavailable) {
			return
		}
		select {
		case <-time.After(trouble.next()):
		case <-ctx.Done():
		}
	}
}

// state tells what consumers of a queue did, if they did anything.
func (p *Puller) state(l *line, did core.PullAction, messages int) {
	if messages > 0 {
		p.Observe(core.Pulled{Queue: l.Name, Action: did, Messages: messages})
	}
}

// closeTime is how long Close waits for what is under way.
const closeTime = 5 * time.Second

// Close answers all who wait with no messages, and those who come later at once. It
// returns when what was being taken for them is given back, or after 5 seconds. The bell
// rings for others then.
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

// A backoff is the last of a growing series of waits.
type backoff time.Duration

func (b *backoff) next() time.Duration {
	*b = min(max(2*(*b), backoff(50*time.Millisecond)), backoff(2*time.Second))
	return time.Duration(*b)
}
