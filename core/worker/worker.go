// Package worker delivers due jobs: it takes them out of the lanes of handlers,
// has each sent once, and settles the outcome. It imports core only.
//
// The idea to know: a tick is a sliding window, not a batch. A fixed number of
// slots send; a feeder takes jobs as slots free up, so throughput follows
// slots ÷ handler latency and never a timer; a settler writes the outcomes of
// whatever finished while its last batch was being written.
//
//	feeder ──queue──▶ slot, slot, slot, ... ──outcomes──▶ settler
//
// A slot goes on to the next job while its outcome is being written, so a crash
// may repeat what the slots were sending, as many outcomes that waited to be
// written, and the batch being written, at most maxSettle; all under their ids.
//
// Both channels are short, so trouble travels upstream by itself: a database
// that cannot settle fills the outcomes, that stops the slots, and that stops
// the feeder. There is one loop for all deployments: a function gives Tick its
// deadline, the long-lived binary a rest time, and overlapping ticks divide the
// work by leases.
//
// Slots are shared by lanes, so that a handler that hangs cannot have them all: the
// queue gives a free slot to the lane that has fewest, and keeps room for lanes that
// have none.
//
// Circuit breakers and rate limits stand in the store ([core.Gate]), since other
// processes take from the same lanes. A tick remembers how the gates stood, to know
// what to ask for and when; the store decides. A lane behind a gate that is shut
// costs nothing until it opens.
//
// Where to change something: what an attempt leads to in attempt.go, which lane
// gets the next free slot in queue.go, how what is taken is divided in share.go,
// when to look and how much to take in feed.go, breakers and limits in gates.go, when
// a tick ends in end.go and how in tick.go, how a worker makes way for another one of its
// process in handover.go, jobs whose handler is gone in stray.go, lanes that are taken
// on meanwhile in adopt.go, steps of workflows in steps.go, messages that no consumer
// answered for in lapse.go.
package worker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Target is a handler, or a workflow, as the worker knows it.
type Target struct {
	Lane   core.Lane
	Sender Sender
	Retry  core.Retry

	// Steps works for the lane of a workflow, in place of Sender and Retry.
	Steps Steps

	// Breaker is the circuit breaker before the lane. Nil is none: then the worker closes a
	// breaker that another configuration has left open there.
	Breaker *Breaker

	// Interval is how far apart deliveries start at least, in all processes of one
	// database; zero means that they need not be apart.
	Interval time.Duration

	// Timeout bounds one attempt from connecting to the last byte read. Those of Steps
	// bound their calls themselves; it is what they need of a lease at least.
	Timeout time.Duration

	// Hold is how long a job stays leased; longer than Timeout, or a slow answer
	// is delivered twice.
	Hold time.Duration
}

// A Breaker is a circuit breaker as it is configured.
type Breaker struct {
	core.Breaker

	// Counts are the classes of failures that count; none means all. A failure of another
	// class that is an answer counts as a success, since the handler works. A timeout or a
	// failure of the network of which the class does not count says nothing, but a probe
	// that got no answer has failed.
	Counts []core.ErrorClass
}

// Deps is what a worker works with.
type Deps struct {
	Worklist core.Worklist
	Bell     *core.Bell // rung when lanes get work; may be nil
	Clock    core.Clock
	Observe  core.Observer

	// Obituary is what comes of a job that died, such as an alert; it is stored in the
	// commit that ends the job. Nil means that nothing does, and so may it.
	Obituary func(core.TakenJob, core.Outcome) *core.Arrival

	// Adopt is who works for a lane that is none of the targets' and in which jobs wait;
	// false if nobody can. It may be nil. Lanes are adopted for the rest of a tick: at
	// once when the bell rings for one, else within about ten seconds.
	Adopt func(core.Lane) (Target, bool)

	// Others are lanes that somebody else takes from.
	Others []core.Lane

	// Hurry is closed when a tick that was told to stop is to end within Limits.Drain; it
	// goes on until then with what it has begun. Nil means that it always has to.
	Hurry <-chan struct{}

	// Queues are lanes of queues. Their messages are taken by consumers, and ended here
	// when the last lease is over and nobody takes them.
	Queues []core.Lane
}

// Limits bound a worker.
type Limits struct {
	Slots int           // deliveries at the same time, at least 1
	Batch int           // jobs taken at once, at least 1
	Drain time.Duration // how long deliveries may go on after a tick is told to stop; see Deps.Hurry
}

// A Worker delivers the jobs of its targets. It keeps no state between ticks but how
// many attempts are under way, and of what it has told.
type Worker struct {
	Deps
	limits  Limits
	targets map[core.Lane]Target
	lanes   []core.Lane
	heard   *core.Listener
	sending atomic.Int64
	gone    atomic.Bool  // has left
	most    atomic.Int64 // nanoseconds: what the tick with the most time to its end had
	tooSlow sync.Map     // core.Lane: those of which it was told that they never have the time
}

// New makes a worker.
func New(d Deps, l Limits, targets []Target) *Worker {
	w := &Worker{Deps: d, limits: l, targets: make(map[core.Lane]Target, len(targets))}
	for _, t := range targets {
		w.targets[t.Lane] = t
		w.lanes = append(w.lanes, t.Lane)
	}
	if w.Bell == nil {
		w.Bell = &core.Bell{} // never rung by others
	}
	w.heard = w.Bell.Listen(w.lanes...)
	w.Bell.Others(w.heard) // it may be one to adopt
	return w
}

// Lanes are the lanes this worker takes from.
func (w *Worker) Lanes() []core.Lane { return w.lanes }

// Sending is how many attempts are under way, of deliveries, alerts and steps.
func (w *Worker) Sending() int { return int(w.sending.Load()) }
