//go:build linux

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

const cronConfig = `
server: {allow_private_urls: true}
delivery: {timeout: 2s}
sources:
  second: {type: cron, schedule: "* * * * * *", timezone: UTC}
  leap: {type: cron, schedule: "0 0 29 2 *", timezone: UTC}
handlers:
  second: {source: second, events: [cron.tick], url: "${RECEIVER}/second"}
  leap: {source: leap, events: [cron.tick], url: "${RECEIVER}/leap"}
`

// TestCron: a schedule with seconds fires each slot once. This also holds when one invocation
// ends and the next begins, when two invocations overlap, and when one is killed.
func TestCron(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: cronConfig, receiver: r}.new(t, db)
		d.cron.SetTimeout(time.Minute)
		d.cron.InvokeAsync([]byte(`{}`))
		r.Await(t, 30*time.Second, "/second", 3)
		if n := len(d.cron.Results()); n != 0 {
			t.Errorf("three slots took %d invocations and more, want one that is under way", n)
		}
		d.cron.SetTimeout(7 * time.Second)
		unschedule := d.service.Schedule(d.cron, 3*time.Second) // two invocations overlap at times
		for n := range 3 {
			r.Await(t, 30*time.Second, "/second", 2*n+4)
			d.cron.Kill()
		}
		r.Await(t, 30*time.Second, "/second", 10)
		unschedule()
		d.awaitIdle(20 * time.Second)
		slots := db.column(`SELECT delivery_id FROM events WHERE source = 'second' ORDER BY delivery_id`)
		for i := 1; i < len(slots); i++ {
			before, _ := strconv.Atoi(slots[i-1])
			if at, err := strconv.Atoi(slots[i]); err != nil || at != before+1 {
				t.Errorf("the slot after %s is %s, want the next second", slots[i-1], slots[i])
			}
		}
		if got := len(r.At("/second")); got != len(slots) {
			t.Errorf("deliveries = %d, want one of each of the %d slots", got, len(slots))
		}
		// The function with the API fires a schedule, and wakes the worker for the job.
		d.must(200, "POST", "/api/schedules/leap/fire", ``)
		r.Await(t, 20*time.Second, "/leap", 1)
		d.awaitIdle(20 * time.Second)
		d.stop()
		db.sound()
	})
}

const slowConfig = `
server: {allow_private_urls: true}
delivery: {default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources: {app: {type: event}}
handlers:
  slow: {source: app, events: [slow], url: "${RECEIVER}/slow", timeout: 20s}
  late: {source: app, events: [late], url: "${RECEIVER}/late", timeout: 1s}
`

// TestTicksEndInTime: a tick ends before the function's timeout although a handler never
// answers, and no job is left running.
func TestTicksEndInTime(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		r.On("/late", r.Hanging())
		d := deploy{config: slowConfig, receiver: r, env: []string{"GATEWAY_NUDGE=", "GATEWAY_LINGER=always"}}.new(t, db)
		d.worker.SetTimeout(6 * time.Second)
		for range 3 {
			d.send("/events/late", `{}`)
		}
		d.tick(d.worker)
		if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'running'`); n != 0 || len(r.At("/late")) == 0 {
			t.Errorf("%d jobs under way after %d deliveries, want none", n, len(r.At("/late")))
		}
		db.sound()
	})
}

// TestTooSlowForTheFunction: a handler whose timeout is longer than the function's is not
// called, and the log says why. Other handlers are called.
func TestTooSlowForTheFunction(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: slowConfig, receiver: r, env: []string{"GATEWAY_NUDGE="}}.new(t, db)
		d.worker.SetTimeout(10 * time.Second)
		d.send("/events/slow", `{}`)
		d.send("/events/late", `{}`)
		for range 2 {
			d.tick(d.worker)
		}
		if slow, late := len(r.At("/slow")), len(r.At("/late")); slow != 0 || late != 1 {
			t.Errorf("deliveries to the slow handler = %d, to the other = %d, want 0 and 1", slow, late)
		}
		if n := strings.Count(d.worker.Log(), "slow: one attempt may take 20s"); n != 1 {
			t.Errorf("the log names the slow one %d times, want once:\n%s", n, d.worker.Log())
		}
		d.worker.Kill()
		d.worker.SetTimeout(time.Minute)
		d.tick(d.worker)
		r.Await(t, time.Second, "/slow", 1)
		if r := d.worker.Results(); r[len(r)-1].Error == lambda.TimedOut {
			t.Error("the tick went on until its timeout")
		}
		db.sound()
	})
}
