package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// freshness is how long to take from lanes that are known to be due without
// asking about the others, or longer if asking is slow: no more than a tenth of
// the time goes into it. So much later may a retry or another process's event be
// found while there is plenty to do; events of this process ring the bell.
const freshness = 5 * time.Millisecond

// doubt is how soon after the last look there is another if a lane that was thought
// to be due gave nothing: its gate may have shut.
const doubt = 250 * time.Millisecond

// heldUp is why jobs are given back while a tick goes on.
const heldUp = "the circuit breaker opened, or their lease would have ended"

// feed takes jobs for free slots until the budget or the context ends.
func (t *tick) feed(ctx context.Context, b core.Budget) error {
	var trouble backoff
	var failed error // that is tried again
	for !t.over(ctx, b) {
		t.ripe = t.queue.ripen(t.Clock())
		t.giveBack(heldUp)
		jobs, ahead := t.room()
		if jobs == 0 {
			t.sleep(ctx, b, t.rest(b), nil) // no need to hear of more work
			continue
		}
		more, err := t.fill(ctx, b, jobs, ahead)
		if err != nil {
			if ctx.Err() != nil {
				break // it was cut short by whoever ends the tick
			}
			if b.Rest == 0 {
				return err
			}
			failed = err
			t.Observe(core.Troubled{Doing: "take", Err: err})
			t.sleep(ctx, b, trouble.next(), nil)
			continue
		}
		trouble, failed = 0, nil
		if more {
			continue
		}
		if endsItself(b) && t.through(ctx, b) {
			return nil
		}
		t.sleep(ctx, b, t.untilNext(), t.heard.C)
	}
	if b.Brief {
		return failed
	}
	return nil
}

// room is how many jobs to take now. One more than there are slots would wait,
// so it takes ahead only as many as will finish while a take is under way, and
// not before half of those are gone: fast handlers are fed in batches, slow ones
// never have jobs waiting here that another process could be delivering.
func (t *tick) room() (jobs, ahead int) {
	free, waiting, _ := t.queue.load()
	ahead = t.pace.ahead(t.limits.Slots, t.limits.Batch)
	if waiting > free+ahead/2 {
		return 0, ahead
	}
	return max(0, min(free+ahead-waiting, t.limits.Batch)), ahead
}

// fill takes jobs from lanes that are due and hands them to the slots. A lane that
// was rung is due, so nothing stands between an event and its delivery but the
// taking; of the others the store is asked when it is time. It tells whether there
// may be more to take at once.
func (t *tick) fill(ctx context.Context, b core.Budget, room, ahead int) (more bool, err error) {
	now := t.Clock()
	t.listen(now)
	if t.untilLook() <= 0 {
		if err := t.look(ctx, b, room, ahead); err != nil {
			return false, err
		}
		now = t.Clock()
	}
	t.forgo(now)
	quotas := t.quotas(room, ahead, now)
	if len(quotas) == 0 {
		return false, nil
	}
	t.taking.enter()
	jobs, err := t.take(ctx, now, quotas)
	fresh := t.hold(jobs)
	t.taking.leave()
	if err != nil || len(jobs) == 0 {
		return false, err
	}
	ended := t.Clock()
	t.found = ended
	t.pace.took(ended.Sub(now))
	t.queue.put(ended, fresh)
	return len(t.ready) > 0, nil
}

// listen adds the lanes that were rung to those that are ready, and those whose gate
// was waited for. A lane behind a gate that is known to be shut has to wait for that.
func (t *tick) listen(now time.Time) {
	t.foretold()
	rung := t.roused()
	for l, at := range t.paced {
		if !at.After(now) {
			rung = append(rung, l)
			delete(t.paced, l)
		}
	}
	for _, l := range rung {
		t.dry = false
		if at := t.passable(l, now); at.After(now) {
			t.paced[l] = at
		} else if !slices.Contains(t.ready, l) {
			t.ready = append(t.ready, l)
		}
	}
}

// look asks which lanes are due and how their gates stand, and decides when to ask
// next: soon, to keep an eye on the others, while there is something to take; else
// when the next job is due.
func (t *tick) look(ctx context.Context, b core.Budget, room, ahead int) error {
	now := t.Clock()
	lanes, asked := t.fitting(now), t.lanes()
	if b.Room == 0 {
		asked = lanes
	}
	t.calm = t.chores.Load() == 0 && t.idle() && t.quiet()
	t.lookIn(t.rest(b)) // a retry that is settled from here on makes it sooner
	lesson := t.lesson()
	outlooks, err := t.Worklist.Due(ctx, asked)
	if err != nil {
		t.lookIn(0)
		return err
	}
	gates, due := make(map[core.Lane]core.Gate, len(lanes)), map[core.Lane]time.Time{}
	for _, l := range lanes {
		gates[l] = outlooks[l].Gate
	}
	t.closeUnused(ctx, gates)
	t.sight(gates, lesson)
	clear(t.paced)
	first := t.last.Began.IsZero()
	t.last = core.Look{Began: now}
	for l, o := range outlooks {
		if o.DueAt.IsZero() {
			continue
		}
		if at := later(o.DueAt, t.target(l).opensAt(o.Gate, now)); !t.fits(l, later(at, now)) && t.need(l) < b.Room {
			t.last.Beyond = sooner(t.last.Beyond, at)
		}
		if !t.fits(l, now) {
			continue
		}
		if !o.DueAt.After(now) && first {
			t.found = now // whoever may take it, and when; later only what is taken counts
		}
		due[l] = later(o.DueAt, t.passable(l, now), t.barren[l])
		if soon := now.Add(core.GateHorizon); due[l].After(now) && !due[l].After(soon) && !o.DueAt.After(now) {
			t.paced[l] = due[l]
		}
	}
	var next time.Time
	t.ready, next = split(due, now)
	clear(t.promised)
	for _, l := range t.ready {
		t.promised[l] = true
	}
	t.dry = len(t.ready)+len(t.paced) == 0
	t.last.Next = t.firstAfter(now, due)
	if len(t.quotas(room, ahead, now)) > 0 {
		end := t.Clock()
		next = end.Add(max(freshness, 9*end.Sub(now)))
	}
	t.expect(next)
	if b.Looked != nil {
		t.expect(b.Looked(ctx, t.last))
	}
	return nil
}

func later(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (t *tick) lookIn(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookAt = t.Clock().Add(d)
}

func (t *tick) untilLook() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lookAt.Sub(t.Clock())
}

// quotas are what to ask of the lanes that are ready.
func (t *tick) quotas(room, ahead int, now time.Time) []core.Quota {
	claims, passes := t.queue.claims(t.ready, ahead), make(map[core.Lane]*core.Pass)
	for i := range claims {
		c := &claims[i]
		if t.passable(c.lane, now).After(now) {
			c.most = 0
			continue
		}
		pass, most := t.pass(c.lane, now)
		if pass != nil && c.held > 0 && c.most < min(most, (c.spare+1)/2) {
			c.most = 0 // what is here lasts until there is room for more than a few
		}
		c.most = min(c.most, most)
		if pass != nil {
			passes[c.lane] = pass
		}
	}
	quotas := share(room, claims)
	for i := range quotas {
		q := &quotas[i]
		q.Hold, q.Pass = t.holdOf(q.Lane, now), passes[q.Lane]
	}
	return quotas
}

// take leases jobs. A lane that gave less than it was asked for is not ready any
// more, and one that starts its jobs apart not before the gate lets the next through.
func (t *tick) take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	jobs, err := t.Worklist.Take(ctx, now, quotas)
	if err != nil {
		return nil, err
	}
	got, last := map[core.Lane]int{}, map[core.Lane]core.TakenJob{}
	for _, j := range jobs {
		got[j.Lane]++
		if j.StartAt.After(last[j.Lane].StartAt) {
			last[j.Lane] = j
		}
	}
	for _, q := range quotas {
		n := got[q.Lane]
		if delete(t.barren, q.Lane); n == 0 && t.promised[q.Lane] {
			t.barren[q.Lane] = now.Add(doubt)
		}
		delete(t.promised, q.Lane)
		if n == 0 {
			t.expect(t.last.Began.Add(doubt))
		} else if q.Pass != nil {
			t.passed(q, last[q.Lane], now)
		}
		at := t.passable(q.Lane, now)
		if n == q.N && at.After(now) {
			t.paced[q.Lane] = at
		}
		if n < q.N || at.After(now) {
			t.ready = slices.DeleteFunc(t.ready, func(l core.Lane) bool { return l == q.Lane })
		}
	}
	return jobs, nil
}

// hold notes what was taken, and returns what is new: a job that was still here
// when its lease ended goes on under the new one. Each is on its own from here on: it is
// large, and no slow one keeps the payloads of others in memory.
func (t *tick) hold(jobs []core.TakenJob) []*core.TakenJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := make([]*core.TakenJob, 0, len(jobs))
	for _, j := range jobs {
		_, here := t.leases[j.ID]
		t.leases[j.ID] = holding{j.Lease, j.DueAt}
		if !here {
			fresh = append(fresh, &j)
		}
	}
	return fresh
}

// rest is how long to leave the store alone when nothing is known to be due,
// spread so that processes that started together look apart.
func rest(b core.Budget) time.Duration {
	d := b.Rest
	if d == 0 {
		d = time.Second // only until what is being sent has ended
	}
	return time.Duration(float64(d) * (0.75 + 0.5*rand.Float64()))
}

// untilNext is when there may be something to take that nobody tells of.
func (t *tick) untilNext() time.Duration {
	d, now := t.untilLook(), t.Clock()
	for _, at := range t.paced {
		d = min(d, at.Sub(now))
	}
	return d
}

// sleep waits until there may be something to do: a slot came free, a lane was
// rung, the time has come, or the budget is over.
func (t *tick) sleep(ctx context.Context, b core.Budget, d time.Duration, rung <-chan struct{}) {
	now := t.Clock()
	if until := t.until(b); !until.IsZero() {
		d = min(d, until.Sub(now))
	}
	if !t.ripe.IsZero() {
		d = min(d, t.ripe.Sub(now))
	}
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.nudged:
	case <-rung:
	case <-ctx.Done():
	}
}
