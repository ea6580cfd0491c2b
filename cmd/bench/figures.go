package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/machine"
	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
)

// figures are the results of one run. Sequence numbers of delivered count from the first
// measured event: the warm-up is not among them.
type figures struct {
	accepted  *load.Result // of the measured events
	delivered []int64      // event.Nanos of the first delivery of each, 0 for none
	held      time.Duration
	cpu       time.Duration // of the system, over the measured events
	database  time.Duration // the same of the database's server
	resident  int64         // bytes, at the end
	peak      int64         // bytes
}

// cpuPerEvent is the CPU time of the system and its server for one event, in
// microseconds.
func (f figures) cpuPerEvent() float64 { return f.perEvent(f.cpu + f.database) }

// perEvent divides a CPU time by the measured events, in microseconds. Without events it
// divides by one.
func (f figures) perEvent(cpu time.Duration) float64 {
	return float64(cpu.Microseconds()) / float64(max(1, len(f.delivered)))
}

// endToEndRate is deliveries a second from the first request to the last delivery. The last
// delivery counts, and not the median one, since a system that leaves a few events behind has
// not done the work.
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

// arrivals returns the times of the deliveries in order.
func (f figures) arrivals() []int64 {
	at := slices.DeleteFunc(slices.Clone(f.delivered), func(at int64) bool { return at == 0 })
	slices.Sort(at)
	return at
}

// latencies returns the times from sending to delivery, in nanoseconds.
func (f figures) latencies() []int64 {
	var out []int64
	for i, at := range f.delivered {
		if at > 0 && f.accepted.Answered[i] > 0 {
			out = append(out, at-f.accepted.Sent[i])
		}
	}
	return out
}

// clock measures CPU time: of the system (unless it is this process), of the database's server,
// of this process, and of all other processes. It is read twice, and the readings are
// subtracted: no counter is reset. A clock is a value; stop may be called once or several
// times.
type clock struct {
	children              []*proc.Child
	server                *server.Server
	own, system, database time.Duration
	machine               machine.CPU
}

// startClock reads all counters. There are no children if the system is this process.
func startClock(s *server.Server, children ...*proc.Child) (c clock, err error) {
	c = clock{children: children, server: s}
	if c.machine, err = machine.Usage(); err != nil {
		return c, err
	}
	if c.own, err = proc.OwnCPU(); err != nil {
		return c, err
	}
	if c.database, err = s.CPU(); err != nil {
		return c, err
	}
	for _, child := range children {
		used, childErr := child.CPU()
		c.system, err = c.system+used, errors.Join(err, childErr)
	}
	return c, err
}

// spending is CPU time by its user. others and steal judge the run and not the system. If
// others are above a tenth in most runs, the report calls itself disturbed.
type spending struct {
	system, server, own time.Duration
	others, steal       float64 // shares of all CPUs: other processes, the host
}

// all returns the CPU time of system, server and this process together.
func (s spending) all() time.Duration { return s.system + s.server + s.own }

// stop returns the CPU time spent since startClock.
func (c clock) stop() (s spending, err error) {
	now, err := startClock(c.server, c.children...)
	if err != nil {
		return s, err
	}
	all := now.machine.Since(c.machine)
	s.system, s.server, s.own = now.system-c.system, now.database-c.database, now.own-c.own
	// The machine counts in steps of 10 ms, the processes in nanoseconds, so the difference may
	// come out below zero.
	foreign := max(0, all.Busy-s.all())
	if all.Total > 0 {
		s.others, s.steal = foreign.Seconds()/all.Total.Seconds(), all.Steal.Seconds()/all.Total.Seconds()
	}
	return s, nil
}

// audit counts the faults of a run, after the system has ended. It counts after the end because
// a system that delivers an event twice may do so late.
func audit(ctx context.Context, r *running, sh shape, warm, measured *load.Result) (faults, error) {
	seen := r.sink.Counts()
	f := faults{
		Runs: 1, Posted: sh.total(), Refused: warm.Refused + measured.Refused, Broken: warm.Broken + measured.Broken,
		Duplicated: seen.Duplicated, Strange: seen.Strange, Unsigned: seen.Unsigned,
		Err: errors.Join(warm.Err, measured.Err, seen.Err),
	}
	// Nothing is delivered here, so the database is asked for the events. The one delivery that
	// hangs may be repeated: that is no fault of intake.
	if sh.slots == intakeOnly {
		stored, err := r.database.Stored(ctx)
		f.Duplicated, f.Lost = 0, max(0, warm.Accepted+measured.Accepted-stored)
		return f, err
	}
	f.Lost = missing(r.sink, 0, warm) + missing(r.sink, sh.warm, measured) + r.sink.Skipped()
	return f, nil
}
