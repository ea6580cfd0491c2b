//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestFirstMinutes types the commands that init prints for each template. Then it types the
// commands that those print, and the commands in the comments of the starter files. With each
// template a first event arrives at a handler. The test runs with the program on the PATH and
// with the program in the folder.
func TestFirstMinutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, program string }{
		{"default", "gateway"}, {"github", "gateway"}, {"stripe", "gateway"}, {"sns", "gateway"}, {"cron", "gateway"},
		{"github", "./gateway"},
	} {
		t.Run(c.template+" "+c.program, func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t)
			if c.program == "./gateway" {
				n = newStranger(t)
			}
			said := n.types(c.program + " init --template " + c.template)
			steps := printedCommands(said, c.program)
			if len(steps) != 2 || !strings.HasPrefix(steps[0], c.program+" start") {
				t.Fatalf("init prints the commands %q, want how to start, and what shows a first event", steps)
			}
			n.serves(steps[0])
			if strings.HasPrefix(steps[1], c.program+" tail") {
				n.watches(steps[1], "completed")
			} else {
				n.sends(steps[1])
			}
			n.setsVariables(said)
			for _, line := range n.commandsOfComments() {
				switch line := strings.Replace(line, "gateway", c.program, 1); {
				case strings.HasPrefix(line, c.program+" tail"):
					n.watches(line, "completed")
				case strings.HasPrefix(line, c.program+" send"):
					n.sends(line)
				default:
					n.types(line)
				}
			}
		})
	}
}

// newStranger makes a newcomer with the program in the folder and not on the PATH.
func newStranger(t *testing.T) *newcomer {
	t.Helper()
	g := newGateway(t, "", nil)
	remove(t, filepath.Join(g.dir, "gateway.yaml"))
	if err := os.Symlink(binary, filepath.Join(g.dir, "gateway")); err != nil {
		t.Fatal(err)
	}
	return &newcomer{t, g}
}

// printedCommands returns the indented lines of a text that run the program.
func printedCommands(text, program string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  "+program+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// sends types a line that sends an event, and then the command that it prints. That command
// shows that the event was delivered.
func (n *newcomer) sends(line string) {
	n.t.Helper()
	sent := n.types(line)
	_, inspect, found := strings.Cut(sent, "see what becomes of it: ")
	if !found || strings.Contains(sent, "jobs          0") {
		n.t.Fatalf("$ %s\n%s\nwant an event that a handler gets", line, sent)
	}
	delivered := "msg=delivered target=worker event=" + eventForm.FindString(sent)
	wait.For(n.t, 10*time.Second, delivered+" in the log", func() bool {
		return strings.Contains(n.log.String(), delivered)
	})
	if shown := n.types(strings.TrimSpace(inspect)); !strings.Contains(shown, ": completed") {
		n.t.Errorf("$ %s\n%s\nwant a completed job", inspect, shown)
	}
}

// watches types a line whose command does not end, and waits until it has printed want.
func (n *newcomer) watches(line, want string) {
	n.t.Helper()
	p := spawn(n.t, command{name: "/bin/sh", args: []string{"-c", "exec " + line}, dir: n.dir, env: n.env})
	wait.For(n.t, 30*time.Second, want+" from: "+line, func() bool {
		if p.ended() {
			n.t.Fatalf("$ %s\n%s", line, p.log)
		}
		return strings.Contains(p.log.String(), want)
	})
	p.kill()
}

// namedCommand matches a command in a comment: in quotes, or at the end of its line.
var namedCommand = regexp.MustCompile(`"(gateway [^"]+)"|: (gateway .+)$`)

// commandsOfComments returns the commands of this program in the comments of the starter
// files, without the start of the server that runs already.
func (n *newcomer) commandsOfComments() (lines []string) {
	n.t.Helper()
	for _, file := range []string{"gateway.yaml", "gateway.local.yaml"} {
		text, err := os.ReadFile(filepath.Join(n.dir, file))
		if err != nil {
			n.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, m := range namedCommand.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
				if command := m[1] + m[2]; !strings.HasPrefix(command, "gateway start") {
					lines = append(lines, command)
				}
			}
		}
	}
	if len(lines) == 0 {
		n.t.Fatal("no comment names a command")
	}
	return lines
}

// variable matches the name of an environment variable in the output of init.
var variable = regexp.MustCompile(`\b[A-Z]+(_[A-Z]+)+\b`)

// setsVariables sets each variable that init says must be set.
func (n *newcomer) setsVariables(said string) {
	n.t.Helper()
	_, said, found := strings.Cut(said, "must be set: ")
	names := variable.FindAllString(said, -1)
	if !found || len(names) == 0 {
		n.t.Fatalf("init does not say which variables must be set: %s", said)
	}
	for _, name := range names {
		value := "whsec_" + strings.Repeat("QUJD", 11)
		if name == "SNS_TOPIC_ARN" {
			value = "arn:aws:sns:us-east-1:000000000000:local"
		}
		n.env = append(n.env, name+"="+value)
	}
}
