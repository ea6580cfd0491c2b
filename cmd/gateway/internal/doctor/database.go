package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// databaseTimeout bounds each call of the database, including retries.
const databaseTimeout = 20 * time.Second

// database opens the database as start does, but creates none.
func (l *local) database(ctx context.Context) []Check {
	// The credentials of the address must not show: users paste the output of doctor into
	// tickets.
	name := l.Describe(l.cfg.Database)
	if l.Absent(l.cfg.Database) {
		if err := sqlite.Examine(l.cfg.Database.SQLitePath()); err != nil {
			return []Check{{Status: Failed, Detail: err.Error()}}
		}
		// The rights are asked for without writing: doctor makes no file where there is none.
		if folder := filepath.Dir(l.cfg.Database.SQLitePath()); unix.Access(folder, unix.W_OK|unix.X_OK) != nil {
			return []Check{{Status: Failed, Detail: fmt.Sprintf("no database can be made in folder %s: it may not be written to", folder), Remedy: "let the user who runs the gateway own it"}}
		}
		return []Check{{Status: Skipped, Detail: "no database at " + l.cfg.Database.SQLitePath() + " yet", Remedy: fmt.Sprintf("%q makes it", l.Command("start"))}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	// From here on the connection belongs to l, which closes it at the end of all checks.
	conn, dialect, err := l.Connect(ctx, l.cfg)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	checkup, err := store.Check(ctx, conn, dialect, l.Clock)
	if err != nil {
		conn.Close()
		return []Check{{Status: Failed, Detail: name + ": " + err.Error()}}
	}
	l.conn, l.dialect, l.checkup = conn, dialect, checkup
	if checkup.Server != "" {
		name += ": " + checkup.Server
	}
	if checkup.User != "" {
		name += ", as user " + checkup.User
	}
	return []Check{{Status: OK, Detail: name}}
}

// fromNewer reports whether a newer version of the gateway has changed the tables. This version
// does not know them, so no statement is run on them.
func (l *local) fromNewer() bool { return l.checkup.Step > l.checkup.Newest }

// schema checks whether the tables fit this version. Missing steps are only a warning:
// "gateway start" takes them.
func (l *local) schema(ctx context.Context) []Check {
	switch k := l.checkup; {
	case l.fromNewer():
		return []Check{{
			Status: Failed,
			Detail: fmt.Sprintf("at step %d, from a newer version of the gateway; this one knows %d", k.Step, k.Newest),
			Remedy: "run the newer version",
		}}
	case k.Missing == 0:
		return l.shape(ctx)
	case k.Step == 0:
		return []Check{{Status: Skipped, Detail: "no tables yet", Remedy: fmt.Sprintf("%q makes them", l.Command("start"))}}
	default:
		return []Check{{
			Status: Warning,
			Detail: fmt.Sprintf("%d of %d steps are missing", k.Missing, k.Newest),
			Remedy: fmt.Sprintf("%q or %q makes up for them", l.Command("start"), l.Command("migrate up")),
		}}
	}
}

// shape looks for tables, columns and indexes that differ from the schema steps.
func (l *local) shape(ctx context.Context) (found []Check) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	differences, err := store.Compare(ctx, l.conn, l.dialect)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	for _, d := range differences {
		c := Check{Status: Warning, Detail: d.What, Remedy: d.Remedy()}
		if d.Harmful {
			c.Status = Failed
		}
		found = append(found, c)
	}
	if len(found) == 0 {
		return []Check{{Status: OK, Detail: fmt.Sprintf("up to date, at step %d", l.checkup.Step)}}
	}
	return found
}

// writable checks whether rows or, before the first start, tables can be made. All that it
// makes is removed in the same transaction or before it returns; see store.Rehearse.
func (l *local) writable(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	upToDate := l.checkup.Missing == 0
	l.writeErr, l.atomicErr = store.Rehearse(ctx, l.conn, upToDate)
	switch {
	case l.writeErr != nil:
		return []Check{{Status: Failed, Detail: l.writeErr.Error()}}
	case upToDate:
		return []Check{{Status: OK, Detail: "events, jobs and attempts can be stored and removed"}}
	}
	return []Check{{Status: OK, Detail: "tables can be made"}}
}

// atomic has the second result of writable. A database that commits a part of a batch would
// lose or repeat events, so this is a check of its own. A proxy of a hosted database may split
// batches.
func (l *local) atomic(context.Context) []Check {
	if l.atomicErr != nil {
		return []Check{{Status: Failed, Detail: l.atomicErr.Error()}}
	}
	return []Check{{Status: OK, Detail: "a batch that fails halfway leaves no trace"}}
}

// durability checks the settings of the database server that decide whether a commit survives a
// power cut.
func (l *local) durability(context.Context) []Check {
	return settingChecks(l.checkup.Warnings, "no setting is known by which confirmed events could be lost")
}

// growth checks the settings of the database server that decide whether the space of deleted rows is
// used again.
func (l *local) growth(context.Context) []Check {
	return settingChecks(l.checkup.Growth, "no setting is known by which deleted rows would keep their space")
}

// settingChecks returns a check for each warning, or one that says that there is none.
func settingChecks(warnings []store.Warning, none string) (found []Check) {
	for _, w := range warnings {
		found = append(found, Check{Status: Warning, Detail: w.Detail, Remedy: w.Remedy})
	}
	if len(found) == 0 {
		return []Check{{Status: OK, Detail: none}}
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
func (l *local) databaseTime() time.Time { return l.Clock().Add(l.checkup.ClockAhead) }

// clock compares the database's clock with this machine's. The gateway works with any
// difference, since it stores the database's times; signatures do not.
func (l *local) clock(context.Context) []Check {
	return []Check{clockCheck(l.checkup.ClockAhead, l.checkup.ClockError, "database's")}
}

// clockCheck judges a clock that is ahead of this machine's. The measured difference may be
// wrong by blur.
func clockCheck(ahead, blur time.Duration, whose string) Check {
	side := "ahead of"
	if ahead < 0 {
		ahead, side = -ahead, "behind"
	}
	// The lower bound of the difference counts: a slow answer must not look like a wrong
	// clock.
	certain := ahead - blur
	if certain <= clockWarns {
		return Check{Status: OK, Detail: fmt.Sprintf("the %s agrees with this machine's to within %s", whose, terminal.Span(ahead+blur))}
	}
	c := Check{
		Status: Warning,
		Detail: fmt.Sprintf("the %s is %s %s this machine's", whose, terminal.Span(ahead), side),
		Remedy: "let a time service such as NTP set both: signatures are made and judged by the clock of the gateway's machine",
	}
	if certain > clockFails {
		c.Status = Failed
	}
	return c
}

// leftovers looks for jobs whose handler or queue is no longer configured. Runs of workflows
// need no configuration: they keep their definition.
func (l *local) leftovers(ctx context.Context) (found []Check) {
	if l.checkup.Missing > 0 {
		return []Check{{Status: Skipped, Detail: "the tables are not up to date"}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	s := store.New(l.conn, l.dialect, l.databaseTime)
	lanes, err := s.UnknownLanes(ctx, gateway.Lanes(l.cfg))
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	// Runs of a removed workflow end by themselves, so they need no remedy.
	lanes = slices.DeleteFunc(lanes, func(l core.Lane) bool { return l.Workflow() != "" })
	if len(lanes) == 0 {
		return []Check{{Status: OK, Detail: "no job waits for a handler or queue that is not configured"}}
	}
	tallies, err := s.Tallies(ctx, l.databaseTime(), lanes)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	for _, l := range lanes {
		found = append(found, leftover(l, tallies[l]))
	}
	return found
}

// leftover describes the jobs in a lane without a consumer, and the remedy.
func leftover(l core.Lane, t core.Tally) Check {
	c := Check{Status: Warning}
	waiting := terminal.Count(t.Pending+t.Processing, "job")
	switch {
	case l.Queue() != "":
		c.Detail = fmt.Sprintf("%s of queue %s, which is not configured; a day after that is noticed they become dead", waiting, l.Queue())
		c.Remedy = fmt.Sprintf(`configure it again, or delete them with "gateway queues drain %s"`, l.Queue())
	case l.Alert():
		c.Detail = fmt.Sprintf("%s for a place for alerts that is not configured any more; a day after that is noticed they become dead", waiting)
	default:
		c.Detail = fmt.Sprintf("%s for handler %s, which is not configured; a day after that is noticed they become dead", waiting, l.Handler())
		c.Remedy = fmt.Sprintf(`configure it again if they matter; "gateway jobs list --handler %s" shows them`, l.Handler())
	}
	return c
}

// allClosed is the detail of the check of breakers, from both views.
const allClosed = "all closed: no handler's deliveries wait for it to recover"

// breakers looks for handlers with an open circuit breaker.
func (l *local) breakers(ctx context.Context) []Check {
	if l.checkup.Missing > 0 {
		return []Check{{Status: Skipped, Detail: "the tables are not up to date"}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	handlers := l.cfg.SortedHandlers()
	lanes := make([]core.Lane, len(handlers))
	for i, h := range handlers {
		lanes[i] = core.HandlerLane(h.Name)
	}
	outlooks, err := store.New(l.conn, l.dialect, l.databaseTime).Due(ctx, lanes)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	var found []Check
	for i, h := range handlers {
		if g := outlooks[lanes[i]].Gate; g.Open() {
			found = append(found, Check{
				Status: Warning,
				Detail: fmt.Sprintf("that of handler %s is open after %d failures in a row; the next probe is at %s", h.Name, g.Failures, core.FormatTime(g.OpenUntil)),
				Remedy: fmt.Sprintf(`"gateway jobs list --handler %s --status retryable" shows why; when it works again, "gateway breaker reset %s" spares the wait`, h.Name, h.Name),
			})
		}
	}
	if len(found) == 0 {
		return []Check{{Status: OK, Detail: allClosed}}
	}
	return found
}
