package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/machine"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
)

const (
	loadTimeout = 2 * time.Minute  // of one run's posting
	stall       = 10 * time.Second // without a delivery, the rest is lost
)

// shape is how one run loads a system.
type shape struct {
	slots  int // see setup
	conns  int
	rate   float64       // events a second, 0 for as fast as answered
	warm   int           // events before the measured ones
	events int           // measured events
	delay  time.Duration // of the sink's answers

	after func(*running) error // called once everything is delivered, may be nil
}

// total is the number of sequence numbers; the warm-up has the first ones.
func (s shape) total() int { return s.warm + s.events }

// figures is what one run yields.
type figures struct {
	accepted  *load.Result // of the measured events
	delivered []int64      // event.Nanos of the first delivery of each, 0 for none
	held      time.Duration
	cpu       time.Duration // of the system, over the measured events
	resident  int64         // bytes, at the end
	peak      int64         // bytes
}

// running is a system under test with its sink.
type running struct {
	system system
	dir    string
	sink   *sink.Sink
	child  *proc.Child
}

// launch starts a system. A failed one leaves nothing behind but dir.
func launch(ctx context.Context, s system, dir string, cfg sink.Config, slots int) (*running, error) {
	cfg.Key, cfg.Hang = signingKey, slots == intakeOnly
	receiver, err := sink.Listen(cfg)
	if err != nil {
		return nil, err
	}
	r := &running{system: s, dir: dir, sink: receiver}
	addr, err := proc.FreeAddr()
	if err == nil {
		var spec proc.Spec
		if spec, err = s.start(setup{dir: dir, addr: addr, sink: receiver.URL(), slots: slots}); err == nil {
			r.child, err = proc.Start(ctx, spec)
		}
	}
	if err != nil {
		receiver.Close()
		return nil, err
	}
	return r, nil
}

// stop ends the system, then the sink, so that a delivery that hangs there does
// not fail while the system would still try the next.
func (r *running) stop() error {
	r.child.Interrupt()
	r.sink.Close()
	return r.child.Stop()
}

// run is one run on a fresh database. Faults of the system go to the report; the
// error is for a run that yields no figures.
func (b *bench) run(ctx context.Context, s system, sh shape) (f figures, err error) {
	dir, err := os.MkdirTemp(b.dir, s.name)
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	r, err := launch(ctx, s, dir, sink.Config{Events: sh.total(), Delay: sh.delay}, sh.slots)
	if err != nil {
		return f, err
	}
	warm, f, err := b.drive(ctx, r, sh)
	if err := errors.Join(err, r.stop(), ctx.Err()); err != nil {
		return f, err
	}
	found, err := audit(r, sh, warm, f.accepted)
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
	clock, err := startClock(r.child)
	if err != nil {
		return warm, f, err
	}
	if f.accepted, err = b.post(ctx, r, sh, sh.warm, sh.events); err != nil {
		return warm, f, err
	}
	var others, steal float64
	if f.cpu, others, steal, err = clock.stop(); err != nil {
		return warm, f, err
	}
	b.report.disturbed(others, steal)
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
	plan := load.Plan{
		Addr: r.child.Addr, Path: postPath, Size: bodySize, First: first, Count: count,
		Conns: sh.conns, Rate: sh.rate, Timeout: loadTimeout,
	}
	if first == 0 && sh.warm > 0 {
		plan.Rate = 0 // the warm-up keeps to no timetable
	}
	res, err := load.Run(ctx, plan)
	if err == nil && sh.slots != intakeOnly {
		await(ctx, r.sink, first, res)
	}
	return res, err
}

// await returns when all accepted events have arrived, or no more do.
func await(ctx context.Context, s *sink.Sink, first int, res *load.Result) {
	for {
		// In this order: what arrives in between is counted as arrived only, which
		// makes for another turn and never for a wait too long.
		arrived := s.Unique()
		left := missing(s, first, res)
		if left == 0 || !s.Wait(ctx, arrived+left, stall) {
			return
		}
	}
}

// missing is how many accepted events have not arrived yet.
func missing(s *sink.Sink, first int, res *load.Result) (n int) {
	for i, at := range res.Answered {
		if at > 0 && s.First(first+i) == 0 {
			n++
		}
	}
	return n
}

// clock measures CPU time, of the system and of everyone else.
type clock struct {
	child      *proc.Child
	own, under time.Duration
	machine    machine.CPU
}

func startClock(c *proc.Child) (clock, error) {
	all, err := machine.Usage()
	if err != nil {
		return clock{}, err
	}
	own, err := proc.OwnCPU()
	if err != nil {
		return clock{}, err
	}
	under, err := c.CPU()
	return clock{child: c, own: own, under: under, machine: all}, err
}

// stop returns what the system used, and the shares of all CPUs that went to
// other processes and to the host.
func (c clock) stop() (under time.Duration, others, steal float64, err error) {
	now, err := startClock(c.child)
	if err != nil {
		return 0, 0, 0, err
	}
	spent := now.machine.Since(c.machine)
	under = now.under - c.under
	foreign := max(0, spent.Busy-under-(now.own-c.own))
	if spent.Total > 0 {
		others, steal = foreign.Seconds()/spent.Total.Seconds(), spent.Steal.Seconds()/spent.Total.Seconds()
	}
	return under, others, steal, nil
}

// audit counts what went wrong, after the system has ended.
func audit(r *running, sh shape, warm, measured *load.Result) (faults, error) {
	seen := r.sink.Counts()
	f := faults{
		Runs: 1, Posted: sh.total(), Refused: warm.Refused + measured.Refused, Broken: warm.Broken + measured.Broken,
		Duplicated: seen.Duplicated, Strange: seen.Strange, Unsigned: seen.Unsigned,
		Err: errors.Join(warm.Err, measured.Err, seen.Err),
	}
	if sh.slots == intakeOnly {
		stored, err := stored(filepath.Join(r.dir, database))
		f.Duplicated, f.Lost = 0, max(0, warm.Accepted+measured.Accepted-stored)
		return f, err
	}
	f.Lost = missing(r.sink, 0, warm) + missing(r.sink, sh.warm, measured)
	return f, nil
}

// stored is the number of events in a database that have a job. Both systems
// call the tables the same.
func stored(path string) (n int, err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT count(DISTINCT event_id) FROM jobs WHERE event_id IN (SELECT id FROM events)`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the stored events: %w", err)
	}
	return n, nil
}

func (f figures) cpuPerEvent() float64 {
	return float64(f.cpu.Microseconds()) / float64(max(1, len(f.delivered)))
}

// endToEndRate is deliveries a second from the first request to the last
// delivery.
func (f figures) endToEndRate() float64 {
	at := f.arrivals()
	if len(at) == 0 {
		return 0
	}
	return float64(len(at)) / time.Duration(at[len(at)-1]-f.accepted.Start).Seconds()
}

// middleRate is deliveries a second without the first and the last tenth, in
// which not all slots are busy.
func (f figures) middleRate() float64 {
	at := f.arrivals()
	first, last := len(at)/10, len(at)-1-len(at)/10
	if last <= first {
		return 0
	}
	return float64(last-first) / time.Duration(at[last]-at[first]).Seconds()
}

// arrivals are the times of the deliveries in order.
func (f figures) arrivals() []int64 {
	at := slices.DeleteFunc(slices.Clone(f.delivered), func(at int64) bool { return at == 0 })
	slices.Sort(at)
	return at
}

// latencies are the times from sending to delivery, in nanoseconds.
func (f figures) latencies() []int64 {
	var out []int64
	for i, at := range f.delivered {
		if at > 0 && f.accepted.Answered[i] > 0 {
			out = append(out, at-f.accepted.Sent[i])
		}
	}
	return out
}

// place is where a system has run and can be started again.
type place struct {
	system system
	dir    string
}

func (p *place) close() {
	if p != nil {
		_ = os.RemoveAll(p.dir)
	}
}

// settle runs a system until it has delivered a few events and leaves its
// database in place.
func (b *bench) settle(ctx context.Context, s system) (*place, error) {
	dir, err := os.MkdirTemp(b.dir, s.name)
	if err != nil {
		return nil, err
	}
	p := &place{system: s, dir: dir}
	r, err := launch(ctx, s, dir, sink.Config{Events: 100}, mainSlots)
	if err != nil {
		return p, err
	}
	_, err = b.post(ctx, r, shape{slots: mainSlots, conns: 8, events: 100}, 0, 100)
	return p, errors.Join(err, r.stop())
}

// restart starts the system once more and returns how long that took.
func (p *place) restart(ctx context.Context) (time.Duration, error) {
	r, err := launch(ctx, p.system, p.dir, sink.Config{}, mainSlots)
	if err != nil {
		return 0, err
	}
	return r.child.Ready, r.stop()
}
