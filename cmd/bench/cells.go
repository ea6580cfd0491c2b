package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

const (
	mainSlots = 32 // deliveries at a time in the end-to-end runs
	bodySize  = 1024
	timedRate = 50 // events a second of a latency run

	hostedConns  = 8   // of all runs on SQL over HTTP
	hostedEvents = 400 // at most, of such a run
)

// load returns how many connections post how many events, in a run of intake or from end to
// end. SQL over HTTP is slower by an order of magnitude: with the events of other databases a
// run would take minutes, and more connections only queue.
func (b *bench) load() (conns []int, events int) {
	if b.site.driver == server.Hosted {
		return []int{hostedConns}, min(hostedEvents, b.opts.events)
	}
	return b.opts.conns, b.opts.events
}

// warm returns how many events a run starts with, unmeasured. The warm-up opens connections,
// fills caches and prepares statements, which a long-lived process does once. Its events are
// checked like the others.
func warm(events int) int { return min(1000, events/5) }

// intake measures accepting alone: event and job committed, nothing delivered.
func (b *bench) intake(ctx context.Context) error {
	counts, events := b.load()
	for _, conns := range counts {
		// A rate is compared with the reference, or with a transaction a request on 32
		// connections where that is faster.
		label := fmt.Sprintf("intake, %d connections: ", conns)
		rate := measure{label + "rate", "events/s", ratioAtLeast(1), []string{referenceName, single32Name}}
		systems := b.intakeSystems(conns)
		err := inTurns(b.opts.rounds, systems, func(s system) error {
			// pgbench is no pipeline: it has no sink, no HTTP and no CPU time of its own to
			// report.
			if s.name == pgbenchName {
				tps, err := b.site.server.Pgbench(ctx, conns, events, bodySize)
				b.add(rate, s, tps)
				return err
			}
			f, err := b.run(ctx, s, shape{slots: intakeOnly, conns: conns, events: events, warm: warm(events)})
			if err != nil {
				return err
			}
			b.add(rate, s, f.accepted.Rate())
			b.cpu(label, none, s, f)
			return nil
		})
		if err != nil {
			return err
		}
		// The other denominators get rows of their own beside the same figures of the gateway.
		b.beside(rate, systems, pgbenchName, pgbenchAim(conns))
		b.beside(rate, systems, single10Name, ratioAtLeast(4))
	}
	return nil
}

// batchSize is how many events a request of batches has.
const batchSize = 100

// batches measures accepting events a hundred in a request, beside the same binary with an
// event a request.
func (b *bench) batches(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	_, events := b.load()
	// Each connection has several requests, so that the last ones end about together.
	events = max(1, 4*events/(batchConns*batchSize)) * batchConns * batchSize
	label := fmt.Sprintf("intake, %d connections, batches of %d: ", batchConns, batchSize)
	rate := measure{label + "rate", "events/s", ratioAtLeast(3), []string{singlyName}}
	batched := b.systems[0]
	singly := system{singlyName, batched.start}
	return inTurns(b.opts.rounds, []system{batched, singly}, func(s system) error {
		sh := shape{slots: intakeOnly, conns: batchConns, events: events, warm: batchConns * batchSize, batch: batchSize}
		if s.name == singlyName {
			// Fewer events: they take longer, and make no difference to the rate.
			sh.events, sh.warm, sh.batch = events/4, warm(events/4), 0
		}
		f, err := b.run(ctx, s, sh)
		if err != nil {
			return err
		}
		b.add(rate, s, f.accepted.Rate())
		b.add(measure{label + "CPU an event, with server", "us", none, rate.beside}, s, f.cpuPerEvent())
		return nil
	})
}

const (
	batchConns = 8
	singlyName = "gateway, an event a request"
)

// intakeSystems returns all systems that accept events on the site. One transaction a
// request matters where a sync takes time: there the server joins the commits of many
// connections itself, and group commit must be better than that.
func (b *bench) intakeSystems(conns int) []system {
	systems := b.both()
	if b.site.driver != server.Postgres || !b.opts.measures(referenceName) || !b.opts.pgbench {
		return systems
	}
	// Where syncs are free, group commit saves none, and a transaction a request has nothing to
	// show.
	if b.site.medium != server.CPU {
		systems = append(systems, referencePipeline(b.self, single32Name, committing{pool: 32}))
		if conns >= 100 {
			systems = append(systems, referencePipeline(b.self, single10Name, committing{pool: 10}))
		}
	}
	return append(systems, system{name: pgbenchName})
}

// pgbenchAim is for as many connections as there is a goal for.
func pgbenchAim(conns int) aim {
	switch conns {
	case 32:
		return ratioAtLeast(0.7)
	case 100:
		return ratioAtLeast(1.3)
	}
	return none
}

// beside adds a row that divides the same figures by another system's, if that system was
// measured.
func (b *bench) beside(m measure, measured []system, other string, a aim) {
	if slices.ContainsFunc(measured, func(s system) bool { return s.name == other }) {
		b.site.section.row(measure{m.label, m.unit, a, []string{other}})
	}
}

// cpu adds the CPU time of an event, of the system and the server together, and the
// server's part of it.
func (b *bench) cpu(label string, a aim, s system, f figures) {
	beside := []string{referenceName}
	b.add(measure{label + "CPU an event, with server", "us", a, beside}, s, f.cpuPerEvent())
	// SQLite runs inside the program: no part of the CPU time is a server's.
	if b.site.driver != server.SQLite {
		b.add(measure{label + "server's part of it", "us", none, beside}, s, f.perEvent(f.database))
	}
}

// endToEnd measures from the first request to the last delivery.
func (b *bench) endToEnd(ctx context.Context) error {
	counts, events := b.load()
	for _, conns := range counts {
		label := fmt.Sprintf("end to end, %d connections: ", conns)
		rate := measure{label + "rate", "events/s", b.endToEndAim(), []string{referenceName}}
		err := inTurns(b.opts.rounds, b.both(), func(s system) error {
			// The latencies of accepting have no aims: at full load they follow from rate and
			// connections.
			f, err := b.run(ctx, s, shape{slots: mainSlots, conns: conns, events: events, warm: warm(events)})
			if err != nil {
				return err
			}
			b.add(rate, s, f.endToEndRate())
			b.add(measure{label + "accepted meanwhile", "events/s", ratioAtLeast(0.85), rate.beside}, s, f.accepted.Rate())
			b.cpu(label, ratioAtMost(1.25), s, f)
			accepted := f.accepted.Latencies()
			b.add(measure{label + "accept p50", "ms", none, rate.beside}, s, ms(stats.Percentile(accepted, 0.50)))
			b.add(measure{label + "accept p99", "ms", none, rate.beside}, s, ms(stats.Percentile(accepted, 0.99)))
			// How long an event waits while senders push: it shows whether deliveries starve.
			delivered := f.latencies()
			b.add(measure{label + "sent to delivered p50", "ms", ratioAtMost(5), rate.beside}, s, ms(stats.Percentile(delivered, 0.50)))
			b.add(measure{label + "sent to delivered p99", "ms", none, rate.beside}, s, ms(stats.Percentile(delivered, 0.99)))
			b.add(measure{label + "peak memory", "MiB", atMost(80), rate.beside}, s, mib(f.peak))
			return nil
		})
		if err != nil {
			return err
		}
		b.overPostgres(rate)
	}
	return nil
}

// endToEndAim is lower for D1: its requests take most of the time of both systems.
func (b *bench) endToEndAim() aim {
	if b.site.driver == server.Hosted {
		return ratioAtLeast(0.75)
	}
	return ratioAtLeast(0.85)
}

// overPostgres compares the gateway's rate on MySQL with its rate on PostgreSQL on the same
// medium, if both were measured.
func (b *bench) overPostgres(rate measure) {
	if b.site.driver != server.MySQL {
		return
	}
	// By default PostgreSQL is measured before MySQL. With another order of -db there is no
	// such row.
	for _, there := range b.report.sections {
		if there.driver == server.Postgres && there.medium == b.site.medium && len(there.values[rate.label][gatewayName]) > 0 {
			b.site.section.row(measure{rate.label, rate.unit, ratioAtLeast(0.5), []string{onPostgres}})
			for _, v := range there.values[rate.label][gatewayName] {
				b.site.section.add(rate.label, onPostgres, v)
			}
		}
	}
}

// statistics measures end to end on tables of which PostgreSQL has no statistics, as in the
// first minutes of a new installation, beside the same after an ANALYZE. No other process
// may run ANALYZE, so the server has no autovacuum. A bad plan costs CPU, so where commits
// wait for syncs the difference would be smaller.
func (b *bench) statistics(ctx context.Context) (err error) {
	if !b.opts.measures(gatewayName) || b.site.medium == server.OneMS {
		return nil
	}
	// Autovacuum would analyse the tables in the middle of a run.
	leave, err := b.withSettings(ctx, "autovacuum=off")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	const conns = 32
	rate := measure{fmt.Sprintf("end to end, %d connections, never analysed: rate", conns), "events/s", ratioAtLeast(0.95), []string{analysedName}}
	never := b.systems[0]
	analysed := system{analysedName, never.start}
	return inTurns(b.opts.rounds, []system{never, analysed}, func(s system) error {
		sh := shape{slots: mainSlots, conns: conns, events: b.opts.events, warm: warm(b.opts.events)}
		if s.name == analysedName {
			// The warm-up has filled the tables by then, so that ANALYZE has rows to count.
			sh.before = func(r *running) error { return r.database.Analyze(ctx) }
		}
		f, err := b.run(ctx, s, sh)
		if err != nil {
			return err
		}
		b.add(rate, s, f.endToEndRate())
		return nil
	})
}

// withSettings starts a server of its own for a cell, with further settings of PostgreSQL. leave stops it and
// brings the usual server back.
func (b *bench) withSettings(ctx context.Context, settings ...string) (leave func() error, err error) {
	usual := b.site.server
	o := usual.Options
	o.Settings = append(slices.Clone(o.Settings), settings...)
	own, err := server.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	b.site.server = own
	return func() error {
		b.site.server = usual
		return own.Stop()
	}, nil
}

// latency measures from sending an event to its delivery, on a quiet system.
func (b *bench) latency(ctx context.Context) error {
	label, beside := fmt.Sprintf("at %d/s: ", timedRate), []string{referenceName}
	rounds := b.opts.rounds
	if b.site.driver != server.SQLite {
		rounds = min(rounds, 2) // they take long, and differ little
	}
	return inTurns(rounds, b.both(), func(s system) error {
		f, err := b.run(ctx, s, shape{slots: mainSlots, conns: 8, events: b.opts.timed, warm: 100, rate: timedRate})
		if err != nil {
			return err
		}
		// 8 connections and 50 events a second leave every part idle most of the time: the
		// figure is the way of one event and not a queue.
		delivered := f.latencies()
		b.add(measure{label + "send to delivery p50", "ms", ratioAtMost(1.1), beside}, s, ms(stats.Percentile(delivered, 0.50)))
		b.add(measure{label + "send to delivery p99", "ms", ratioAtMost(1.3), beside}, s, ms(stats.Percentile(delivered, 0.99)))
		accepted := f.accepted.Latencies()
		b.add(measure{label + "accept p50", "ms", none, beside}, s, ms(stats.Percentile(accepted, 0.50)))
		return nil
	})
}

// slots measures whether throughput follows slots over handler latency, with the
// default number of slots, or a poll timer.
func (b *bench) slots(ctx context.Context) error {
	beside := []string{referenceName}
	// Two delays: with a poll timer the share of used slots would differ between them.
	for _, delay := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		label := fmt.Sprintf("%d slots, handler of %d ms: ", defaultSlots, delay.Milliseconds())
		// So many that all slots are busy for slotsFull with either delay.
		events := int(b.opts.slotsFull * defaultSlots / delay)
		err := inTurns(min(b.opts.rounds, 2), b.both(), func(s system) error {
			f, err := b.run(ctx, s, shape{conns: 16, events: events, warm: 20, delay: delay})
			if err != nil {
				return err
			}
			rate := f.middleRate()
			b.add(measure{label + "rate", "events/s", none, beside}, s, rate)
			b.add(measure{label + "share of slots used", "", atLeast(0.9), beside}, s, rate*f.held.Seconds()/defaultSlots)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// idle measures a process that has worked and has nothing more to do.
func (b *bench) idle(ctx context.Context) error {
	// It is about the program, and the same on each medium.
	if b.measured("idle: CPU") {
		return nil
	}
	beside := []string{referenceName}
	return inTurns(1, b.both(), func(s system) error {
		// The figures are CPU while nothing happens, and memory after work was done, as an
		// operator sees them.
		var cpu time.Duration
		f, err := b.run(ctx, s, shape{slots: mainSlots, conns: 8, events: 100, after: func(r *running) error {
			// Settling the last jobs still costs CPU, and is not part of idling.
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			before, err := r.child.CPU()
			if err != nil {
				return err
			}
			if err := pause(ctx, b.opts.idle); err != nil {
				return err
			}
			after, err := r.child.CPU()
			cpu = after - before
			return err
		}})
		if err != nil {
			return err
		}
		b.add(measure{"idle: CPU", "ms/s", atMost(2), beside}, s, cpu.Seconds()*1000/b.opts.idle.Seconds())
		b.add(measure{"idle: memory", "MiB", atMost(25), beside}, s, mib(f.resident))
		return nil
	})
}

// start measures from exec to the first answered /health, on the database of an
// earlier run.
func (b *bench) start(ctx context.Context) (err error) {
	if b.measured("start on an existing database") {
		return nil
	}
	ready := measure{"start on an existing database", "ms", atMost(15), []string{referenceName}}
	// The first round fills a database for each system, and the others start the system again
	// on it: a start on an empty database would measure the creation of tables.
	places := map[string]*place{}
	defer func() {
		for _, p := range places {
			err = errors.Join(err, p.close())
		}
	}()
	return inTurns(1+b.opts.starts, b.both(), func(s system) error {
		if p := places[s.name]; p != nil {
			took, err := p.restart(ctx)
			if err == nil {
				b.add(ready, s, took.Seconds()*1000)
			}
			return err
		}
		p, err := b.settle(ctx, s)
		if p != nil {
			places[s.name] = p
		}
		return err
	})
}

// pause waits for d, or until ctx is done, whose error it returns.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ms and mib turn nanoseconds and bytes into the units of the report.
func ms(nanos int64) float64  { return float64(nanos) / 1e6 }
func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
