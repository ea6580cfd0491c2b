package flows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A ledger records the calls that the services saw, and decides their answers.
type ledger struct {
	t        testing.TB
	clock    *clock
	conn     store.Conn // for reads of the test only
	hospital *hospital

	mu        sync.Mutex
	random    *rand.Rand
	quiet     bool
	calls     []*entry
	events    int                      // number of takes, ends of gateways and callbacks
	leases    map[string]taking        // by generation and job
	keys      map[string]string        // path by key
	lapsed    map[string]bool          // paths that were called again after a lease had ended, while its process lived and had not settled its call
	waiting   map[string]chan struct{} // by generation: closed when one of its calls is held back
	callbacks map[string]string        // the accepted callback of each step
	called    map[string]int           // event number at which the callback of a step was accepted
	redriven  int                      // number of redrives
}

// An entry is a call.
type entry struct {
	*request
	began      time.Time
	generation string
	said       reply
	hold       chan struct{} // closed when the call is answered; nil if it was answered at once
	answered   bool
	tells      bool // has a token for a callback
	taking          // the take of its job
	settled    int  // event number at which a living process had stored the end of the call; 0 if none did
}

// A taking is the event number at which a gateway began to take a job, and the end of its
// lease.
type taking struct {
	taken int
	until time.Time
	job   core.ID
	lease core.Lease
	// number of the attempt, by which the success of a job is found
	number int
}

func newLedger(w *world, h *hospital, r *rand.Rand) *ledger {
	return &ledger{t: w.t, clock: w.clock, conn: w.conn, hospital: h, random: r, keys: map[string]string{}, leases: map[string]taking{},
		lapsed: map[string]bool{}, waiting: map[string]chan struct{}{}, called: map[string]int{}, callbacks: map[string]string{}}
}

// taking records that a gateway begins to take jobs. The returned function records the taken
// jobs. The store may have leased them at any time in between. With the begin recorded, a call
// counts as wrong only if its job was certainly taken after another gateway settled.
func (l *ledger) taking(generation int) func(jobs []core.TakenJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	began := l.events
	return func(jobs []core.TakenJob) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, j := range jobs {
			l.leases[fmt.Sprint(generation, j.ID)] = taking{began, j.DueAt, j.ID, j.Lease, j.Number()}
		}
	}
}

// calledBack records a callback of a step, by its token and body, and whether it was accepted.
// Only one callback may be accepted, and its repeats.
func (l *ledger) calledBack(step, callback string, accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	switch first := l.callbacks[step]; {
	case accepted && first == "":
		l.callbacks[step], l.called[step] = callback, l.events
	case accepted && first != callback:
		l.t.Errorf("a second callback of %s is accepted", step)
	case !accepted && first == callback:
		l.t.Errorf("the callback of %s that was accepted is refused when it is repeated", step)
	}
}

// redrives records that the run is about to be redriven.
func (l *ledger) redrives() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.redriven++
}

// answer records a call and decides its answer.
func (l *ledger) answer(q *request) *reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, generation, _ := strings.Cut(q.Header.Get("user-agent"), "/")
	e := &entry{request: q, began: l.clock.now(), generation: generation, tells: strings.Contains(q.Body, `"token":`),
		said: reply{status: 200, body: fmt.Sprintf(`{"items": [%d, 5]}`, len(q.step))}}
	if !l.quiet {
		switch n := l.random.IntN(20); {
		case n < 3:
			e.said = reply{status: 503}
		case n < 5:
			e.said = reply{status: 404}
		case n == 5:
			e.said = reply{do: "reset"}
		}
		if l.random.IntN(3) == 0 {
			e.hold = make(chan struct{})
		}
	}
	e.taking = l.leases[generation+q.Header.Get("x-gateway-job-id")]
	l.judge(e)
	l.calls = append(l.calls, e)
	return &e.said
}

// judge reports the violations of a call.
func (l *ledger) judge(e *entry) {
	if path, known := l.keys[e.key]; known && path != e.step {
		l.t.Errorf("%s and %s are called with the key %s", path, e.step, e.key)
	}
	l.keys[e.key] = e.step
	if n := l.keysOf(e.step); n > 1+l.redriven {
		l.t.Errorf("%s was called with %d keys after %d redrives", e.step, n, l.redriven)
	}
	if called := l.called[e.step]; 0 < called && called < e.taken {
		l.t.Errorf("%s is called again by gateway %s after its callback was accepted", e.step, e.generation)
	}
	overlap := slices.ContainsFunc(l.calls, func(old *entry) bool {
		open := old.settled == 0 || e.taken < old.settled // the job of e was taken before old was settled
		return old.step == e.step && open && !e.began.Before(old.until) && (l.alive(old) || l.stored(old.taking))
	})
	l.lapsed[e.step] = l.lapsed[e.step] || overlap
	for _, old := range l.calls {
		switch {
		case old.step != e.step:
		case old.key != e.key && !e.tells:
			l.t.Errorf("%s is called with the keys %s and %s", e.step, old.key, e.key)
		case 0 < old.settled && old.settled < e.taken && old.said.status == 200 && !old.tells:
			l.t.Errorf("%s is called again by gateway %s after gateway %s was answered 200", e.step, e.generation, old.generation)
		// A call may arrive after the end of its own lease, if its gateway stood still after it had looked
		// at the lease. The other gateway took the job rightly then.
		case !l.lapsed[e.step] && !old.answered && old.key == e.key && l.alive(old) && e.began.Before(old.until) && e.began.Before(e.until):
			l.t.Errorf("%s is called by gateway %s while gateway %s calls it", e.step, e.generation, old.generation)
		}
	}
}

// keysOf returns the number of keys of a step's calls. It is one, but a callback step has
// another token, and so another key, after each redrive.
func (l *ledger) keysOf(step string) (n int) {
	for _, of := range l.keys {
		if of == step {
			n++
		}
	}
	return n
}

// stored reports whether the end of an attempt was stored. A gateway that is dead now may have
// stored it before.
func (l *ledger) stored(of taking) bool {
	found, err := l.conn.Batch(context.Background(), store.Stmt{Name: "stored", Reads: true,
		SQL:  `SELECT attempt FROM attempts WHERE job_id = ? AND lease = ? UNION ALL SELECT attempt FROM jobs WHERE id = ? AND success LIKE ?`,
		Args: []any{string(of.job), string(of.lease), string(of.job), fmt.Sprintf("%d %%", of.number)}})
	if err != nil {
		l.t.Error(err)
		return false
	}
	return len(found[0].Rows) > 0
}

func (l *ledger) alive(e *entry) bool {
	f := l.hospital.of(e.generation)
	return f == nil || f.alive()
}

// holding delays the answer to a call: it returns the channel that ends the delay.
func (l *ledger) holding(q *request) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.calls {
		if e.request != q {
			continue
		}
		if e.hold == nil {
			e.answered = true
			return nil
		}
		if w := l.waiting[e.generation]; w != nil {
			close(w)
			delete(l.waiting, e.generation)
		}
		return e.hold
	}
	return nil
}

// awaits returns a channel that is closed when a call of a generation is held back.
func (l *ledger) awaits(generation int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := make(chan struct{})
	l.waiting[strconv.Itoa(generation)] = w
	return w
}

// held returns the calls without an answer.
func (l *ledger) held() []*entry {
	return slices.DeleteFunc(slices.Clone(l.calls), func(e *entry) bool { return e.answered || e.hold == nil })
}

// release answers one of the held calls.
func (l *ledger) release(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.held(); len(held) > 0 {
		e := held[n%len(held)]
		e.answered = true
		close(e.hold)
	}
}

// killOne kills one of the gateways with held calls.
func (l *ledger) killOne(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.held(); len(held) > 0 {
		l.hospital.of(held[n%len(held)].generation).kill()
	}
}

// calm answers all held calls, and makes all later answers successes.
func (l *ledger) calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet = true
	for _, e := range l.held() {
		e.answered = true
		close(e.hold)
	}
}

// settledAll records that a living gateway has stored the ends of all its calls. It stores none of a
// call whose job another gateway took, once the lease was over.
func (l *ledger) settledAll(generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	for _, e := range l.calls {
		if e.generation == strconv.Itoa(generation) && e.settled == 0 && !(l.takenAgain(e) && !l.stored(e.taking)) {
			e.settled = l.events
		}
	}
}

// takenAgain reports whether the job of a call was taken again after the call's own take.
func (l *ledger) takenAgain(e *entry) bool {
	for _, later := range l.leases {
		if later.job == e.job && later.taken > e.taken {
			return true
		}
	}
	return false
}
