package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// freshness is for how long the feeder takes from lanes that are known to be due without
// asking about the others; longer if asking is slow, so that at most a tenth of the time goes
// into asking. A retry, or an event of another process, may be found so much later while there
// is plenty to do. Events of this process ring the bell.
const freshness = 5 * time.Millisecond

// doubt is how soon after a look the feeder looks again if a lane that was known to be due
// gave nothing: its gate may have closed.
const doubt = 250 * time.Millisecond

// A feeder takes jobs for free slots. One goroutine runs it, so its fields need no lock.
type feeder struct {
	*Worker
	roster     *roster
	window     *window
	queue      *queue
	leases     *leases
	gates      *gateView
	alarm      *alarm
	returns    *returns
	unanswered *unanswered
	chores     *chores

	ready []core.Lane             // lanes that are due, and whose gate may let a job through
	gated map[core.Lane]time.Time // lanes that are due, by when their gate opens

	lastLook   core.Look
	nothingDue bool      // the last look found nothing, and no bell rang since
	steady     bool      // when the last look began, nothing was held or to be expected of the tick itself
	lastWork   time.Time // when jobs were taken last, or found due by the first look

	// expectDue are lanes that were due in the last look and from which nothing was taken
	// since. If a claim gets nothing from such a lane, another process takes its jobs. Then
	// the lane is contended, and looks do not count it as ready before that time.
	expectDue map[core.Lane]bool
	contended map[core.Lane]time.Time

	nextStart time.Time // when the next job may start that was taken ahead of its start
	idleSince time.Time // when the slots ran out of work in a tick that ends by itself; zero while they have work
}

// feed takes jobs for free slots until the window or the context ends.
func (f *feeder) feed(ctx context.Context) error {
	budget := f.window.budget
	var trouble core.Backoff
	var failed error // the error of the last call, which is tried again
	// Each pass first lets delayed jobs start and gives jobs back, and then takes new ones.
	for !f.window.over(ctx) {
		f.nextStart = f.queue.startDue(f.Clock())
		f.returns.giveBack(whyHeld)
		f.unanswered.giveBack()
		jobs, ahead := f.room()
		// All slots are busy. Only a slot that ends, a delayed job or the end of the tick matters.
		if jobs == 0 {
			f.sleep(ctx, f.rest(), nil) // the bell matters only once a slot is free
			continue
		}
		more, err := f.fill(ctx, jobs, ahead)
		if err != nil {
			// A failed take has no effect, or its leases end by themselves. So the error is not
			// reported if the tick is over anyway.
			if ctx.Err() != nil {
				break // the end of the tick has cut it short
			}
			if budget.Rest == 0 {
				return err
			}
			failed = err
			f.Observe(core.Troubled{Doing: "take", Err: err})
			f.sleep(ctx, trouble.Next(), nil)
			continue
		}
		// The store answered, so the next failure is a new one.
		trouble, failed = 0, nil
		if more {
			continue
		}
		if f.window.endsItself() && f.finished(ctx) {
			return nil
		}
		f.sleep(ctx, f.untilNext(), f.heard.C)
	}
	if budget.Brief {
		return failed
	}
	return nil
}

// room returns how many jobs to take now, and how many may wait beyond those with a slot. While
// a claim is under way, sends end, and their slots need the next jobs at once. So a claim begins
// when no more jobs wait than end during it, and brings as many for the next claim's time. Fast
// handlers are fed in batches. Jobs of slow handlers never wait here while another process could
// deliver them.
//
// With half as many waiting, the slots were idle for a third of the time while senders pushed.
func (f *feeder) room() (jobs, ahead int) {
	free, waiting, _ := f.queue.load()
	during := f.queue.pace.during(f.limits.Slots, f.limits.Batch)
	ahead = 2 * during
	if waiting > free+during {
		return 0, ahead
	}
	return max(0, min(free+ahead-waiting, f.limits.Batch)), ahead
}

// fill takes jobs from lanes that are due and gives them to the slots. A lane for which the
// bell rang is due, so an event is taken without a look. The store is asked about the other
// lanes when it is time. fill returns whether there may be more to take at once.
func (f *feeder) fill(ctx context.Context, room, ahead int) (more bool, err error) {
	now := f.Clock()
	defer func() { f.queue.setBehind(f.ready) }()
	f.listen(now)
	if f.alarm.untilLook() <= 0 {
		if err := f.look(ctx, room, ahead); err != nil {
			return false, err
		}
		now = f.Clock()
	}
	f.dropLate(now)
	quotas := f.quotas(room, ahead, now)
	if len(quotas) == 0 {
		return false, nil
	}
	fresh, taken, err := f.leases.claim(func() ([]core.TakenJob, error) { return f.claim(ctx, now, quotas) })
	if err != nil || taken == 0 {
		return false, err
	}
	f.lastWork = f.Clock()
	f.queue.pace.take.add(f.lastWork.Sub(now))
	if ctx.Err() != nil {
		f.returns.add(fresh...) // the tick ended meanwhile: a slot would begin some of them before drain
		return false, nil
	}
	f.queue.put(f.lastWork, fresh)
	return len(f.ready) > 0, nil
}

// quotas returns how many jobs to claim from each of the lanes that are ready.
func (f *feeder) quotas(room, ahead int, now time.Time) []core.Quota {
	claims, passes := f.queue.claims(f.ready, ahead), make(map[core.Lane]*core.Pass)
	for i := range claims {
		c := &claims[i]
		if f.gates.opensAt(c.lane, now).After(now) {
			// A lane behind a closed gate gets no quota, so the claim does not name it.
			c.most = 0
			continue
		}
		// A claim with a pass writes the gate. So small claims are put off while the lane still
		// has jobs here.
		pass, most := f.gates.pass(c.lane, now)
		if pass != nil && c.held > 0 && c.most < min(most, (c.spare+1)/2) {
			c.most = 0 // the jobs here last until there is room for more than a few
		}
		c.most = min(c.most, most)
		if pass != nil {
			passes[c.lane] = pass
		}
	}
	quotas := share(room, claims)
	for i := range quotas {
		q := &quotas[i]
		q.Hold, q.Pass, q.Lines = f.window.hold(q.Lane, now), passes[q.Lane], f.roster.target(q.Lane).Lines.Limit
	}
	return quotas
}

// claim leases jobs. A lane that gave fewer jobs than its quota is no longer ready. A lane
// that starts its jobs apart is not ready before its gate lets the next one through.
func (f *feeder) claim(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	jobs, err := f.Worklist.Take(ctx, now, quotas)
	if err != nil {
		return nil, err
	}
	// The store returns all lanes in one list. Per lane, the feeder needs the number of jobs,
	// and the last start that the gate has given out.
	got, last := map[core.Lane]int{}, map[core.Lane]core.TakenJob{}
	for _, j := range jobs {
		got[j.Lane]++
		if j.StartAt.After(last[j.Lane].StartAt) {
			last[j.Lane] = j
		}
	}
	for _, q := range quotas {
		f.claimed(q, got[q.Lane], last[q.Lane], now)
	}
	return jobs, nil
}

// claimed notes that a claim got n jobs of a quota.
func (f *feeder) claimed(q core.Quota, n int, last core.TakenJob, now time.Time) {
	if delete(f.contended, q.Lane); n == 0 && f.expectDue[q.Lane] {
		f.contended[q.Lane] = now.Add(doubt)
	}
	delete(f.expectDue, q.Lane)
	// The next look comes soon after the last one, not at once: a lane that other processes empty
	// would otherwise cost a look for each claim.
	if n == 0 {
		f.alarm.expect(f.lastLook.Began.Add(doubt))
	} else if q.Pass != nil {
		f.gates.passed(q, last, now)
	}
	opensAt := f.gates.opensAt(q.Lane, now)
	if n == q.N && opensAt.After(now) {
		f.gated[q.Lane] = opensAt
	}
	if n < q.N || opensAt.After(now) {
		f.ready = slices.DeleteFunc(f.ready, func(l core.Lane) bool { return l == q.Lane })
	}
}

// dropLate drops lanes whose attempts no longer fit into the time that is left.
func (f *feeder) dropLate(now time.Time) {
	if f.window.budget.End.IsZero() {
		return
	}
	f.ready = slices.DeleteFunc(f.ready, func(l core.Lane) bool { return !f.window.fits(l, now) })
	for l := range f.gated {
		if !f.window.fits(l, now) {
			delete(f.gated, l)
		}
	}
}

// spread returns a time of about d, give or take a quarter, so that processes that started
// together look apart.
func spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + 0.5*rand.Float64()))
}

// rest returns how long to leave the store alone when nothing is known to be due.
func (f *feeder) rest() time.Duration {
	b := f.window.budget
	d := b.Rest
	if b.Brief && b.Stay == nil && f.Clock().Sub(f.lastWork) < briefStay {
		d = min(d, briefRest)
	}
	if d == 0 {
		d = time.Second // only until the deliveries under way have ended
	}
	return spread(d)
}

// untilNext returns how long it is until there may be something to take without a ring of the
// bell.
func (f *feeder) untilNext() time.Duration {
	d, now := f.alarm.untilLook(), f.Clock()
	for _, at := range f.gated {
		d = min(d, at.Sub(now))
	}
	return d
}

// sleep waits until there may be something to do: a slot came free, the bell rang, the time
// has come, or the tick is over.
func (f *feeder) sleep(ctx context.Context, d time.Duration, rung <-chan struct{}) {
	now := f.Clock()
	if until := f.window.until(); !until.IsZero() {
		d = min(d, until.Sub(now))
	}
	if !f.nextStart.IsZero() {
		d = min(d, f.nextStart.Sub(now))
	}
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.alarm.nudged:
	case <-rung:
	case <-ctx.Done():
	}
}
