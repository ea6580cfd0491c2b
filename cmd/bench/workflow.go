package main

import (
	"context"
	"fmt"
)

const workflowSteps = 10

// workflow measures runs of http steps, one after the other, beside as many plain
// deliveries as they have steps.
func (b *bench) workflow(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	// As many calls as an end-to-end run has deliveries, so both take about as long.
	runs := max(1, b.opts.events/workflowSteps)
	label, beside := fmt.Sprintf("workflow, %d runs of %d steps: ", runs, workflowSteps), []string{pushedName}
	rate := measure{label + "rate", "steps/s", ratioAtLeast(0.8), beside}
	stepped := b.systems[0]
	delivered := system{pushedName, stepped.start}
	return inTurns(b.opts.rounds, []system{stepped, delivered}, func(s system) error {
		sh := shape{slots: mainSlots, conns: mainSlots, events: runs, warm: warm(runs), steps: workflowSteps}
		if s.name == pushedName {
			sh.events, sh.warm, sh.steps = runs*workflowSteps, warm(runs*workflowSteps), 0
		}
		f, err := b.run(ctx, s, sh)
		if err != nil {
			return err
		}
		// A run of the workflow is one event for the sink. So rates and CPU are multiplied and
		// divided by its steps.
		each := float64(max(1, sh.steps))
		b.add(rate, s, f.endToEndRate()*each)
		b.add(measure{label + "CPU a step, with server", "us", none, beside}, s, f.cpuPerEvent()/each)
		return nil
	})
}
