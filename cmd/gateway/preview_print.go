package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/preview"
	"github.com/eventgateway/gateway/core/wire"
)

// The records of --json.
type previewJSON struct {
	Differs      bool             `json:"differs"`
	Events       int              `json:"events"`
	Affected     int              `json:"affected"`
	From         wire.Time        `json:"from"`
	To           wire.Time        `json:"to"`
	LimitReached bool             `json:"limit_reached"`
	Consumers    []consumerJSON   `json:"consumers"`
	Refused      []refusalJSON    `json:"refused"`
	Examples     []differenceJSON `json:"examples"`
}

type consumerJSON struct {
	Handler string         `json:"handler"` // by its name, queue/<name>, or workflow/<name>
	Now     sideJSON       `json:"now"`
	New     sideJSON       `json:"new"`
	Won     int            `json:"won"`
	Lost    int            `json:"lost"`
	Changed int            `json:"changed"`
	Changes map[string]int `json:"changes"`
}

type sideJSON struct {
	Configured   bool `json:"configured"`
	Jobs         int  `json:"jobs"`
	NoBody       int  `json:"no_body"`
	FilterFailed int  `json:"filter_failed"`
	NoLine       int  `json:"no_line"`
	Repeats      int  `json:"repeats"`
}

type refusalJSON struct {
	Source string    `json:"source"`
	Now    int       `json:"now"`
	New    int       `json:"new"`
	WhyNow wire.Text `json:"why_now"`
	WhyNew wire.Text `json:"why_new"`
}

type differenceJSON struct {
	EventID   core.ID   `json:"event_id"`
	CreatedAt wire.Time `json:"created_at"`
	Handler   string    `json:"handler"`
	Kind      string    `json:"kind"`
	Changes   []string  `json:"changes"`
	Why       wire.Text `json:"why"`
	Diff      []string  `json:"diff"`
}

// previewOf returns the record of a report.
func previewOf(r preview.Report, limit int) previewJSON {
	own := func(s string) string { return s }
	return previewJSON{
		Differs: r.Differs(), Events: r.Events, Affected: r.Affected,
		From: wire.Time{Time: r.First}, To: wire.Time{Time: r.Last}, LimitReached: r.Events >= limit,
		Consumers: wire.List(r.Consumers, func(t preview.Tally) consumerJSON {
			side := func(i int) sideJSON {
				return sideJSON{t.Configured[i], t.Jobs[i], t.Unmade[i], t.Undecided[i], t.Unlined[i], t.Repeats[i]}
			}
			return consumerJSON{t.Lane.Consumer(), side(preview.Before), side(preview.After), t.Won, t.Lost, t.Changed, t.Changes}
		}),
		Refused: wire.List(r.Refusals, func(f preview.Refusal) refusalJSON {
			return refusalJSON{f.Source, f.Refused[preview.Before], f.Refused[preview.After], wire.Text(f.Why[preview.Before]), wire.Text(f.Why[preview.After])}
		}),
		Examples: wire.List(r.Examples, func(x preview.Example) differenceJSON {
			return differenceJSON{x.Event, wire.Time{Time: x.At}, x.Lane.Consumer(), x.Kind, wire.List(x.Changes, own), wire.Text(x.Why), wire.List(x.Diff, own)}
		}),
	}
}

// printPreview prints a report, and on standard error whether it is about all events.
func (a *app) printPreview(r preview.Report, p previewing) error {
	defer a.notePreview(r, p)
	if a.json {
		return a.PrintJSON(previewOf(r, p.limit))
	}
	if r.Events == 0 {
		return nil
	}
	verdict := "nothing differs"
	if r.Differs() {
		verdict = terminal.Count(r.Affected, "event") + " with a difference"
	}
	a.Printf("%s from %s to %s: %s", terminal.Count(r.Events, "event"), moment(r.First), moment(r.Last), verdict)
	a.Printf("")
	a.PrintGrid(previewGrid(r.Consumers))
	for _, f := range r.Refusals {
		a.Printf("")
		a.Printf("source %s: %s refused now, %d by the new configuration: %s", terminal.Visible(f.Source),
			terminal.Count(f.Refused[preview.Before], "event"), f.Refused[preview.After], terminal.Visible(oneLine(shownWhy(f))))
	}
	for i, x := range r.Examples {
		if i == 0 || r.Examples[i-1].Lane != x.Lane {
			a.Printf("")
		}
		a.printExample(x)
	}
	return nil
}

// shownWhy returns why events are refused, by the new configuration if it refuses any.
func shownWhy(f preview.Refusal) string {
	if f.Why[preview.After] != "" {
		return f.Why[preview.After]
	}
	return f.Why[preview.Before]
}

// oneLine writes the lines of a text in one.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }

// notePreview notes the bounds that a user could overlook.
func (a *app) notePreview(r preview.Report, p previewing) {
	switch {
	case r.Events == 0:
		a.Notef("no events, so nothing was compared")
	case r.Events >= p.limit:
		a.Notef("these are the newest %d events at most; --limit takes more of them", p.limit)
	}
	if r.Forgotten {
		a.Notef("there are more idempotency keys than are remembered, so not all repeats were found; select fewer events")
	}
}

// previewGrid returns the table of the consumers.
func previewGrid(consumers []preview.Tally) terminal.Grid {
	g := terminal.Grid{Heading: []string{"CONSUMER", "NOW", "NEW", "WON", "LOST", "CHANGED", "REMARKS"}}
	for _, t := range consumers {
		jobs := func(side int) string {
			if !t.Configured[side] {
				return "-"
			}
			return strconv.Itoa(t.Jobs[side])
		}
		g.Add(terminal.Visible(t.Lane.Consumer()), jobs(preview.Before), jobs(preview.After),
			strconv.Itoa(t.Won), strconv.Itoa(t.Lost), strconv.Itoa(t.Changed), terminal.OrDash(strings.Join(remarks(t), "; ")))
	}
	return g
}

// remarks counts the kinds of changes for a consumer, and the failures under both
// configurations.
func remarks(t preview.Tally) (all []string) {
	switch {
	case !t.Configured[preview.Before]:
		all = append(all, "new")
	case !t.Configured[preview.After]:
		all = append(all, "removed")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Changes)) {
		all = append(all, fmt.Sprintf("%s %d", name, t.Changes[name]))
	}
	for _, f := range []struct {
		what  string
		count [2]int
	}{
		{"no body", t.Unmade},
		{"filter fails", t.Undecided},
		{"no line key", t.Unlined},
		{"repeats", t.Repeats},
	} {
		if f.count != [2]int{} {
			all = append(all, fmt.Sprintf("%s %d (now %d)", f.what, f.count[preview.After], f.count[preview.Before]))
		}
	}
	return all
}

// printExample prints an event that makes a difference.
func (a *app) printExample(x preview.Example) {
	what := x.Kind
	if len(x.Changes) > 0 {
		what += " (" + strings.Join(x.Changes, ", ") + ")"
	}
	if x.Why != "" {
		what += ": " + oneLine(x.Why)
	}
	a.Printf("%s %s %s", terminal.Visible(x.Lane.Consumer()), x.Event, terminal.Visible(what))
	for _, line := range x.Diff {
		a.Printf("    %s", terminal.Visible(line))
	}
}
