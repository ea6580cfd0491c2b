package main

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pageFlags are the flags of every listing.
type pageFlags struct {
	after string
	limit int
}

func (p *pageFlags) register(c *cobra.Command) {
	c.Flags().IntVarP(&p.limit, "limit", "l", core.DefaultPage, fmt.Sprintf("at most `n`, 1 to %d", core.MaxPage))
	c.Flags().StringVar(&p.after, "after", "", "continue after this `id`, the last one of a list")
}

func (p *pageFlags) parse() (after core.ID, limit int, err error) {
	if p.limit < 1 || p.limit > core.MaxPage {
		return "", 0, usagef("--limit must be 1 to %d, not %d", core.MaxPage, p.limit)
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

// noteMore tells how to see the next page: the same command again, from there.
func (a *app) noteMore(c *cobra.Command, last core.ID) {
	a.notef("there are more: %s --after %s", commandLine(c.CommandPath(), c.Flags()), last)
}

// commandLine writes a command with those of the flags that were given, --after
// excepted.
func commandLine(command string, flags *pflag.FlagSet) string {
	words := []string{command}
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed || f.Name == "after":
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, shellQuote(f.Value.String()))
		}
	})
	return strings.Join(words, " ")
}

// shellQuote quotes a word for the shell if it needs to be.
func shellQuote(s string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/:=@%+-", r)
	}
	if s != "" && strings.TrimLeftFunc(s, harmless) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
