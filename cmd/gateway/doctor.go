package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eventgateway/gateway/cmd/gateway/internal/doctor"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
)

const doctorLong = `Check that everything is ready: the configuration and its gaps in security, the database,
the server, whether each handler, each step of a workflow and each place for alerts
answers, which circuit breakers are open, and which jobs wait for a handler or queue that
is configured no more. Each line has the result of a check and, if need be, the remedy.
Exits with 1 if a check failed.

It can be run before the gateway is started and beside one that runs. It changes
nothing: the database's schema is not brought up to date, and its trial of writing is
rolled back. Handlers, steps and places for alerts get a HEAD request, without an
event, a signature or configured headers; gRPC handlers are connected to and not
called. An address that several steps call is checked once.

With --url it looks at a running gateway from outside, and needs no configuration:
whether it is well, whether its management API asks for a token and takes the one
given, its clock, and which circuit breakers are open.`

// newDoctor makes "gateway doctor". Package doctor makes the checks; this file chooses
// the view, passes the package its Deps, and prints the findings. It exits
// with 1 if a check failed. Warnings do not change the exit code, so that it can be a step of a
// deployment.
//
// With --url it asks GET /health and GET /api/stats of the server, the latter once without the
// token: only so an open API is found.
func newDoctor(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "doctor",
		Short: "Check that everything is ready",
		Long:  doctorLong,
		Example: `  gateway doctor
  gateway doctor -c /etc/gateway/gateway.yaml --env production
  gateway doctor --url https://events.example.com --token-file token
  gateway doctor --json | jq '.checks[] | select(.status == "failed")'`,
		GroupID: groupServe,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	})
}

// doctor makes the checks on this machine, or with --url from outside, and prints them.
func (a *app) doctor(ctx context.Context) error {
	checks, err := a.examine(ctx)
	if err != nil {
		return err
	}
	return a.printChecks(checks)
}

// examine makes the checks of the view that the flags choose.
func (a *app) examine(ctx context.Context) ([]doctor.Check, error) {
	if a.remote() {
		c, err := a.client(ctx)
		if err != nil {
			return nil, err
		}
		return doctor.Outside(ctx, c)
	}
	return doctor.Local(ctx, doctor.Deps{
		Load:     a.check,
		Summary:  func(cfg *config.Config) string { return a.configName() + ": " + inventory(cfg) },
		Connect:  a.connect,
		Absent:   blank,
		Describe: describe,
		Address:  a.address,
		Command:  a.line,
		Clock:    a.clock,
		Version:  readBuild().Version,
	})
}

// A doctorJSON is a check as --json prints it.
type doctorJSON struct {
	Name   string        `json:"name"`
	Status doctor.Status `json:"status"`
	Detail string        `json:"detail"`
	Remedy wire.Text     `json:"remedy"`
}

// checkRecord returns a check as --json prints it. Checks that are blocked by others are in the
// document too: a program may look for each name.
func checkRecord(c doctor.Check) doctorJSON {
	return doctorJSON{c.Name, c.Status, c.Detail, wire.Text(c.Remedy)}
}

// printChecks prints the checks, and returns an error if one has failed.
func (a *app) printChecks(checks []doctor.Check) error {
	// All checks are printed before the result is known: the first failure is not always the
	// cause.
	bad := 0
	for _, c := range checks {
		if c.Status == doctor.Failed {
			bad++
		}
	}
	if a.json {
		// The field ok repeats the exit code, for programs that only have the document.
		err := a.PrintJSON(struct {
			OK     bool         `json:"ok"`
			Checks []doctorJSON `json:"checks"`
		}{bad == 0, wire.List(checks, checkRecord)})
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

// Looks of the statuses of checks. A mark is quicker to see; a word can be searched for in a
// log, and is of one width.
var (
	statusWords = map[doctor.Status]string{doctor.OK: "ok     ", doctor.Warning: "warning", doctor.Failed: "failed ", doctor.Skipped: "skipped"}
	statusMarks = map[doctor.Status]string{doctor.OK: "✓", doctor.Warning: "!", doctor.Failed: "✗", doctor.Skipped: "-"}
	checkColour = map[doctor.Status]terminal.Colour{doctor.OK: terminal.Green, doctor.Warning: terminal.Yellow, doctor.Failed: terminal.Red, doctor.Skipped: terminal.Faint}
)

// printCheckLines prints a line for each check, except checks that another check blocks: its
// line has the reason, and a dozen lines with one reason would hide it. The status is a mark on
// a terminal, otherwise a word.
func (a *app) printCheckLines(checks []doctor.Check) {
	checks = slices.DeleteFunc(checks, func(c doctor.Check) bool { return c.Blocked })
	mark := statusWords
	if a.terminal {
		mark = statusMarks
	}
	// The names are padded to the longest one, measured in columns: a handler may have a name
	// in any script.
	width := 0
	for _, c := range checks {
		width = max(width, terminal.Width(terminal.Visible(c.Name)))
	}
	for _, c := range checks {
		words := []string{c.Detail}
		if c.Remedy != "" {
			words = append(words, c.Remedy)
		}
		name := terminal.Pad(terminal.Visible(c.Name), width)
		a.Printf("%s  %s  %s", a.Paint(mark[c.Status], checkColour[c.Status]), name, terminal.Visible(strings.Join(words, "; ")))
	}
}
