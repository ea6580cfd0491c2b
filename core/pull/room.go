package pull

import (
	"slices"

	"github.com/eventgateway/gateway/core"
)

// A Room is the memory for the messages of one consumer, from before a Take until the reply
// is written. Its methods do not block.
type Room interface {
	// Reserve grants between least and most bytes for messages that are about to be taken, in
	// addition to the bytes that the room holds. Or it grants nothing and returns why.
	Reserve(least, most int) (granted int, full *Full)

	// Hold sets the number of bytes that the consumer's messages have. The room gives back
	// the rest of the reserved bytes.
	Hold(bytes int)
}

// Full says why a room grants nothing.
type Full struct {
	// Freed is closed when bytes come back, to this room or to another one.
	Freed <-chan struct{}

	// Err is the error for a consumer whose wait is over. It is nil if only reservations are
	// in the way, which last no longer than a Take.
	Err error
}

// endless is a Room without a bound.
type endless struct{}

func (endless) Reserve(_, most int) (int, *Full) { return most, nil }
func (endless) Hold(int)                         {}

// overhead is the approximate number of bytes that a message needs in memory beside its
// payload.
const overhead = 1 << 10

// Size is the approximate number of bytes of a message in memory.
func Size(m core.TakenJob) int { return len(m.Event.Payload) + overhead }

// A plan reserves more than the guess, since messages differ in size. Messages beyond the
// reserved bytes come bare, and the line must give them back.
const (
	slack      = 4
	slackBytes = 64 << 10
)

// A plan is the size of a Take for the consumers in a line.
type plan struct {
	n     int // messages; 0 if no consumer has room for one
	bytes int // reserved for the messages
}

// plan reserves room for a Take. Consumers without room wait for the next Take, and so do
// consumers that would make the Take too large.
func (l *line) plan() (take plan) {
	guess := l.guess()
	most, enough := min(maxClaim, claimBytes/guess), false
	for _, c := range l.waiting {
		c.granted, c.full = 0, nil
		want := min(c.n, max(1, replyBytes/guess))
		if enough = enough || take.n > 0 && (take.n+want > most || take.bytes+guess > claimBytes); enough {
			continue
		}
		bytes := min(slack*want*guess+slackBytes, replyBytes, claimBytes-take.bytes)
		if c.granted, c.full = c.room.Reserve(guess, max(guess, bytes)); c.full == nil {
			take.n += min(want, max(1, c.granted/guess))
			take.bytes += c.granted
		}
	}
	return take
}

// block notes that no consumer in a line has room. It answers the consumers whose wait is
// over.
func (p *Puller) block(l *line) {
	for _, c := range l.waiting {
		if c.full != nil {
			l.blocked = true
			if p.freed == nil { // otherwise it is an earlier channel that is already closed, or the same one
				p.freed = c.full.Freed
			}
		}
	}
	l.turnAway(func(c *consumer) bool { return c.over })
}

// turnAway answers the meant consumers whose rooms are full of unread replies.
func (l *line) turnAway(meant func(*consumer) bool) {
	l.waiting = slices.DeleteFunc(l.waiting, func(c *consumer) bool {
		if c.full == nil || c.full.Err == nil || !meant(c) {
			return false
		}
		c.answer <- answer{err: c.full.Err}
		return true
	})
}

// unblock wakes the blocked lines after bytes came back.
func (p *Puller) unblock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freed = nil
	for _, l := range p.lines {
		if l.blocked {
			l.blocked = false
			p.wake(l)
		}
	}
}

// fill gives a consumer as many of the messages as it asked for and has room for, and returns
// how many. If no room was reserved for the consumer, fill tries again: other consumers may
// have left, or may have got less than was reserved for them.
func (c *consumer) fill(messages []core.TakenJob) (k int) {
	granted := c.granted
	if c.granted = 0; granted == 0 && len(messages) > 0 {
		least := Size(messages[0])
		granted, c.full = c.room.Reserve(least, max(least, min(replyBytes, c.n*least)))
	}
	if granted == 0 {
		return 0
	}
	bytes := 0
	for ; k < min(c.n, len(messages)); k++ {
		size := Size(messages[k])
		if k > 0 && bytes+size > min(granted, replyBytes) {
			break
		}
		bytes += size
	}
	if c.room.Hold(bytes); k == 0 {
		return 0
	}
	c.answer <- answer{messages: slices.Clone(messages[:k])} // a copy, so that the answer does not keep the messages of others in memory
	return k
}
