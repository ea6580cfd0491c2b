package main

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/wire"
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
		err := a.PrintJSON(struct {
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
		a.Complain(terminal.Count(bad, "check") + " failed")
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
	colour := map[verdict]terminal.Colour{fine: terminal.Green, warning: terminal.Yellow, failed: terminal.Red, skipped: terminal.Faint}
	width := 0
	for _, c := range checks {
		width = max(width, terminal.Width(terminal.Visible(c.name)))
	}
	for _, c := range checks {
		words := []string{c.detail}
		if c.remedy != "" {
			words = append(words, c.remedy)
		}
		name := terminal.Pad(terminal.Visible(c.name), width)
		a.Printf("%s  %s  %s", a.Paint(mark[c.verdict], colour[c.verdict]), name, terminal.Visible(strings.Join(words, "; ")))
	}
}
