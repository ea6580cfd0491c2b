package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The scenario of the fault tests: each call of a store, in each case that sends other statements.
// It is a fixed list of steps, so that each play of it sends the same statements, and the n-th
// statement of a step is the same in each play. Its parts leave jobs behind for the parts after
// them.

// scenario makes each call of a store in every case that sends other statements. A take returns
// all due jobs of its lane, and no other job of that lane is leased. So a caller whose take lost
// its answer may recover the lane.
func scenario(p *play) {
	scenarioArrivals(p)
	scenarioOutcomes(p)
	scenarioReleases(p)
	scenarioLeases(p)
	scenarioRetries(p)
	scenarioCancels(p)
	scenarioMarks(p)
	scenarioGates(p)
	scenarioQueues(p)
	scenarioRuns(p)
	scenarioReplays(p)
	// In a play with faults, the last steps are compared as well.
	p.wantScene("at the end", p.steps)
}

// scenarioArrivals accepts events that are new, repeated, duplicates by delivery id and by keys,
// and stored in part.
func scenarioArrivals(p *play) {
	p.accept("plain", "", "a:")
	p.accept("first", "d1", "a:", "b:")
	p.repeat("repeats", "first", "d1", "a:")
	p.accept("keys", "", "a:k1", "b:")
	p.accept("part", "", "b:k1", "b:k2")
	p.acceptPart("rest", "", 1, "a:k1", "b:k3")
	p.repeat("repeats keys", "keys", "", "a:k1")
	p.repeat("repeats two keys", "part", "d2", "b:k1", "b:k2")
	p.accept("none", "d3")
	p.express("at once", "c")
	p.settle(core.Completed, "at once/0")
	p.accept("first", "d1", "a:", "b:")
	p.accept("keys", "", "a:k1", "b:")
	p.acceptPart("rest", "", 1, "a:k1", "b:k3")
}

// scenarioOutcomes settles jobs with each status, several at once, and repeats some outcomes.
func scenarioOutcomes(p *play) {
	p.take("a", "plain/0", "first/0", "keys/0")
	p.settle(core.Completed, "plain/0")
	p.settle(core.Retryable, "first/0")
	p.settle(core.Dead, "keys/0")
	p.settle(core.Completed, "plain/0")
	p.take("b", "first/1", "keys/1", "part/0", "part/1", "rest/1")
	p.settle(core.Completed, "first/1", "keys/1", "part/0")
	p.settle(core.Retryable, "part/0", "part/1")
	p.settle(core.Dead, "rest/1", "first/1")
	p.repeat("repeats a dead one's key", "keys", "", "a:k1")
}

// scenarioReleases releases jobs that are taken, released and settled.
func scenarioReleases(p *play) {
	p.advance(leaseTime)
	p.take("a", "first/0")
	p.releaseJobs("first/0")
	p.releaseJobs("first/0")
	p.take("a", "first/0")
	p.settle(core.Completed, "first/0")
	p.releaseJobs("first/0")
	p.accept("later", "", "a:", "a:", "a:")
	p.take("a", "later/0", "later/1", "later/2")
	p.releaseJobs("later/0", "later/1")
	p.settle(core.Completed, "later/2")
}

// scenarioLeases lets a lease end, settles under it when the job is taken again, and recovers the
// lane.
func scenarioLeases(p *play) {
	p.take("b", "part/1")
	p.advance(2 * leaseTime)
	stale := p.heldJobs["part/1"]
	p.take("b", "part/1")
	p.settleStale(stale, "part/1")
	p.step("recover", func() error {
		_, err := p.store.Recover(context.Background(), p.now, []core.Lane{p.lanes["b"]})
		return err
	})
	p.take("b", "part/1")
	p.settle(core.Dead, "part/1")
	p.take("a", "later/0", "later/1")
	p.settle(core.Dead, "later/0", "later/1")
}

// scenarioRetries retries one job, a job that is not dead, and a lane.
func scenarioRetries(p *play) {
	p.retry("part/1", "")
	p.retry("part/1", "")
	p.retry("", "a")
	p.take("a", "keys/0", "later/0", "later/1")
	p.settle(core.Completed, "keys/0", "later/0")
	p.settle(core.Retryable, "later/1")
	p.take("b", "part/1")
	p.settle(core.Completed, "part/1")
}

// scenarioCancels cancels events whose jobs wait, run, have finished and lie under a lease that is
// over, and retries a canceled job.
func scenarioCancels(p *play) {
	p.cancel("first", core.Cancellation{Finished: 2})
	p.accept("halted", "", "a:", "d:", "d:k9")
	p.advance(leaseTime)
	p.take("a", "later/1", "halted/0")
	p.cancel("halted", core.Cancellation{Canceled: 2, Running: 1})
	p.settle(core.Completed, "later/1", "halted/0")
	p.accept("lapsed", "", "a:", "d:")
	p.take("a", "lapsed/0")
	p.advance(leaseTime)
	p.cancel("lapsed", core.Cancellation{Canceled: 2})
	p.take("d")
	p.retry("lapsed/0", "")
	p.retry("", "d")
	p.take("a", "lapsed/0")
	p.settle(core.Dead, "lapsed/0")
}

// cancel cancels an event as a step, and checks the counts.
func (p *play) cancel(name string, want core.Cancellation) {
	p.Helper()
	p.step("cancel "+name, func() error {
		got, err := p.store.Cancel(context.Background(), p.now, p.arrivals[name].Event.ID)
		if err == nil {
			p.equal(p.name, got, want)
		}
		return err
	})
}

// scenarioMarks sets, moves and replaces marks, and tries to move them back.
func scenarioMarks(p *play) {
	p.moveMarks("set", 0, "every hour", "a")
	p.moveMarks("set and moved", time.Hour, "every hour", "b", "a")
	p.moveMarks("moved", 2*time.Hour, "every hour", "a", "b")
	p.moveMarks("not moved back", time.Hour, "every hour", "a", "b")
	p.moveMarks("replaced", 0, "every day", "b", "a")
}

// moveMarks sets the marks of the play's sources to a time after the play's time.
func (p *play) moveMarks(how string, after time.Duration, schedule string, sources ...string) {
	p.Helper()
	var marks []core.Mark
	for _, s := range sources {
		marks = append(marks, core.Mark{Source: p.source + "/" + s, Schedule: schedule, Until: p.now.Add(after)})
	}
	p.step(fmt.Sprintf("marks %v %s", sources, how), func() error { return p.store.Mark(context.Background(), marks...) })
}

// accept accepts an arrival under a name. Another call with the same name sends the same arrival.
// A job is written "lane:key" and named after its event: "name/0".
func (p *play) accept(name, delivery string, jobs ...string) {
	p.Helper()
	p.acceptPart(name, delivery, len(jobs), jobs...)
}

// acceptPart accepts an arrival of which only some jobs are stored.
func (p *play) acceptPart(name, delivery string, stored int, jobs ...string) {
	p.Helper()
	a := p.arrivalNamed(name, delivery, jobs)
	p.acceptAs(name, a, core.Receipt{EventID: a.Event.ID, Jobs: stored})
}

// repeat accepts an arrival that repeats an earlier event.
func (p *play) repeat(name, first, delivery string, jobs ...string) {
	p.Helper()
	a := p.arrivalNamed(name, delivery, jobs)
	p.acceptAs(name, a, core.Receipt{EventID: p.arrivals[first].Event.ID, Duplicate: true})
}

// acceptAs accepts an arrival as a step, and checks the receipt.
func (p *play) acceptAs(name string, a core.Arrival, want core.Receipt) {
	p.Helper()
	p.step("accept "+name, func() error {
		got, err := p.store.Accept(context.Background(), a)
		if err == nil && got != want {
			p.Errorf("%s: receipt = %+v, want %+v", p.name, got, want)
		}
		return err
	})
}

// express accepts an arrival with one job in a lane, and takes the job. If the call failed, it may have
// taken it. Then its repetition takes nothing, and the caller goes on as in take.
func (p *play) express(name, lane string) {
	p.Helper()
	a, job, failed := p.arrivalNamed(name, "", []string{lane + ":"}), name+"/0", false
	p.attemptsBegun[job]++
	p.step("accept and take "+name, func() error {
		got, taken, err := p.store.AcceptAndTake(context.Background(), p.now, a, allHeld(a))
		if err != nil {
			failed = true
			return err
		}
		p.equal(p.name, got, core.Receipt{EventID: a.Event.ID, Jobs: 1})
		for _, j := range taken {
			p.heldJobs[job] = j.Job
		}
		if failed && len(taken) == 0 {
			if _, err := p.store.Recover(context.Background(), p.now, []core.Lane{p.lanes[lane]}); err != nil {
				return err
			}
			p.lostTakes[job] = true
			_, err = p.takeAll(lane)
		}
		return err
	})
}

// arrivalNamed returns the arrival of a name, and makes it at the first call. So a repeated step
// sends the same ids.
func (p *play) arrivalNamed(name, delivery string, jobs []string) core.Arrival {
	if a, ok := p.arrivals[name]; ok {
		return a
	}
	a := p.arrival()
	a.Event.Source, a.Event.DeliveryID = p.source, delivery
	p.names[a.Event.ID] = name
	for i, spec := range jobs {
		j := core.NewJob{ID: p.ids.Next(), Lane: p.lanes[spec[:1]], Key: spec[2:], MaxAttempts: 100}
		p.names[j.ID] = fmt.Sprintf("%s/%d", name, i)
		a.Jobs = append(a.Jobs, j)
	}
	p.arrivals[name] = a
	return a
}

// advance moves the play's time. It is no step, since it calls nothing.
func (p *play) advance(d time.Duration) { p.now = p.now.Add(d) }

// take takes all due jobs of a lane. If a take failed and its repetition returns too few jobs,
// the others are leased under the answer that was lost. Its caller, alone on its lanes, recovers
// them and takes again.
func (p *play) take(lane string, names ...string) {
	p.Helper()
	for _, name := range names {
		p.attemptsBegun[name]++
	}
	failed := false
	p.step("take "+lane, func() error {
		got, err := p.takeAll(lane)
		if err != nil {
			failed = true
			return err
		}
		if failed && len(got) < len(names) {
			if _, err := p.store.Recover(context.Background(), p.now, []core.Lane{p.lanes[lane]}); err != nil {
				return err
			}
			for _, name := range names {
				p.lostTakes[name] = true
			}
			if got, err = p.takeAll(lane); err != nil {
				return err
			}
		}
		want := slices.Sorted(slices.Values(names))
		p.equal(p.name, slices.Sorted(slices.Values(got)), want)
		return nil
	})
}

// takeAll takes the due jobs of a lane, notes their leases, and returns their names.
func (p *play) takeAll(lane string) (names []string, err error) {
	q := core.Quota{Lane: p.lanes[lane], N: 100, Hold: leaseTime}
	taken, err := p.store.Take(context.Background(), p.now, []core.Quota{q})
	for _, j := range taken {
		name := p.names[j.ID]
		p.heldJobs[name] = j.Job
		names = append(names, name)
	}
	return names, err
}

// outcome returns the outcome of an attempt. It returns the same outcome again for an attempt
// that has ended.
func (p *play) outcome(j core.Job, name string, s core.Status) core.Outcome {
	if o, ended := p.outcomes[j.ID]; ended && o.Lease == j.Lease {
		return o
	}
	o := p.ended(j, s)
	o.Attempt.Number = p.attemptsBegun[name]
	p.outcomes[j.ID] = o
	return o
}

// settle settles the attempts of the named jobs, none of which may be lost.
func (p *play) settle(s core.Status, names ...string) {
	p.Helper()
	var outcomes []core.Outcome
	for _, name := range names {
		outcomes = append(outcomes, p.outcome(p.heldJobs[name], name, s))
	}
	p.step(fmt.Sprintf("settle %v as %s", names, s), func() error {
		settled, err := p.store.Settle(context.Background(), outcomes...)
		if len(settled.Lost) > 0 {
			p.Errorf("%s: lost = %v, want none", p.name, settled.Lost)
		}
		return err
	})
}

// settleStale settles under a stale lease.
func (p *play) settleStale(stale core.Job, name string) {
	p.Helper()
	o := p.outcome(stale, name, core.Completed)
	p.step("settle late "+name, func() error {
		settled, err := p.store.Settle(context.Background(), o)
		if err == nil {
			p.equal(p.name+": lost", settled.Lost, []core.ID{stale.ID})
		}
		return err
	})
}

// releaseJobs releases jobs under the leases that the play knows.
func (p *play) releaseJobs(names ...string) {
	p.Helper()
	var jobs []core.Job
	for _, name := range names {
		jobs = append(jobs, p.heldJobs[name])
	}
	p.step(fmt.Sprintf("release %v", names), func() error {
		return p.store.Release(context.Background(), p.now, jobs...)
	})
}

// retry revives one job, or the jobs of a lane.
func (p *play) retry(name, lane string) {
	p.Helper()
	var id core.ID
	if name != "" {
		id = p.heldJobs[name].ID
	}
	p.step("retry "+name+lane, func() error {
		_, err := p.store.Retry(context.Background(), p.now, id, p.lanes[lane])
		return err
	})
}
