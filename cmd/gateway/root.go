package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// The groups of commands in the help text of "gateway".
	groupServe   = "serve"
	groupInspect = "inspect"
	groupProgram = "program"
)

const rootLong = `Gateway receives events, stores them, and delivers each one to every handler
that wants it, as often as it takes.

A first run:

  gateway init                               write gateway.yaml and gateway.local.yaml
  gateway start --env local                  serve
  gateway send --env local -s app -t hello   send an event
  gateway inspect --env local <event id>     see its deliveries

Environment: GATEWAY_CONFIG replaces -c, GATEWAY_ENV stands in for --env,
GATEWAY_TOKEN for --token, and NO_COLOR switches colours off. Exit codes: 0 done,
1 failed, 2 wrong usage, 3 preview found differences, 130 interrupted.`

// commands makes every command.
var commands = []func(*app) *cobra.Command{
	newStart,
	newInit,
	newValidate,
	newPreview,
	newDoctor,
	newMigrate,
	newSend,
	newConsole,
	newStatus,
	newTopology,
	newSeries,
	newInspect,
	newEvents,
	newExport,
	newReplayLocal,
	newTail,
	newListen,
	newJobs,
	newLines,
	newOperations,
	newQueues,
	newHold,
	newRelease,
	newHolds,
	newBreaker,
	newSchedules,
	newRuns,
	newAudit,
	newWorkflow,
	newCompletion,
	newVersion,
}

// newRoot makes the command "gateway" with all commands below it. It replaces these parts of
// cobra:
//
//	The help text lists groups and topics; see usage.
//	Errors are printed once, by [app.end], and with no help text behind them.
//	Each refusal of an argument or flag is a usageError, so that it has its own exit code.
//	The command completion is ours: cobra's would have a help text in another style.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:               "gateway",
		Short:             "A self-hosted event gateway",
		Long:              rootLong,
		Version:           readBuild().Version,
		Args:              noSuchCommand,
		RunE:              help,
		PersistentPreRunE: a.checkFlags,
		SilenceUsage:      true,
		SilenceErrors:     true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	root.SetUsageFunc(usage)
	a.globalFlags(root)
	root.AddGroup(
		&cobra.Group{ID: groupServe, Title: "Serve:"},
		&cobra.Group{ID: groupInspect, Title: "Look and repair:"},
		&cobra.Group{ID: groupProgram, Title: "This program:"},
	)
	for _, newCommand := range slices.Concat(commands, generators) {
		root.AddCommand(newCommand(a))
	}
	root.SetHelpCommand(newHelp(a))
	usageErrors(root)
	return root
}

// globalFlags registers the flags that all commands share. Commands that cannot use one of them
// refuse it; see [app.checkRemote].
func (a *app) globalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&a.configFlag, "config", "c", baseFile, "configuration `file`, or its https, s3, gs or az address")
	flags.StringVar(&a.envFlag, "env", "", "lay gateway.`name`.yaml and .env.name over the configuration")
	flags.BoolVar(&a.json, "json", false, "print one JSON document")
	flags.BoolVar(&a.NoColor, "no-color", false, "print without colours")
	a.remoteFlags(flags)
}

// newParent makes a command that only holds others.
// The parent itself prints its help and exits with 0; a word that is no command of it is a
// usage error.
func newParent(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.Args, c.RunE = noSuchCommand, help
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(children...)
	return c
}

// noSuchCommand refuses words after a command that only holds others.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	wanted := c.CommandPath() + " " + args[0]
	// A mistyped command is the most common mistake, and the suggestion costs no look into the
	// help.
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("there is no command %q; did you mean %s?", wanted, strings.Join(near, " or "))
	}
	return usagef("there is no command %q", wanted)
}

// usageErrors turns each refusal of arguments, of c and all commands below it, into a usage
// error.
func usageErrors(c *cobra.Command) {
	for _, child := range c.Commands() {
		usageErrors(child)
	}
	// Cobra would take any number of arguments if a command has no check.
	check := c.Args
	if check == nil {
		check = noArguments
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError(err.Error())
		}
		return nil
	}
}

// checkFlags refuses flags that are empty or that the command does not take.
func (a *app) checkFlags(c *cobra.Command, args []string) error {
	if err := emptyFlag(c); err != nil {
		return err
	}
	a.noteReplaced(c)
	a.identify(c)
	return a.checkRemote(c, args)
}

// emptyFlag refuses flags of a command that were given without a value: --handler "$NAME" must
// not mean all handlers if the variable is not set.
func emptyFlag(c *cobra.Command) (err error) {
	// Global flags are not looked at: --env "" means no overlay, as an unset variable does.
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Value.Type() == "string" && f.Value.String() == "" {
			err = usagef("--%s is empty; give a value, or leave it out", f.Name)
		}
	})
	return err
}

// flagError explains in words which values a flag takes.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usageError(err.Error())
	}
	// The value comes from the command line of a script, perhaps from outside. It is clipped,
	// and the error is escaped when it is printed.
	f, value := invalid.GetFlag(), terminal.Clip(invalid.GetValue(), 40)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return usagef("--%s is out of range: %s", f.Name, value)
	case f.Value.Type() == "int":
		return usagef("--%s must be a whole number, not %q", f.Name, value)
	}
	return usagef("--%s must be true or false, not %q", f.Name, value)
}

// noArguments accepts no arguments.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("takes no arguments; %q is one too many", args[0])
	}
	return nil
}

// arguments accepts between least and most arguments. The last parameter names them in errors.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s is missing", what)
		case len(args) > most:
			return usagef("%q is one argument too many", args[most])
		}
		return nil
	}
}
