package worker

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// freshness is how long to take from lanes that are known to be due without
// asking about the others. So much later may a retry or another process's event
// be found while there is plenty to do; events of this process ring the bell.
const freshness = 5 * time.Millisecond

// feed takes jobs for free slots until the budget or the context ends.
func (t *tick) feed(ctx context.Context, b core.Budget) error {
	var trouble backoff
	for !t.over(ctx, b) {
		n := t.room()
		if n == 0 {
			t.sleep(ctx, b, rest(b), nil) // no need to hear of more work
			continue
		}
		if err := t.fill(ctx, b, n); err != nil {
			if b.Rest == 0 {
				return err
			}
			t.Observe(core.Troubled{Doing: "take", Err: err})
			t.sleep(ctx, b, trouble.next(), nil)
			continue
		}
		trouble = 0
		if len(t.ready) > 0 {
			continue
		}
		if b.Rest == 0 && t.dry && t.idle() {
			return nil
		}
		t.sleep(ctx, b, t.untilLook(), t.heard.C)
	}
	return nil
}

func (t *tick) over(ctx context.Context, b core.Budget) bool {
	return ctx.Err() != nil || !b.Until.IsZero() && !t.Clock().Before(b.Until)
}

// room is how many jobs to take now. One more than there are slots would wait,
// so it takes ahead only as many as will finish while a take is under way, and
// not before half of those are gone: fast handlers are fed in batches, slow ones
// never have jobs waiting here that another process could be delivering.
func (t *tick) room() int {
	ahead := t.pace.ahead(t.limits.Slots, t.limits.Batch)
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := max(0, t.busy-t.limits.Slots)
	if waiting > ahead/2 {
		return 0
	}
	return min(t.limits.Slots+ahead-t.busy, t.limits.Batch)
}

// fill takes up to n jobs from lanes that are due and hands them to the slots.
// A lane that was rung is due, so nothing stands between an event and its
// delivery but the taking; of the others the store is asked when it is time.
func (t *tick) fill(ctx context.Context, b core.Budget, n int) error {
	t.listen()
	if t.untilLook() <= 0 {
		if err := t.look(ctx, b); err != nil {
			return err
		}
	}
	if len(t.ready) == 0 {
		return nil
	}
	began := t.Clock()
	jobs, err := t.take(ctx, n)
	if err != nil || len(jobs) == 0 {
		return err
	}
	t.pace.took(t.Clock().Sub(began))
	for _, j := range t.hold(jobs) {
		t.jobs <- j // never blocks: as long as all that is held
	}
	return nil
}

// listen adds the lanes that were rung to those that are ready.
func (t *tick) listen() {
	for _, l := range t.heard.Rung() {
		t.dry = false
		if !slices.Contains(t.ready, l) {
			t.ready = append(t.ready, l)
		}
	}
}

// look asks which lanes are due, and decides when to ask next: soon, to keep an
// eye on the others, while some are; else when the next job is due.
func (t *tick) look(ctx context.Context, b core.Budget) error {
	now := t.Clock()
	t.lookIn(rest(b)) // a retry that is settled from here on makes it sooner
	due, err := t.Worklist.Due(ctx, t.lanes)
	if err != nil {
		t.lookIn(0)
		return err
	}
	var next time.Time
	t.ready, next = split(due, now)
	if t.dry = len(t.ready) == 0; !t.dry {
		next = now.Add(freshness)
	}
	t.expect(next)
	return nil
}

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

// take leases up to n jobs from the lanes that are ready. A lane that gave less
// than it was asked for is not ready any more.
func (t *tick) take(ctx context.Context, n int) ([]core.TakenJob, error) {
	t.mu.Lock()
	held := maps.Clone(t.held)
	t.mu.Unlock()
	quotas := share(n, t.ready, held)
	for i := range quotas {
		quotas[i].Hold = t.targets[quotas[i].Lane].Hold
	}
	jobs, err := t.Worklist.Take(ctx, t.Clock(), quotas)
	if err != nil {
		return nil, err
	}
	got := map[core.Lane]int{}
	for _, j := range jobs {
		got[j.Lane]++
	}
	for _, q := range quotas {
		if got[q.Lane] < q.N {
			t.ready = slices.DeleteFunc(t.ready, func(l core.Lane) bool { return l == q.Lane })
		}
	}
	return jobs, nil
}

// hold notes what was taken, and returns what is new: a job that was still here
// when its lease ended goes on under the new one.
func (t *tick) hold(jobs []core.TakenJob) []core.TakenJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	var fresh []core.TakenJob
	for _, j := range jobs {
		_, here := t.leases[j.ID]
		t.leases[j.ID] = j.Lease
		if here {
			continue
		}
		t.held[j.Lane]++
		t.busy++
		fresh = append(fresh, j)
	}
	return fresh
}

func (t *tick) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy == 0
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

// sleep waits until there may be something to do: a slot came free, a lane was
// rung, the time has come, or the budget is over.
func (t *tick) sleep(ctx context.Context, b core.Budget, d time.Duration, rung <-chan struct{}) {
	if !b.Until.IsZero() {
		d = min(d, b.Until.Sub(t.Clock()))
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
