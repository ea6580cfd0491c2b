package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/server"
)

// options are the values of the flags, with defaults. While flags are parsed, zero rounds,
// events and stored mean "not set"; complete replaces them.
type options struct {
	rounds  int
	events  int // a run of intake and e2e
	conns   []int
	only    []string
	drivers []string
	media   []string // empty: the defaults of each database
	systems []string
	dir     string
	gateway string
	pgbench bool

	committers int // of the reference, 0 for the best known
	format     format
	figures    string // the Markdown file whose section of figures is replaced; "" for none

	// The following follow from -quick alone and have no flags.
	probe     time.Duration // of a medium, each of two
	timed     int           // events of a latency run, at timedRate
	idle      time.Duration // how long an idle process is watched
	starts    int
	slotsFull time.Duration // how long all slots are kept busy
	processes []int         // how many gateways share a database; the first is 1
	lanes     int           // handlers of their runs with many

	stored int // events of a database that operators look at, and jobs that wait
	asks   int // of each of the questions of operators
	purges []purgeRun

	steady       time.Duration // how long a steady load lasts
	steadyRate   float64       // its events a second
	steadyWindow time.Duration // between two looks at it
}

// measures reports whether -systems has the name of a system.
func (o options) measures(system string) bool { return slices.Contains(o.systems, system) }

// databases are the choices of -db. The gateway's name for the last is longer.
var databases = []string{"sqlite", "postgres", "mysql", "hosted"}

// parse reads the flags and checks them before anything is built or started, since a run takes
// half an hour.
func parse(args []string, usage io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	quick := flags.Bool("quick", false, "one round with few events, in three minutes")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each measure, gateway and reference in turns (default 3, quick 1)")
	flags.IntVar(&o.events, "events", 0, "events of each intake and end-to-end run (default 8000, quick 3000)")
	flags.IntVar(&o.stored, "stored", 0, "events in the database of operate, jobs in that of waiting, of each kind in that of undue, and 10 times the keys of backlog (default 1000000, quick 20000)")
	flags.DurationVar(&o.steady, "steady", 0, "how long the load of steady lasts, after a sixth of it without a purge (default 10m, quick 10s)")
	flags.Float64Var(&o.steadyRate, "rate", 0, "events a second of steady (default 500, quick 10)")
	flags.IntVar(&o.committers, "committers", 0, "groups that the reference writes at the same time (default 1, on postgres where syncs take time 4)")
	flags.BoolVar(&o.pgbench, "pgbench", false, "measure pgbench, and the reference without groups, beside PostgreSQL")
	flags.StringVar(&o.dir, "dir", "", "where the medium disk is (default the temporary directory)")
	flags.StringVar(&o.gateway, "gateway", "", "the gateway's binary (default: build ./cmd/gateway)")
	flags.BoolVar(&o.format.markdown, "md", false, "print Markdown")
	flags.BoolVar(&o.format.raw, "v", false, "print each run's figures too")
	var l lists
	flags.StringVar(&l.conns, "conns", "32,100", "connections of intake and end-to-end runs")
	flags.StringVar(&l.db, "db", strings.Join(databases, ","), "databases to measure on")
	flags.StringVar(&l.medium, "medium", "", "media to measure on: disk, cpu, 1ms (default: sqlite on cpu and disk, postgres on cpu and 1ms, mysql on cpu, hosted on disk)")
	flags.StringVar(&l.only, "only", strings.Join(usualCells(), ","), "what to measure: "+strings.Join(cellNames(), ", "))
	flags.StringVar(&o.figures, "figures", "", "the file whose section \""+figuresTitle+"\" gets the table of ratios")
	flags.StringVar(&l.systems, "systems", gatewayName+","+referenceName, "whom to measure")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if err := l.into(&o); err != nil {
		return o, err
	}
	return o.complete(*quick)
}

// lists are the flags with several values, separated by commas. They are texts until all flags
// are parsed, so that the errors of all of them are reported together.
type lists struct{ conns, db, medium, only, systems string }

func (l lists) into(o *options) error {
	var errs [5]error
	o.conns, errs[0] = numbers(l.conns)
	o.only, errs[1] = choices("-only", l.only, cellNames())
	o.systems, errs[2] = choices("-systems", l.systems, []string{gatewayName, referenceName})
	o.drivers, errs[3] = choices("-db", l.db, databases)
	if l.medium != "" {
		o.media, errs[4] = choices("-medium", l.medium, []string{server.Disk, server.CPU, server.OneMS})
	}
	// The flag has the short name, and the configuration of the gateway the long one.
	for i, name := range o.drivers {
		if name == "hosted" {
			o.drivers[i] = server.Hosted
		}
	}
	return errors.Join(errs[:]...)
}

// complete sets the values that depend on -quick and checks the bounds.
func (o options) complete(quick bool) (options, error) {
	// Three rounds are the least with a median that one disturbed run cannot move.
	rounds, events, held := 3, 8_000, 1_000_000
	o.probe, o.timed, o.idle, o.starts, o.slotsFull = time.Second, 200, 10*time.Second, 10, 2*time.Second
	o.asks, o.purges, o.processes = 200, purgeRuns(quick), []int{1, 2, 4, 8}
	o.lanes = 10_000
	if quick {
		rounds, events, held = 1, 3_000, 20_000
		o.asks, o.processes, o.lanes = 10, []int{1, 2}, 1000
		o.probe, o.timed, o.idle, o.starts, o.slotsFull = time.Second/4, 100, 2*time.Second, 3, time.Second/2
	}
	rate := 500.0
	if o.steadyWindow = time.Minute; quick {
		rate, o.steadyWindow = 10, time.Second
	}
	if o.steady == 0 {
		o.steady = 10 * o.steadyWindow
	}
	if o.steadyRate == 0 {
		o.steadyRate = rate
	}
	if o.rounds == 0 {
		o.rounds = rounds
	}
	if o.events == 0 {
		o.events = events
	}
	if o.stored == 0 {
		o.stored = held
	}
	// The rare events of a filled database are one in 2,000: below 10,000 there would be hardly
	// any.
	if o.stored < 10_000 || o.stored > 10_000_000 {
		return o, errors.New("-stored is 10000 to 10000000")
	}
	if o.steady < 3*o.steadyWindow || o.steady > 24*time.Hour {
		return o, fmt.Errorf("-steady is %v to 24h", 3*o.steadyWindow)
	}
	if o.steadyRate < 1 || o.steadyRate > 5000 {
		return o, errors.New("-rate is 1 to 5000")
	}
	if o.rounds < 1 || o.rounds > 100 {
		return o, errors.New("-rounds is 1 to 100")
	}
	if o.pgbench && server.FindPgbench() == "" {
		return o, errors.New("-pgbench: pgbench is not installed (it comes with PostgreSQL, in Debian with postgresql-contrib or postgresql)")
	}
	if o.committers < 0 || o.committers > 100 {
		return o, errors.New("-committers is 0 to 100")
	}
	if o.events < 100 || o.events > 10_000_000 {
		return o, errors.New("-events is 100 to 10000000")
	}
	return o, nil
}

// numbers reads -conns. The gateway of a run serves 1,000 requests at once; 900 connections
// stay below that.
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

// choices reads a list of known words. An unknown word is an error, never ignored: a slip would
// leave out a measurement in silence.
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
