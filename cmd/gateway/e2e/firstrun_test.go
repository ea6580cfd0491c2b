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

// A newcomer is a user with a shell in an empty folder. The user types the commands that the
// program prints.
type newcomer struct {
	t *testing.T
	*gateway
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	g := newGateway(t, "", nil)
	remove(t, filepath.Join(g.dir, "gateway.yaml"))
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "gateway")); err != nil {
		t.Fatal(err)
	}
	g.env = append(g.env, "PATH="+bin+":"+os.Getenv("PATH"))
	return &newcomer{t, g}
}

// types types a line into the shell and returns its output.
func (n *newcomer) types(line string) string {
	n.t.Helper()
	r := run(n.t, command{name: "/bin/sh", args: []string{"-c", line}, dir: n.dir, env: n.env})
	if r.code != 0 {
		n.t.Fatalf("$ %s\n%s%sexit code %d, want 0", line, r.stdout, r.stderr, r.code)
	}
	return r.stdout + r.stderr
}

// serves types a line that starts a server.
func (n *newcomer) serves(line string) {
	n.t.Helper()
	n.process = spawn(n.t, command{name: "/bin/sh", args: []string{"-c", "exec " + line}, dir: n.dir, env: n.env})
	wait.For(n.t, 10*time.Second, "gateway ready after: "+line, func() bool {
		if n.ended() {
			n.t.Fatalf("$ %s\n%s", line, n.log)
		}
		return n.healthy()
	})
}

// suggested finds the first command in a text that begins with prefix.
func (n *newcomer) suggested(text, prefix string) string {
	n.t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(prefix) + `.*`).FindString(text)
	if m == "" {
		n.t.Fatalf("nothing suggests %q in:\n%s", prefix, text)
	}
	return m
}

var eventForm = regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`)

// TestFirstRun follows the texts of the program and its files word for word, from an empty
// folder to a delivered event.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.serves(n.suggested(n.types("gateway init"), "gateway start"))
	overlay, err := os.ReadFile(filepath.Join(n.dir, "gateway.local.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sent := n.types(n.suggested(string(overlay), "gateway send"))
	event := eventForm.FindString(sent)
	if event == "" || !strings.Contains(sent, "202 Event accepted") {
		t.Fatalf("send shows %q, want 202 Event accepted and the event's id", sent)
	}
	wait.For(t, 5*time.Second, "delivery to /_echo in the log", func() bool {
		log := n.log.String()
		return strings.Contains(log, "echo received a delivery") && strings.Contains(log, "msg=delivered") && strings.Contains(log, event)
	})
	for line, wants := range map[string][]string{
		n.suggested(sent, "gateway inspect"): {event, "order.created", "app", "echo", "completed", "200", `"id": 1`},
		"gateway events list --env local":    {event, "order.created", "app"},
		"gateway jobs list --env local":      {event, "echo", "completed"},
		"gateway validate --env local":       {"gateway.yaml"},
	} {
		shown := n.types(line)
		for _, want := range wants {
			if !strings.Contains(shown, want) {
				t.Errorf("$ %s\n%s\nwant %q in it", line, shown, want)
			}
		}
	}
	n.stop()
}

// TestHelpOfFirstRun: the first run in the help works as it is printed.
func TestHelpOfFirstRun(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	help := n.types("gateway --help")
	_, section, found := strings.Cut(help, "A first run:")
	if !found {
		t.Fatalf("the help describes no first run:\n%s", help)
	}
	line := func(command string) string { // the columns are a command and its purpose
		return strings.TrimSpace(regexp.MustCompile(`  .*`).ReplaceAllString(n.suggested(section, command), ""))
	}
	n.types(line("gateway init"))
	n.serves(line("gateway start"))
	event := eventForm.FindString(n.types(line("gateway send")))
	shown := n.types(strings.Replace(line("gateway inspect"), "<event id>", event, 1))
	if event == "" || !strings.Contains(shown, event) {
		t.Errorf("inspect of event %q shows %q", event, shown)
	}
}

// TestWebhookSend: gateway send signs its webhooks.
func TestWebhookSend(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.types("gateway init")
	n.serves("gateway start --env local")
	sent := n.types(`gateway send --env local -s demo -t hello '{"a":[1,2]}'`)
	if !strings.Contains(sent, "200 Event received") {
		t.Errorf("send to a webhook source shows %q, want 200 Event received", sent)
	}
	wait.For(t, 5*time.Second, "delivery", func() bool { return strings.Contains(n.log.String(), "handler=echo-demo attempt=1 status=200") })
}
