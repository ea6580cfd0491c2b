// Command bench measures the gateway's binary beside a minimal reference
// pipeline, in turns and over loopback, and prints the ratios.
//
//	go run ./cmd/bench            everything, about three minutes
//	go run ./cmd/bench -quick     one round of each, under 40 seconds
//	go run ./cmd/bench -only e2e -conns 32 -rounds 5
//
// The one idea: a figure of one machine in one hour says little, since the same
// disk was seen to sync 160 and 10,000 times a second, but two figures taken in
// turns in the same minutes divide well. So each measure alternates gateway,
// reference, gateway, reference; medians are compared; and what may have
// disturbed them, medium and other load, is printed beside.
//
// Both systems are processes of their own, started afresh on an empty SQLite
// database for each run. Generator and sink are in this process, and cheap.
// Ratios never fail a run; a lost event or a refused request does.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
		b.report.print(out, opts.markdown)
	}
	if err != nil {
		fmt.Fprintln(progress, "bench:", err)
		return 1
	}
	if b.report.faults.fatal() {
		return 1
	}
	return 0
}

// names of the measurements, in the order they run.
var names = []string{"intake", "e2e", "latency", "slots", "idle", "start"}

// options is what the flags say, completed by defaults.
type options struct {
	rounds   int
	events   int // a run of intake and e2e
	conns    []int
	only     []string
	systems  []string
	dir      string
	gateway  string
	markdown bool

	probe     time.Duration // of the medium, each of two
	timed     int           // events of a latency run, at timedRate
	idle      time.Duration // how long an idle process is watched
	starts    int
	slotsFull time.Duration // how long all slots are kept busy
}

func parse(args []string, usage io.Writer) (options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	var o options
	quick := flags.Bool("quick", false, "one round with few events, under 40 seconds")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each measure, gateway and reference in turns (default 3, quick 1)")
	flags.IntVar(&o.events, "events", 0, "events of each intake and end-to-end run (default 20000, quick 5000)")
	conns := flags.String("conns", "32,100", "connections of intake and end-to-end runs")
	only := flags.String("only", strings.Join(names, ","), "what to measure")
	systems := flags.String("systems", gatewayName+","+referenceName, "whom to measure")
	flags.StringVar(&o.dir, "dir", "", "where the databases go: the medium (default the temporary directory)")
	flags.StringVar(&o.gateway, "gateway", "", "the gateway's binary (default: build ./cmd/gateway)")
	flags.BoolVar(&o.markdown, "md", false, "print Markdown")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	var err error
	if o.conns, err = numbers(*conns); err != nil {
		return o, err
	}
	if o.only, err = choices("-only", *only, names); err != nil {
		return o, err
	}
	if o.systems, err = choices("-systems", *systems, []string{gatewayName, referenceName}); err != nil {
		return o, err
	}
	return o.complete(*quick)
}

// complete fills in what depends on -quick and checks the bounds.
func (o options) complete(quick bool) (options, error) {
	rounds, events := 3, 20_000
	o.probe, o.timed, o.idle, o.starts, o.slotsFull = time.Second, 300, 10*time.Second, 10, 2*time.Second
	if quick {
		rounds, events = 1, 5_000
		o.probe, o.timed, o.idle, o.starts, o.slotsFull = time.Second/4, 150, 3*time.Second, 5, time.Second
	}
	if o.rounds == 0 {
		o.rounds = rounds
	}
	if o.events == 0 {
		o.events = events
	}
	if o.rounds < 1 || o.rounds > 100 {
		return o, errors.New("-rounds is 1 to 100")
	}
	if o.events < 100 || o.events > 10_000_000 {
		return o, errors.New("-events is 100 to 10000000")
	}
	return o, nil
}

func numbers(list string) ([]int, error) {
	var out []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 900 {
			return nil, fmt.Errorf("-conns: %q is not a number of connections, 1 to 900", text)
		}
		out = append(out, n)
	}
	return out, nil
}

func choices(name, list string, known []string) ([]string, error) {
	var out []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if !slices.Contains(known, text) {
			return nil, fmt.Errorf("%s: %q is none of %s", name, text, strings.Join(known, ", "))
		}
		out = append(out, text)
	}
	return out, nil
}
