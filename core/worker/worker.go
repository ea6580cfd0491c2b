// Package worker delivers due jobs. It takes them from the lanes of handlers and workflows,
// has each sent once, and stores the outcome. It imports core only.
//
// A tick is a sliding window and not a batch. A fixed number of slots send. A feeder takes
// jobs as slots become free, so the throughput is slots ÷ latency of the handlers, and no
// timer limits it. A settler writes the outcomes that arrived while it wrote the batch
// before.
//
//	feeder ──queue──▶ slot, slot, slot, ... ──outcomes──▶ settler
//
// # The way of a job
//
//  1. The feeder learns that a lane is due: the bell rang (feeder.listen), or the store said so
//     (feeder.look). The bell is of this process: it rings for events that this process accepted.
//     Events of other processes are found by looks. Between two looks of an idle feeder lies
//     Budget.Rest, give or take a quarter: 1 s, or 5 s on D1. It asks the gates for a pass and
//     shares the free slots among the lanes that are due (feeder.quotas).
//  2. It claims the job, which the store leases to this process, and notes the lease
//     (leases.claim).
//  3. The job waits in the queue until its start and until its lane may have a slot
//     (queue.next).
//  4. A slot sends it (slots.send), unless the breaker has opened or the lease has become too
//     short: then the job goes back (returns.giveBack).
//  5. The outcome goes to the settler (settler.write). It stores the outcome under the lease that
//     the job has then, updates the gates and the alarm, and reports the outcome. An outcome of a
//     step is stored by Steps.Settle, which asks for no lease.
//
// New events of this process skip the first two steps, as long as there is room for their jobs and no
// older ones wait in the store: they are taken in the commit that stores them ([Express]). If the store does
// not answer such a commit, the jobs are given back (unanswered). So does the next step of a run whose step
// has ended here: its job is taken in the commit that stores the end (settler.reserveNext).
//
// A slot goes on to the next job while its outcome is being written. So a crash may repeat the
// jobs in the slots, as many outcomes that waited to be written, and the batches being written,
// each at most maxSettle: one of outcomes, stepTurns of ends of steps. All repetitions have the
// ids of their jobs.
//
// Both channels are short, so trouble travels upstream by itself: a database that cannot
// settle fills the outcomes, full outcomes stop the slots, and busy slots stop the feeder.
// There is one loop for all deployments. A function gives Tick its deadline, and the
// long-lived binary a rest time. Ticks of several processes divide the work by leases.
//
// Lanes share the slots, so that a handler that hangs cannot have them all: the queue gives a
// free slot to the lane that has fewest, and keeps room for lanes that have none.
//
// Circuit breakers and rate limits are stored ([core.Gate]), since other processes take from
// the same lanes. A tick remembers how the gates stood, to know how much to claim and when.
// The store decides. A lane behind a closed gate costs nothing until the gate opens.
//
// # Where to change something
//
// Which jobs are taken as they are stored: express.go, and steps.go for next steps of runs; how many:
// queue.hasRoom. How an attempt
// ends: attempt.go, and steps.go for steps of workflows. Which failures count for a breaker:
// verdict.go. Which lane gets the next free slot: queue.go. How a claim is divided: share.go. When to
// look: look.go, and how much to take: feed.go. Breakers and limits: gates.go. When a tick takes no more:
// window.go and look.go (finished), and how it ends: tick.go. How a worker makes way for
// another one of its process: handover.go. Jobs whose handler is gone: stray.go. Lanes that
// are adopted: roster.go. Messages whose consumer did not answer: lapse.go. Lines of jobs with
// the same key: the store admits the next job of a line when it stores an outcome, and
// settler.passed has it taken.
package worker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Target is a lane with a handler or a workflow, as the worker needs it.
type Target struct {
	Lane   core.Lane
	Sender Sender
	Retry  core.Retry

	// Steps does the work in the lane of a workflow, in place of Sender and Retry.
	Steps Steps

	// Breaker is the circuit breaker before the lane. Nil is none: then the worker closes a
	// breaker that another configuration has left open there.
	Breaker *Breaker

	// Interval is the least time between the starts of two deliveries, in all processes of
	// one database. Zero is no limit.
	Interval time.Duration

	// Lines are the rules of the lane's lines.
	Lines core.LineRules

	// Timeout bounds one attempt, from connecting to the last byte read. Steps bound their
	// calls themselves: for them it is the least lease that they need.
	Timeout time.Duration

	// Hold is how long a job is leased. It is longer than Timeout, or a job with a slow
	// answer is delivered twice.
	Hold time.Duration
}

// A Breaker is a circuit breaker as it is configured.
type Breaker struct {
	core.Breaker

	// Counts are the classes of failures that count; none means all. A failure of another
	// class counts as a success if it is an answer, since the handler works. Without an
	// answer it counts neither way, but a probe that got no answer has failed.
	Counts []core.ErrorClass
}

// Deps are the dependencies of a Worker.
type Deps struct {
	Worklist core.Worklist
	Express  *Express   // brings new events; may be nil
	Bell     *core.Bell // rung when lanes get work; may be nil
	Clock    core.Clock
	Observe  core.Observer

	// Obituary makes an event of a job that died, such as an alert. The event is stored in
	// the commit that ends the job. Obituary may be nil and may return nil.
	Obituary func(core.TakenJob, core.Outcome) *core.Arrival

	// Adopt returns a target for a lane that has none and in which jobs wait, or false. It
	// may be nil. A lane is adopted for the rest of a tick: at once when the bell rings for
	// it, else within about ten seconds.
	Adopt func(core.Lane) (Target, bool)

	// Others are lanes that another worker takes from.
	Others []core.Lane

	// Draining is closed when a tick whose context has ended has only Limits.Drain left. Until
	// then it goes on with the attempts that it has begun. Nil means that Limits.Drain begins
	// when the context ends.
	Draining <-chan struct{}

	// Queues are lanes of queues. Consumers take their messages. The worker ends messages
	// whose last lease is over. QueueLines has the rules of the queues that have lines.
	Queues     []core.Lane
	QueueLines map[core.Lane]core.LineRules
}

// Limits bound a worker.
type Limits struct {
	Slots int           // deliveries at the same time, at least 1
	Batch int           // jobs taken at once, at least 1
	Drain time.Duration // how long deliveries may go on after the context of a tick has ended; see Deps.Draining
}

// A Worker delivers the jobs of its targets. Between ticks it keeps only the number of
// attempts under way, and which lanes it has reported as too slow.
type Worker struct {
	Deps
	limits  Limits
	targets map[core.Lane]Target
	lanes   []core.Lane // sorted
	heard   *core.Listener
	sending atomic.Int64
	left    atomic.Bool  // set by Leave
	most    atomic.Int64 // nanoseconds that the tick with the most time to its end had
	tooSlow sync.Map     // core.Lane: reported, since their attempts never fit
}

// New makes a worker.
func New(d Deps, l Limits, targets []Target) *Worker {
	// The worker listens from here on, so a ring between New and the first Tick is not lost.
	w := &Worker{Deps: d, limits: l, targets: make(map[core.Lane]Target, len(targets))}
	for _, t := range targets {
		w.targets[t.Lane] = t
		w.lanes = append(w.lanes, t.Lane)
	}
	slices.Sort(w.lanes)
	if w.Bell == nil {
		w.Bell = &core.Bell{} // never rung by others
	}
	w.heard = w.Bell.Listen(w.lanes...)
	w.Bell.Others(w.heard) // hear of lanes to adopt
	return w
}

// Lanes returns the lanes that this worker takes from, sorted.
func (w *Worker) Lanes() []core.Lane { return w.lanes }

// Sending returns how many attempts are under way, of deliveries, alerts and steps.
func (w *Worker) Sending() int { return int(w.sending.Load()) }
