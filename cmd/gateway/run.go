package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/config"
	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDiffers     = 3   // of a preview: the new configuration makes a difference
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, s system) int {
	a := newApp(s)
	root := newRoot(a)
	root.SetArgs(append([]string{}, args...)) // never nil, which would mean os.Args
	// The usage texts become descriptions in the shell.
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		unmarkFlags(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	// A command that prints without checking ends with success. The failed write makes it a
	// failure.
	if bad := a.out.Err(); bad != nil && (err == nil || errors.Is(err, bad)) {
		err = unwritten(bad)
	}
	return a.end(ctx, cmd, err)
}

// unwritten returns the error for a failed write to stdout. It is nil if the reader has ended,
// as in "gateway events list | head".
func unwritten(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write output: %w", pathless(err))
}

// end prints why a command failed and returns the exit code.
func (a *app) end(ctx context.Context, cmd *cobra.Command, err error) int {
	var (
		usage    usageError
		problems config.Problems
	)
	switch {
	case err == nil:
		return exitDone
	// Only an interruption of the whole command counts, not a canceled part of its work.
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		a.Complain("interrupted")
		return exitInterrupted
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.As(err, &usage):
		a.Complain(usage.Error())
		a.Notef("run %q for usage", a.helpLine(cmd))
		return exitUsage
	case errors.As(err, &problems):
		a.printProblems(problems)
		return exitFailed
	}
	a.Complain(err.Error())
	return exitFailed
}

// helpLine returns the command that explains a command.
func (a *app) helpLine(c *cobra.Command) string {
	if c.Name() == "help" {
		c = c.Root()
	}
	return a.programName() + strings.TrimPrefix(c.CommandPath(), "gateway") + " --help"
}

// errReported ends a command as failed after it has printed why.
var errReported = errors.New("failed")

// errDiffers ends a preview that has printed differences.
var errDiffers = errors.New("the configurations differ")

// A usageError is a mistake in the command line. It has its own exit code, so that scripts can
// tell their own mistakes from other failures.
type usageError string

func (e usageError) Error() string { return string(e) }

// usagef returns a usage error.
func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// printProblems prints the problems of a configuration and their number. Editors recognise the
// form of each line as a link.
func (a *app) printProblems(problems config.Problems) {
	for _, p := range problems {
		fmt.Fprintln(a.stderr, terminal.Visible(p.String()))
	}
	a.Complain(fmt.Sprintf("the configuration has %s", terminal.Count(len(problems), "problem")))
	a.noteOverlay(problems)
}

// noteOverlay suggests --env local if variables are missing and the overlay that init wrote
// exists.
func (a *app) noteOverlay(problems config.Problems) {
	if a.configEnv() != "" || a.configPath() != baseFile {
		return
	}
	unset := func(p config.Problem) bool { return strings.HasPrefix(p.Message, "the environment variable ") }
	if _, err := os.Stat(overlayFile); err != nil || !slices.ContainsFunc(problems, unset) {
		return
	}
	a.Notef("%s lies beside it: did you mean --env local?", overlayFile)
}

// printWarnings prints the warnings about a configuration.
func (a *app) printWarnings(warnings []config.Problem) {
	for _, w := range warnings {
		a.Notef("warning: %s", w)
	}
}
