package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/bench/internal/server"
)

// bench has the state that all measurements share. One goroutine changes it: sites, cells and
// rounds run one after the other, since two measurements at a time would measure each other.
type bench struct {
	opts     options
	dir      string // for configurations, logs and the binary
	systems  []system
	binary   string // the gateway
	self     string // this program
	site     *site  // where measurements run now; statistics replaces its server for a while
	report   *report
	progress io.Writer
}

// site is a database on a medium.
type site struct {
	driver, medium string
	server         *server.Server
	section        *section
}

// newBench makes a bench with its working folder and, if the gateway is measured, its binary.
// close removes both.
func newBench(ctx context.Context, o options, progress io.Writer) (b *bench, err error) {
	b = &bench{opts: o, report: &report{}, progress: progress}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp(o.dir, "bench"); err != nil {
		return nil, err
	}
	// Systems run in folders of their own, where a relative path to the binary would not
	// resolve.
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return nil, err
	}
	if o.measures(gatewayName) {
		s, err := b.gateway(ctx)
		if err != nil {
			b.close()
			return nil, err
		}
		b.systems = append(b.systems, s)
	}
	return b, nil
}

// gateway returns the gateway as a system: the binary of the options, or one built now from the
// sources, so that a forgotten binary is never measured.
func (b *bench) gateway(ctx context.Context) (s system, err error) {
	if b.opts.gateway != "" {
		b.binary, err = filepath.Abs(b.opts.gateway)
		return gateway(b.binary), err
	}
	b.say("building the gateway")
	b.binary, err = buildGateway(ctx, b.dir)
	return gateway(b.binary), err
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// say prints a line of progress.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// defaultMedia are the media on which a database is measured by default. SQLite and D1 have no
// server whose syncs could be slowed. PostgreSQL is measured on both ends: free syncs show its CPU, syncs of a millisecond show how
// commits are shared. MySQL in memory writes its log without syncs.
var defaultMedia = map[string][]string{
	server.SQLite:   {server.CPU, server.Disk},
	server.Postgres: {server.CPU, server.OneMS},
	server.MySQL:    {server.CPU},
	server.Hosted:   {server.Disk},
}

// measure goes from site to site. If one site fails, the others are still measured.
func (b *bench) measure(ctx context.Context) (err error) {
	for _, driver := range b.opts.drivers {
		media := b.opts.media
		if len(media) == 0 {
			media = defaultMedia[driver]
		}
		for _, medium := range media {
			// An interrupt ends the loop and not only the site under way.
			if ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			if failed := b.visit(ctx, driver, medium); failed != nil {
				failed = fmt.Errorf("%s on %s: %w", driver, medium, failed)
				b.say("%v", failed)
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// cells are the measurements on a database, in this order. A cell is left out on a database
// where it would show nothing new: slots, idle and start are about the program and not about
// the database, and latency on SQL over HTTP is mostly that of HTTP. The usual cells are the
// cells of the table of ratios. They take a quarter of an hour; the others run only if they are
// named.
var cells = []struct {
	name    string
	usual   bool
	drivers []string
	measure func(*bench, context.Context) error
}{
	{"intake", true, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).intake},
	{"batches", true, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).batches},
	{"e2e", true, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).endToEnd},
	{"latency", true, []string{server.SQLite, server.Postgres, server.MySQL}, (*bench).latency},
	{"pull", true, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).pull},
	{"workflow", true, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).workflow},
	{"lines", true, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).lines},
	{"backlog", false, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).linesBacklog},
	{"waiting", false, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).waiting},
	{"undue", false, []string{server.SQLite, server.Postgres, server.MySQL, server.Hosted}, (*bench).undue},
	{"statistics", false, []string{server.Postgres}, (*bench).statistics},
	{"processes", false, []string{server.Postgres, server.MySQL}, (*bench).processes},
	{"slots", false, []string{server.SQLite}, (*bench).slots},
	{"idle", true, []string{server.SQLite}, (*bench).idle},
	{"start", true, []string{server.SQLite}, (*bench).start},
	{"record", false, []string{server.SQLite, server.Postgres, server.MySQL}, (*bench).record},
	{"steady", false, []string{server.SQLite, server.Postgres}, (*bench).steadyState},
	{"operate", false, []string{server.SQLite, server.Postgres}, (*bench).operate},
}

// usualCells are measured by default.
func usualCells() (names []string) {
	for _, c := range cells {
		if c.usual {
			names = append(names, c.name)
		}
	}
	return names
}

// cellNames are the choices of -only.
func cellNames() (names []string) {
	for _, c := range cells {
		names = append(names, c.name)
	}
	return names
}

// visit measures on one site, between two probes of its medium.
func (b *bench) visit(ctx context.Context, driver, medium string) (err error) {
	if !b.wanted(driver) {
		return nil
	}
	// A missing server, compiler or file system in memory is no failure: it is listed in the
	// report.
	leave, err := b.enter(ctx, driver, medium)
	if errors.Is(err, server.ErrLeftOut) {
		b.leaveOut(fmt.Sprintf("%s on %s: %v", driver, medium, err))
		return nil
	}
	if err != nil {
		return err
	}
	// The probes before and after show whether the medium itself became slower meanwhile.
	defer func() { err = errors.Join(err, leave()) }()
	if err := b.probe(ctx); err != nil {
		return err
	}
	for _, c := range cells {
		if !slices.Contains(b.opts.only, c.name) || !slices.Contains(c.drivers, driver) {
			continue
		}
		if err := c.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return b.probe(ctx)
}

// wanted reports whether a requested measurement exists for a database.
func (b *bench) wanted(driver string) bool {
	for _, c := range cells {
		if slices.Contains(b.opts.only, c.name) && slices.Contains(c.drivers, driver) {
			return true
		}
	}
	return false
}

// enter starts a site's server, which leave stops.
func (b *bench) enter(ctx context.Context, driver, medium string) (leave func() error, err error) {
	b.say("starting %s on %s", driver, medium)
	o := server.Options{Driver: driver, Medium: medium, Dir: b.opts.dir}
	if driver == server.Postgres {
		// Dropping the last run's database makes a checkpoint, and no clock makes another
		// in the middle of a run.
		o.Settings = []string{"checkpoint_timeout=1h"}
		if slices.Contains(b.opts.only, "steady") {
			o.Settings = steadySettings
		}
	}
	s, err := server.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	b.site = &site{driver: driver, medium: medium, server: s, section: b.report.section(driver, medium, s.Place())}
	return s.Stop, nil
}

// leaveOut lists a measurement that cannot be made here, as one line of the report.
func (b *bench) leaveOut(what string) {
	what = strings.ReplaceAll(what, "\n", "; ")
	b.say("left out: %s", what)
	b.report.leftOut = append(b.report.leftOut, what)
}

// probe measures the syncs a second of the site's medium.
func (b *bench) probe(ctx context.Context) error {
	rate, err := b.site.server.SyncRate(ctx, b.opts.probe)
	if err != nil {
		return fmt.Errorf("probe the medium: %w", err)
	}
	b.site.section.syncs = append(b.site.section.syncs, rate)
	b.say("medium: %s, %.0f fdatasync/s", b.site.section.place, rate)
	return nil
}

// both returns the gateway and the reference, as far as the options select them.
func (b *bench) both() []system {
	systems := slices.Clone(b.systems)
	if b.opts.measures(referenceName) {
		// The reference commits in the way that is fastest on this site, or the ratio would
		// flatter the gateway.
		how := committing{committers: b.opts.committers}
		if how.committers == 0 {
			how = bestCommitting(b.site.driver, b.site.medium)
		}
		systems = append(systems, referencePipeline(b.self, referenceName, how))
	}
	return systems
}

// inTurns calls one for each system, round after round. Turns, and not one system after the
// other, because the speed of a machine drifts within minutes: a drift then meets all systems
// alike.
func inTurns(rounds int, systems []system, one func(system) error) error {
	for range rounds {
		for _, s := range systems {
			if err := one(s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// add records a value in its row, makes the row if necessary, and prints the value.
func (b *bench) add(m measure, s system, value float64) {
	b.site.section.row(m)
	b.site.section.add(m.label, s.name, value)
	b.say("%-10s %-5s %-48s %-30s %s %s", b.site.driver, b.site.medium, m.label, s.name, number(value), m.unit)
}

// measured reports whether a figure of the same database has been taken on another medium.
func (b *bench) measured(label string) bool {
	return slices.ContainsFunc(b.report.sections, func(s *section) bool {
		return s.driver == b.site.driver && s.medium != b.site.medium && s.values[label] != nil
	})
}
