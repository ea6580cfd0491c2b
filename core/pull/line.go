package pull

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// keepEvery is how far apart the looks at a busy line are.
const keepEvery = time.Second

// What is taken at once at most, and what one consumer gets: messages are in memory from
// then until they are sent. Bytes are those of payloads, and of the next messages they
// are guessed from the last. One message is taken and given however large it is.
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

	kept time.Time // when there was last a look at it, as far as keepUp knows
}

// A consumer is one that stands in a line.
type consumer struct {
	n      int
	asked  bool // a Take has begun since it came; so it has for all before it
	over   bool // its wait is
	answer chan answer
}

// An answer is what a consumer gets, once, when it is out of the line.
type answer struct {
	messages []core.TakenJob
	err      error
}

// stand has a consumer stand in a line until it gets an answer or leaves.
func (p *Puller) stand(ctx context.Context, l *line, n int, wait time.Duration) answer {
	c := &consumer{n: n, over: wait == 0, answer: make(chan answer, 1)}
	p.join(l, c)
	timer := time.NewTimer(wait)
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

// expire ends a consumer's wait, at once if nobody is taking for it.
func (p *Puller) expire(l *line, c *consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.over = true
	if !l.claiming {
		l.dismiss(answer{err: l.err}, func(other *consumer) bool { return other == c })
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
	for n := p.ask(l); n > 0; n = p.ask(l) {
		quota := core.Quota{Lane: l.lane, N: n, Hold: l.Visibility}
		taken, err := p.Worklist.Take(context.Background(), p.Clock(), []core.Quota{quota})
		if err != nil {
			p.fail(l, err)
			continue
		}
		p.share(l, taken, n)
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

// ask is how many messages to take for those in a line. Zero ends the claim: they have
// been asked for, and there is no reason to think that there is more.
func (p *Puller) ask(l *line) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(l.waiting) - 1
	if p.closed || last < 0 || !l.promising && l.waiting[last].asked {
		l.claiming = false
		if last >= 0 {
			p.park(l)
		} else {
			p.nudge()
		}
		return 0
	}
	l.promising = false
	l.pass(p.Clock())
	most, full := min(maxClaim, claimBytes/l.guess()), false
	for _, c := range l.waiting {
		c.asked = true
		want := min(c.n, max(1, replyBytes/l.guess()))
		if full = full || n > 0 && n+want > most; !full {
			n += want
		}
	}
	return n
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
	if len(taken) == 0 {
		return
	}
	total := 0
	for _, m := range taken {
		total += len(m.Event.Payload)
	}
	mean := 1 + total/len(taken)
	l.size = max(mean, (3*l.guess()+mean)/4)
}

// portion is how many of the messages a consumer gets that asked for n.
func portion(messages []core.TakenJob, n int) (k int) {
	for bytes := 0; k < min(n, len(messages)); k++ {
		bytes += len(messages[k].Event.Payload)
		if k > 0 && bytes > replyBytes {
			break
		}
	}
	return k
}

// share gives the consumers in a line what they asked for, as long as there is any, also
// those who came while it was taken: others may have left. Whose wait is over stays only
// if there may be more.
func (p *Puller) share(l *line, taken []core.TakenJob, n int) {
	messages, spent := sort(taken)
	p.mu.Lock()
	l.err, l.trouble = nil, 0
	l.weigh(taken)
	served := 0
	for ; served < len(l.waiting) && len(messages) > 0; served++ {
		c := l.waiting[served]
		k := portion(messages, c.n)
		c.answer <- answer{messages: messages[:k:k]}
		messages = messages[k:]
	}
	l.waiting = slices.Delete(l.waiting, 0, served)
	if len(taken) < n {
		l.dismiss(answer{}, func(c *consumer) bool { return c.asked && c.over })
	} else {
		l.promising = true
	}
	for _, m := range taken {
		p.expect(l, m.DueAt)
	}
	p.mu.Unlock()
	if len(messages) > 0 { // whom they were for has left, or they are larger than was guessed
		p.work.Go(func() { p.Return(context.Background(), l.Name, messages) })
	}
	p.bury(l, spent)
}

// sort parts messages that may be given to consumers from those that have been too
// often. A Take does not tell which of its jobs was due first; but those that were
// received before, and came back, stand behind the others.
func sort(taken []core.TakenJob) (messages, spent []core.TakenJob) {
	var again []core.TakenJob
	for _, m := range taken {
		switch {
		case m.Spent():
			spent = append(spent, m)
		case m.Attempt > 1:
			again = append(again, m)
		default:
			messages = append(messages, m)
		}
	}
	return append(messages, again...), spent
}

// fail tells those of an error who cannot wait for better times. If nobody can be told,
// it is stated.
func (p *Puller) fail(l *line, err error) {
	p.mu.Lock()
	passes := core.IsKind(err, core.Unavailable)
	told := l.dismiss(answer{err: err}, func(c *consumer) bool { return c.asked && (c.over || !passes) })
	l.err = err
	l.next = p.Clock().Add(l.trouble.next())
	p.mu.Unlock()
	if !told {
		p.Observe(core.Troubled{Doing: "take", Err: err})
	}
}
