//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestCommandsBesideServer: commands read the database of a busy gateway and retry jobs in it.
// The gateway goes on undisturbed.
func TestCommandsBesideServer(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, plainConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	l := newLoad(g, r, pooled)
	l.start(4)
	wait.For(t, 5*time.Second, "load", func() bool { accepted, _ := l.counts(); return accepted > 0 })
	for range 2 {
		events := g.events()
		g.run("inspect", events[len(events)-1])
		g.run("jobs", "list", "--status", "completed", "--limit", "5")
		g.run("jobs", "retry")
	}
	l.end()
	l.settle(10 * time.Second)
	g.awaitIdle(5 * time.Second)
	g.stop()
	if len(l.misses) > 0 {
		t.Errorf("posts that were not accepted = %v, want none", l.misses)
	}
	l.judge(0).check(t, 0)
	openLedger(t, g.database()).check(1)
}

// TestReadingNeedsNoLock: read-only commands answer while another process writes, and do not
// block writes.
func TestReadingNeedsNoLock(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, plainConfig, r)
	g.start()
	event := g.send("/events/order.created", `{}`)
	r.Await(t, 5*time.Second, "/ok", 1)
	g.awaitIdle(5 * time.Second)

	l := openLedger(t, g.database())
	l.db.SetMaxOpenConns(1)
	if _, err := l.db.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"events", "list"}, {"jobs", "list"}, {"inspect", event}} {
		if got := run(t, g.command(args...)); got.code != 0 || !strings.Contains(got.stdout, event) {
			t.Errorf("gateway %v while another process writes: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
	if _, err := l.db.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
}
