package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/eventgateway/gateway/core/config"
	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, s system) int {
	a := newApp(s)
	root := newRoot(a)
	root.SetArgs(append([]string{}, args...)) // never nil, which would mean os.Args
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		unmarkFlags(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if a.out.err != nil && (err == nil || errors.Is(err, a.out.err)) {
		err = unwritten(a.out.err)
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
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		a.complain("interrupted")
		return exitInterrupted
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		a.complain(usage.Error())
		a.notef("run %q for usage", a.helpLine(cmd))
		return exitUsage
	case errors.As(err, &problems):
		a.printProblems(problems)
		return exitFailed
	}
	a.complain(err.Error())
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

// A usageError is a mistake in the command line. It has its own exit code, so that scripts can
// tell their own mistakes from other failures.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// complain prints an error, with the prefix "gateway: " before each of its lines.
func (a *app) complain(message string) {
	for line := range strings.SplitSeq(strings.TrimSpace(message), "\n") {
		fmt.Fprintf(a.stderr, "gateway: %s\n", visible(line))
	}
}

// notef prints a note to stderr. It is not part of the output.
func (a *app) notef(format string, args ...any) {
	fmt.Fprintln(a.stderr, visible(fmt.Sprintf(format, args...)))
}

// printProblems prints the problems of a configuration and their number. Editors recognise the
// form of each line as a link.
func (a *app) printProblems(problems config.Problems) {
	for _, p := range problems {
		fmt.Fprintln(a.stderr, visible(p.String()))
	}
	a.complain(fmt.Sprintf("the configuration has %s", count(len(problems), "problem")))
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
	a.notef("%s lies beside it: did you mean --env local?", overlayFile)
}

// printWarnings prints the warnings about a configuration.
func (a *app) printWarnings(warnings []config.Problem) {
	for _, w := range warnings {
		a.notef("warning: %s", w)
	}
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
