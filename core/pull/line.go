package pull

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// keepEvery is the time between two looks at a line that is not parked.
const keepEvery = time.Second

// Bounds of a claim and of one consumer's messages. Messages are in memory from the claim
// until they are sent. Bytes are counted as by [Size]. The line guesses the size of the next
// messages from the last ones. One message is taken and given however large it is. The rooms
// of all consumers bound the bytes that they get together.
const (
	maxClaim   = 10 * MaxBatch
	claimBytes = 32 << 20
	replyBytes = 8 << 20
	firstGuess = 64 << 10 // bytes of a message
)

// quickPart is the part of the visibility timeout that may pass between the beginning of a Take
// and the request of a consumer that gets messages of that Take: a twentieth.
const quickPart = 20

// A line is the waiting consumers of a queue. [Puller.mu] guards its fields.
type line struct {
	Queue
	lane    core.Lane
	waiting []*consumer // in the order of arrival

	claiming  bool // a goroutine takes for the line, or a message was reserved
	promising bool // there may be something to take

	// next is the known time at which a message becomes due, up to the next look; zero if
	// none does. If seen, the newest look included this line, so next is complete.
	next time.Time
	seen bool

	err     error // of the newest Take
	trouble core.Backoff

	size int // mean bytes of a message, about; zero before the first Take

	// keyed says that messages with a line key were received. There may be some although the queue
	// has no lines any more.
	keyed bool

	blocked bool // no waiting consumer has room

	reserved time.Time // when a message was reserved that has not arrived

	kept time.Time // the last look at the line that keepUp knows of

	gate   core.Gate // as the newest look found it
	gateAt time.Time // when that look began; zero before the first
}

// A consumer is a caller of Receive that waits in a line.
type consumer struct {
	n      int
	asked  bool // a Take has begun since it arrived, and so for all consumers before it
	over   bool // its wait is over
	answer chan answer

	room    Room
	granted int   // bytes that its room reserved for the Take that is under way
	full    *Full // why the room granted nothing; nil if it granted bytes
}

// An answer is the result for one consumer. It is sent once, when the consumer leaves the
// line.
type answer struct {
	messages []core.TakenJob
	err      error
}

// stand makes a consumer wait in a line until it gets an answer, or leaves with ctx or Close.
func (p *Puller) stand(ctx context.Context, l *line, r Request) answer {
	c := &consumer{n: r.N, over: r.Wait == 0, answer: make(chan answer, 1), room: r.Room}
	if c.room == nil {
		c.room = endless{}
	}
	p.join(l, c)
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	for {
		select {
		case a := <-c.answer:
			return a
		case <-timer.C:
			p.expire(l, c) // a Take under way may still bring the answer, so the loop goes on
		case <-ctx.Done():
			return p.leave(l, c)
		case <-p.closing.Done():
			return p.leave(l, c)
		}
	}
}

// join adds a consumer to the end of a line, and starts a claim. A claim that is under way already
// may serve the consumer too.
func (p *Puller) join(l *line, c *consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.waiting = append(l.waiting, c)
	p.arrived()
	p.start(l)
}

// expire ends a consumer's wait. The consumer is answered at once if no claim is under way,
// and otherwise soon.
func (p *Puller) expire(l *line, c *consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.over = true
	self := func(other *consumer) bool { return other == c }
	if l.blocked {
		l.turnAway(self)
	} else if !l.claiming {
		l.dismiss(answer{err: l.err}, self)
		p.nudge()
	}
}

// leave removes a consumer from the line, and returns the answer that it may have got before.
func (p *Puller) leave(l *line, c *consumer) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.dismiss(answer{}, func(other *consumer) bool { return other == c })
	p.nudge()
	return <-c.answer
}

// dismiss answers the consumers that the function selects, and reports whether there were
// any.
func (l *line) dismiss(a answer, whom func(*consumer) bool) bool {
	before := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(c *consumer) bool {
		if !whom(c) {
			return false
		}
		c.answer <- a
		return true
	})
	return len(l.waiting) < before
}

// wake notes that the line may have due messages, and starts a claim.
func (p *Puller) wake(l *line) {
	l.promising = true
	p.start(l)
}

// start starts a claim for a line, if consumers wait in it and no claim is under way.
func (p *Puller) start(l *line) {
	if !l.claiming && len(l.waiting) > 0 && !p.closed {
		l.claiming = true
		p.work.Go(func() { p.claim(l) })
	}
}

// claim takes messages for a line until no consumer waits or no messages are due. It uses no
// caller's context, since it takes for many callers.
func (p *Puller) claim(l *line) {
	for take := p.ask(l); take.n > 0; take = p.ask(l) {
		quota := core.Quota{Lane: l.lane, N: take.n, Hold: l.Visibility, Lines: l.Lines.Limit, Bytes: take.bytes}
		began := p.Clock()
		taken, err := p.Worklist.Take(context.Background(), began, []core.Quota{quota})
		if err != nil {
			p.fail(l, err)
			continue
		}
		p.share(l, taken, take.n, began)
		p.keepUp(l)
	}
}

// keepUp looks at a line that is not parked, about once a second. Such a line is busy, or its
// consumers do not wait. A store starts a claim at the due time that the last look found, to
// skip deleted rows. Without looks it would miss messages that other processes store with an
// earlier due time.
func (p *Puller) keepUp(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock()
	if l.seen && p.looked.After(l.kept) {
		l.kept = p.looked
	}
	if now.Sub(l.kept) < keepEvery || len(l.waiting) > 0 && !l.promising {
		return // a look included it, or will when it is parked
	}
	l.kept = now
	p.work.Go(func() {
		_ = p.lookAtGate(p.closing, l) // the next Take reports an error of the store
	})
}

// ask plans the next Take for the consumers of a line. It ends the claim and returns an empty
// plan in two cases: a Take was made for each consumer and no more messages are expected, or
// no consumer has room.
func (p *Puller) ask(l *line) (take plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(l.waiting) - 1
	if p.closed || last < 0 || !l.promising && l.waiting[last].asked {
		p.rest(l)
		return plan{}
	}
	l.promising, l.blocked = false, false
	l.pass(p.Clock())
	if take = l.plan(); take.n == 0 {
		p.block(l)
		p.rest(l)
		return plan{}
	}
	for _, c := range l.waiting {
		c.asked = true
	}
	return take
}

// rest ends a claim. Consumers that still wait are parked.
func (p *Puller) rest(l *line) {
	l.claiming = false
	if len(l.waiting) > 0 {
		p.park(l)
	} else {
		p.nudge()
	}
}

// guess returns the estimated bytes of a message.
func (l *line) guess() int {
	if l.size == 0 {
		return firstGuess
	}
	return l.size
}

// weigh updates the estimated size from the taken messages. It follows larger messages at
// once and smaller ones by a quarter of the difference.
func (l *line) weigh(taken []core.TakenJob) {
	total, n := 0, 0
	for _, m := range taken {
		if !m.Bare {
			total, n = total+Size(m), n+1
		}
	}
	if n == 0 {
		return
	}
	mean := 1 + total/n
	l.size = max(mean, (3*l.guess()+mean)/4)
}

// share gives each consumer in the line as many messages as it asked for, in the order of
// arrival, while there are any. Earlier consumers may have left, so consumers that arrived
// during the Take get messages too, but only if the Take was quick: the visibility timeout runs
// from the beginning of the Take, and such a consumer counts it from its own request. A
// consumer whose wait is over stays only if more messages may be due.
func (p *Puller) share(l *line, taken []core.TakenJob, n int, began time.Time) {
	messages, spent, bare := sort(taken)
	p.mu.Lock()
	quick := p.Clock().Sub(began) <= l.Visibility/quickPart
	l.err, l.trouble = nil, 0
	l.weigh(taken)
	l.waiting = slices.DeleteFunc(l.waiting, func(c *consumer) bool {
		if !c.asked && !quick {
			return false
		}
		k := c.fill(messages)
		messages = messages[k:]
		return k > 0
	})
	back := append(bare, messages...) // their consumer has left, or they are larger than the guess
	if len(taken) < n && len(back) == 0 {
		l.emptied()
	} else {
		l.promising = true
	}
	for _, m := range taken {
		p.expect(l, m.DueAt)
		l.keyed = l.keyed || m.Line != ""
	}
	p.mu.Unlock()
	p.giveBack(l, back)
	p.bury(l, spent)
}

// emptied answers the consumers for which a Take was made and whose wait is over. The queue
// is empty, so they get no error of their room.
func (l *line) emptied() {
	for _, c := range l.waiting {
		if c.asked {
			c.full = nil
		}
	}
	l.dismiss(answer{}, func(c *consumer) bool { return c.asked && c.over })
}

// backTime is how long a line waits for messages that are being given back.
const backTime = time.Second

// giveBack returns messages that no consumer gets. It waits for the store, or the next Take
// would not find these messages and report an empty queue. It waits no longer than backTime,
// which bounds the delay of the next consumer.
func (p *Puller) giveBack(l *line, messages []core.TakenJob) {
	if len(messages) == 0 {
		return
	}
	done := make(chan struct{})
	p.work.Go(func() {
		defer close(done)
		p.Return(context.Background(), l.Name, messages)
	})
	select {
	case <-done:
	case <-time.After(backTime):
	}
}

// sort separates the messages for consumers, the spent messages, which were received too
// often, and the bare messages. A Take does not say which of its jobs was due first, so
// messages that were received before go behind the others.
func sort(taken []core.TakenJob) (messages, spent, bare []core.TakenJob) {
	var again []core.TakenJob
	for _, m := range taken {
		switch {
		case m.Bare:
			bare = append(bare, m)
		case m.Spent():
			spent = append(spent, m)
		case m.Round() > 1:
			again = append(again, m)
		default:
			messages = append(messages, m)
		}
	}
	return append(messages, again...), spent, bare
}

// fail answers with an error the consumers that cannot wait until it passes. If there are
// none, it reports the error as a fact.
func (p *Puller) fail(l *line, err error) {
	p.mu.Lock()
	for _, c := range l.waiting {
		c.fill(nil)
	}
	passes := core.IsKind(err, core.Unavailable)
	told := l.dismiss(answer{err: err}, func(c *consumer) bool { return c.asked && (c.over || !passes) })
	l.err = err
	l.next = p.Clock().Add(l.trouble.Next())
	p.mu.Unlock()
	if !told {
		p.Observe(core.Troubled{Doing: "take", Err: err})
	}
}
