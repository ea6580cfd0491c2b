package intake

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// Decline returns a function that lists the consumers of an event's source that do not want
// the event, each with the reason: its types, its filter, or the params of a workflow. It
// decides as [Rematch] does. It leaves out the consumers of other sources.
func Decline(consumers []Consumer) func(core.Event) []core.Declined {
	return func(e core.Event) (declined []core.Declined) {
		document := view(&e)
		for _, c := range consumers {
			if c.Source != e.Source {
				continue
			}
			if why := c.decline(e, document); why != "" {
				declined = append(declined, core.Declined{Lane: c.Lane, Why: why})
			}
		}
		return declined
	}
}

// maxShown is the maximum length of a shown filter, in characters.
const maxShown = 200

// shortened cuts a text for display. It counts characters, since a cut within a character
// would make invalid UTF-8.
func shortened(text string) string {
	if characters := []rune(text); len(characters) > maxShown {
		return string(characters[:maxShown]) + "…"
	}
	return text
}

// decline returns why a consumer does not want an event of its source; "" if it does.
func (c Consumer) decline(e core.Event, d *expr.Document) string {
	// A matcher of one consumer gives the same answer as the matcher of the intake. A
	// second implementation of the patterns could contradict it.
	m := newMatcher([]Consumer{c})
	wanted := m.match(e.Source, e.Type)
	if len(wanted) == 0 {
		return fmt.Sprintf("the type %s matches none of its events: %s", e.Type, shortened(strings.Join(c.Events, ", ")))
	}
	// A consumer is at most once in the matcher, so wanted has one target. Only workflows
	// have params, and they have no filter.
	if lacking := wanted[0].lacks(d); len(lacking) > 0 {
		return "the payload does not fit its params: " + strings.Join(lacking, "; ")
	}
	if c.Filter == nil {
		return ""
	}
	holds, err := c.Filter.Match(d, contextOf(e))
	switch {
	// An undecided filter made no job, so it counts as a refusal here. See arrivalFor for
	// the reason.
	case err != nil:
		return fmt.Sprintf("its filter gives no answer: %v", err)
	case !holds:
		return "its filter does not hold: " + shortened(c.Filter.String())
	}
	return ""
}
