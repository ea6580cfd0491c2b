package pull

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// keepEvery is how far apart the looks at a busy line are.
const keepEvery = time.Second

// The most that a claim takes, and that one consumer gets: messages are in memory from the
// claim until they are sent. Bytes are those of [Size]. The line guesses the size of the next
// messages from the last ones. One message is taken and given however large it is. The rooms
// of all consumers bound the bytes that they get together.
const (
	maxClaim   = 10 * MaxBatch
	claimBytes = 32 << 20
	replyBytes = 8 << 20
	firstGuess = 64 << 10 // bytes of a message
)

// A line is where the consumers of a queue stand. What is in it is guarded by
// [Puller.mu].
type line struct {
	Queue
	lane    core.Lane
	waiting []*consumer // who came first is first

	claiming  bool // somebody takes for the line
	promising bool // there may be something to take

	// next is when something comes due by itself, as far as is known up to the next look;
	// zero if nothing does. It is all there is to know if the newest look saw the line.
	next time.Time
	seen bool

	err     error // of the newest Take
	trouble backoff

	size int // of a message, about, in bytes; zero if none was taken yet

	blocked bool // no waiting consumer has room

	kept time.Time // when there was last a look at it, as far as keepUp knows
}

// A consumer is one that stands in a line.
type consumer struct {
	n      int
	asked  bool // a Take has begun since it came; so it has for all before it
	over   bool // its wait is
	answer chan answer

	room    Room
	granted int   // bytes that its room reserved for the Take that is under way
	full    *Full // why the room granted nothing; nil if it granted bytes
}

// An answer is what a consumer gets, once, when it is out of the line.
type answer struct {
	messages []core.TakenJob
	err      error
}

// stand has a consumer stand in a line until it gets an answer or leaves.
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
			p.expire(l, c)
		case <-ctx.Done():
			return p.leave(l, c)
		case <-p.closing.Done():
			return p.leave(l, c)
		}
	}
}

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

// leave takes a consumer out of the line, and returns what it had got before.
func (p *Puller) leave(l *line, c *consumer) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.dismiss(answer{}, func(other *consumer) bool { return other == c })
	p.nudge()
	return <-c.answer
}

// dismiss answers some of those who wait, and reports whether there were any.
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

// wake tells a line that there may be something to take.
func (p *Puller) wake(l *line) {
	l.promising = true
	p.start(l)
}

// start has somebody take for a line, if nobody does and somebody waits.
func (p *Puller) start(l *line) {
	if !l.claiming && len(l.waiting) > 0 && !p.closed {
		l.claiming = true
		p.work.Go(func() { p.claim(l) })
	}
}

// claim takes for those who stand in a line, until nobody does or there is nothing for
// them. It stands under no caller's context: what it takes is for many.
func (p *Puller) claim(l *line) {
	for take := p.ask(l); take.n > 0; take = p.ask(l) {
		quota := core.Quota{Lane: l.lane, N: take.n, Hold: l.Visibility, Bytes: take.bytes}
		taken, err := p.Worklist.Take(context.Background(), p.Clock(), []core.Quota{quota})
		if err != nil {
			p.fail(l, err)
			continue
		}
		p.share(l, taken, take.n)
		p.keepUp(l)
	}
}

// keepUp looks at a line that is not parked, now and then: one that is too busy, or
// whose consumers do not wait. A store begins a claim where the last look found something
// due, so as not to step over what is gone; without looks it would not see what others
// store behind that.
func (p *Puller) keepUp(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock()
	if l.seen && p.looked.After(l.kept) {
		l.kept = p.looked
	}
	if now.Sub(l.kept) < keepEvery || len(l.waiting) > 0 && !l.promising {
		return // it was looked at, or will be when it is parked
	}
	l.kept = now
	p.work.Go(func() {
		_, _ = p.Worklist.Due(p.closing, []core.Lane{l.lane}) // what ails the store, the next Take tells
	})
}

// ask plans the next Take for the consumers of a line. It ends the claim and returns an empty
// plan if a Take was made for all of them and no more messages are expected, or if no
// consumer has room.
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

// rest ends a claim.
func (p *Puller) rest(l *line) {
	l.claiming = false
	if len(l.waiting) > 0 {
		p.park(l)
	} else {
		p.nudge()
	}
}

// guess is about how many bytes a message has.
func (l *line) guess() int {
	if l.size == 0 {
		return firstGuess
	}
	return l.size
}

// weigh learns from what was taken how large messages are: larger ones at once, smaller
// ones little by little.
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

// share gives the consumers in a line what they asked for, as long as there is any, also
// those who came while it was taken: others may have left. Whose wait is over stays only
// if there may be more.
func (p *Puller) share(l *line, taken []core.TakenJob, n int) {
	messages, spent, bare := sort(taken)
	p.mu.Lock()
	l.err, l.trouble = nil, 0
	l.weigh(taken)
	l.waiting = slices.DeleteFunc(l.waiting, func(c *consumer) bool {
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

// sort separates messages for consumers, spent messages, which were received too often, and
// bare messages. A Take does not tell which of its jobs was due first. Messages that were
// received before, and came back, stand behind the others.
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

// fail tells those of an error who cannot wait for better times. If nobody can be told,
// it is stated.
func (p *Puller) fail(l *line, err error) {
	p.mu.Lock()
	for _, c := range l.waiting {
		c.fill(nil)
	}
	passes := core.IsKind(err, core.Unavailable)
	told := l.dismiss(answer{err: err}, func(c *consumer) bool { return c.asked && (c.over || !passes) })
	l.err = err
	l.next = p.Clock().Add(l.trouble.next())
	p.mu.Unlock()
	if !told {
		p.Observe(core.Troubled{Doing: "take", Err: err})
	}
}
