package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shells maps each shell to the function that writes its completion script.
// The descriptions of commands and flags are included where the shell can show them.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	"zsh":        (*cobra.Command).GenZshCompletion,
}

// unmarkFlags removes the backquotes around the names of values from the usage of flags:
// shells would show them.
func unmarkFlags(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, child := range c.Commands() {
		unmarkFlags(child)
	}
}

// newCompletion makes "gateway completion", which prints the script of a shell. The script runs
// this program for each word, with the hidden command of cobra; see complete.go. It reads no
// configuration. It exits with 2 for an unknown shell.
func newCompletion(a *app) *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion <shell>",
		Short: "Print a script that completes commands in a shell",
		Long: `Print a script that completes commands, flags, names from the configuration and
recent ids in a shell: ` + strings.Join(names, ", ") + `. In bash it needs the package
bash-completion.`,
		Example: `  source <(gateway completion bash)
  gateway completion zsh > "${fpath[1]}/_gateway"
  gateway completion fish > ~/.config/fish/completions/gateway.fish`,
		GroupID:   groupProgram,
		Args:      arguments(1, 1, "the shell ("+strings.Join(names, ", ")+")"),
		ValidArgs: names,
		RunE: func(c *cobra.Command, args []string) error {
			// The check is here and not in cobra's ValidArgs alone, so that the error lists the
			// shells.
			write, ok := shells[args[0]]
			if !ok {
				return usagef("there is no completion for %q; there is one for %s", args[0], strings.Join(names, ", "))
			}
			return write(c.Root(), a.stdout)
		},
	}
}
