//go:build linux

package e2e

import (
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// fleetConfig is for processes that share a database.
const fleetConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
worker: {max_concurrency: 32}
sources: {app: {type: event}}
handlers: {load: {source: app, url: "${RECEIVER}/load", headers: {x-life: "${LIFE:-0}"}}}
`

const fleetSenders = 32 // to all processes together

// TestFleet: several processes on one database divide the work. Exactly one of them delivers
// each job, and none logs an error about another's locks.
func TestFleet(t *testing.T) {
	tests := []struct {
		name            string
		on              func(testing.TB) *store
		processes, jobs int
		few             int // jobs of a short run; 0 leaves it out
	}{
		{"PostgreSQL", onPostgres, 2, whole(20_000, 3000), 2000},
		{"MySQL", onMySQL, 2, whole(20_000, 3000), 2000},
		{"D1", onD1, 3, whole(600, 300), 0},
		{"D1 behind its proxy", onProxy, 3, whole(600, 300), 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			jobs := tt.jobs
			if testing.Short() || underRace() {
				jobs = tt.few
			}
			if jobs == 0 {
				t.Skip("in full runs only")
			}
			testFleet(t, tt.on(t), tt.processes, jobs)
		})
	}
}

func testFleet(t *testing.T, st *store, processes, jobs int) {
	r := receiver.New(t)
	fleet := launchFleet(t, st, r, processes)
	l := newLoad(fleet[0], r, pooled)
	l.gateways, l.last = fleet, serial(jobs)

	began := time.Now()
	l.start(fleetSenders)
	l.senders.Wait()
	accepted := time.Since(began)
	l.settle(2 * time.Minute)
	delivered := time.Since(began)
	for _, g := range fleet {
		g.awaitIdle(20 * time.Second)
	}
	for _, g := range fleet {
		g.stop()
	}

	v, shares := l.judge(0), l.shares()
	t.Logf("%d processes: %v; accepted in %.1f s, delivered after %.1f s, shares %v",
		processes, v, accepted.Seconds(), delivered.Seconds(), shares)
	v.check(t, 0)
	if v.accepted != jobs || len(l.misses) > 0 {
		t.Errorf("accepted = %d of %d, otherwise %v", v.accepted, jobs, l.misses)
	}
	for _, g := range fleet {
		if shares[g.life] == 0 {
			t.Errorf("process %d delivered nothing, want a share", g.life)
		}
		if lines := grumbles(g); len(lines) > 0 {
			t.Errorf("process %d logged\n%s\nwant no line", g.life, strings.Join(lines, "\n"))
		}
	}
	db := st.open(t)
	db.check(1)
	db.holds(l.acceptedIDs())
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed' OR attempt <> 1`); n != 0 {
		t.Errorf("jobs not completed at the first attempt = %d, want 0", n)
	}
}

// launchFleet starts processes at the same time on a database that may be empty. Their lives
// are numbered from 1.
func launchFleet(t *testing.T, st *store, r *receiver.Receiver, n int) []*gateway {
	t.Helper()
	fleet := make([]*gateway, n)
	for i := range fleet {
		fleet[i] = newGatewayOn(t, st, fleetConfig, r)
		fleet[i].env = append(fleet[i].env, "GATEWAY_LOG=warn")
		fleet[i].life = i
		fleet[i].launch()
	}
	for _, g := range fleet {
		g.awaitReady()
	}
	return fleet
}

// aboutConfig matches the end of a log line about the configuration: the field that it names.
var aboutConfig = regexp.MustCompile(` at=[a-z_.]+$`)

// cutShort is in a log line about a statement that was under way at a SIGTERM.
const cutShort = "context canceled"

// grumbles returns the log lines of a gateway that logs warnings, without lines about its
// configuration and its shutdown.
func grumbles(g *gateway) []string {
	var lines []string
	for line := range strings.Lines(g.process.log.String()) {
		if line = strings.TrimSpace(line); !aboutConfig.MatchString(line) && !strings.Contains(line, cutShort) {
			lines = append(lines, line)
		}
	}
	return lines
}

// underRace reports whether the tests were built with the race detector, which makes the
// senders slow.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
