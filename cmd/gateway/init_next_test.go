package main

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
)

// sendLine is the command that sends a first event, with its source and type.
var sendLine = regexp.MustCompile(`(?m)^  gateway send --env local -s (\S+) -t (\S+) `)

// TestFirstEventIsWanted: the event that init tells the user to send has a handler. A
// template whose sources take no events tells the user how to watch its own.
func TestFirstEventIsWanted(t *testing.T) {
	for _, template := range templateNames() {
		t.Chdir(t.TempDir())
		_, _, said := session{}.run(t.Context(), "init", "--template", template)
		m := sendLine.FindStringSubmatch(said)
		if m == nil {
			if template != "cron" || !strings.Contains(said, "\n  gateway tail --env local\n") {
				t.Errorf("init --template %s tells of no first event: %s", template, said)
			}
			continue
		}
		_, stdout, stderr := session{}.run(t.Context(), "send", "--env", "local", "-s", m[1], "-t", m[2], "--dry-run", "--json")
		var wants matches
		if err := json.Unmarshal([]byte(stdout), &wants); err != nil || len(wants.Handlers) == 0 {
			t.Errorf("init --template %s: the event of %q has the handlers %v (%v, %s), want at least one", template, m[0], wants.Handlers, err, stderr)
		}
	}
}

// TestHintsNameTheProgram: a program that is not on the PATH is named the way it was called.
func TestHintsNameTheProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	var said strings.Builder
	s := session{}.system(io.Discard, &said)
	s.program = "./my gateway"
	for _, args := range [][]string{{"init"}, {"events", "list", "--env", "local"}, {"jobs", "lst"}, {"send", "--env", "local", "-s", "app", "-t", "a", "--url", "http://127.0.0.1:1"}} {
		run(t.Context(), args, s)
	}
	for _, want := range []string{
		"\n  './my gateway' start --env local\n",
		"\n  './my gateway' send --env local ",
		`; "'./my gateway' start --env local" makes it` + "\n",
		`; "'./my gateway' start --env local" starts one`,
		`run "'./my gateway' jobs --help" for usage`,
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("hints are\n%s\nwant %q in them", said.String(), want)
		}
	}
}
