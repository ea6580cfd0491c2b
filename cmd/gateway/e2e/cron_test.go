//go:build linux

package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const cronConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources:
  second: {type: cron, schedule: "* * * * * *", timezone: UTC}
  even: {type: cron, schedule: "*/2 * * * * *", timezone: "+05:30"}
  leap: {type: cron, schedule: "0 0 29 2 *", timezone: UTC}
handlers:
  second: {source: second, events: [cron.tick], url: "${RECEIVER}/second"}
  even: {source: even, url: "${RECEIVER}/even"}
`

// TestSchedules: several processes fire the same schedules, and each slot causes one event.
// One process is killed and starts again. Slots from a time without any process are fired
// later.
func TestSchedules(t *testing.T) {
	t.Parallel()
	for _, tt := range append([]place{{"SQLite", ownFile}}, everyServer()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := tt.on(t)
			r := receiver.New(t)
			fleet := []*gateway{newGatewayOn(t, st, cronConfig, r)}
			for st != nil && len(fleet) < 3 {
				fleet = append(fleet, newGatewayOn(t, st, cronConfig, r))
			}
			for _, g := range fleet {
				g.env = append(g.env, "GATEWAY_LOG=warn")
				g.launch()
			}
			for _, g := range fleet {
				g.awaitReady()
			}
			r.Await(t, 20*time.Second, "/second", 3)
			fleet[0].kill()
			awaitSecond(time.Now().Add(4 * time.Second))
			fleet[0].start()
			back := time.Now()
			wait.For(t, 20*time.Second, "a slot after the restart is delivered", func() bool {
				return slices.ContainsFunc(r.At("/second"), func(d receiver.Delivery) bool { return slotOf(t, d).After(back) })
			})
			for _, g := range fleet {
				g.stop()
			}
			for _, d := range append(r.At("/second"), r.At("/even")...) {
				checkTick(t, d, fleet[0])
			}
			checkSlots(t, fleet[0].ledger())
		})
	}
}

// awaitSecond returns when the machine's clock reaches a time. There is no condition to wait
// for: the time must pass without any process.
func awaitSecond(at time.Time) {
	wait.Until(time.Minute, func() bool { return time.Now().After(at) })
}

// A tick is the payload of a slot's event.
type tick struct {
	ScheduledAt string `json:"scheduled_at"`
	Schedule    string `json:"schedule"`
	Source      string `json:"source"`
}

func slotOf(t *testing.T, d receiver.Delivery) time.Time {
	t.Helper()
	var got tick
	if err := json.Unmarshal([]byte(d.Body), &got); err != nil {
		t.Fatalf("payload of a tick: %q, %v", d.Body, err)
	}
	slot, err := time.Parse("2006-01-02T15:04:05.000", got.ScheduledAt)
	if err != nil {
		t.Fatalf("scheduled_at of a tick: %v", err)
	}
	return slot
}

func checkTick(t *testing.T, d receiver.Delivery, g *gateway) {
	t.Helper()
	source := strings.TrimPrefix(d.Path, "/")
	slot, early := slotOf(t, d), g.clockError()
	if slot.Nanosecond() != 0 || source == "even" && slot.Second()%2 != 0 || d.At.Before(slot.Add(-early)) {
		t.Errorf("delivered at %v for the slot %v of source %s, want a slot of its schedule that has come", d.At, slot, source)
	}
	if d.Header.Get("X-Gateway-Event-Type") != "cron.tick" || d.Header.Get("X-Gateway-Source") != source || !strings.Contains(d.Body, `"source":"`+source+`"`) {
		t.Errorf("delivered %v %q, want a cron.tick of source %s", d.Header, d.Body, source)
	}
}

// checkSlots looks for slots that were fired twice or never.
func checkSlots(t *testing.T, db *ledger) {
	t.Helper()
	for source, step := range map[string]int64{"second": 1, "even": 2} {
		slots := db.column(`SELECT delivery_id FROM events WHERE source = '` + source + `' ORDER BY delivery_id`)
		if len(slots) < 3 {
			t.Errorf("source %s: %d slots, want more", source, len(slots))
		}
		for i := range slots {
			at, err := strconv.ParseInt(slots[i], 10, 64)
			if err != nil || at%step != 0 {
				t.Errorf("source %s: slot %q, want seconds that %d divides", source, slots[i], step)
			}
			if i == 0 {
				continue
			}
			if before, _ := strconv.ParseInt(slots[i-1], 10, 64); at-before != step {
				t.Errorf("source %s: the slot after %d is %d, want %d", source, before, at, before+step)
			}
		}
	}
	if n := db.count(`SELECT COUNT(*) FROM events WHERE source NOT IN ('second', 'even')`); n != 0 {
		t.Errorf("%d events of other sources, want none", n)
	}
	if n := db.count(`SELECT COUNT(*) FROM (SELECT 1 FROM events JOIN jobs ON jobs.event_id = events.id GROUP BY events.id HAVING COUNT(*) <> 1) AS several`); n != 0 {
		t.Errorf("%d slots with several jobs, want none", n)
	}
}

// TestSchedulesHaveNoDoor: no request from outside can cause the event of a schedule.
func TestSchedulesHaveNoDoor(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, cronConfig, r)
	g.start()
	for _, path := range []string{"/webhooks/leap", "/events/leap/cron.tick", "/sns/leap"} {
		wantAnswer(t, path, g.post(path, "{}"), 404, "Unknown source")
	}
	if got := run(t, g.command("send", "-s", "leap", "-t", "cron.tick")); got.code != 1 || !strings.Contains(got.stderr, "leap") {
		t.Errorf("send to a cron source: exit code %d, %q, want 1 and why", got.code, got.stderr)
	}
}
