package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// The bounds of a request's time on a large database, and of the memory of an export.
const (
	answerAim = 50 // ms
	memoryAim = 64 // MiB
)

const kept = 72 // hours, more than the age of the filled-in events

// operate measures the operations of operators on a database with a million events:
// queries, also from the command line, an export, and a purge while further events come in.
func (b *bench) operate(ctx context.Context) error {
	// The operations mostly read, so slow syncs say little about them.
	if !b.opts.measures(gatewayName) || b.site.medium == server.OneMS {
		return nil
	}
	return errors.Join(b.inPlace(func(p *place) error { return b.operateIn(ctx, p) }), b.pile(ctx))
}

func (b *bench) operateIn(ctx context.Context, p *place) error {
	if err := b.stock(ctx, p); err != nil {
		return err
	}
	p.keep = kept
	// With 72 hours to live, none of the filled-in events, which are at most 60 hours old, is
	// purged while questions are asked. The tails of intake are taken on the database on which
	// the purge then runs.
	var calm []int64
	err := b.serving(ctx, p, func(r *running) (err error) {
		if err := errors.Join(b.questions(ctx, r), b.commands(ctx, r), b.exports(ctx, r)); err != nil {
			return err
		}
		calm, err = b.intakeTails(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	return b.purge(ctx, p, calm)
}

// pile measures queries on a database in which a million jobs wait. The first request for
// statistics waits for their count, and is not measured.
func (b *bench) pile(ctx context.Context) error {
	return b.inPlace(func(p *place) error { return b.pileIn(ctx, p) })
}

func (b *bench) pileIn(ctx context.Context, p *place) error {
	if err := b.made(ctx, p); err != nil {
		return err
	}
	b.say("storing %d jobs that wait", b.opts.stored)
	if err := p.database.Pile(ctx, b.opts.stored); err != nil {
		return err
	}
	return b.serving(ctx, p, func(r *running) error {
		// The labels differ from those of the filled database, so both stand in one table.
		list := pileQuestions()
		for i := range list {
			list[i].label = "while they wait, " + list[i].label
		}
		if _, err := ask(ctx, &http.Client{Timeout: askTimeout}, r.url()+"/api/stats"); err != nil {
			return err
		}
		return b.askAll(ctx, r, list)
	})
}

// made makes the gateway create the tables of a database.
func (b *bench) made(ctx context.Context, p *place) error {
	p.keep = kept
	return b.serving(ctx, p, func(*running) error { return nil })
}

// operated adds a row with a value of the gateway alone. The number of stored events is part of
// the label: figures of -quick are never mistaken for those of a million.
func (b *bench) operated(label, unit string, a aim, value float64) {
	label = fmt.Sprintf("%s stored: %s", thousands(b.opts.stored), label)
	b.add(measure{label, unit, a, []string{referenceName}}, b.systems[0], value)
}

// thousands writes a number as 20k or 1M.
func thousands(n int) string {
	if n >= 1_000_000 {
		return strconv.Itoa(n/1_000_000) + "M"
	}
	return strconv.Itoa(n/1000) + "k"
}

// stock fills a database in which the gateway has created the tables.
func (b *bench) stock(ctx context.Context, p *place) error {
	if err := b.made(ctx, p); err != nil {
		return err
	}
	b.say("storing %d events", b.opts.stored)
	return p.database.Fill(ctx, b.opts.stored)
}

// serving starts the gateway with a configuration that matches a filled database. The process
// ends after do, also after an error.
func (b *bench) serving(ctx context.Context, p *place, do func(*running) error) error {
	most := 0
	for _, l := range b.purgeLoads() {
		most = max(most, l.Count)
	}
	r, err := launch(ctx, *p, sink.Config{Events: most}, stocked)
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.stop())
}

// commands measures a listing by the command line, beside a command without a query, which
// is the start of the process.
func (b *bench) commands(ctx context.Context, r *running) error {
	// A command pays for the start of its process, for the configuration and for opening the
	// database. "version" has the first alone.
	for _, c := range []struct {
		label string
		aim   aim
		args  []string
	}{
		{"gateway version", none, []string{"version"}},
		{"gateway events list", atMost(answerAim), []string{"events", "list", "-c", r.config()}},
		{"gateway events list --url", atMost(answerAim), []string{"events", "list", "--url", r.url()}},
	} {
		took := make([]int64, b.opts.asks)
		for i := range took {
			ran, err := proc.Run(ctx, b.command(r, c.args...))
			if err != nil {
				return err
			}
			took[i] = ran.Took.Nanoseconds()
		}
		b.operated(c.label+", whole process p50", "ms", none, ms(stats.Percentile(took, 0.50)))
		b.operated(c.label+", whole process p99", "ms", c.aim, ms(stats.Percentile(took, 0.99)))
	}
	return nil
}

// command returns a command line in the folder of a running gateway.
func (b *bench) command(r *running, args ...string) proc.Spec {
	return proc.Spec{Path: b.binary, Args: args, Dir: r.dir}
}

// config and url are the two ways in which a command reaches the same gateway.
func (r *running) config() string { return filepath.Join(r.dir, "gateway.yaml") }

func (r *running) url() string { return "http://" + r.child.Addr }

// exports measures exports of all events, from the database and from the server.
func (b *bench) exports(ctx context.Context, r *running) error {
	for _, from := range [][]string{{"-c", r.config()}, {"--url", r.url()}} {
		// The output goes nowhere: a disk that takes hundreds of megabytes would be measured
		// instead.
		args := append([]string{"export", "events", "--limit", strconv.Itoa(b.opts.stored)}, from...)
		ran, err := proc.Run(ctx, b.command(r, args...))
		if err != nil {
			return err
		}
		label := "export " + from[0]
		b.operated(label+", rate", "events/s", none, float64(b.opts.stored)/ran.Took.Seconds())
		b.operated(label+", peak memory", "MiB", atMost(memoryAim), mib(ran.Peak))
	}
	_, peak, err := r.child.Memory()
	b.operated("server's peak memory after all this", "MiB", none, mib(peak))
	return err
}

// A purgeRun is one measurement of a purge: events come in at a rate. Some time after the first
// of them, the purged events are counted.
type purgeRun struct {
	rate    float64 // events a second
	events  int
	watched time.Duration
}

// purgeRuns are a load that leaves the database idle between two events, as in most
// installations, and one with which a purge keeps up only in larger commits.
func purgeRuns(quick bool) []purgeRun {
	if quick {
		return []purgeRun{{200, 200, time.Second}}
	}
	return []purgeRun{{200, 25 * 200, time.Minute}, {2000, 25 * 2000, time.Minute}}
}

// purgeLoads are the loads of the purge's measurements.
func (b *bench) purgeLoads() (plans []load.Plan) {
	for _, run := range b.opts.purges {
		plans = append(plans, load.Plan{Path: postPath, Size: bodySize, Count: run.events, Conns: 8, Rate: run.rate, Timeout: loadTimeout})
	}
	return plans
}

// intakeTails returns, for each load, the time within which 99 of 100 incoming events are
// answered.
func (b *bench) intakeTails(ctx context.Context, r *running) (tails []int64, err error) {
	for _, plan := range b.purgeLoads() {
		tail, err := b.intakeTail(ctx, r, plan)
		if err != nil {
			return nil, err
		}
		tails = append(tails, tail)
	}
	return tails, nil
}

func (b *bench) intakeTail(ctx context.Context, r *running, plan load.Plan) (int64, error) {
	plan.Addr = r.child.Addr
	res, err := load.Run(ctx, plan)
	if err != nil {
		return 0, err
	}
	b.report.faults.add(faults{Runs: 1, Posted: plan.Count, Refused: res.Refused, Broken: res.Broken, Err: res.Err})
	return stats.Percentile(res.Latencies(), 0.99), nil
}

// purge measures intake while all events except the last hour's are deleted, and the speed
// of that. calm is the result of intakeTails without a purge.
func (b *bench) purge(ctx context.Context, p *place, calm []int64) error {
	// Else the new process would wait for the turn of the one before.
	if err := p.database.EndTurns(); err != nil {
		return err
	}
	// Before the start, since a purge may begin and end in the second after it.
	first, err := oldest(ctx, p.database)
	if err != nil {
		return err
	}
	// An hour, the least that can be configured: nearly all of the filled-in events are older.
	p.keep = 1
	return b.serving(ctx, p, func(r *running) error {
		if err := b.purgeBegins(ctx, r, first); err != nil {
			return err
		}
		for i, plan := range b.purgeLoads() {
			if err := b.purgeDuring(ctx, r, plan, b.opts.purges[i].watched, calm[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// purgeDuring measures a purge and intake during one load.
func (b *bench) purgeDuring(ctx context.Context, r *running, plan load.Plan, watched time.Duration, calm int64) error {
	began := time.Now()
	before, err := stored(ctx, r)
	if err != nil {
		return err
	}
	busy, err := b.intakeTail(ctx, r, plan)
	if err != nil {
		return err
	}
	// A pass and its rest are a minute.
	if err := pause(ctx, time.Until(began.Add(watched))); err != nil {
		return err
	}
	after, err := stored(ctx, r)
	if err != nil {
		return err
	}
	// Events that came in meanwhile are younger than an hour, so they stay.
	purged := before + plan.Count - after
	at := fmt.Sprintf("at %v/s", plan.Rate)
	b.operated("intake "+at+", accept p99", "ms", none, ms(calm))
	b.operated("intake "+at+" during a purge, accept p99", "ms", none, ms(busy))
	b.operated("p99 during a purge over p99 without, "+at, "", atMost(2), float64(busy)/float64(max(1, calm)))
	b.operated("events purged a minute, "+at, "", none, float64(purged)*time.Minute.Seconds()/watched.Seconds())
	return nil
}

// stored counts the events of the database.
func stored(ctx context.Context, r *running) (int, error) {
	return r.database.Count(ctx, "SELECT count(*) AS n FROM events")
}

// oldest returns the time of the oldest event. The first of all ids is read in the primary key, so that
// asking again and again does not load the database.
func oldest(ctx context.Context, d *server.Database) (int, error) {
	return d.Count(ctx, "SELECT created_at AS n FROM events ORDER BY id LIMIT 1")
}

// purgeBegins waits until the oldest event, of the time first, is gone, which is soon after the start.
func (b *bench) purgeBegins(ctx context.Context, r *running, first int) error {
	// A purge that failed is repeated a minute later, so one failure may not end the run.
	for deadline := time.Now().Add(3 * time.Minute); ; {
		now, err := oldest(ctx, r.database)
		if err != nil || now != first {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("no purge has begun within three minutes")
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
