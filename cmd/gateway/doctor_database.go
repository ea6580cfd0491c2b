package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// databaseTimeout bounds each call of the database, including retries.
const databaseTimeout = 20 * time.Second

// database opens the database as start does, but creates none.
func (p *patient) database(ctx context.Context) []check {
	name := describe(p.cfg.Database)
	if blank(p.cfg.Database) {
		if err := sqlite.Examine(p.cfg.Database.SQLitePath()); err != nil {
			return []check{{verdict: failed, detail: err.Error()}}
		}
		if folder := filepath.Dir(p.cfg.Database.SQLitePath()); unix.Access(folder, unix.W_OK|unix.X_OK) != nil {
			return []check{{verdict: failed, detail: fmt.Sprintf("no database can be made in folder %s: it may not be written to", folder), remedy: "let the user who runs the gateway own it"}}
		}
		return []check{{verdict: skipped, detail: "no database at " + p.cfg.Database.SQLitePath() + " yet", remedy: fmt.Sprintf("%q makes it", p.line("start"))}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	conn, dialect, err := p.connect(ctx, p.cfg)
	if err != nil {
		return []check{{verdict: failed, detail: err.Error()}}
	}
	checkup, err := store.Check(ctx, conn, dialect, p.app.clock)
	if err != nil {
		conn.Close()
		return []check{{verdict: failed, detail: name + ": " + err.Error()}}
	}
	p.conn, p.dialect, p.checkup = conn, dialect, checkup
	if checkup.Server != "" {
		name += ": " + checkup.Server
	}
	if checkup.User != "" {
		name += ", as user " + checkup.User
	}
	return []check{{verdict: fine, detail: name}}
}

// blank reports whether a SQLite database does not exist yet. Opening it would create it. If
// its folder is missing too, blank returns false, and opening the database reports that.
func blank(db config.Database) bool {
	if db.Driver != "sqlite" {
		return false
	}
	info, err := os.Stat(db.SQLitePath())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(db.SQLitePath()))
		return err == nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func (p *patient) fromNewer() bool { return p.checkup.Step > p.checkup.Newest }

func (p *patient) schema(ctx context.Context) []check {
	switch k := p.checkup; {
	case p.fromNewer():
		return []check{{
			verdict: failed,
			detail:  fmt.Sprintf("at step %d, from a newer version of the gateway; this one knows %d", k.Step, k.Newest),
			remedy:  "run the newer version",
		}}
	case k.Missing == 0:
		return p.shape(ctx)
	case k.Step == 0:
		return []check{{verdict: skipped, detail: "no tables yet", remedy: fmt.Sprintf("%q makes them", p.line("start"))}}
	default:
		return []check{{
			verdict: warning,
			detail:  fmt.Sprintf("%d of %d steps are missing", k.Missing, k.Newest),
			remedy:  fmt.Sprintf("%q or %q makes up for them", p.line("start"), p.line("migrate up")),
		}}
	}
}

// shape looks for tables, columns and indexes that differ from the schema steps.
func (p *patient) shape(ctx context.Context) (found []check) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	differences, err := store.Compare(ctx, p.conn, p.dialect)
	if err != nil {
		return []check{{verdict: failed, detail: err.Error()}}
	}
	for _, d := range differences {
		c := check{verdict: warning, detail: d.What, remedy: d.Remedy()}
		if d.Harmful {
			c.verdict = failed
		}
		found = append(found, c)
	}
	if len(found) == 0 {
		return []check{{verdict: fine, detail: fmt.Sprintf("up to date, at step %d", p.checkup.Step)}}
	}
	return found
}

func (p *patient) writable(ctx context.Context) []check {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	upToDate := p.checkup.Missing == 0
	p.writes, p.halves = store.Rehearse(ctx, p.conn, upToDate)
	switch {
	case p.writes != nil:
		return []check{{verdict: failed, detail: p.writes.Error()}}
	case upToDate:
		return []check{{verdict: fine, detail: "events, jobs and attempts can be stored and removed"}}
	}
	return []check{{verdict: fine, detail: "tables can be made"}}
}

func (p *patient) atomic(context.Context) []check {
	if p.halves != nil {
		return []check{{verdict: failed, detail: p.halves.Error()}}
	}
	return []check{{verdict: fine, detail: "a batch that fails halfway leaves no trace"}}
}

func (p *patient) durability(context.Context) (found []check) {
	for _, d := range p.checkup.Warnings {
		found = append(found, check{verdict: warning, detail: d.Detail, remedy: d.Remedy})
	}
	if len(found) == 0 {
		return []check{{verdict: fine, detail: "no setting is known by which confirmed events could be lost"}}
	}
	return found
}

// Bounds for the difference of clocks. From clockWarns on, doctor warns. From clockFails on,
// signatures are refused: some are valid for one minute. Stored times are the database's in
// any case.
const (
	clockWarns = 5 * time.Second
	clockFails = time.Minute
)

// databaseTime returns the time of the database's clock.
func (p *patient) databaseTime() time.Time { return p.app.clock().Add(p.checkup.ClockAhead) }

func (p *patient) clock(context.Context) []check {
	return []check{clockCheck(p.checkup.ClockAhead, p.checkup.ClockError, "database's")}
}

// clockCheck judges a clock that is ahead of this machine's. The measured difference may be
// wrong by blur.
func clockCheck(ahead, blur time.Duration, whose string) check {
	side := "ahead of"
	if ahead < 0 {
		ahead, side = -ahead, "behind"
	}
	// The lower bound of the difference counts: a slow answer must not look like a wrong
	// clock.
	certain := ahead - blur
	if certain <= clockWarns {
		return check{verdict: fine, detail: fmt.Sprintf("the %s agrees with this machine's to within %s", whose, terminal.Span(ahead+blur))}
	}
	c := check{
		verdict: warning,
		detail:  fmt.Sprintf("the %s is %s %s this machine's", whose, terminal.Span(ahead), side),
		remedy:  "let a time service such as NTP set both: signatures are made and judged by the clock of the gateway's machine",
	}
	if certain > clockFails {
		c.verdict = failed
	}
	return c
}

// leftovers looks for jobs whose handler or queue is no longer configured. Runs of workflows
// need no configuration: they keep their definition.
func (p *patient) leftovers(ctx context.Context) (found []check) {
	if p.checkup.Missing > 0 {
		return []check{{verdict: skipped, detail: "the tables are not up to date"}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	s := store.New(p.conn, p.dialect, p.databaseTime)
	lanes, err := s.UnknownLanes(ctx, gateway.Lanes(p.cfg))
	if err != nil {
		return []check{{verdict: failed, detail: err.Error()}}
	}
	lanes = slices.DeleteFunc(lanes, func(l core.Lane) bool { return l.Workflow() != "" })
	if len(lanes) == 0 {
		return []check{{verdict: fine, detail: "no job waits for a handler or queue that is not configured"}}
	}
	tallies, err := s.Tallies(ctx, p.databaseTime(), lanes)
	if err != nil {
		return []check{{verdict: failed, detail: err.Error()}}
	}
	for _, l := range lanes {
		found = append(found, leftover(l, tallies[l]))
	}
	return found
}

// leftover describes the jobs in a lane without a consumer, and the remedy.
func leftover(l core.Lane, t core.Tally) check {
	c := check{verdict: warning}
	waiting := terminal.Count(t.Pending+t.Processing, "job")
	switch {
	case l.Queue() != "":
		c.detail = fmt.Sprintf("%s of queue %s, which is not configured; a day after that is noticed they become dead", waiting, l.Queue())
		c.remedy = fmt.Sprintf(`configure it again, or delete them with "gateway queues drain %s"`, l.Queue())
	case l.Alert():
		c.detail = fmt.Sprintf("%s for a place for alerts that is not configured any more; a day after that is noticed they become dead", waiting)
	default:
		c.detail = fmt.Sprintf("%s for handler %s, which is not configured; a day after that is noticed they become dead", waiting, l.Handler())
		c.remedy = fmt.Sprintf(`configure it again if they matter; "gateway jobs list --handler %s" shows them`, l.Handler())
	}
	return c
}

const allClosed = "all closed: no handler's deliveries wait for it to recover"

// breakers looks for handlers with an open circuit breaker.
func (p *patient) breakers(ctx context.Context) []check {
	if p.checkup.Missing > 0 {
		return []check{{verdict: skipped, detail: "the tables are not up to date"}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	handlers := p.cfg.SortedHandlers()
	lanes := make([]core.Lane, len(handlers))
	for i, h := range handlers {
		lanes[i] = core.HandlerLane(h.Name)
	}
	outlooks, err := store.New(p.conn, p.dialect, p.databaseTime).Due(ctx, lanes)
	if err != nil {
		return []check{{verdict: failed, detail: err.Error()}}
	}
	var found []check
	for i, h := range handlers {
		if g := outlooks[lanes[i]].Gate; g.Open() {
			found = append(found, check{
				verdict: warning,
				detail:  fmt.Sprintf("that of handler %s is open after %d failures in a row; the next probe is at %s", h.Name, g.Failures, core.FormatTime(g.OpenUntil)),
				remedy:  fmt.Sprintf(`"gateway jobs list --handler %s --status retryable" shows why; when it works again, "gateway breaker reset %s" spares the wait`, h.Name, h.Name),
			})
		}
	}
	if len(found) == 0 {
		return []check{{verdict: fine, detail: allClosed}}
	}
	return found
}
