package main

import (
	"context"
	"errors"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/infra/test/ports"
)

const (
	loadTimeout = 2 * time.Minute  // of one run's posting
	stall       = 10 * time.Second // without a delivery, the rest is lost
)

// shape is how one run loads a system. A shape is a value: cells copy and change it.
type shape struct {
	slots  int // see setup
	conns  int
	rate   float64       // events a second, 0 for as fast as answered
	warm   int           // events before the measured ones
	events int           // measured events
	delay  time.Duration // of the sink's answers
	steps  int           // of a workflow in place of the handler; 0 for none
	batch  int           // events in a request; 0 for requests that are an event
	lanes  int           // handlers that events go to in turns; 0 for one
	key    string        // path to the key of the handler's lines; "" for no lines

	before func(*running) error // called after the warm-up, may be nil
	after  func(*running) error // called once everything is delivered, may be nil
}

// total is the number of sequence numbers; the warm-up has the first ones. The sink is made for
// exactly so many: a sequence number beyond them is a strange delivery.
func (s shape) total() int { return s.warm + s.events }

// running is a system under test with its sink. It lives for one run: launch makes it and stop
// ends it.
type running struct {
	place
	port  *ports.Port // the child listens on it
	sink  *sink.Sink
	child *proc.Child
	also  []string // addresses of further processes of it, see fleet
}

// launch starts a system in its place. The sink listens before the system starts, since a
// system on a used database delivers at once. After an error nothing is left running.
func launch(ctx context.Context, p place, cfg sink.Config, slots int) (*running, error) {
	// The gateway has no mode without deliveries. So its only slot gets a delivery that is
	// never answered.
	cfg.Key, cfg.Hang = signingKey, slots == intakeOnly
	receiver, err := sink.Listen(cfg)
	if err != nil {
		return nil, err
	}
	r := &running{place: p, sink: receiver}
	if r.port, err = lend(); err == nil {
		var spec proc.Spec
		if spec, err = p.system.start(setup{dir: p.dir, database: p.database, addr: r.port.Addr(), sink: receiver.URL(), slots: slots, steps: cfg.Steps, keep: p.keep, key: p.key}); err == nil {
			r.child, err = proc.Start(ctx, spec)
		}
	}
	if err != nil {
		receiver.Close()
		if r.port != nil {
			_ = r.port.Close()
		}
		return nil, err
	}
	return r, nil
}

// lend reserves a port for a child. A port that is merely found free could be taken by another
// process before the child listens.
func lend() (*ports.Port, error) {
	p, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	return p, p.Lend()
}

// stop ends the system, then the sink. So a delivery that hangs in the sink does not fail
// while the system would still try the next.
func (r *running) stop() error {
	r.child.Interrupt()
	r.sink.Close()
	return errors.Join(r.child.Stop(), r.port.Close())
}

// run is one run on a fresh database. Faults of the system go to the report; the
// error is for a run that yields no figures.
func (b *bench) run(ctx context.Context, s system, sh shape) (f figures, err error) {
	p, err := b.place(s)
	if err != nil {
		return f, err
	}
	p.key = sh.key
	// A fresh database for each run: tables that grew in earlier rounds would make later ones
	// slower.
	defer func() { err = errors.Join(err, p.close()) }()
	r, err := launch(ctx, *p, sink.Config{Events: sh.total(), Delay: sh.delay, Steps: sh.steps}, sh.slots)
	if err != nil {
		return f, err
	}
	// The system is stopped before it is judged, so that deliveries that it repeats at its end
	// count.
	warm, f, err := b.drive(ctx, r, sh)
	if err := errors.Join(err, r.stop(), ctx.Err()); err != nil {
		return f, err
	}
	found, err := audit(ctx, r, sh, warm, f.accepted)
	if found.any() {
		b.say("FAULT %s: %s", s.name, found)
	}
	b.report.faults.add(found)
	return f, err
}

// drive posts the warm-up and then, measured, the rest.
func (b *bench) drive(ctx context.Context, r *running, sh shape) (warm *load.Result, f figures, err error) {
	if warm, err = b.post(ctx, r, sh, 0, sh.warm); err != nil {
		return warm, f, err
	}
	// Between warm-up and measurement nothing is under way: await has seen all deliveries of
	// the warm-up, or given them up.
	if sh.before != nil {
		if err := sh.before(r); err != nil {
			return warm, f, err
		}
	}
	// The clock covers the posting and the deliveries, and no more: reading the sink afterwards
	// is the benchmark's own work.
	clock, err := startClock(b.site.server, r.child)
	if err != nil {
		return warm, f, err
	}
	if f.accepted, err = b.post(ctx, r, sh, sh.warm, sh.events); err != nil {
		return warm, f, err
	}
	spent, err := clock.stop()
	if err != nil {
		return warm, f, err
	}
	f.cpu, f.database = spent.system, spent.server
	b.report.disturbed(spent.others, spent.steal)
	// The times are copied while the system still runs; a later repeat changes no first time.
	for i := range sh.events {
		f.delivered = append(f.delivered, r.sink.First(sh.warm+i))
	}
	f.held = r.sink.Held()
	if sh.after != nil {
		if err := sh.after(r); err != nil {
			return warm, f, err
		}
	}
	f.resident, f.peak, err = r.child.Memory()
	return warm, f, err
}

// post sends events and waits for their deliveries, if there are to be any.
func (b *bench) post(ctx context.Context, r *running, sh shape, first, count int) (*load.Result, error) {
	if count == 0 {
		return &load.Result{}, nil
	}
	// The body has the sequence number of its event, by which the sink knows it.
	plan := load.Plan{
		Addr: r.child.Addr, Also: r.also, Path: postPath, Types: sh.lanes, Size: bodySize, First: first, Count: count, Batch: sh.batch,
		Conns: sh.conns, Rate: sh.rate, Timeout: loadTimeout,
	}
	if sh.batch > 0 {
		plan.Path = batchPath
	}
	if first == 0 && sh.warm > 0 {
		plan.Rate = 0 // the warm-up keeps to no timetable
	}
	res, err := load.Run(ctx, plan)
	if err == nil && sh.slots >= 0 {
		await(ctx, r.sink, first, res)
	}
	return res, err
}

// await returns when all accepted events have arrived, or when no further one arrives. It never
// fails: events that are missing after stall are counted as lost by audit.
func await(ctx context.Context, s *sink.Sink, first int, res *load.Result) {
	for {
		// The order matters: events that arrive in between only count as arrived. That may
		// cause another turn, but never a wait that is too long.
		arrived := s.Unique()
		left := missing(s, first, res)
		if left == 0 || !s.Wait(ctx, arrived+left, stall) {
			return
		}
	}
}

// missing returns how many accepted events have not arrived yet.
func missing(s *sink.Sink, first int, res *load.Result) (n int) {
	for i, at := range res.Answered {
		if at > 0 && s.First(first+i) == 0 {
			n++
		}
	}
	return n
}
