package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/infra/test/ports"
)

const (
	aloneName    = "gateway, one process"
	oneLaneName  = "gateway, one process, one lane"
	processRate  = 50 // events a second of a process
	processTime  = 10 // seconds
	processConns = 8  // of a process
)

// A bill is what events cost that several processes share.
type bill struct {
	events    int
	processes int
	work      server.Work   // of the measured events
	cpu       time.Duration // of the processes and the server
	idle      server.Work   // of a time without events
	idleTime  time.Duration
}

// billRows are the rows of a bill. A goal is a ratio to the bill of one process.
var billRows = []struct {
	name, unit string
	aim        aim
	of         func(bill) float64
}{
	{"statements an event", "", ratioAtMost(1.15), func(b bill) float64 { return b.each(float64(b.work.Statements)) }},
	{"log an event", "bytes", ratioAtMost(1.15), func(b bill) float64 { return b.each(float64(b.work.LogBytes)) }},
	{"waits for locks, an event", "us", none, func(b bill) float64 { return b.each(float64(b.work.Waited.Microseconds())) }},
	{"CPU an event, with server", "us", ratioAtMost(1.15), func(b bill) float64 { return b.each(float64(b.cpu.Microseconds())) }},
	{"idle: statements a second of a process", "", ratioAtMost(1.15), func(b bill) float64 {
		return float64(b.idle.Statements) / b.idleTime.Seconds() / float64(b.processes)
	}},
}

func (b bill) each(sum float64) float64 { return sum / float64(max(1, b.events)) }

// processes measures what an event costs if several gateways share a database, beside the same with one. Each
// process gets as many events, since processes are added as events become more. All together are far below
// what the machine can do: there, the events of a commit would become more, and hide what processes do
// because of each other. The events go to one handler, whose lane is hot, or to many handlers in turns. One
// process with many is measured beside one process with one.
func (b *bench) processes(ctx context.Context) (err error) {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	leave, err := b.withSettings(ctx, server.StatementSettings(b.site.driver)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	for range b.opts.rounds {
		alone := map[int]bill{} // by lanes
		for _, lanes := range []int{0, b.opts.lanes} {
			for _, n := range b.opts.processes {
				spent, err := b.share(ctx, n, lanes)
				if err != nil {
					return fmt.Errorf("%d processes, %d lanes: %w", n, lanes, err)
				}
				label, beside := fmt.Sprintf("%d processes, %d/s each", n, processRate), aloneName
				if lanes > 0 {
					label += fmt.Sprintf(", %s lanes", thousands(lanes))
				}
				with := alone[lanes]
				if n == 1 {
					alone[lanes] = spent
					label, beside, with = fmt.Sprintf("one process, %s lanes", thousands(lanes)), oneLaneName, alone[0]
				}
				if n > 1 || lanes > 0 {
					b.compare(label, beside, spent, with)
				}
			}
		}
	}
	return nil
}

// compare adds the rows of a bill beside another.
func (b *bench) compare(label, beside string, spent, with bill) {
	for _, row := range billRows {
		m := measure{label + ": " + row.name, row.unit, row.aim, []string{beside}}
		if beside == oneLaneName {
			m.aim = none
		}
		b.add(m, b.systems[0], row.of(spent))
		b.add(m, system{name: beside}, row.of(with))
	}
}

// share runs gateways on a fresh database, sends events to them in turns, and returns the bill. lanes is how
// many handlers the events go to, 0 for one.
func (b *bench) share(ctx context.Context, n, lanes int) (spent bill, err error) {
	p, err := b.place(b.systems[0])
	if err != nil {
		return spent, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	sh := shape{conns: n * processConns, rate: float64(n * processRate), events: n * min(b.opts.events, processTime*processRate), lanes: lanes}
	sh.warm = warm(sh.events)
	receiver, err := sink.Listen(sink.Config{Key: signingKey, Events: sh.total()})
	if err != nil {
		return spent, err
	}
	f := &fleet{running: running{place: *p, sink: receiver}}
	err = f.launch(ctx, n, lanes)
	var warm, measured *load.Result
	if err == nil {
		warm, measured, spent, err = f.drive(ctx, b, sh)
	}
	if err := errors.Join(err, f.stop(), ctx.Err()); err != nil {
		return spent, err
	}
	found, err := audit(ctx, &f.running, sh, warm, measured)
	if found.any() {
		b.say("FAULT %d processes: %s", n, found)
	}
	b.report.faults.add(found)
	return spent, err
}

// A fleet is several processes on one database, with one sink. The child of running is the first of them.
type fleet struct {
	running
	ports    []*ports.Port
	children []*proc.Child
}

// launch starts processes one after the other: the first makes the tables. The caller stops the fleet, also
// after an error.
func (f *fleet) launch(ctx context.Context, n, lanes int) error {
	for i := range n {
		dir := filepath.Join(f.dir, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		port, err := lend()
		if err != nil {
			return err
		}
		f.ports = append(f.ports, port)
		spec, err := f.system.start(setup{dir: dir, database: f.database, addr: port.Addr(), sink: f.sink.URL(), lanes: lanes})
		if err != nil {
			return err
		}
		child, err := proc.Start(ctx, spec)
		if err != nil {
			return err
		}
		if f.children = append(f.children, child); i > 0 {
			f.also = append(f.also, child.Addr)
		}
	}
	f.child = f.children[0]
	return nil
}

// stop ends the processes, and then the sink.
func (f *fleet) stop() (err error) {
	for _, c := range f.children {
		c.Interrupt()
	}
	for _, c := range f.children {
		err = errors.Join(err, c.Stop())
	}
	f.sink.Close()
	for _, p := range f.ports {
		err = errors.Join(err, p.Close())
	}
	return err
}

// drive posts the warm-up and the measured events, and then watches the fleet without any.
func (f *fleet) drive(ctx context.Context, b *bench, sh shape) (warm, measured *load.Result, spent bill, err error) {
	spent = bill{events: sh.events, processes: len(f.children), idleTime: b.opts.idle}
	if warm, err = b.post(ctx, &f.running, sh, 0, sh.warm); err != nil {
		return nil, nil, spent, err
	}
	clock, err := startClock(b.site.server, f.children...)
	if err != nil {
		return warm, nil, spent, err
	}
	spent.work, err = f.watch(ctx, func() error {
		measured, err = b.post(ctx, &f.running, sh, sh.warm, sh.events)
		return err
	})
	used, clockErr := clock.stop()
	if err := errors.Join(err, clockErr); err != nil {
		return warm, measured, spent, err
	}
	spent.cpu = used.system + used.server
	b.report.disturbed(used.others, used.steal)
	// Settling the last jobs is not part of idling.
	if err := pause(ctx, time.Second); err != nil {
		return warm, measured, spent, err
	}
	spent.idle, err = f.watch(ctx, func() error { return pause(ctx, b.opts.idle) })
	return warm, measured, spent, err
}

// watch returns what the server did during a call.
func (f *fleet) watch(ctx context.Context, during func() error) (server.Work, error) {
	stop, err := f.database.Watch(ctx)
	if err != nil {
		return server.Work{}, err
	}
	err = during()
	work, watchErr := stop()
	return work, errors.Join(err, watchErr)
}
