package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/spf13/cobra"
)

// Set by the linker: -ldflags "-X main.version=v1.2.3 -X main.commit=0123abc".
var version, commit string

// A build is the version data of a binary.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// readBuild uses the linker's variables first, then the data that the go command recorded.
// A release sets the variables, "go install" records the version of the module, and a build in
// a working copy has the commit alone. So each way of building has a version that a bug report
// can name.
func readBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, released(info.Main.Version))
		b.Commit = cmp.Or(b.Commit, revision(info.Settings))
	}
	b.Version, b.Commit = cmp.Or(b.Version, "devel"), cmp.Or(b.Commit, "unknown")
	return b
}

// released returns a module version, or "" for a working copy.
func released(version string) string {
	if version == "(devel)" {
		return ""
	}
	return version
}

// revision returns the commit of a build that the go command made in a working copy, marked if
// the copy had changes.
func revision(settings []debug.BuildSetting) string {
	values := map[string]string{}
	for _, s := range settings {
		values[s.Key] = s.Value
	}
	if values["vcs.modified"] == "true" {
		return values["vcs.revision"] + "+changes"
	}
	return values["vcs.revision"]
}

// newVersion makes "gateway version". It reads nothing but the binary, so it works without a
// configuration, and fails only if its output cannot be written (exit code 1). The first line
// is for people; bug reports need all three.
func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Long:    "Print the version of this program, the commit it was built from, and by which Go.",
		Example: "  gateway version --json | jq -r .version",
		GroupID: groupProgram,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if a.json {
				return a.PrintJSON(b)
			}
			a.Printf("gateway %s\ncommit  %s\ngo      %s", terminal.Visible(b.Version), terminal.Visible(b.Commit), terminal.Visible(b.Go))
			return nil
		},
	}
}
