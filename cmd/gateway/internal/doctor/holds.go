package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// longHold is the age from which on a hold may have been forgotten.
const longHold = 24 * time.Hour

// nothingHeld is the detail of the check of holds, from both views.
const nothingHeld = "nothing is held"

// holds looks for holds, also of lanes that are not configured any more.
func (l *local) holds(ctx context.Context) []Check {
	if l.checkup.Missing > 0 {
		return []Check{{Status: Skipped, Detail: "the tables are not up to date"}}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	now := l.databaseTime()
	all, err := store.New(l.conn, l.dialect, l.databaseTime).Holding(ctx, now)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	if len(all) == 0 {
		return []Check{{Status: OK, Detail: nothingHeld}}
	}
	found := make([]Check, len(all))
	for i, h := range all {
		found[i] = holdCheck(h, now, "")
	}
	return found
}

// holdCheck describes a hold. It warns of a hold that is older than a day: it may have been
// forgotten. flags are those with which commands reach the gateway.
func holdCheck(h core.Hold, now time.Time, flags string) Check {
	name := terminal.Visible(h.Lane.Consumer())
	c := Check{Status: OK, Detail: fmt.Sprintf("%s is held since %s", name, core.FormatTime(h.Since))}
	if !h.Until.IsZero() {
		c.Detail += " until " + core.FormatTime(h.Until)
	}
	if h.Reason != "" {
		c.Detail += ": " + terminal.Visible(h.Reason)
	}
	if now.Sub(h.Since) > longHold {
		c.Status = Warning
		c.Remedy = fmt.Sprintf("%q lets it go on", "gateway release "+name+flags)
	}
	return c
}
