package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/reference"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

const (
	// The load of draining: consumers, messages of one receive, and the time within which a
	// queue has to be empty. longPoll is the wait of a consumer at an empty queue.
	consumers   = 8
	messages    = 10 // in a receive
	pullTimeout = 2 * time.Minute
	longPoll    = 20 * time.Second

	// The tables that are compared with a queue, by how consumers find messages there.
	tableByIDName  = "table, by id"
	tableByDueName = "table, by due time"
	tableName      = "table"
	pushedName     = "gateway, to a handler"
)

// orders are the ways to find messages in a table.
var orders = map[string]string{tableByIDName: reference.ByID, tableByDueName: reference.ByDue}

// pull measures queues: emptying a full one, and waking a consumer that waits at an empty
// one.
func (b *bench) pull(ctx context.Context) error {
	if err := b.drain(ctx); err != nil {
		return err
	}
	return b.wake(ctx)
}

// backlog is how many messages a queue has before it is emptied. There are more where there
// is an aim, since emptying is faster than filling.
func (b *bench) backlog() shape {
	_, events := b.load()
	if b.site.driver == server.Postgres {
		events *= 2
	}
	return shape{slots: queued, conns: mainSlots, warm: warm(events), events: events}
}

// parts returns the sequence numbers of the warm-up and of the rest. The warm-up has the first
// sequence numbers, as in load.
func (s shape) parts() []consume.Plan {
	return []consume.Plan{{Count: s.warm, Batch: messages, Stall: stall}, {First: s.warm, Count: s.events, Batch: messages, Stall: stall}}
}

// table returns the name of the system that the gateway's queue is compared with: on
// PostgreSQL the faster one of two.
func (b *bench) table() string {
	if b.site.driver == server.Postgres {
		return tableByIDName
	}
	return tableName
}

// tables returns all tables. The slower one finds messages by due time, as the gateway
// does.
func (b *bench) tables() (systems []system) {
	if !b.opts.measures(referenceName) {
		return nil
	}
	systems = append(systems, system{name: b.table()})
	if b.site.driver == server.Postgres {
		systems = append(systems, system{name: tableByDueName})
	}
	return systems
}

// drain measures receiving and acking all waiting messages: of the gateway over HTTP, of
// tables in SQL.
func (b *bench) drain(ctx context.Context) error {
	systems := slices.Concat(b.systems, b.tables())
	label, beside := fmt.Sprintf("pull, %d consumers of %d: ", consumers, messages), []string{b.table()}
	rate := measure{label + "rate", "messages/s", b.drainAim(), beside}
	err := inTurns(b.opts.rounds, systems, func(s system) error {
		// A table has no process of its own: this process speaks SQL, and its CPU time counts.
		run := b.drainTable
		if s.name == gatewayName {
			run = b.drainQueue
		}
		d, err := run(ctx, s)
		if err != nil {
			return err
		}
		b.report.disturbed(d.spent.others, d.spent.steal)
		b.add(rate, s, d.consumed.Rate())
		// Consumers are part of both, because the gateway's consumers need HTTP.
		b.add(measure{label + "CPU a message, all together", "us", none, beside}, s, d.cpu(d.spent.all()))
		if b.site.driver != server.SQLite {
			b.add(measure{label + "server's part of it", "us", none, beside}, s, d.cpu(d.spent.server))
		}
		return nil
	})
	b.beside(rate, systems, tableByDueName, b.drainAim())
	return err
}

// drainAim has a bound on PostgreSQL only.
func (b *bench) drainAim() aim {
	if b.site.driver == server.Postgres {
		return ratioAtLeast(0.6)
	}
	return none
}

// drained is the result of emptying a queue.
type drained struct {
	consumed *consume.Result
	spent    spending
}

// cpu is the CPU time for one message, in microseconds.
func (d drained) cpu(of time.Duration) float64 {
	return float64(of.Microseconds()) / float64(max(1, d.consumed.Acked))
}

// drainQueue fills a queue of the gateway with events and empties it.
func (b *bench) drainQueue(ctx context.Context, s system) (d drained, err error) {
	sh := b.backlog()
	err = b.within(ctx, s, sh, func(ctx context.Context, r *running) error {
		// Consumers connect before the queue is filled: the clock then has receiving and acking
		// alone.
		var all []consume.Consumer
		for range consumers {
			c, err := consume.Dial(ctx, r.child.Addr, queueName, 0)
			if err != nil {
				return err
			}
			defer c.Close()
			all = append(all, c)
		}
		for _, p := range sh.parts() {
			posted, err := b.post(ctx, r, sh, p.First, p.Count)
			if err == nil {
				d, err = b.consumeAll(ctx, all, p, r.child)
			}
			if err != nil {
				return err
			}
			b.judge(s, p, d.consumed, posted)
		}
		return nil
	})
	return d, err
}

// drainTable fills a table and empties it.
func (b *bench) drainTable(ctx context.Context, s system) (d drained, err error) {
	p, err := b.place(s)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	// The table is filled in SQL, not through HTTP: filling is not measured.
	q, err := reference.OpenQueue(ctx, reference.QueueConfig{
		Driver: p.database.Driver, URL: p.database.URL, Token: p.database.Token, Consumers: consumers, Order: orders[s.name],
	})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	for _, p := range b.backlog().parts() {
		if err := q.Fill(ctx, p.First, p.Count, bodySize); err != nil {
			return d, err
		}
		if d, err = b.consumeAll(ctx, slices.Repeat([]consume.Consumer{q}, consumers), p); err != nil {
			return d, err
		}
		b.judge(s, p, d.consumed)
	}
	return d, nil
}

// consumeAll makes consumers empty a queue. The child is the queue's system; there is none if that is
// this process.
func (b *bench) consumeAll(ctx context.Context, all []consume.Consumer, p consume.Plan, child ...*proc.Child) (d drained, err error) {
	clock, err := startClock(b.site.server, child...)
	if err != nil {
		return d, err
	}
	d.consumed = consume.Run(ctx, all, p)
	d.spent, err = clock.stop()
	return d, err
}

// judge adds the faults of a run to the report: of the posted events, and of the messages
// that were consumed.
func (b *bench) judge(s system, p consume.Plan, consumed *consume.Result, posted ...*load.Result) {
	f := faults{Posted: p.Count, Duplicated: consumed.Duplicated, Strange: consumed.Strange, Err: consumed.Err}
	stored := p.Count
	for _, r := range posted {
		f.Refused, f.Broken, f.Err = f.Refused+r.Refused, f.Broken+r.Broken, errors.Join(f.Err, r.Err)
		stored -= r.Refused + r.Broken
	}
	// Only the measured part counts as a run, the warm-up before it does not.
	if p.First > 0 {
		f.Runs = 1
	}
	// An event that was refused or never answered is counted there, and not as lost as well.
	f.Lost = max(0, stored-consumed.Acked)
	if f.any() {
		b.say("FAULT %s: %s", s.name, f)
	}
	b.report.faults.add(f)
}

// within runs fn while a system runs on a fresh database. fn has pullTimeout. The system is
// stopped in any case.
func (b *bench) within(ctx context.Context, s system, sh shape, fn func(context.Context, *running) error) (err error) {
	p, err := b.place(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	r, err := launch(ctx, *p, sink.Config{}, sh.slots)
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	return errors.Join(fn(timed, r), r.stop(), ctx.Err())
}

// wake measures the time from sending an event to a consumer that waits at the empty queue,
// beside the same to a handler.
func (b *bench) wake(ctx context.Context) error {
	// On SQL over HTTP the wake-up is mostly the time of its requests, as with latency.
	if b.site.driver == server.Hosted || !b.opts.measures(gatewayName) {
		return nil
	}
	label, beside := fmt.Sprintf("idle queue, at %d/s: ", timedRate), []string{pushedName}
	// The same binary with a handler is the denominator: it has the same intake and commit, so
	// the ratio compares a parked poll with a delivery.
	pulled := b.systems[0]
	pushed := system{pushedName, pulled.start}
	return inTurns(min(b.opts.rounds, 2), []system{pulled, pushed}, func(s system) error {
		run := b.wakeConsumer
		if s.name == pushedName {
			run = b.wakeHandler
		}
		took, err := run(ctx, s)
		if err != nil {
			return err
		}
		b.add(measure{label + "send to receive p50", "ms", ratioAtMost(1), beside}, s, ms(stats.Percentile(took, 0.50)))
		b.add(measure{label + "send to receive p99", "ms", none, beside}, s, ms(stats.Percentile(took, 0.99)))
		return nil
	})
}

// quiet is the load under which wake-ups are measured.
func (b *bench) quiet(slots int) shape {
	return shape{slots: slots, conns: 8, events: b.opts.timed, warm: 100, rate: timedRate}
}

// wakeHandler returns the time of each event to the sink.
func (b *bench) wakeHandler(ctx context.Context, s system) ([]int64, error) {
	f, err := b.run(ctx, s, b.quiet(mainSlots))
	return f.latencies(), err
}

// wakeConsumer returns the time of each event to a consumer that polls without a pause.
func (b *bench) wakeConsumer(ctx context.Context, s system) (took []int64, err error) {
	sh := b.quiet(queued)
	err = b.within(ctx, s, sh, func(ctx context.Context, r *running) error {
		c, err := consume.Dial(ctx, r.child.Addr, queueName, longPoll)
		if err != nil {
			return err
		}
		defer c.Close()
		for _, p := range sh.parts() {
			// One message a receive: a consumer that took several would receive the later ones
			// without waiting.
			p.Batch = 1
			// The consumer waits at the queue before the first event is posted.
			done := make(chan *consume.Result, 1)
			go func() { done <- consume.Run(ctx, []consume.Consumer{c}, p) }()
			posted, err := b.post(ctx, r, sh, p.First, p.Count)
			consumed := <-done
			if err != nil {
				return err
			}
			b.judge(s, p, consumed, posted)
			took = between(posted, consumed)
		}
		return nil
	})
	return took, err
}

// between returns the times from sending to receiving, in nanoseconds.
func between(posted *load.Result, consumed *consume.Result) (took []int64) {
	for i, at := range consumed.Received {
		if at > 0 && posted.Answered[i] > 0 {
			took = append(took, at-posted.Sent[i])
		}
	}
	return took
}
