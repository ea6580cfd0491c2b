//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// root is the folder of the repository, from the folder of these tests.
const root = "../../.."

// TestMakeRun does the steps of "make run" after the build. It types the commands that make
// run prints, and the commands for the same step in README and the manual.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	n := newStranger(t)
	recipe := n.recipe("run")
	start := recipe[len(recipe)-1]
	if !strings.HasPrefix(start, "./gateway start") {
		t.Fatalf("the last command of make run is %q, want the start of the gateway", start)
	}
	var said string // output of the last command before
	for _, line := range recipe[:len(recipe)-1] {
		said = n.types(line)
	}
	n.serves(start)
	shown := map[string]string{"make run": said}
	for _, file := range []string{"README.md", "cmd/gateway/manual/first-steps.md"} {
		shown[file], _, _ = strings.Cut(read(t, filepath.Join(root, file)), "\n## Configure")
	}
	for from, text := range shown {
		_, section, found := strings.Cut(text, "In another terminal")
		if !found {
			t.Fatalf("%s names no commands for another terminal", from)
		}
		lines := commandColumn(section)
		if len(lines) < 3 {
			t.Fatalf("%s names the commands %q, want at least one that sends, one that inspects, one that lists", from, lines)
		}
		n.tries(from, lines)
	}
}

// recipe returns the commands that make runs for a target, without building the program.
func (n *newcomer) recipe(target string) []string {
	n.t.Helper()
	makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.Command("make", "--no-print-directory", "-f", makefile, "-o", "build", "-n", target)
	cmd.Dir = n.dir
	// The tests may run under make, whose flags make it print the folders all the same.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("make -n %s: %v", target, err)
	}
	joined := strings.ReplaceAll(strings.TrimSpace(string(out)), "\\\n", "")
	return strings.Split(joined, "\n")
}

// commandColumn returns the commands of the program in a text, without the description after
// some spaces.
func commandColumn(text string) (commands []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "./gateway ") {
			commands = append(commands, regexp.MustCompile(`  +.*`).ReplaceAllString(line, ""))
		}
	}
	return commands
}

// tries types commands. The first one sends an event. The event is delivered, and the other
// commands show it.
func (n *newcomer) tries(from string, lines []string) {
	n.t.Helper()
	event := eventForm.FindString(n.types(lines[0]))
	if event == "" {
		n.t.Fatalf("the first command of %s, %q, shows no event", from, lines[0])
	}
	wait.For(n.t, 10*time.Second, "echo received a delivery of "+event+" in the log", func() bool {
		log := n.log.String()
		return strings.Contains(log, "echo received a delivery") && strings.Contains(log, "msg=delivered target=worker event="+event)
	})
	for _, line := range lines[1:] {
		want := event
		if strings.Contains(line, " console ") {
			want = "/console#/sign-in?code=" // the page itself has tests in a browser
		}
		if shown := n.types(strings.Replace(line, "<event id>", event, 1)); !strings.Contains(shown, want) {
			n.t.Errorf("$ %s (%s)\n%s\nwant %s", line, from, shown, want)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
