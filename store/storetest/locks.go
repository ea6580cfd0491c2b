package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// lockLanes are the lanes of the jobs of [RunLocks]. Two of them are at the beginning and two at
// the end of the order of lanes, in which gates are locked.
var lockLanes = []core.Lane{"handler/a", "handler/b", "handler/y", "handler/z"}

// RunLocks has several stores over one database take and settle in the same lanes, and make
// transitions of the same runs. Each store has its own connection. Some of the lanes are paced,
// and all of them have failures now and then. Every call must succeed. A store hides a deadlock
// by a retry, so the calling test must ask the database whether there was one. Takes at about the same
// time are skew apart.
func RunLocks(t *testing.T, skew time.Duration, stores ...core.Store) {
	r := newRig(t, stores[0], Options{})
	for _, l := range lockLanes {
		for range 60 {
			r.accepted(r.arrival(lanes(l, 20)...))
		}
	}
	// Three schedules that deadlock if rows are locked in another order: pairs of settles,
	// transitions of several runs, and all calls together.
	crosswise(r, stores)
	crossRuns(r, skew, stores)
	soak(r, skew, stores)
}

// crosswise settles a failure in one lane and a success in another, while another store settles
// the opposite. Both lanes have failed before, so that a success changes their gates.
func crosswise(r *rig, stores []core.Store) {
	both := []core.Lane{lockLanes[0], lockLanes[3]}
	quotas := []core.Quota{{Lane: both[0], N: 4, Hold: leaseTime}, {Lane: both[1], N: 4, Hold: leaseTime}}
	for range 40 {
		jobs := r.takeQuotas(quotas...)
		r.equal("Take: jobs", len(jobs), 8)
		var before, one, other []core.Outcome
		for i := range 2 { // in each lane the first fails, so that a success has a failure count to reset
			own := jobs[4*i:]
			before = append(before, r.verdict(own[0], core.Failure))
			one = append(one, r.verdict(own[1], []core.Verdict{core.Failure, core.Success}[i]))
			other = append(other, r.verdict(own[2], []core.Verdict{core.Success, core.Failure}[i]))
		}
		r.settle(before...)
		r.concurrently(2, func(i int) error {
			_, err := stores[i%len(stores)].Settle(context.Background(), [][]core.Outcome{one, other}[i]...)
			return err
		})
		r.settle(r.verdicts([]core.TakenJob{jobs[3], jobs[7]}, core.Success, core.Success)...)
	}
}

// crossRuns has several callers make transitions of the same runs, in opposite orders, while
// others take the jobs of those runs, which are due. The skew makes the takers see the jobs as due
// at different times.
func crossRuns(r *rig, skew time.Duration, stores []core.Store) {
	const movers, runs = 4, 3
	for round := range 20 {
		r.workflow = fmt.Sprint("crossing-", round)
		var jobs []core.TakenJob
		for range runs {
			jobs = append(jobs, r.takeNewRun())
		}
		r.now = r.now.Add(leaseTime)
		ts := make([][]core.Transition, movers)
		for i := range ts {
			for _, j := range jobs {
				ts[i] = append(ts[i], r.fullTransition(j))
			}
			if i%2 == 1 {
				slices.Reverse(ts[i])
			}
		}
		r.concurrently(movers+2, func(i int) (err error) {
			s := stores[i%len(stores)]
			if i >= movers {
				_, err = s.Take(context.Background(), r.now.Add(time.Duration(i)*skew), []core.Quota{r.runQuota(runs)})
				return err
			}
			_, err = s.Transit(context.Background(), ts[i]...)
			return err
		})
		for _, j := range jobs {
			r.equal("Seq", r.run(j.Situation.Run.ID).Seq, len(ts[0][0].Entries))
			r.equal("job", r.job(j.ID).Status, core.Completed)
		}
	}
}

// soak runs 4 takers and settlers for 150 rounds. The time advances with each four takes, so that open
// breakers are probed. Apart from skew, these four see the same time: with one, no two takes do, even
// if one taker is faster than the others.
func soak(r *rig, skew time.Duration, stores []core.Store) {
	const takers, rounds = 4, 150
	var begun atomic.Int64
	start := r.now
	clock := func() time.Time {
		take := begun.Add(1)
		return start.Add(time.Duration(take/takers)*200*time.Millisecond + time.Duration(take%takers)*skew)
	}
	var wg sync.WaitGroup
	for n := range takers {
		// The seeds are fixed, so that a failure can be repeated as far as the scheduler permits.
		s, random, ended := stores[n%len(stores)], rand.New(rand.NewPCG(uint64(n), 1)), make(chan []core.Outcome, 4)
		wg.Go(func() {
			defer close(ended)
			for range rounds {
				if outcomes := soakTake(r, s, clock(), random); len(outcomes) > 0 {
					ended <- outcomes
				}
			}
		})
		wg.Go(func() {
			for outcomes := range ended {
				for len(outcomes) > 0 { // in parts, as attempts end one by one
					k := min(len(outcomes), 1+n)
					if _, err := s.Settle(context.Background(), outcomes[:k]...); err != nil {
						r.Errorf("Settle = %v", err)
					}
					outcomes = outcomes[k:]
				}
			}
		})
	}
	wg.Wait()
}

// soakTake takes from all lanes as their gates permit, and returns the outcomes of the taken
// jobs. A third of them are failures.
func soakTake(r *rig, s core.Store, now time.Time, random *rand.Rand) (outcomes []core.Outcome) {
	looks, err := s.Due(context.Background(), lockLanes)
	if err != nil {
		r.Errorf("Due = %v", err)
	}
	var quotas []core.Quota
	for i, l := range lockLanes {
		q, g := core.Quota{Lane: l, N: 4, Hold: time.Hour}, looks[l].Gate
		switch {
		case g.Open():
			q.Pass = &core.Pass{Probe: core.BreakerCooldown, Closed: g.ClosedAt}
		case i < 2 || g.Ramp(now) > 0:
			q.Pass = &core.Pass{Interval: 2 * time.Millisecond, Ahead: 100 * time.Millisecond, Closed: g.ClosedAt}
		}
		quotas = append(quotas, q)
	}
	jobs, err := s.Take(context.Background(), now, quotas)
	if err != nil {
		r.Errorf("Take = %v", err)
	}
	for _, j := range jobs {
		o := core.Outcome{JobID: j.ID, Lease: j.Lease, Lane: j.Lane, Probe: j.Probe, Status: core.Completed, At: now,
			Verdict: core.Success, Attempt: core.Attempt{Number: 1, StartedAt: now}}
		if random.IntN(3) == 0 {
			o.Verdict, o.Status, o.DueAt = core.Failure, core.Retryable, now
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}
