// Command bench measures the gateway's binary on each of its databases beside a
// minimal reference pipeline, in turns and over loopback, and prints the ratios.
//
//	go run ./cmd/bench            the table of ratios, in a quarter of an hour
//	go run ./cmd/bench -quick     one round of each with few events, in three minutes
//	go run ./cmd/bench -only operate,slots,statistics    more figures, half an hour
//	go run ./cmd/bench -only lines,backlog,waiting,undue    lines, and much that waits; an hour
//	go run ./cmd/bench -db postgres -medium 1ms -only e2e -conns 32 -rounds 5
//
// The one idea: a figure of one machine in one hour says little, since the same disk was
// seen to sync 160 and 10,000 times a second. But two figures taken in turns in the same
// minutes divide well. So each measure alternates gateway, reference, gateway, reference,
// and medians are compared. Possible disturbances, medium and other load, are printed
// beside.
//
// # Media
//
// The speed of a database depends on the time of a sync. So there are three media: cpu, a
// folder in memory, where syncs are free and the processor is the limit; 1ms, the same with
// a library preloaded into the server that makes each sync a millisecond longer, like a
// network volume; and disk, the real one. Each is printed with its syncs a second, before
// and after.
//
// # Denominators
//
// The reference (internal/reference) is the least code that keeps the same promises, on the
// same server, in the best way for that database. The ratio of gateway and reference is the
// price of the gateway's features. On PostgreSQL there are more systems. pgbench, which
// stores event and job in one statement, shows the server without HTTP. The reference with
// a transaction a request, on pools of 10 and of 32 connections, shows the value of group
// commit where a sync takes time. Where it is faster than the reference in groups, it is
// the denominator. On PostgreSQL the gateway is also compared with itself, on tables that
// were never analysed and on analysed ones. On MySQL it is compared with itself on
// PostgreSQL.
//
// A queue is compared with a table, whose consumers speak SQL from this process: they need
// no HTTP, and no event apart from its job. On PostgreSQL there are two tables. One is read
// by id, which is fastest while everything is visible. The other is read by due time, as in
// the gateway, which steps over nothing. An idle queue's wake-up is compared with the
// wake-up of a handler of the same binary.
//
// A handler with lines is compared with itself without lines: on events that come in, each with
// another key or all with the same (lines), and on events that are stored before it starts, with
// 100,000 keys (backlog). A line in which a million jobs wait is compared with one in which a
// thousand wait (waiting). And deliveries beside a million jobs that are held, as many that are scheduled and
// as many that wait in a line are compared with deliveries on an empty database (undue).
//
// The operations of operators have no denominator: they are times on a database with a
// million events. The requests are made one at a time.
//
// # Reading the figures
//
// Look at the ratios. Generator, systems, database and sink share the machine, so rates are
// for ratios only. CPU an event, which is the CPU time of the program and the server's
// processes together, varies less between machines. A difference below 10 % is noise. A
// ratio never fails a run. A lost or repeated event does, and so does a refused request.
//
// All systems are processes of their own, started afresh on an empty database for
// each run. Generator, sink and consumers are in this process, and cheap.
//
// It imports its internal packages and the standard library, and nothing of the gateway: it
// measures the binary.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// main runs the benchmark, or the reference pipeline if the first argument says so. The
// reference is this same program, so that a run needs no second binary to be built and none of
// another version can be measured.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == referenceCommand {
		os.Exit(runReference(ctx, os.Args[2:], os.Stderr))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings passed in. It returns the exit code: 0, 1
// for a failed run or a fault of a system, 2 for wrong usage.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	// The report goes to out and everything else to progress. So a report can be redirected
	// into a file while the run is watched.
	opts, err := parse(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(progress, "bench:", err)
		return 2
	}
	b, err := newBench(ctx, opts, progress)
	if err == nil {
		defer b.close()
		err = b.measure(ctx)
		// After a failure the report still has the figures of the sites that were measured.
		b.report.print(out, opts.format)
		if err == nil && opts.figures != "" {
			err = b.report.publish(opts.figures)
		}
	}
	if err != nil {
		fmt.Fprintln(progress, "bench:", err)
		return 1
	}
	// A lost or repeated event fails the run even though all figures were taken.
	if b.report.faults.any() {
		return 1
	}
	return 0
}
