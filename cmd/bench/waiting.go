package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
)

// backlogKey is the path to the key of the events of a [server.Backlog].
const backlogKey = "$.key"

// fewWaiting is how many jobs wait in the short line.
const fewWaiting = 1000

// linesBacklog measures how fast events are delivered that are stored before the gateway starts, three
// of each key, beside the same events of a handler without lines. By default there are 100,000 keys.
func (b *bench) linesBacklog(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	keys := b.opts.stored / 10
	label := fmt.Sprintf("lines, backlog of %s keys evenly: ", thousands(keys))
	rate := measure{label + "rate", "events/s", ratioAtLeast(0.6), []string{unlinedName}}
	lined := b.systems[0]
	return inTurns(b.opts.rounds, []system{lined, {unlinedName, lined.start}}, func(s system) error {
		_, events := b.load()
		w := backlogRun{warm: warm(events)}
		w.Backlog = server.Backlog{Jobs: 3 * keys, Keys: keys, Bodies: 3 * keys, Size: bodySize}
		if b.site.driver == server.Hosted {
			// SQL over HTTP would take an hour for the whole backlog.
			w.Bodies = w.warm + events
		}
		if s.name == unlinedName {
			w.Keys = 0
		}
		f, err := b.deliver(ctx, s, w)
		if err != nil {
			return err
		}
		b.add(rate, s, f.endToEndRate())
		b.add(measure{label + "CPU an event, with server", "us", none, rate.beside}, s, f.cpuPerEvent())
		return nil
	})
}

// waiting measures the first deliveries from a line in which many jobs wait, beside those from a
// line in which few wait. Each delivery begins after the one before has ended.
func (b *bench) waiting(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	short := fmt.Sprintf("gateway, %s waiting", thousands(fewWaiting))
	label := fmt.Sprintf("lines, one key with %s waiting: ", thousands(b.opts.stored))
	took := measure{label + "time an event", "ms", ratioAtMost(1.5), []string{short}}
	long := b.systems[0]
	return inTurns(b.opts.rounds, []system{long, {short, long.start}}, func(s system) error {
		_, events := b.load()
		events = max(1, events/4)
		w := backlogRun{warm: warm(events)}
		w.Backlog = server.Backlog{Jobs: b.opts.stored, Keys: 1, Bodies: w.warm + events, Size: bodySize}
		if s.name == short {
			w.Jobs = fewWaiting
		}
		w.Jobs += w.Bodies // which are delivered meanwhile
		f, err := b.deliver(ctx, s, w)
		if err != nil {
			return err
		}
		b.add(took, s, 1000/f.endToEndRate())
		b.add(measure{label + "CPU an event, with server", "us", ratioAtMost(1.5), took.beside}, s, f.cpuPerEvent())
		return nil
	})
}

// A backlogRun is a run on stored events. The events with bodies are delivered, the first ones as a
// warm-up. Then the gateway is stopped.
type backlogRun struct {
	server.Backlog
	warm int
}

// deliver stores a backlog, starts the gateway and measures its deliveries. Faults go to the report.
func (b *bench) deliver(ctx context.Context, s system, w backlogRun) (f figures, err error) {
	p, err := b.place(s)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if w.Keys > 0 {
		p.key = backlogKey
	}
	if err := b.made(ctx, p); err != nil {
		return f, err
	}
	b.say("storing %d events that wait", w.Jobs)
	if err := p.database.PileBacklog(ctx, w.Backlog); err != nil {
		return f, err
	}
	r, err := launch(ctx, *p, sink.Config{Events: w.Bodies}, mainSlots)
	if err != nil {
		return f, err
	}
	f, err = b.watch(ctx, r, w)
	if err := errors.Join(err, r.stop(), ctx.Err()); err != nil {
		return f, err
	}
	// The sink does not know the events without bodies. Some are delivered before the gateway stops,
	// so strange deliveries are no fault.
	seen := r.sink.Counts()
	found := faults{
		Runs: 1, Posted: w.Bodies, Lost: w.Bodies - seen.Unique, Duplicated: seen.Duplicated,
		Unsigned: seen.Unsigned, Err: seen.Err,
	}
	if found.any() {
		b.say("FAULT %s: %s", s.name, found)
	}
	b.report.faults.add(found)
	return f, err
}

// watch measures the deliveries of a running gateway after the warm-up, until those of all events
// with bodies have come, or until no further one comes.
func (b *bench) watch(ctx context.Context, r *running, w backlogRun) (f figures, err error) {
	r.sink.Wait(ctx, w.warm, stall)
	clock, err := startClock(b.site.server, r.child)
	if err != nil {
		return f, err
	}
	r.sink.Wait(ctx, w.Bodies, stall)
	spent, err := clock.stop()
	if err != nil {
		return f, err
	}
	b.report.disturbed(spent.others, spent.steal)
	var at []int64
	for i := range w.Bodies {
		if first := r.sink.First(i); first > 0 {
			at = append(at, first)
		}
	}
	if len(at) <= w.warm {
		return f, fmt.Errorf("%d of %d stored events were delivered", len(at), w.Bodies)
	}
	// The last delivery of the warm-up is the start.
	slices.Sort(at)
	f.accepted, f.delivered = &load.Result{Start: at[w.warm-1]}, at[w.warm:]
	f.cpu, f.database = spent.system, spent.server
	return f, nil
}
