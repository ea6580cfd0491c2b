package main

import (
	"context"
	"errors"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newValidate makes "gateway validate": all problems of the configuration at once, each with
// its place in the file. It exits with 0 if the configuration can be served, and with 1
// otherwise. Warnings go to standard error and do not change the exit code, so a deployment may
// run it as a gate.
//
// It opens no database and calls no receiver: it must give the same result in a pipeline
// without a network. "gateway doctor" checks those.
func newValidate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration",
		Long: `Check the configuration and print everything that is wrong with it, one problem
a line, with file, line and column. Warnings are about settings that are allowed but
doubtful; they do not fail the check. It connects only to the address of the
configuration, if that is not a file.`,
		Example: `  gateway validate
  gateway validate -c /etc/gateway/gateway.yaml --env production
  gateway validate --json | jq '.problems[]'`,
		GroupID: groupServe,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.validate(c.Context()) },
	}
}

// validate prints the problems, or the parts that a valid configuration has.
func (a *app) validate(ctx context.Context) error {
	cfg, problems, err := a.check(ctx)
	if err != nil {
		return err
	}
	var warnings []config.Problem
	if cfg != nil {
		warnings = cfg.Warnings()
	}
	if a.json {
		return a.printVerdict(problems, warnings)
	}
	a.printWarnings(warnings)
	if len(problems) > 0 {
		return config.Problems(problems)
	}
	a.Printf("%s is valid: %s", terminal.Visible(a.configName()), inventory(cfg))
	return nil
}

// check loads the configuration and returns all problems that keep it from being served. cfg
// is nil if the configuration could not be read.
func (a *app) check(ctx context.Context) (cfg *config.Config, problems []config.Problem, err error) {
	cfg, err = a.loadConfig(ctx)
	var found config.Problems
	switch {
	case errors.As(err, &found):
		return nil, found, nil
	case err != nil:
		return nil, nil, err
	}
	return cfg, nil, nil
}

// inventory counts the configured parts. It names sources and handlers even if there are none,
// since a gateway without them does nothing.
func inventory(cfg *config.Config) string {
	words := []string{terminal.Count(len(cfg.Sources), "source"), terminal.Count(len(cfg.Handlers), "handler")}
	for _, more := range []struct {
		n    int
		noun string
	}{{len(cfg.Queues), "queue"}, {len(cfg.Workflows), "workflow"}, {len(cfg.Alerts), "alert"}} {
		if more.n > 0 {
			words = append(words, terminal.Count(more.n, more.noun))
		}
	}
	return strings.Join(words, ", ")
}

// A problemJSON is a problem or a warning as --json prints it.
type problemJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// printVerdict prints the result as JSON, and returns an error if there are problems. Problems
// are part of the document, so nothing goes to standard error.
func (a *app) printVerdict(problems, warnings []config.Problem) error {
	record := func(p config.Problem) problemJSON { return problemJSON(p) }
	err := a.PrintJSON(struct {
		Valid    bool          `json:"valid"`
		Problems []problemJSON `json:"problems"`
		Warnings []problemJSON `json:"warnings"`
	}{len(problems) == 0, wire.List(problems, record), wire.List(warnings, record)})
	if err == nil && len(problems) > 0 {
		return errReported
	}
	return err
}
