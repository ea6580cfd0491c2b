//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A holding is one delivery of a message, as its consumer knows it. The message was taken at
// some time between asked and got.
type holding struct {
	message, receipt string
	attempt          int
	asked, got       time.Time
}

// A word is a request of a consumer about messages, with the answer.
type word struct {
	verb            string // ack, nack or extend
	refs            []saying
	asked, answered time.Time
	unanswered      bool
	count           int           // number of messages for which the request succeeded, from the answer
	until           time.Duration // of an extend, or the delay of a nack
}

// A saying names a message in a word: by its receipt, or by its plain id if the receipt is "".
type saying struct{ message, receipt string }

// sure reports whether a word succeeded for all its messages. It is false if that is unknown.
func (w word) sure() bool { return !w.unanswered && w.count == len(w.refs) }

// void reports whether a word succeeded for none of its messages.
func (w word) void() bool { return !w.unanswered && w.count == 0 }

// notes are the notes of the consumers of a queue.
type notes struct {
	mu       sync.Mutex
	holdings []holding
	words    []word
	blind    int // upper bound of messages in lost answers
}

func (n *notes) hold(hs ...holding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holdings = append(n.holdings, hs...)
}

func (n *notes) say(w word) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.words = append(n.words, w)
}

func (n *notes) unread(batch int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.blind += batch
}

// acked returns the number of acked messages, from the answers.
func (n *notes) acked() (sum int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.words {
		if w.verb == "ack" {
			sum += w.count
		}
	}
	return sum
}

// A ruling is the result of checking notes.
type ruling struct {
	deliveries, messages int
	again                int // deliveries of messages that were delivered before
	telling              int // those deliveries of again that would have shown an overlap
	missing              int // attempts without a known delivery
	late, fenced         int // sayings by receipt that were certainly outdated, and words that contained some

	wrong []string
	done  map[string]bool // messages that were acked (true), or perhaps acked (false)
}

func (r *ruling) object(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

const (
	// coarse is the precision of times in a database.
	coarse = 2 * time.Millisecond

	// inherited bounds the time from a take to the request that got the message. The take may
	// have been for another consumer, which hung up.
	inherited = 20 * time.Millisecond
)

// A judge checks notes message by message.
type judge struct {
	*ruling
	visibility time.Duration
	early      time.Duration        // how much earlier than by the consumer's own clock a message may be visible
	holdings   map[string][]holding // by message, in the order of their attempts
	sayings    map[string][]*word   // by message, in the order of the requests
	mustBe     map[*word]int        // for how many of its messages a word must succeed
	cannotBe   map[*word]int        // for how many of its messages a word must fail
}

// rule checks notes of gateways whose clocks differ by up to skew. Each of its objections is certain: if
// an answer is missing or ambiguous, it decides for the gateway.
func (n *notes) rule(visibility, skew time.Duration) *ruling {
	n.mu.Lock()
	defer n.mu.Unlock()
	j := &judge{
		ruling: &ruling{deliveries: len(n.holdings), done: map[string]bool{}}, visibility: visibility, early: inherited + skew,
		holdings: map[string][]holding{}, sayings: map[string][]*word{}, mustBe: map[*word]int{}, cannotBe: map[*word]int{},
	}
	for _, h := range n.holdings {
		j.holdings[h.message] = append(j.holdings[h.message], h)
	}
	slices.SortStableFunc(n.words, func(a, b word) int { return a.asked.Compare(b.asked) })
	for i := range n.words {
		for _, s := range n.words[i].refs {
			j.sayings[s.message] = append(j.sayings[s.message], &n.words[i])
		}
	}
	j.messages = len(j.holdings)
	for _, m := range slices.Sorted(maps.Keys(j.holdings)) {
		slices.SortStableFunc(j.holdings[m], func(a, b holding) int { return a.attempt - b.attempt })
		j.message(m, j.holdings[m])
	}
	for i := range n.words {
		j.word(&n.words[i])
	}
	if j.missing > n.blind {
		j.object("%d attempts were seen by no consumer, and at most %d messages were claimed in unread answers", j.missing, n.blind)
	}
	return j.ruling
}

// message checks the deliveries of one message.
func (j *judge) message(m string, hs []holding) {
	j.missing += hs[0].attempt - 1
	j.again += len(hs) - 1
	for i, h := range hs {
		free := j.follow(h)
		if i+1 == len(hs) {
			break
		}
		next := hs[i+1]
		j.missing += next.attempt - h.attempt - 1
		if free.After(h.got) {
			j.telling++
		}
		switch {
		case next.attempt == h.attempt:
			j.missing++ // no attempt is missing here
			j.object("message %s: attempt %d was delivered twice", m, h.attempt)
		case next.got.Before(h.asked):
			j.object("message %s: attempt %d came before attempt %d", m, next.attempt, h.attempt)
		case next.got.Before(free.Add(-j.early)):
			j.object("message %s: attempt %d came %v before attempt %d was over", m, next.attempt, free.Sub(next.got), h.attempt)
		}
	}
	j.final(m, hs)
}

// follow follows the words of a consumer about a message that it holds. It returns the
// earliest time at which another consumer may get the message.
func (j *judge) follow(h holding) (free time.Time) {
	free = h.asked.Add(j.visibility)
	held, gone := true, false // certain; both are false after an ambiguous answer
	for _, w := range j.sayings[h.message] {
		if !w.by(h) {
			continue
		}
		if held && w.answered.Before(free.Add(-j.early)) && !j.ended(h.message, w) {
			j.mustBe[w]++
		}
		if gone || j.superseded(h, w) {
			j.cannotBe[w]++
		}
		if w.void() {
			continue
		}
		if w.verb != "extend" {
			held, gone = false, gone || w.sure()
		}
		if at := w.asked.Add(w.until); w.verb != "ack" && (w.sure() || at.Before(free)) {
			free = at
		}
	}
	return free
}

// by reports whether a word uses the receipt of a holding.
func (w *word) by(h holding) bool {
	return slices.Contains(w.refs, saying{h.message, h.receipt})
}

// superseded reports whether another consumer had the message before the word was sent.
func (j *judge) superseded(h holding, w *word) bool {
	return slices.ContainsFunc(j.holdings[h.message], func(o holding) bool { return o.attempt > h.attempt && o.got.Before(w.asked) })
}

// ended reports whether another ack of the message may have come before a word.
func (j *judge) ended(m string, w *word) bool {
	return slices.ContainsFunc(j.sayings[m], func(o *word) bool {
		return o != w && o.verb == "ack" && !o.void() && o.asked.Before(w.answered)
	})
}

// final compares the deliveries of a message with its acks: a successful ack is the end.
func (j *judge) final(m string, hs []holding) {
	var first *word
	for _, w := range j.sayings[m] {
		if w.verb != "ack" || w.void() {
			continue
		}
		j.done[m] = j.done[m] || w.sure()
		if !w.sure() {
			continue
		}
		if first != nil {
			j.object("message %s: acks of it counted twice", m)
		}
		first = w
		for _, h := range hs {
			switch {
			case h.asked.After(w.answered):
				j.object("message %s: attempt %d came after an ack that counted", m, h.attempt)
			case !w.by(h): // either an earlier word, or a word by id
			case hs[len(hs)-1].attempt > h.attempt:
				j.object("message %s: the ack of attempt %d counted, and there was attempt %d", m, h.attempt, hs[len(hs)-1].attempt)
			}
		}
	}
}

// word compares the count in the answer to a word with the possible counts.
func (j *judge) word(w *word) {
	least, most := j.mustBe[w], len(w.refs)-j.cannotBe[w]
	if j.cannotBe[w] > 0 {
		j.late += j.cannotBe[w]
		j.fenced++
	}
	if !w.unanswered && (w.count < least || w.count > most) {
		j.object("%s of %d messages, such as %s, counted %d, want %d to %d", w.verb, len(w.refs), w.refs[0].message, w.count, least, most)
	}
}

func TestRuling(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	const unit = 10 * time.Millisecond
	at := func(n int) time.Time { return zero.Add(time.Duration(n) * unit) }
	held := func(attempt, asked, got int) holding {
		return holding{"m", fmt.Sprint("r", attempt), attempt, at(asked), at(got)}
	}
	said := func(verb, receipt string, asked, count, until int) word {
		return word{verb, []saying{{"m", receipt}}, at(asked), at(asked + 5), false, count, time.Duration(until) * unit}
	}
	lost := func(w word) word { w.unanswered = true; return w }
	const visible = 100
	tests := []struct {
		name     string
		holdings []holding
		words    []word
		blind    int
		wrong    string // part of the objection; "" for none
	}{
		{"acked", []holding{held(1, 0, 5)}, []word{said("ack", "r1", 10, 1, 0)}, 0, ""},
		{"expired", []holding{held(1, 0, 5), held(2, 90, 101)}, nil, 0, ""},
		{"too soon", []holding{held(1, 0, 5), held(2, 80, 90)}, nil, 0, "before attempt 1 was over"},
		{"too soon, noted in the other order", []holding{held(2, 80, 90), held(1, 0, 5)}, nil, 0, "before attempt 1 was over"},
		{"the same attempt twice", []holding{held(1, 0, 5), held(1, 200, 205)}, nil, 0, "delivered twice"},
		{"backwards", []holding{held(2, 0, 5), held(1, 200, 205)}, nil, 1, "attempt 2 came before attempt 1"},
		{"an attempt without a consumer", []holding{held(1, 0, 5), held(3, 200, 205)}, nil, 0, "seen by no consumer"},
		{"an attempt whose answer was lost", []holding{held(1, 0, 5), held(3, 200, 205)}, nil, 1, ""},
		{"nacked", []holding{held(1, 0, 5), held(2, 20, 25)}, []word{said("nack", "r1", 10, 1, 0)}, 0, ""},
		{"nack that counted nothing", []holding{held(1, 0, 5), held(2, 20, 25)}, []word{said("nack", "r1", 10, 0, 0)}, 0, "before attempt 1 was over"},
		{"nacked, too soon after", []holding{held(1, 0, 5), held(2, 20, 25)}, []word{said("nack", "r1", 10, 1, 50)}, 0, "before attempt 1 was over"},
		{"nack without an answer", []holding{held(1, 0, 5), held(2, 20, 25)}, []word{lost(said("nack", "r1", 10, 0, 0))}, 0, ""},
		{"extended", []holding{held(1, 0, 5), held(2, 190, 195)}, []word{said("extend", "r1", 50, 1, 200)}, 0, "before attempt 1 was over"},
		{"extend that counted nothing", []holding{held(1, 0, 5), held(2, 190, 195)}, []word{said("extend", "r1", 95, 0, 200)}, 0, ""},
		{"in time and extended nothing", []holding{held(1, 0, 5)}, []word{said("extend", "r1", 50, 0, 200)}, 0, "want 1 to 1"},
		{"made shorter", []holding{held(1, 0, 5), held(2, 20, 25)}, []word{said("extend", "r1", 10, 1, 1)}, 0, ""},
		{"in time and not counted", []holding{held(1, 0, 5)}, []word{said("ack", "r1", 50, 0, 0)}, 0, "want 1 to 1"},
		{"late and not counted", []holding{held(1, 0, 5), held(2, 110, 115)}, []word{said("ack", "r1", 150, 0, 0)}, 0, ""},
		{"late and counted", []holding{held(1, 0, 5), held(2, 110, 115)}, []word{said("ack", "r1", 150, 1, 0)}, 0, "want 0 to 0"},
		{"late, and no other consumer had it", []holding{held(1, 0, 5)}, []word{said("ack", "r1", 150, 1, 0)}, 0, ""},
		{"late plain id", []holding{held(1, 0, 5), held(2, 110, 115)}, []word{said("ack", "", 150, 1, 0)}, 0, ""},
		{"again after an ack by plain id", []holding{held(1, 0, 5), held(2, 200, 205)}, []word{said("ack", "", 150, 1, 0)}, 0, "after an ack that counted"},
		{"again after an ack", []holding{held(1, 0, 5), held(2, 200, 205)}, []word{said("ack", "r1", 10, 1, 0)}, 0, "the ack of attempt 1 counted"},
		{"again after an ack without an answer", []holding{held(1, 0, 5), held(2, 200, 205)}, []word{lost(said("ack", "r1", 10, 0, 0))}, 0, ""},
		{"acked twice", []holding{held(1, 0, 5)}, []word{said("ack", "r1", 10, 1, 0), said("ack", "r1", 20, 1, 0)}, 0, "counted twice"},
		{"acked again", []holding{held(1, 0, 5)}, []word{said("ack", "r1", 10, 1, 0), said("ack", "r1", 20, 0, 0)}, 0, ""},
		{"acked again for want of an answer", []holding{held(1, 0, 5)}, []word{lost(said("ack", "r1", 10, 0, 0)), said("ack", "r1", 20, 1, 0)}, 0, ""},
		{"acked after a nack", []holding{held(1, 0, 5)}, []word{said("nack", "r1", 10, 1, 0), said("ack", "r1", 20, 1, 0)}, 0, "want 0 to 0"},
		{"acked by another consumer in between", []holding{held(1, 0, 5)}, []word{said("ack", "", 10, 1, 0), said("ack", "r1", 20, 0, 0)}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &notes{holdings: tt.holdings, words: tt.words, blind: tt.blind}
			got := n.rule(visible*unit, 0).wrong
			if found := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tt.wrong) }); found != (tt.wrong != "") {
				t.Errorf("objections: %q, want one with %q", got, tt.wrong)
			}
		})
	}
}
