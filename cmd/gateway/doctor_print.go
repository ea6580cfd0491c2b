package main

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/wire"
	"github.com/jedib0t/go-pretty/v6/text"
)

type verdictJSON struct {
	Name   string    `json:"name"`
	Status verdict   `json:"status"`
	Detail string    `json:"detail"`
	Remedy wire.Text `json:"remedy"`
}

func (c check) record() verdictJSON {
	return verdictJSON{c.name, c.verdict, c.detail, wire.Text(c.remedy)}
}

// printChecks prints the checks, and returns an error if one has failed.
func (a *app) printChecks(checks []check) error {
	bad := 0
	for _, c := range checks {
		if c.verdict == failed {
			bad++
		}
	}
	if a.json {
		err := a.printJSON(struct {
			OK     bool          `json:"ok"`
			Checks []verdictJSON `json:"checks"`
		}{bad == 0, wire.List(checks, check.record)})
		if err != nil {
			return err
		}
	} else {
		a.printCheckLines(checks)
	}
	if bad == 0 {
		return nil
	}
	if !a.json {
		a.complain(count(bad, "check") + " failed")
	}
	return errReported
}

// printCheckLines prints a line for each check that is not moot. The verdict is a mark on a
// terminal, otherwise a word.
func (a *app) printCheckLines(checks []check) {
	checks = slices.DeleteFunc(checks, func(c check) bool { return c.moot })
	mark := map[verdict]string{fine: "ok     ", warning: "warning", failed: "failed ", skipped: "skipped"}
	if a.terminal {
		mark = map[verdict]string{fine: "✓", warning: "!", failed: "✗", skipped: "-"}
	}
	colour := map[verdict]text.Color{fine: text.FgGreen, warning: text.FgYellow, failed: text.FgRed, skipped: text.Faint}
	width := 0
	for _, c := range checks {
		width = max(width, text.StringWidth(visible(c.name)))
	}
	for _, c := range checks {
		words := []string{c.detail}
		if c.remedy != "" {
			words = append(words, c.remedy)
		}
		name := text.Pad(visible(c.name), width, ' ')
		a.printf("%s  %s  %s", a.paint(mark[c.verdict], colour[c.verdict]), name, visible(strings.Join(words, "; ")))
	}
}
