package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// scenarioGates is the part of the [scenario] in which a breaker opens and closes. It covers paced
// takes, failures up to the threshold, probes that fail, succeed, are released and end without a
// verdict, the ramp, strays, and an alert.
func scenarioGates(p *play) {
	const ms = time.Millisecond
	p.accept("gated", "", "c:", "c:", "c:", "c:", "c:", "c:", "c:")
	p.takePaced("c", core.Quota{N: 2, Pass: &core.Pass{Interval: 20 * ms}}, at{"gated/0", 0}, at{"gated/1", 20 * ms})
	p.takePaced("c", core.Quota{N: 1, Pass: &core.Pass{Interval: 20 * ms, Ahead: time.Second}}, at{"gated/2", 40 * ms})
	p.takePaced("c", core.Quota{N: 1, Pass: &core.Pass{Interval: 20 * ms}})
	p.settleVerdicts("f.", "gated/0", "gated/1")
	p.settleVerdicts("s", "gated/2")
	p.take("c", "gated/3", "gated/4", "gated/5", "gated/6")
	p.settleVerdicts("ffff", "gated/3", "gated/4", "gated/5", "gated/6")
	p.advance(leaseTime)
	p.takePaced("c", core.Quota{N: 3, Pass: &core.Pass{Interval: ms}}, at{"gated/0", 0}, at{"gated/1", ms}, at{"gated/3", 2 * ms})
	p.settleVerdicts("dff", "gated/0", "gated/1", "gated/3")
	p.take("c")
	p.take("b", "risen/0")
	p.settle(core.Completed, "risen/0")

	probe := core.Quota{N: 2, Pass: &core.Pass{Probe: core.BreakerCooldown}}
	p.takePaced("c", probe)
	p.advance(core.BreakerCooldown)
	p.takePaced("c", probe, at{"gated/4", 0})
	p.takePaced("c", probe)
	p.settleVerdicts(".", "gated/4")
	p.takePaced("c", probe, at{"gated/5", 0})
	p.releaseJobs("gated/5")
	p.takePaced("c", probe, at{"gated/6", 0})
	p.settleVerdicts("f", "gated/6")
	p.advance(core.BreakerCooldown)
	p.takePaced("c", probe, at{"gated/1", 0})
	p.settleVerdicts("s", "gated/1")
	p.take("c")
	p.takePaced("c", core.Quota{N: 1, Pass: &core.Pass{Interval: 200 * ms, Closed: p.now}}, at{"gated/3", 0})
	p.findStrays("c", "a")
	p.findStrays("", "a", "c")
	p.advance(core.RampTime)
	p.findStrays("c", "a")
	p.take("c", "gated/4", "gated/5", "gated/6")
	p.settleVerdicts("ssss", "gated/3", "gated/4", "gated/5", "gated/6")

	p.accept("stopped", "", "c:")
	p.holdLane("c", time.Minute)
	p.take("c")
	p.holdLane("c", 0)
	p.advance(time.Hour)
	p.take("c")
	p.unholdLane("c")
	p.take("c")
	p.advance(core.RampTime)
	p.take("c", "stopped/0")
	p.settle(core.Completed, "stopped/0")
}

// holdLane holds a lane for a time, 0 for no end, and checks the hold. Plays that broke off left
// holds of other lanes.
func (p *play) holdLane(lane string, d time.Duration) {
	p.Helper()
	want := core.Hold{Lane: p.lanes[lane], Since: p.now, Reason: "scenario"}
	if d > 0 {
		want.Until = p.now.Add(d)
	}
	p.step("hold "+lane, func() error {
		ctx := context.Background()
		if err := p.store.Hold(ctx, p.now, want.Lane, want.Until, want.Reason); err != nil {
			return err
		}
		got, err := p.store.Holding(ctx, p.now)
		if err == nil {
			got = slices.DeleteFunc(got, func(h core.Hold) bool { return h.Lane != want.Lane })
			p.equal(p.name, got, []core.Hold{want})
		}
		return err
	})
}

// unholdLane ends the hold of a lane.
func (p *play) unholdLane(lane string) {
	p.Helper()
	p.step("unhold "+lane, func() error {
		got, err := p.store.Unhold(context.Background(), p.now, p.lanes[lane])
		if err == nil {
			p.equal(p.name, got, []core.Lane{p.lanes[lane]})
		}
		return err
	})
}

// An at is a job of the play with its start time.
type at struct {
	name  string
	start time.Duration // after the play's time
}

// takePaced takes jobs from a gated lane. It checks which jobs the Take returns and when each of
// them is to start.
func (p *play) takePaced(lane string, q core.Quota, want ...at) {
	p.Helper()
	for _, a := range want {
		p.attemptsBegun[a.name]++
	}
	q.Lane, q.Hold = p.lanes[lane], leaseTime
	p.step("pass "+lane, func() error {
		taken, err := p.store.Take(context.Background(), p.now, []core.Quota{q})
		if err != nil {
			return err
		}
		var got []at
		for _, j := range taken {
			a := at{name: p.names[j.ID]}
			if p.heldJobs[a.name], p.probes[a.name] = j.Job, j.Probe; !j.Probe {
				a.start = j.StartAt.Sub(p.now)
			}
			got = append(got, a)
		}
		if !slices.Equal(got, want) {
			p.Errorf("%s: %v, want %v", p.name, got, want)
		}
		return nil
	})
}

// settleVerdicts settles attempts by letters: f is a failure, s a success, a dot no verdict, and d a
// failure with which the job dies, so that an alert arises.
func (p *play) settleVerdicts(word string, names ...string) {
	p.Helper()
	var outcomes []core.Outcome
	for i, name := range names {
		status, verdict := core.Retryable, core.Failure
		switch word[i] {
		case 's':
			status, verdict = core.Completed, core.Success
		case '.':
			verdict = core.NoVerdict
		case 'd':
			status = core.Dead
		}
		o := p.outcome(p.heldJobs[name], name, status)
		o.Lane, o.Verdict, o.Probe = p.heldJobs[name].Lane, verdict, p.probes[name]
		if status == core.Dead {
			a := p.arrivalNamed("risen", "", []string{"b:"})
			o.GivesRise = &a
		}
		outcomes = append(outcomes, o)
	}
	p.step(fmt.Sprintf("tell %s of %v", word, names), func() error {
		settled, err := p.store.Settle(context.Background(), outcomes...)
		if len(settled.Lost) > 0 {
			p.Errorf("%s: lost = %v, want none", p.name, settled.Lost)
		}
		return err
	})
}

// findStrays checks that a lane is the only stray, since now, or that there is none. It names the
// lanes of other plays as known.
func (p *play) findStrays(stray string, known ...string) {
	p.Helper()
	var lanes []core.Lane
	for _, name := range known {
		lanes = append(lanes, p.lanes[name])
	}
	for name := range p.lanes {
		for run := range p.run {
			lanes = append(lanes, playLane(name, run))
		}
	}
	want := map[core.Lane]time.Time{}
	if stray != "" {
		want[p.lanes[stray]] = p.now
	}
	p.step("strays", func() error {
		got, err := p.store.Strays(context.Background(), p.now, lanes)
		if err == nil {
			p.equal(p.name, got, want)
		}
		return err
	})
}
