//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// TestSecondStart: a SQLite file serves one gateway. A second gateway would take over the jobs
// that the first is delivering.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	r.On("/ok", r.Hanging())
	g := newGateway(t, plainConfig, r)
	g.start()
	g.send("/events/order.created", `{}`)
	r.Await(t, 5*time.Second, "/ok", 1)

	second := g.command("start")
	second.env = append(second.env, fmt.Sprintf("PORT=%d", ports.ForServer(t)))
	got := run(t, second)
	if got.code != 1 {
		t.Errorf("exit code of a second start = %d, want 1", got.code)
	}
	holder := fmt.Sprintf("process %d", g.pid())
	if !strings.Contains(got.stderr, holder) || !strings.Contains(got.stderr, "gateway.db") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("a second start says %q, want one line that names the database and %s", got.stderr, holder)
	}
	if jobs := g.jobs("--status", "running"); len(jobs) != 1 || jobs[0].Attempt != 1 {
		t.Errorf("running jobs after a second start = %+v, want the one of the first, untouched", jobs)
	}
	if n := len(r.At("/ok")); n != 1 {
		t.Errorf("deliveries = %d, want 1: the second start took no work", n)
	}

	// Files left by a killed gateway do not stop the next start.
	g.kill()
	if took := g.start(); took > 2*time.Second {
		t.Errorf("start after a kill took %v, want at most 2s", took)
	}
}
