package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/machine"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

const (
	mainSlots = 32 // deliveries at a time in the end-to-end runs
	bodySize  = 1024
	timedRate = 50 // events a second of a latency run
)

// bench holds what all measurements share.
type bench struct {
	opts     options
	dir      string // below it, one folder a run
	systems  []system
	report   *report
	progress io.Writer
}

func newBench(ctx context.Context, o options, progress io.Writer) (*bench, error) {
	dir, err := os.MkdirTemp(o.dir, "bench")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	b := &bench{opts: o, dir: dir, report: newReport(), progress: progress}
	for _, name := range o.systems {
		s, err := b.system(ctx, name)
		if err != nil {
			b.close()
			return nil, err
		}
		b.systems = append(b.systems, s)
	}
	return b, nil
}

func (b *bench) system(ctx context.Context, name string) (system, error) {
	if name == referenceName {
		self, err := os.Executable()
		return referencePipeline(self), err
	}
	if b.opts.gateway != "" {
		path, err := filepath.Abs(b.opts.gateway)
		return gateway(path), err
	}
	b.say("building the gateway")
	path, err := buildGateway(ctx, b.dir)
	return gateway(path), err
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// measure runs what was asked for, between two probes of the medium.
func (b *bench) measure(ctx context.Context) error {
	if err := b.probe(); err != nil {
		return err
	}
	all := map[string]func(context.Context) error{
		"intake": b.intake, "e2e": b.endToEnd, "latency": b.latency, "slots": b.slots, "idle": b.idle, "start": b.start,
	}
	for _, name := range names {
		if !slices.Contains(b.opts.only, name) {
			continue
		}
		if err := all[name](ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.probe()
}

func (b *bench) probe() error {
	rate, err := machine.SyncRate(b.dir, b.opts.probe)
	if err != nil {
		return fmt.Errorf("probe the medium: %w", err)
	}
	b.report.medium = machine.Medium(b.dir)
	b.report.syncs = append(b.report.syncs, rate)
	b.say("medium: %s, %.0f fdatasync/s", b.report.medium, rate)
	return nil
}

// warm is how many events a run starts with, unmeasured.
func (b *bench) warm() int { return min(1000, b.opts.events/5) }

// inTurns calls one for each system, round after round.
func (b *bench) inTurns(rounds int, one func(system) error) error {
	for range rounds {
		for _, s := range b.systems {
			if err := one(s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// add records a value and says it.
func (b *bench) add(m measure, s system, value float64) {
	b.report.add(m, s.name, value)
	b.say("%-44s %-10s %s %s", m.label, s.name, number(value), m.unit)
}

// intake measures accepting alone: event and job committed, nothing delivered.
func (b *bench) intake(ctx context.Context) error {
	for _, conns := range b.opts.conns {
		label := func(what string) string { return fmt.Sprintf("intake, %d connections: %s", conns, what) }
		err := b.inTurns(b.opts.rounds, func(s system) error {
			f, err := b.run(ctx, s, shape{slots: intakeOnly, conns: conns, events: b.opts.events, warm: b.warm()})
			if err != nil {
				return err
			}
			b.add(measure{label("rate"), "events/s", ratioAtLeast(0.8)}, s, f.accepted.Rate())
			b.add(measure{label("CPU an event"), "us", none}, s, f.cpuPerEvent())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endToEnd measures from the first request to the last delivery.
func (b *bench) endToEnd(ctx context.Context) error {
	for _, conns := range b.opts.conns {
		label := func(what string) string { return fmt.Sprintf("end to end, %d connections: %s", conns, what) }
		err := b.inTurns(b.opts.rounds, func(s system) error {
			f, err := b.run(ctx, s, shape{slots: mainSlots, conns: conns, events: b.opts.events, warm: b.warm()})
			if err != nil {
				return err
			}
			b.add(measure{label("rate"), "events/s", ratioAtLeast(0.7)}, s, f.endToEndRate())
			b.add(measure{label("CPU an event"), "us", ratioAtMost(1.5)}, s, f.cpuPerEvent())
			accepted := f.accepted.Latencies()
			b.add(measure{label("accept p50"), "ms", none}, s, ms(stats.Percentile(accepted, 0.50)))
			b.add(measure{label("accept p99"), "ms", none}, s, ms(stats.Percentile(accepted, 0.99)))
			b.add(measure{label("peak memory"), "MiB", atMost(80)}, s, mib(f.peak))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// latency measures from sending an event to its delivery, on a quiet system.
func (b *bench) latency(ctx context.Context) error {
	label := func(what string) string { return fmt.Sprintf("at %d/s: %s", timedRate, what) }
	return b.inTurns(b.opts.rounds, func(s system) error {
		f, err := b.run(ctx, s, shape{slots: mainSlots, conns: 8, events: b.opts.timed, warm: 100, rate: timedRate})
		if err != nil {
			return err
		}
		delivered := f.latencies()
		b.add(measure{label("send to delivery p50"), "ms", ratioAtMost(1.3)}, s, ms(stats.Percentile(delivered, 0.50)))
		b.add(measure{label("send to delivery p99"), "ms", ratioAtMost(2)}, s, ms(stats.Percentile(delivered, 0.99)))
		accepted := f.accepted.Latencies()
		b.add(measure{label("accept p50"), "ms", none}, s, ms(stats.Percentile(accepted, 0.50)))
		return nil
	})
}

// slots measures whether throughput follows slots over handler latency, with the
// default number of slots, or a poll timer.
func (b *bench) slots(ctx context.Context) error {
	for _, delay := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		label := func(what string) string {
			return fmt.Sprintf("%d slots, handler of %d ms: %s", defaultSlots, delay.Milliseconds(), what)
		}
		events := int(b.opts.slotsFull * defaultSlots / delay)
		err := b.inTurns(min(b.opts.rounds, 2), func(s system) error {
			f, err := b.run(ctx, s, shape{conns: 16, events: events, warm: 20, delay: delay})
			if err != nil {
				return err
			}
			rate := f.middleRate()
			b.add(measure{label("rate"), "events/s", none}, s, rate)
			b.add(measure{label("share of slots used"), "", atLeast(0.9)}, s, rate*f.held.Seconds()/defaultSlots)
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
	return b.inTurns(1, func(s system) error {
		var cpu time.Duration
		f, err := b.run(ctx, s, shape{slots: mainSlots, conns: 8, events: 100, after: func(r *running) error {
			// What settling the last jobs still costs is not idleness.
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
		b.add(measure{"idle: CPU", "ms/s", atMost(2)}, s, cpu.Seconds()*1000/b.opts.idle.Seconds())
		b.add(measure{"idle: memory", "MiB", atMost(25)}, s, mib(f.resident))
		return nil
	})
}

// start measures from exec to the first answered /health, on the database of an
// earlier run.
func (b *bench) start(ctx context.Context) error {
	ready := measure{"start on an existing database", "ms", atMost(12)}
	places := map[string]*place{}
	defer func() {
		for _, p := range places {
			p.close()
		}
	}()
	return b.inTurns(1+b.opts.starts, func(s system) error {
		if p := places[s.name]; p != nil {
			took, err := p.restart(ctx)
			b.add(ready, s, took.Seconds()*1000)
			return err
		}
		p, err := b.settle(ctx, s)
		places[s.name] = p
		return err
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func ms(nanos int64) float64  { return float64(nanos) / 1e6 }
func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
