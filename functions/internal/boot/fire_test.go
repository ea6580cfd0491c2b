package boot

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/gateway"
)

// TestLastNudgeIsSent: the tick that fires the only slot of its minute ends while its nudge is
// under way. The nudge is still sent.
func TestLastNudgeIsSent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, `  clock: {type: cron, schedule: "0 12 * * *"}`)
	f.yaml += `  ticks: {source: clock, url: "https://example.com/"}` + "\n"
	api := &invokeAPI{t: t, status: 202, hold: make(chan struct{})}
	l := httptest.NewServer(api)
	defer l.Close()
	f.env = map[string]string{
		"GATEWAY_NUDGE": "worker", "AWS_ENDPOINT_URL_LAMBDA": l.URL,
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "session",
	}
	fn, _ := f.function(gateway.Schedules)
	log := fn.out.(*logbook)
	fn.assembled, fn.wake = nil, fn.newNudger
	now := time.Date(2026, 3, 1, 11, 58, 0, 0, time.UTC)
	fn.clock = func() time.Time { return now }
	cron := &ticking{fn, fn.fire}
	if _, err := cron.Invoke(context.Background(), nil); err != nil || api.count() != 0 {
		t.Fatalf("Invoke = %v, %d nudges, want the schedule to begin", err, api.count())
	}
	now = now.Add(2 * time.Minute)
	time.AfterFunc(300*time.Millisecond, func() { close(api.hold) }) // less than nudgeTime
	if _, err := cron.Invoke(context.Background(), nil); err != nil || api.count() != 1 {
		t.Errorf("Invoke = %v, %d nudges, want one for the slot of noon", err, api.count())
	}
	if strings.Contains(log.String(), "could not be nudged") {
		t.Errorf("the nudge was cut off: %s", log)
	}
}
