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

// steadySettings are those of a PostgreSQL server that has a steady load: few checkpoints, since after
// each one the server logs whole pages anew.
var steadySettings = []string{"checkpoint_timeout=15min", "max_wal_size=16GB"}

// steadyState measures a database whose purge has caught up. It holds the events of the last hour, which
// is also the retention, and each second as many come in as become an hour old. Before, on the same
// database, the purge has nothing to do for a while: that gives the p99 to compare with.
func (b *bench) steadyState(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	return b.inPlace(func(p *place) error { return b.steadyIn(ctx, p) })
}

func (b *bench) steadyIn(ctx context.Context, p *place) error {
	if err := b.made(ctx, p); err != nil {
		return err
	}
	events := int(b.opts.steadyRate * server.SteadySpan.Seconds())
	b.say("storing %d events of the last hour", events)
	if err := p.database.FillHour(ctx, events); err != nil {
		return err
	}
	p.keep = kept
	calm, err := b.runSteady(ctx, p, max(b.opts.steadyWindow, b.opts.steady/6))
	if err != nil {
		return err
	}
	if err := p.database.EndTurns(); err != nil {
		return err
	}
	p.keep = 1
	steady, err := b.runSteady(ctx, p, b.opts.steady)
	if err != nil {
		return err
	}
	// The first third is left out: in it the purge still deletes the events that became old before.
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

// A steadyRun has the figures of a steady load.
type steadyRun struct {
	tails   []int64 // p99 until accepted, of each window, in nanoseconds
	samples []sample
}

// A sample is the state of the database at a moment.
type sample struct {
	bytes  int64
	events int   // PostgreSQL: by its statistics
	dead   int   // PostgreSQL: rows that no vacuum has removed yet
	free   int64 // SQLite: bytes of the pages that are free
}

// steadyConns is how many connections post. Each waits for its answers, so few connections bound the
// rate: eight can post 3,000 events a second only if an answer takes 2.7 ms.
const steadyConns = 32

// runSteady starts the gateway, posts events at the rate for a time, and takes a sample of the database at
// the beginning, after each window and at the end.
func (b *bench) runSteady(ctx context.Context, p *place, long time.Duration) (found steadyRun, err error) {
	plan := load.Plan{Path: postPath, Size: server.SteadyBody, Count: int(b.opts.steadyRate * long.Seconds()), Conns: steadyConns, Rate: b.opts.steadyRate, Timeout: long + loadTimeout}
	r, err := launch(ctx, *p, sink.Config{Events: plan.Count}, stocked)
	if err != nil {
		return found, err
	}
	plan.Addr = r.child.Addr
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	var failed error
	looks.Go(func() { found.samples, failed = b.samples(looking, r.database) })
	res, err := load.Run(ctx, plan)
	stop()
	looks.Wait()
	if err == nil {
		await(ctx, r.sink, 0, res)
		b.report.faults.add(faults{Runs: 1, Posted: plan.Count, Refused: res.Refused, Broken: res.Broken, Err: res.Err})
		if found.tails = res.Tails(b.opts.steadyWindow); len(found.tails) == 0 {
			err = errors.New("no event was accepted")
		}
	}
	return found, errors.Join(err, failed, r.stop(), ctx.Err())
}

// samples takes a sample now, after each window until ctx ends, and then the last one.
func (b *bench) samples(ctx context.Context, d *server.Database) (all []sample, err error) {
	for last := false; ; last = ctx.Err() != nil {
		s, err := sampleOf(context.WithoutCancel(ctx), d)
		if err != nil {
			return all, err
		}
		b.say("steady: %.1f MiB, of it free %.1f; %d events, %d dead rows", mib(s.bytes), mib(s.free), s.events, s.dead)
		if all = append(all, s); last {
			return all, nil
		}
		_ = pause(ctx, b.opts.steadyWindow) // it ends early when the load does
	}
}

// sampleOf takes a sample of a database of SQLite or PostgreSQL. On PostgreSQL it counts no rows, since
// the count of millions would disturb the load.
func sampleOf(ctx context.Context, d *server.Database) (s sample, err error) {
	count := func(query string) (n int) {
		if err == nil {
			n, err = d.Count(ctx, query)
		}
		return n
	}
	if d.Driver == server.Postgres {
		s.bytes = int64(count("SELECT pg_database_size(current_database()) AS n"))
		s.dead = count("SELECT COALESCE(SUM(n_dead_tup), 0)::bigint AS n FROM pg_stat_user_tables")
		s.events = count("SELECT n_live_tup AS n FROM pg_stat_user_tables WHERE relname = 'events'")
		return s, err
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(d.URL + suffix); err == nil {
			s.bytes += info.Size()
		}
	}
	s.free = int64(count("SELECT freelist_count * page_size AS n FROM pragma_freelist_count, pragma_page_size"))
	s.events = count("SELECT count(*) AS n FROM events")
	return s, err
}
