// Command bench measures the gateway's binary on each of its databases beside a
// minimal reference pipeline, in turns and over loopback, and prints the ratios.
//
//	go run ./cmd/bench            everything that can be started here, under half an hour
//	go run ./cmd/bench -quick     one round of each with few events, under four
//	go run ./cmd/bench -db postgres -medium 1ms -only e2e -conns 32 -rounds 5
//
// The one idea: a figure of one machine in one hour says little, since the same
// disk was seen to sync 160 and 10,000 times a second, but two figures taken in
// turns in the same minutes divide well. So each measure alternates gateway,
// reference, gateway, reference; medians are compared; and what may have
// disturbed them, medium and other load, is printed beside.
//
// # Media
//
// What a database can do depends on how long a sync takes. So there are three:
// cpu, a folder in memory, where syncs are free and the processor is the limit;
// 1ms, the same with a library preloaded into the server that makes each sync a
// millisecond longer, like a network volume; and disk, the real one. Each is
// printed with how many syncs a second it did, before and after.
//
// # Denominators
//
// The reference (internal/reference) is the least code that keeps the same
// promises, on the same server, in the best way for that database; the gateway
// over it is the price of its features. On PostgreSQL there are more: pgbench,
// which stores event and job in one statement, shows the server without HTTP; the
// reference with a transaction a request, on pools of 10 and of 32 connections,
// shows what group commit is worth where a sync takes time, and where it is
// faster than the reference in groups it takes that one's place. On PostgreSQL
// the gateway is also compared with itself, on tables that were never analysed
// and on analysed ones; on MySQL with what it does on PostgreSQL.
//
// Beside a queue stands a table, whose consumers speak SQL from this process: they
// pay neither for HTTP nor for an event apart from its job. On PostgreSQL there are
// two: one that is read by id, which is fastest while everything is visible, and one
// that is read by due time, as the gateway does, which steps over nothing. An idle
// queue's wake-up is compared with that of a handler of the same binary.
//
// Beside what operators do stands nothing: those are figures of a database that holds a
// million events, against the clock. What is asked is asked one at a time.
//
// # Reading the figures
//
// Look at the ratios. Generator, systems, database and sink share the machine, so
// rates are for ratios only; CPU an event, which is that of the program and of
// the server's processes together, travels better. Below 10 % of difference is
// noise. A ratio never fails a run; an event that is lost or comes twice does, and
// so does a refused request.
//
// All systems are processes of their own, started afresh on an empty database for
// each run. Generator, sink and consumers are in this process, and cheap.
//
// It imports its internal packages and the standard library, nothing of the
// gateway: what it measures is the binary.
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
		b.report.print(out, opts.format)
	}
	if err != nil {
		fmt.Fprintln(progress, "bench:", err)
		return 1
	}
	if b.report.faults.any() {
		return 1
	}
	return 0
}
