package worker

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// settleGrace is how much longer than the deliveries the settler may take to store their
// outcomes when a tick ends. It begins as Deps.Draining says.
const settleGrace = 5 * time.Second

// Tick delivers due jobs within the budget, and returns counts of the outcomes. After ctx
// ends it takes no more jobs, gives back the jobs that it has not started, and waits for
// deliveries under way, at most Limits.Drain. A delivery that is still running then is cut
// off, and its job is tried again after its lease.
//
// If the budget has an End, Tick takes no job whose attempt might not be over two seconds
// before End, leases no job for longer than it must, and waits for deliveries until one
// second before End. It reports each lane whose attempts never fit, once a process.
func (w *Worker) Tick(ctx context.Context, b core.Budget) (core.Report, error) {
	t := w.newTick(ctx, b)
	t.start()
	leave := w.Express.join(t)
	// The chores end with the feeder, not with ctx: a tick that ends by itself has a live ctx.
	feeding, stopFeeding := context.WithCancel(ctx)
	if !t.window.endsItself() {
		t.strays.adoptAll(feeding)
	}
	t.chores.start(feeding, t.strays.round)
	t.chores.start(feeding, t.lapses.round)
	err := t.feeder.feed(ctx)
	stopFeeding()
	leave()
	t.drain()
	return t.report(), err
}

// A tick is one call of Tick. It makes the parts, starts them and stops them in order. The
// parts do the work.
type tick struct {
	*Worker

	window     *window
	queue      *queue
	leases     *leases
	gates      *gateView
	alarm      *alarm
	returns    *returns
	unanswered *unanswered
	slots      *slots
	settler    *settler
	strays     *strayChore
	lapses     *lapseChore
	chores     *chores
	feeder     *feeder

	settling sync.WaitGroup // the settler

	// hard ends deliveries and settling. Everything else stops by itself.
	hard     context.Context
	stopHard context.CancelFunc
}

// newTick makes the parts of a tick and connects them. It starts none of them.
func (w *Worker) newTick(ctx context.Context, b core.Budget) *tick {
	t := &tick{Worker: w, queue: newQueue(w.limits.Slots, w.lanes), leases: newLeases()}
	t.hard, t.stopHard = context.WithCancel(context.WithoutCancel(ctx))
	roster := newRoster(w, t.queue)
	outcomes := make(chan settlement, w.limits.Slots)
	t.window = &window{clock: w.Clock, budget: b, roster: roster}
	t.gates = newGateView(roster, claimAhead(b), w.limits.Batch)
	t.alarm = newAlarm(w)
	t.returns = &returns{Worker: w, hard: t.hard, leases: t.leases}
	t.unanswered = &unanswered{Worker: w, hard: t.hard}
	t.settler = &settler{Worker: w, hard: t.hard, outcomes: outcomes, window: t.window, queue: t.queue,
		leases: t.leases, gates: t.gates, alarm: t.alarm, returns: t.returns, turns: make(chan struct{}, stepTurns)}
	t.slots = &slots{Worker: w, hard: t.hard, roster: roster, window: t.window, queue: t.queue,
		leases: t.leases, gates: t.gates, alarm: t.alarm, returns: t.returns, outcomes: outcomes}
	t.strays = &strayChore{Worker: w, roster: roster, leases: t.leases, outcomes: outcomes}
	t.lapses = &lapseChore{Worker: w, hard: t.hard, window: t.window}
	t.chores = &chores{window: t.window, alarm: t.alarm}
	t.feeder = &feeder{Worker: w, roster: roster, window: t.window, queue: t.queue, leases: t.leases,
		gates: t.gates, alarm: t.alarm, returns: t.returns, unanswered: t.unanswered, chores: t.chores,
		gated: map[core.Lane]time.Time{}, expectDue: map[core.Lane]bool{}, contended: map[core.Lane]time.Time{}}
	return t
}

// start starts the slots and the settler. Tick itself runs the feeder.
func (t *tick) start() {
	t.window.reportTooSlow(t.Worker)
	t.slots.start(t.limits.Slots)
	t.settling.Go(t.settler.settle)
}

// drain ends the tick: jobs that were not started go back, and started ones get their time.
//
// The order matters. Slots may still add outcomes and returned jobs, so the settler's channel
// is closed only after they and the chores have ended. Jobs that were being taken as they were
// stored come back last.
func (t *tick) drain() {
	t.returns.add(t.queue.end()...)
	sent := t.cutAfter(t.window.left(t.limits.Drain, cutGrace))
	idle := t.slots.idle()
	t.returns.giveBackAll(idle)
	<-idle
	sent()
	stored := t.cutAfter(t.window.left(settleGrace, 0))
	t.chores.wait()
	t.queue.awaitArrivals(t.hard.Done())
	t.unanswered.giveBackAll()
	t.returns.giveBack(whyHeld)
	t.returns.giveBackAll(t.hard.Done())
	close(t.settler.outcomes)
	t.settling.Wait()
	stored()
	t.stopHard()
}

// report adds up the counts of the parts, once they have stopped.
func (t *tick) report() core.Report {
	r := t.settler.report.get()
	// The lapse chore and the returns write to the store themselves, and have their own counts.
	r.Dead += t.lapses.dead
	r.Failed += t.lapses.dead
	r.Released += t.returns.released
	return r
}
