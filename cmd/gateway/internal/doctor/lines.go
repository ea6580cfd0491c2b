package doctor

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
)

// Bounds of a look for stopped lines: the lines that are shown of each handler or queue, and the
// lines that are read for it.
const (
	shownStopped = 5
	readLines    = 10 * core.MaxPage
)

// noneStopped is the detail of the check of lines, from both views.
const noneStopped = "no line is stopped"

// A lineLister lists the lines of a lane.
type lineLister func(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error)

// lines looks for lines that dead jobs stop.
func (l *local) lines(ctx context.Context) (found []Check) {
	if l.checkup.Missing > 0 {
		return []Check{{Status: Skipped, Detail: "the tables are not up to date"}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	lanes, s := gateway.Lined(l.cfg), store.New(l.conn, l.dialect, l.databaseTime)
	tallies, err := s.Tallies(ctx, l.databaseTime(), lanes)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	for _, lane := range lanes {
		if n := tallies[lane].Stopped; n > 0 {
			found = append(found, stoppedChecks(ctx, s.Lines, lane, n, "")...)
		}
	}
	if len(found) == 0 {
		found = []Check{{Status: OK, Detail: noneStopped}}
	}
	return found
}

// stoppedChecks describes the stopped lines of a lane, the first ones each by itself. flags are
// those with which commands reach the gateway.
func stoppedChecks(ctx context.Context, list lineLister, lane core.Lane, stopped int, flags string) (found []Check) {
	name := terminal.Visible(lane.Consumer())
	after := ""
	for read := 0; read < readLines && len(found) < min(stopped, shownStopped); read += core.MaxPage {
		page, err := list(ctx, lane, after, core.MaxPage)
		if err != nil {
			return append(found, Check{Name: "lines", Status: Failed, Detail: err.Error()})
		}
		for _, l := range page.Items {
			if after = l.Key; l.StoppedBy != "" && len(found) < shownStopped {
				found = append(found, stoppedCheck(name, l, flags))
			}
		}
		if !page.More {
			break
		}
	}
	if more := stopped - len(found); more > 0 {
		found = append(found, Check{Name: "lines", Status: Warning,
			Detail: fmt.Sprintf("%s of %s", terminal.Count(more, "more stopped line"), name),
			Remedy: fmt.Sprintf("%q lists them", "gateway lines list "+name+flags)})
	}
	return found
}

// stoppedCheck describes a stopped line.
func stoppedCheck(name string, l core.LineState, flags string) Check {
	id := terminal.Visible(string(l.StoppedBy))
	return Check{
		Name: "lines", Status: Warning,
		Detail: fmt.Sprintf("line %s of %s is stopped since %s by a dead job; jobs that wait behind it: %d", terminal.Visible(l.Key), name, core.FormatTime(l.StoppedAt), l.Waiting),
		Remedy: fmt.Sprintf("%q tries the job again, %q lets the line go on without it", "gateway jobs retry "+id+flags, "gateway jobs skip "+id+flags),
	}
}
