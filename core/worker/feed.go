package worker

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// freshness is how long lanes that were due, and had more than was taken, count
// as due without asking. It is also how long a lane that becomes due meanwhile
// may be overlooked.
const freshness = 5 * time.Millisecond

// contended is how long to leave jobs alone that are due and yet not to be had,
// because others are just taking them.
const contended = 10 * time.Millisecond

// feed takes jobs for free slots until the budget or the context ends.
func (t *tick) feed(ctx context.Context, b core.Budget) error {
	var trouble backoff
	for !t.over(ctx, b) {
		n := t.room()
		if n == 0 {
			t.wait(ctx, b, time.Time{})
			continue
		}
		next, err := t.fill(ctx, n)
		if err != nil {
			if b.Rest == 0 {
				return err
			}
			t.Observe(core.Troubled{Doing: "take", Err: err})
			t.sleep(ctx, trouble.next())
			continue
		}
		trouble = 0
		if next.After(t.Clock()) || next.IsZero() {
			if b.Rest == 0 && t.idle() {
				return nil
			}
			t.wait(ctx, b, next)
		}
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

// fill takes up to n jobs and hands them to the slots. It returns when to look
// again: now, if something was due.
func (t *tick) fill(ctx context.Context, n int) (time.Time, error) {
	began := t.Clock()
	next, err := t.look(ctx, began)
	if err != nil || len(t.ready) == 0 {
		return next, err
	}
	jobs, err := t.take(ctx, n)
	if err != nil {
		return time.Time{}, err
	}
	if len(jobs) == 0 { // others were faster
		return began.Add(contended), nil
	}
	t.pace.took(t.Clock().Sub(began))
	t.hold(jobs)
	for _, j := range jobs {
		t.jobs <- j // never blocks: as long as all that is held
	}
	return began, nil
}

// look asks which lanes are due, unless it is known. It returns when the next one
// will be, if none is.
func (t *tick) look(ctx context.Context, now time.Time) (time.Time, error) {
	if len(t.ready) > 0 && now.Sub(t.looked) < freshness {
		return time.Time{}, nil
	}
	t.mu.Lock()
	t.soonest = time.Time{} // what is due from here on, the store knows
	t.mu.Unlock()
	due, err := t.Worklist.Due(ctx, t.lanes)
	if err != nil {
		return time.Time{}, err
	}
	var next time.Time
	t.ready, next = split(due, now)
	t.looked = now
	return next, nil
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

func (t *tick) hold(jobs []core.TakenJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range jobs {
		t.held[j.Lane]++
		t.busy++
	}
}

func (t *tick) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy == 0
}

// wait sleeps until there may be something to do: a slot came free, a lane was
// rung, the next job is due, or the rest is over.
func (t *tick) wait(ctx context.Context, b core.Budget, next time.Time) {
	rest := b.Rest
	if rest == 0 {
		rest = time.Second
	}
	rest = time.Duration(float64(rest) * (0.75 + 0.5*rand.Float64())) // processes that started together look apart
	t.mu.Lock()
	if !t.soonest.IsZero() && (next.IsZero() || t.soonest.Before(next)) {
		next = t.soonest
	}
	t.mu.Unlock()
	if !next.IsZero() {
		rest = min(rest, next.Sub(t.Clock()))
	}
	if !b.Until.IsZero() {
		rest = min(rest, b.Until.Sub(t.Clock()))
	}
	t.sleep(ctx, rest)
}

func (t *tick) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.nudged:
	case <-t.rung:
	case <-ctx.Done():
	}
}
