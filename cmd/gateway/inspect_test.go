package main

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// inspect shows why a job waits, also if a newer server sends an unknown reason.
func TestWaitText(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		wait manage.Wait
		want string
	}{
		{manage.Wait{}, ""},
		{manage.Wait{For: manage.NotDue, Until: at}, "its time to come"},
		{manage.Wait{For: manage.BreakerOpen, Until: at}, "the circuit breaker of mail, which is open; one delivery is tried at 2026-11-20T12:00:00.000"},
		{manage.Wait{For: manage.LaneStopped, Since: at}, "its release: mail is held since 2026-11-20T12:00:00.000"},
		{manage.Wait{For: manage.LaneStopped, Since: at, Until: at.Add(time.Second), Reason: "their\x1bmove"}, `its release: mail is held since 2026-11-20T12:00:00.000 until 2026-11-20T12:00:01.000: their\x1bmove`},
		{manage.Wait{For: manage.LaneStopped, Since: at, Source: "github\x1b"}, `the release of its source: source/github\x1b is held since 2026-11-20T12:00:00.000`},
		{manage.Wait{For: manage.RateReached, Until: at}, "its turn: deliveries to mail are spaced, the next is at 2026-11-20T12:00:00.000"},
		{manage.Wait{For: manage.NoWorkerYet}, "a worker of a running gateway"},
		{manage.Wait{For: manage.NoConsumerYet}, "a consumer to receive it"},
		{manage.Wait{For: manage.NotConfigured}, "mail to be configured: it is not, and jobs that wait so for a day become dead"},
		{manage.Wait{For: "tea\x1b"}, `tea\x1b`},
	} {
		if got := waitText(core.Job{Lane: "handler/mail"}, c.wait); got != c.want {
			t.Errorf("waitText(%v) = %q, want %q", c.wait, got, c.want)
		}
	}
}
