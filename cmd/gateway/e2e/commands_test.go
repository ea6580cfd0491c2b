//go:build linux

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const commandsConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 1}}
sources: {app: {type: event}}
handlers:
  good: {source: app, url: "${RECEIVER}/good"}
  weak: {source: app, url: "${RECEIVER}/weak"}
`

// TestCommandsOnServers: the commands that read a database, and jobs retry, work while a
// gateway uses the same database, on every kind of database.
func TestCommandsOnServers(t *testing.T) {
	t.Parallel()
	for _, tt := range everyServer() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			r.On("/weak", receiver.Failing(2))
			g := newGatewayOn(t, tt.on(t), commandsConfig, r)
			g.env = append(g.env, "GATEWAY_LOG=warn")
			g.start()
			first := g.send("/events/order.created", `{"n":1}`)
			second := g.send("/events/order.paid", `{"n":2}`)
			var dead []job
			wait.For(t, 20*time.Second, "two dead jobs", func() bool {
				dead = g.jobs("--status", "dead")
				return len(dead) == 2
			})
			testListings(t, g, first, second)

			// One job by its id, then all others.
			if out := g.run("jobs", "retry", dead[0].ID); !strings.Contains(out, "1 job") {
				t.Errorf("jobs retry %s printed %q, want that it was 1 job", dead[0].ID, out)
			}
			if got := r.Await(t, 20*time.Second, "/weak", 3)[2]; got.Job() != dead[0].ID || got.Attempt() != 2 {
				t.Errorf("delivered again: job %s, attempt %d, want %s, attempt 2", got.Job(), got.Attempt(), dead[0].ID)
			}
			if out := g.run("jobs", "retry", "--handler", "weak"); !strings.Contains(out, "1 job") {
				t.Errorf("jobs retry --handler weak printed %q, want that it was 1 job", out)
			}
			r.Await(t, 20*time.Second, "/weak", 4)
			wait.For(t, 10*time.Second, "both jobs completed", func() bool { return len(g.jobs("--status", "completed", "--handler", "weak")) == 2 })
			if got := run(t, g.command("jobs", "retry", dead[0].ID)); got.code != 1 || !strings.Contains(got.stderr, "completed") {
				t.Errorf("jobs retry of a completed job: exit code %d, %q, want 1 and why", got.code, got.stderr)
			}
			g.stop()
			g.ledger().check(2)
		})
	}
}

// testListings reads two events, each with a completed job of the handler good and a dead job
// of the handler weak.
func testListings(t *testing.T, g *gateway, first, second string) {
	t.Helper()
	if got := g.events(); len(got) != 2 || got[0] != second || got[1] != first {
		t.Errorf("events list = %v, want %s and %s", got, second, first)
	}
	if out := g.run("events", "list", "--event-type", "order.paid"); !strings.Contains(out, second) || strings.Contains(out, first) {
		t.Errorf("events list --event-type order.paid =\n%swant event %s alone", out, second)
	}
	for handler, status := range map[string]string{"good": "completed", "weak": "dead"} {
		jobs := g.jobs("--handler", handler)
		if len(jobs) != 2 || jobs[0].EventID != second || jobs[1].EventID != first {
			t.Errorf("jobs list --handler %s = %+v, want one of each event", handler, jobs)
		}
		for _, j := range jobs {
			if j.Status != status || j.Attempt != 1 || j.MaxAttempts != 1 {
				t.Errorf("job of handler %s = %+v, want %s after attempt 1 of 1", handler, j, status)
			}
		}
	}
	out := g.run("inspect", first)
	for _, want := range []string{first, "order.created", `"n"`, "good", "weak", "dead", http.StatusText(http.StatusInternalServerError)} {
		if !strings.Contains(out, want) {
			t.Errorf("inspect =\n%swant %q in it", out, want)
		}
	}
	if got := run(t, g.command("inspect", "01J90000000000000000000001")); got.code != 1 || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("inspect of an unknown event: exit code %d\n%swant 1 and one line", got.code, got.stderr)
	}
}

// TestReaderThatIsGone: a command whose output has no reader ends with success. SIGPIPE does
// not kill it.
func TestReaderThatIsGone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--help"}, {"completion", "bash"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		c := exec.CommandContext(t.Context(), binary, args...)
		c.Stdout = w
		err = c.Run()
		w.Close()
		if err != nil {
			t.Errorf("gateway %v without a reader: %v, want that it ends well", args, err)
		}
	}
}
