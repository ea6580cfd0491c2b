//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// clocksConfig has leases of 17 seconds, less than the difference of the clocks.
const clocksConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 2s, default_retry: {max: 5, backoff: fixed, interval: 100ms}}
worker: {stale_threshold_secs: 1}
sources:
  app: {type: event}
  second: {type: cron, schedule: "* * * * * *", timezone: UTC}
handlers:
  slow: {source: app, events: [call], url: "${RECEIVER}/slow"}
  second: {source: second, url: "${RECEIVER}/second"}
queues: {mail: {source: app, events: [mail], visibility_timeout: 8s}}
workflows:
  order:
    source: app
    events: [call]
    steps: [{name: pay, url: "${RECEIVER}/step", end: true}]
`

const (
	clocksApart = 45 * time.Second
	clockEvents = 8               // for each process
	mailHold    = 8 * time.Second // visibility_timeout of the queue mail

	// clockError bounds the error of a process about the database's time: half of a round
	// trip, on a busy machine.
	clockError = time.Second
)

// skewedBinary is the program, built with a clock that GATEWAY_TEST_SKEW sets wrong.
var skewedBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "gateway-skewed")
	race, cgo := "-race=false", "CGO_ENABLED=0"
	if underRace() {
		race, cgo = "-race", "CGO_ENABLED=1"
	}
	build := exec.Command("go", "build", "-tags", "otel grpcnotrace nopgxregisterdefaulttypes skewed", "-trimpath", "-ldflags", "-s -w", race, "-o", path, "github.com/eventgateway/gateway/cmd/gateway")
	build.Env = append(build.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway with a wrong clock: %w\n%s", err, out)
	}
	return path, nil
})

// TestClocks: processes of one database whose machines' clocks are 45 seconds ahead, right
// and 45 seconds behind work as if all clocks were right. No call is made twice, messages
// stay invisible as long as they should, and no slot of a schedule is fired early.
func TestClocks(t *testing.T) {
	t.Parallel()
	for _, tt := range everyServer() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			r.On("/slow", r.Taking(time.Second))
			r.On("/step", r.Taking(time.Second))
			fleet := launchSkewed(t, tt.on(t), r)
			began := time.Now()
			for n := range clockEvents {
				for i, g := range fleet {
					g.send("/events/app/call", fmt.Sprintf(`{"n": %d}`, n*len(fleet)+i))
				}
			}
			checkHolds(t, fleet)
			all := clockEvents * len(fleet)
			r.Await(t, 30*time.Second, "/slow", all)
			r.Await(t, 30*time.Second, "/step", all)
			wait.For(t, 20*time.Second, "a slot after the beginning is delivered", func() bool {
				return slices.ContainsFunc(r.At("/second"), func(d receiver.Delivery) bool { return slotOf(t, d).After(began) })
			})
			for _, g := range fleet {
				g.awaitIdle(20 * time.Second)
			}
			for _, g := range fleet {
				g.stop()
			}
			checkOnce(t, r, "/slow", all)
			checkOnce(t, r, "/step", all)
			checkOnTime(t, r)
		})
	}
}

// launchSkewed starts processes whose clocks are right, ahead and behind.
func launchSkewed(t *testing.T, st *store, r *receiver.Receiver) (fleet []*gateway) {
	t.Helper()
	program, err := skewedBinary()
	if err != nil {
		t.Fatal(err)
	}
	for i, skew := range []time.Duration{0, clocksApart, -clocksApart} {
		g := newGatewayOn(t, st, clocksConfig, r)
		g.life = i + 1
		c := g.command("start")
		c.name, c.env = program, append(c.env, "GATEWAY_TEST_SKEW="+skew.String())
		g.process = spawn(t, c)
		fleet = append(fleet, g)
	}
	for _, g := range fleet {
		g.awaitReady()
	}
	return fleet
}

// checkHolds receives a message from each process, and requires that no process gives it
// to another consumer before its visibility timeout is over.
func checkHolds(t *testing.T, fleet []*gateway) {
	t.Helper()
	taken := map[string]time.Time{} // time of the request, by message id
	for i, g := range fleet {
		g.send("/events/app/mail", fmt.Sprintf(`{"n": %d}`, i))
		asked := time.Now()
		for _, m := range (queue{g: g, name: "mail"}).receive(10, "5s") {
			if before, ok := taken[m.ID]; ok {
				t.Errorf("message %s was received again after %v, want at least %v", m.ID, time.Since(before), mailHold)
			}
			taken[m.ID] = asked
		}
	}
	if len(taken) != len(fleet) {
		t.Errorf("%d messages were received at once, want %d", len(taken), len(fleet))
	}
	left := maps.Clone(taken)
	wait.Until(mailHold+12*time.Second, func() bool {
		for _, g := range fleet {
			q := queue{g: g, name: "mail"}
			for _, m := range q.receive(10, "0s") {
				if held := time.Since(taken[m.ID]); held < mailHold-clockError {
					t.Errorf("process %d gave message %s after %v, want %v at least", g.life, m.ID, held, mailHold)
				}
				delete(left, m.ID)
				q.ack(m.Receipt)
			}
		}
		return len(left) == 0
	})
	if len(left) > 0 {
		t.Errorf("%d messages did not come back 12 s after their visibility timeout", len(left))
	}
}

// checkOnce requires that each job had one call.
func checkOnce(t *testing.T, r *receiver.Receiver, path string, want int) {
	t.Helper()
	calls := map[string]int{}
	for _, d := range r.At(path) {
		calls[d.Job()]++
	}
	repeated := 0
	for _, n := range calls {
		repeated += n - 1
	}
	if len(calls) != want || repeated != 0 {
		t.Errorf("%s: %d jobs were called, %d calls were repeated, want %d and 0", path, len(calls), repeated, want)
	}
}

// clockError bounds the error of a gateway about the time of its database. The time of a
// SQLite file is the machine's.
func (g *gateway) clockError() time.Duration {
	if g.store == nil {
		return 0
	}
	return clockError
}

// checkOnTime requires that each slot was fired once, and not before its time by the clock
// of the database, which runs on this machine.
func checkOnTime(t *testing.T, r *receiver.Receiver) {
	t.Helper()
	fired := map[time.Time]int{}
	for _, d := range r.At("/second") {
		slot := slotOf(t, d)
		if fired[slot]++; fired[slot] > 1 {
			t.Errorf("slot %v was delivered %d times", slot, fired[slot])
		}
		if early := slot.Sub(d.At); early > clockError {
			t.Errorf("slot %v was delivered %v early", slot, early)
		}
	}
}
