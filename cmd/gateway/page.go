package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/curl"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pageFlags are the flags of every list.
type pageFlags struct {
	after string
	limit int
}

// register adds the flags to a command.
func (p *pageFlags) register(c *cobra.Command) {
	limitFlag(c, &p.limit, core.DefaultPage)
	c.Flags().StringVar(&p.after, "after", "", "continue after this `id`, the last one of a list")
}

// limitFlag adds --limit to a command, with its default.
func limitFlag(c *cobra.Command, limit *int, usual int) {
	c.Flags().IntVarP(limit, "limit", "l", usual, fmt.Sprintf("at most `n`, 1 to %d", core.MaxPage))
}

// checkLimit refuses a limit that the API would refuse, before anything is asked.
func checkLimit(limit int) error {
	if limit < 1 || limit > core.MaxPage {
		return usagef("--limit must be 1 to %d, not %d", core.MaxPage, limit)
	}
	return nil
}

// parse returns the id after which the page begins ("" for the newest), and the size of the
// page.
func (p *pageFlags) parse() (after core.ID, limit int, err error) {
	if err := checkLimit(p.limit); err != nil {
		return "", 0, err
	}
	if p.after == "" {
		return "", p.limit, nil
	}
	after, err = parseID(p.after)
	return after, p.limit, err
}

// parseID reads an id from the command line.
func parseID(s string) (core.ID, error) {
	id, err := core.ParseID(s)
	if err != nil {
		return "", usageError(err.Error())
	}
	return id, nil
}

// noteMore prints the command for the next page.
func (a *app) noteMore(c *cobra.Command, last core.ID) {
	a.Notef("there are more: %s", a.nextPage(c, last))
}

// noteScanned prints how many records a search scanned, such as "12 events", and the command that goes
// on below the id next; "" means that there are no more records.
func (a *app) noteScanned(c *cobra.Command, records string, next core.ID) {
	if next == "" {
		a.Notef("scanned %s; there are no more", records)
		return
	}
	a.Notef("scanned %s back to %s; go on with: %s", records, moment(next.Time()), a.nextPage(c, next))
}

// nextPage returns the command for the next page: the same command with its arguments and
// --after.
func (a *app) nextPage(c *cobra.Command, last core.ID) string {
	words := []string{c.CommandPath()}
	for _, arg := range c.Flags().Args() {
		words = append(words, shellQuote(arg))
	}
	return a.commandLine(strings.Join(words, " "), c.Flags()) + " --after " + string(last)
}

// programName returns the first word of the command lines that are shown to the user.
func (a *app) programName() string {
	if a.program == "" {
		return "gateway"
	}
	return shellQuote(a.program)
}

// line returns a command of this program that uses the same configuration as this run.
func (a *app) line(command string) string {
	words := []string{a.programName(), command}
	if a.configFlag != "" && a.configFlag != baseFile {
		words = append(words, "--config", shellQuote(a.configFlag))
	}
	if a.envFlag != "" {
		words = append(words, "--env", shellQuote(a.envFlag))
	}
	return strings.Join(words, " ")
}

// commandLine returns a command with the flags that the user gave, except --after, the flags of
// secrets (--token, --secret) and the flags in except. The command begins with "gateway".
func (a *app) commandLine(command string, flags *pflag.FlagSet, except ...string) string {
	words := []string{a.programName() + strings.TrimPrefix(command, "gateway")}
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed || f.Name == "after" || f.Name == "token" || f.Name == "secret" || slices.Contains(except, f.Name):
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, shellQuote(f.Value.String()))
		}
	})
	return strings.Join(words, " ")
}

// shellQuote quotes a word for the shell if necessary.
func shellQuote(s string) string { return curl.Quote(s) }
