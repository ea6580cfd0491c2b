package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
)

// The keys of lines in the runs: each event has another sequence number, and all have the same
// padding.
const (
	keyAnEvent = "$.seq"
	oneKey     = "$.pad"
)

const (
	unlinedName = "gateway, without lines"
	alone       = "gateway, nothing waits"
)

// lines measures deliveries of a handler with lines beside the same handler without: with a key
// of its own for each event, and with one key for all, whose deliveries are one after the other.
func (b *bench) lines(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	_, events := b.load()
	for _, c := range []struct {
		label, key string
		events     int
		aim        aim
	}{
		{"lines, a key an event: ", keyAnEvent, events, ratioAtLeast(0.6)},
		// A tenth of the events: they take as long.
		{"lines, one key: ", oneKey, max(1, events/10), none},
	} {
		rate := measure{c.label + "rate", "events/s", c.aim, []string{unlinedName}}
		lined := b.systems[0]
		err := inTurns(b.opts.rounds, []system{lined, {unlinedName, lined.start}}, func(s system) error {
			sh := shape{slots: mainSlots, conns: b.linedConns(), events: c.events, warm: warm(c.events), key: c.key}
			if s.name == unlinedName {
				sh.key = ""
			}
			f, err := b.run(ctx, s, sh)
			if err != nil {
				return err
			}
			b.add(rate, s, f.endToEndRate())
			b.add(measure{c.label + "CPU an event, with server", "us", none, rate.beside}, s, f.cpuPerEvent())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// linedConns is how many connections post in the runs of lines and undue.
func (b *bench) linedConns() int {
	counts, _ := b.load()
	return min(mainSlots, counts[len(counts)-1])
}

// undue measures deliveries while many other jobs are not due: scheduled jobs of the same
// handler, jobs of another handler that is held, and jobs of the same handler that wait in one line.
// It measures beside the same deliveries from a database without such jobs.
func (b *bench) undue(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	label := fmt.Sprintf("beside 3 x %s jobs that are not due: ", thousands(b.opts.stored))
	rate := measure{label + "rate", "events/s", ratioAtLeast(0.9), []string{alone}}
	piled := b.systems[0]
	_, events := b.load()
	return inTurns(b.opts.rounds, []system{piled, {alone, piled.start}}, func(s system) (err error) {
		p, err := b.place(s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.close()) }()
		p.key = keyAnEvent
		sh := shape{slots: mainSlots, conns: b.linedConns(), events: events, warm: warm(events)}
		if s.name == piled.name {
			if err := b.made(ctx, p); err != nil {
				return err
			}
			b.say("storing 3 x %d jobs", b.opts.stored)
			if err := p.database.PileUndue(ctx, b.opts.stored); err != nil {
				return err
			}
		}
		r, err := launch(ctx, *p, sink.Config{Events: sh.total()}, sh.slots)
		if err != nil {
			return err
		}
		_, f, err := b.drive(ctx, r, sh)
		if err := errors.Join(err, r.stop(), ctx.Err()); err != nil {
			return err
		}
		b.add(rate, s, f.endToEndRate())
		b.add(measure{label + "CPU an event, with server", "us", none, rate.beside}, s, f.cpuPerEvent())
		return nil
	})
}
