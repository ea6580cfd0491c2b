package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// namedCommands are the places in deployment files that contain command lines of this program.
var namedCommands = []struct {
	file    string
	command *regexp.Regexp
	least   int // least number of command lines in the file
}{
	{"../../infra/systemd/gateway.service", regexp.MustCompile(`(?m)^ExecStart=/usr/bin/gateway (.*)$`), 1},
	{"../../infra/monitoring/prometheus/rules.yaml", regexp.MustCompile(`"gateway ([^"]+)"`), 6},
	{"../../infra/docker/Dockerfile", regexp.MustCompile(`CMD (\[.*\])`), 2},
	{"../../infra/docker/Dockerfile", regexp.MustCompile(`<container> gateway (.*)`), 1},
	{"../../infra/compose/compose.yaml", regexp.MustCompile(`exec gateway gateway (.*)`), 1},
	{"../../.github/workflows/ci.yml", regexp.MustCompile(`gateway:devel (\w+)`), 1},
	{"manual/functions.md", regexp.MustCompile(`secrets run gateway (.*)`), 2},
	{"manual/production.md", regexp.MustCompile(`gateway\.env \\\n +gateway (.*)`), 1},
	{"../../infra/sam/secrets", regexp.MustCompile(`secrets run gateway (.*)`), 1},
	{"../../infra/sam/alarms.yaml", regexp.MustCompile(`"gateway ([^"]+)"`), 2},
	{"../../.goreleaser.yaml", regexp.MustCompile(`"gateway (\w+)"`), 1},
}

// TestNamedCommands: the commands in the systemd unit, the image and the alerts exist, with
// their flags.
func TestNamedCommands(t *testing.T) {
	for _, n := range namedCommands {
		text, err := os.ReadFile(n.file)
		if err != nil {
			t.Fatal(err)
		}
		found := n.command.FindAllSubmatch(text, -1)
		if len(found) < n.least {
			t.Errorf("%s has %d commands that look like %s, want %d", n.file, len(found), n.command, n.least)
		}
		for _, m := range found {
			checkCommand(t, n.file, words(t, m[1]))
		}
	}
}

// words returns the arguments of a command, as a shell or a Dockerfile writes them.
func words(t *testing.T, line []byte) (all []string) {
	t.Helper()
	if !bytes.HasPrefix(line, []byte("[")) {
		return strings.Fields(string(line))
	}
	if err := json.Unmarshal(line, &all); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if all[0] == "/usr/local/bin/gateway" {
		return all[1:]
	}
	return all
}

func checkCommand(t *testing.T, file string, args []string) {
	t.Helper()
	root := newRoot(session{}.app(io.Discard))
	c, rest, err := root.Find(args)
	if err != nil || c == root || c.HasSubCommands() {
		t.Errorf("%s: there is no command %q", file, args)
		return
	}
	for _, word := range rest {
		flag, isFlag := strings.CutPrefix(word, "--")
		flag, _, _ = strings.Cut(flag, "=")
		if isFlag && c.Flags().Lookup(flag) == nil && c.InheritedFlags().Lookup(flag) == nil {
			t.Errorf("%s: %q has no flag --%s", file, c.CommandPath(), flag)
		}
	}
}
