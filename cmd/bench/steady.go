package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// steadyState measures a database whose purge has caught up. It holds the events of the last hour, which
// is also the retention, and each second as many come in as become an hour old. Before, on the same
// database, the purge has nothing to do for a while: that gives the p99 to compare with.
func (b *bench) steadyState(ctx context.Context) (err error) {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	p, err := b.place(b.systems[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := b.made(ctx, p); err != nil {
		return err
	}
	events := int(b.opts.steadyRate * server.SteadySpan.Seconds())
	b.say("storing %d events of the last hour", events)
	if err := p.database.FillHour(ctx, events); err != nil {
		return err
	}
	p.keep = kept
	calm, err := b.steadily(ctx, p, max(b.opts.steadyWindow, b.opts.steady/6))
	if err != nil {
		return err
	}
	if err := p.database.EndTurns(); err != nil {
		return err
	}
	p.keep = 1
	steady, err := b.steadily(ctx, p, b.opts.steady)
	if err != nil {
		return err
	}
	// The first third is left out: pages of the hour that was filled in at once are used again first.
	from := steady.samples[len(steady.samples)/3]
	last := steady.samples[len(steady.samples)-1]
	row := func(label, unit string, a aim, value float64) {
		label = fmt.Sprintf("%v at %v/s, retention of an hour: %s", b.opts.steady, b.opts.steadyRate, label)
		b.add(measure{label, unit, a, []string{referenceName}}, b.systems[0], value)
	}
	row("accept p99 of a window, median", "ms", none, ms(stats.Percentile(steady.tails, 0.5)))
	row("accept p99 of a window, median, over that without a purge", "", atMost(2), ratio(stats.Percentile(steady.tails, 0.5), stats.Percentile(calm.tails, 0.5)))
	row("accept p99 of the worst window", "ms", none, ms(slices.Max(steady.tails)))
	row("database at the end", "MiB", none, mib(last.bytes))
	row("database at the end, over that after a third of the time", "", atMost(1.05), ratio(last.bytes, from.bytes))
	row("stored events at the end, over those after a third of the time", "", atMost(1.05), ratio(int64(last.events), int64(from.events)))
	if b.site.driver == server.Postgres {
		row("dead rows at the end", "", none, float64(last.dead))
	}
	return nil
}

// ratio is a part of a whole that may be 0 in the smallest run.
func ratio(a, b int64) float64 { return float64(a) / float64(max(1, b)) }

// steadily has what was measured during a steady load.
type steadily struct {
	tails   []int64 // p99 until accepted, of each window, in nanoseconds
	samples []sample
}

// A sample is the state of the database at the end of a window.
type sample struct {
	bytes  int64
	events int
	dead   int // rows that PostgreSQL has not vacuumed, or bytes of free pages of SQLite
}

// steadily posts events at the rate for a time, and looks at the database at the end of each window.
func (b *bench) steadily(ctx context.Context, p *place, long time.Duration) (found steadily, err error) {
	plan := load.Plan{Path: postPath, Size: server.SteadyBody, Count: int(b.opts.steadyRate * long.Seconds()), Conns: 8, Rate: b.opts.steadyRate, Timeout: long + loadTimeout}
	r, err := launch(ctx, *p, sink.Config{Events: plan.Count}, stocked)
	if err != nil {
		return found, err
	}
	plan.Addr = r.child.Addr
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	var failed error
	looks.Go(func() { found.samples, failed = b.sampled(looking, r) })
	res, err := load.Run(ctx, plan)
	stop()
	looks.Wait()
	if err == nil {
		await(ctx, r.sink, 0, res)
		b.report.faults.add(faults{Runs: 1, Posted: plan.Count, Refused: res.Refused, Broken: res.Broken, Err: res.Err})
		found.tails = res.Tails(b.opts.steadyWindow)
	}
	if err := errors.Join(err, failed, r.stop(), ctx.Err()); err != nil {
		return found, err
	}
	return found, nil
}

// sampled looks at the database at the end of each window until ctx ends, and once more.
func (b *bench) sampled(ctx context.Context, r *running) (all []sample, err error) {
	for ; ctx.Err() == nil; _ = pause(ctx, b.opts.steadyWindow) {
		s, err := b.look(context.WithoutCancel(ctx), r.database)
		if err != nil {
			return all, err
		}
		b.say("steady: %.1f MiB, %d events, %d dead rows or free bytes", mib(s.bytes), s.events, s.dead)
		all = append(all, s)
	}
	return all, nil
}

// look reads the size of a database, its events and its dead rows. Events are counted by their ids, which
// have the order of time.
func (b *bench) look(ctx context.Context, d *server.Database) (s sample, err error) {
	switch d.Driver {
	case server.Postgres:
		bytes, err := d.Count(ctx, "SELECT pg_database_size(current_database()) AS n")
		if err != nil {
			return s, err
		}
		s.bytes = int64(bytes)
		if s.dead, err = d.Count(ctx, "SELECT COALESCE(SUM(n_dead_tup), 0)::bigint AS n FROM pg_stat_user_tables"); err != nil {
			return s, err
		}
		s.events, err = d.Count(ctx, "SELECT n_live_tup AS n FROM pg_stat_user_tables WHERE relname = 'events'")
		return s, err
	default:
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(d.URL + suffix); err == nil {
				s.bytes += info.Size()
			}
		}
		free, err := d.Count(ctx, "SELECT freelist_count * page_size AS n FROM pragma_freelist_count, pragma_page_size")
		if err != nil {
			return s, err
		}
		s.dead = free
		s.events, err = d.Count(ctx, "SELECT count(*) AS n FROM events")
		return s, err
	}
}
