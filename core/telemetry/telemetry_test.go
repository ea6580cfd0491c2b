package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/eventgateway/gateway/core"
)

func TestFilter(t *testing.T) {
	tests := []struct {
		filter string
		shown  []string // target:level pairs that are shown, of all below
	}{
		{"", []string{"worker:info", "worker:warn", "intake:info", "intake:warn"}},
		{"warn", []string{"worker:warn", "intake:warn"}},
		{"WARN", []string{"worker:warn", "intake:warn"}},
		{"off", nil},
		{"debug", []string{"worker:debug", "worker:info", "worker:warn", "intake:debug", "intake:info", "intake:warn"}},
		{"warn,worker=debug", []string{"worker:debug", "worker:info", "worker:warn", "intake:warn"}},
		{" worker=off , info ", []string{"intake:info", "intake:warn"}},
		{"gateway::worker=warn", []string{"worker:warn", "intake:info", "intake:warn"}},
		{"gateway=warn", []string{"worker:warn", "intake:warn"}},
		{"worker=off,gateway=warn,debug", []string{"intake:warn"}},
	}
	for _, tt := range tests {
		t.Run(tt.filter, func(t *testing.T) {
			var out bytes.Buffer
			log, err := NewLogger(LogOptions{Out: &out, Filter: tt.filter})
			if err != nil {
				t.Fatalf("NewLogger: %v", err)
			}
			for _, target := range []string{"worker", "intake"} {
				l := log.With(Target, target).With("more", 1)
				l.Debug(target + ":debug")
				l.Info(target + ":info")
				l.Warn(target + ":warn")
			}
			var shown []string
			for line := range strings.SplitSeq(out.String(), "\n") {
				if _, rest, ok := strings.Cut(line, "msg="); ok {
					shown = append(shown, strings.Fields(rest)[0])
				}
			}
			if got, want := strings.Join(shown, " "), strings.Join(tt.shown, " "); got != want {
				t.Errorf("filter %q shows %q, want %q", tt.filter, got, want)
			}
		})
	}
}

func TestFilterThatCannotBeRead(t *testing.T) {
	log, err := NewLogger(LogOptions{Out: io.Discard, Filter: "info,worker=loud"})
	if err == nil || !strings.Contains(err.Error(), `"loud" is not one of off, error, warn, info, debug, trace`) {
		t.Errorf("NewLogger = %v, want an error that lists the levels", err)
	}
	if log == nil || !log.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("a filter that cannot be read must count as info")
	}
}

func TestFactsAsLines(t *testing.T) {
	at := time.Date(2026, 11, 20, 7, 28, 11, 0, time.UTC)
	job := core.Job{ID: "J1", EventID: "E1", Lane: core.HandlerLane("billing"), Attempt: 2, MaxAttempts: 5}
	alert := core.Job{ID: "J2", EventID: "E2", Lane: core.AlertLane("0123456789ab"), Attempt: 2, MaxAttempts: 5}
	places := core.Places{alert.Lane: {Lane: "alert/1", Host: "hooks.slack.com"}}
	message := core.Job{ID: "J3", EventID: "E3", Lane: core.QueueLane("work"), Attempt: 2, MaxAttempts: 5}
	died := func(a core.Attempt) core.Fact {
		return core.Settled{Job: message, Outcome: core.Outcome{JobID: "J3", Status: core.Dead, Attempt: a}}
	}
	pulled := func(a core.PullAction) core.Fact { return core.Pulled{Queue: "work", Action: a, Messages: 3} }
	told := func(s core.Status, a core.Attempt, due time.Time) core.Fact {
		a.Number = 2
		return core.Settled{Job: alert, Outcome: core.Outcome{JobID: "J2", Status: s, Attempt: a, DueAt: due}}
	}
	settled := func(s core.Status, a core.Attempt, due time.Time) core.Fact {
		a.Number = 2
		return core.Settled{Job: job, Outcome: core.Outcome{JobID: "J1", Status: s, Attempt: a, DueAt: due}}
	}
	tests := []struct {
		fact core.Fact
		want string // the line, as JSON without its time
	}{
		{core.Accepted{Event: core.Event{ID: "E1", Source: "shop", Type: "order.created", Payload: []byte("s3cret")}, Jobs: 1},
			`{"level":"INFO","msg":"event accepted","target":"intake","event":"E1","source":"shop","type":"order.created","jobs":1}`},
		{core.FilterFailed{Event: core.Event{ID: "E1", Source: "shop", Type: "order.created"}, Undecided: core.Undecided{Lane: "handler/billing", Why: errors.New("too many steps")}},
			`{"level":"ERROR","msg":"filter failed; the event is stored without a job for this consumer","target":"intake","event":"E1","source":"shop","type":"order.created","handler":"billing","filter":"handlers.billing.filter","error":"too many steps"}`},
		{core.FilterFailed{Event: core.Event{ID: "E1", Source: "shop", Type: "order.created"}, Undecided: core.Undecided{Lane: "queue/work", Why: errors.New("too many steps")}},
			`{"level":"ERROR","msg":"filter failed; the event is stored without a job for this consumer","target":"intake","event":"E1","source":"shop","type":"order.created","queue":"work","filter":"queues.work.filter","error":"too many steps"}`},
		{core.Repeated{Source: "shop", Type: "order.created", First: "E0"},
			`{"level":"INFO","msg":"duplicate event ignored","target":"intake","first":"E0","source":"shop","type":"order.created"}`},
		{core.Unverified{Source: "github", Reason: "x-hub-signature-256 is absent", ClientIP: "192.0.2.1"},
			`{"level":"WARN","msg":"verification failed","target":"intake","source":"github","reason":"x-hub-signature-256 is absent","client_ip":"192.0.2.1"}`},
		{settled(core.Completed, core.Attempt{StatusCode: 204, Duration: 12 * time.Millisecond, Response: "s3cret"}, time.Time{}),
			`{"level":"INFO","msg":"delivered","target":"worker","event":"E1","job":"J1","handler":"billing","attempt":2,"status":204,"duration_ms":12}`},
		{settled(core.Retryable, core.Attempt{StatusCode: 500, Error: "status: 500"}, at),
			`{"level":"WARN","msg":"delivery failed, will retry","target":"worker","event":"E1","job":"J1","handler":"billing","attempt":2,"status":500,"duration_ms":0,"error":"status: 500","due":"2026-11-20T07:28:11.000"}`},
		{settled(core.Dead, core.Attempt{Error: "dns: no such host"}, time.Time{}),
			`{"level":"ERROR","msg":"job is dead","target":"worker","event":"E1","job":"J1","handler":"billing","attempt":2,"status":0,"duration_ms":0,"error":"dns: no such host"}`},
		{core.Accepted{Event: core.Event{ID: "E2", Source: core.AlertSource, Type: "alert.verification_failure"}, Jobs: 2},
			`{"level":"INFO","msg":"alert raised","target":"alert","event":"E2","source":"_alerts","type":"alert.verification_failure","jobs":2}`},
		{told(core.Completed, core.Attempt{StatusCode: 200}, time.Time{}),
			`{"level":"INFO","msg":"alert delivered","target":"alert","event":"E2","job":"J2","lane":"alert/0123456789ab","attempt":2,"status":200,"duration_ms":0}`},
		{told(core.Retryable, core.Attempt{StatusCode: 429, Error: "status: 429"}, at),
			`{"level":"WARN","msg":"alert could not be delivered, will retry","target":"alert","event":"E2","job":"J2","lane":"alert/0123456789ab","attempt":2,"status":429,"duration_ms":0,"error":"status: 429","due":"2026-11-20T07:28:11.000"}`},
		{told(core.Dead, core.Attempt{StatusCode: 404, Error: "status: 404"}, time.Time{}),
			`{"level":"ERROR","msg":"alert is dead: it was not delivered","target":"alert","event":"E2","job":"J2","lane":"alert/0123456789ab","attempt":2,"status":404,"duration_ms":0,"error":"status: 404"}`},
		{places.Fact(told(core.Completed, core.Attempt{StatusCode: 200}, time.Time{})),
			`{"level":"INFO","msg":"alert delivered","target":"alert","event":"E2","job":"J2","lane":"alert/1","host":"hooks.slack.com","attempt":2,"status":200,"duration_ms":0}`},
		{places.Fact(core.Superseded{Job: alert}),
			`{"level":"WARN","msg":"outcome came after its lease; another attempt stands","target":"alert","job":"J2","lane":"alert/1","host":"hooks.slack.com","attempt":2}`},
		{core.LaneHeld{Hold: core.Hold{Lane: "handler/billing", Since: at, Until: at, Reason: "their move"}},
			`{"level":"WARN","msg":"held by an operator; its jobs wait","target":"worker","handler":"billing","until":"2026-11-20T07:28:11.000","reason":"their move"}`},
		{core.LaneHeld{Hold: core.Hold{Lane: "queue/work", Since: at}}, `{"level":"WARN","msg":"held by an operator; its jobs wait","target":"pull","queue":"work"}`},
		{core.LaneHeld{Hold: core.Hold{Lane: "source/shop", Since: at}}, `{"level":"WARN","msg":"held by an operator; its jobs wait","target":"intake","source":"shop"}`},
		{core.LaneReleased{Lane: "source/shop"}, `{"level":"INFO","msg":"hold was ended; jobs go on","target":"intake","source":"shop"}`},
		{core.LaneReleased{Lane: "workflow/ship"}, `{"level":"INFO","msg":"hold was ended; jobs go on","target":"workflow","workflow":"ship"}`},
		{core.LineSkipped{Job: core.Job{ID: "J2", Lane: "handler/billing", Line: "7"}}, `{"level":"INFO","msg":"dead job skipped; its line goes on","target":"manage","job":"J2","handler":"billing"}`},
		{places.Fact(core.BreakerMoved{Lane: alert.Lane}),
			`{"level":"INFO","msg":"circuit breaker is closed; deliveries go on, slowly at first","target":"worker","lane":"alert/1"}`},
		{places.Fact(core.Revived{ID: "J2", Lane: alert.Lane, Jobs: 1}), `{"level":"INFO","msg":"dead jobs retried","target":"manage","jobs":1,"job":"J2","lane":"alert/1"}`},
		{died(core.Attempt{Number: 2, Error: "nacked"}),
			`{"level":"ERROR","msg":"message is dead","target":"pull","event":"E3","job":"J3","queue":"work","attempt":2,"error":"nacked"}`},
		{core.Superseded{Job: message},
			`{"level":"WARN","msg":"outcome came after its lease; another attempt stands","target":"pull","job":"J3","queue":"work","attempt":2}`},
		{pulled(core.MessagesReceived), `{"level":"DEBUG","msg":"messages received","target":"pull","queue":"work","messages":3}`},
		{pulled(core.MessagesAcked), `{"level":"DEBUG","msg":"messages acked","target":"pull","queue":"work","messages":3}`},
		{pulled(core.MessagesExtended), `{"level":"DEBUG","msg":"messages extended","target":"pull","queue":"work","messages":3}`},
		{pulled(core.MessagesRetried), `{"level":"DEBUG","msg":"messages retried","target":"pull","queue":"work","messages":3}`},
		{pulled(core.MessagesReturned), `{"level":"INFO","msg":"messages returned","target":"pull","queue":"work","messages":3}`},
		{core.Superseded{Job: alert},
			`{"level":"WARN","msg":"outcome came after its lease; another attempt stands","target":"alert","job":"J2","lane":"alert/0123456789ab","attempt":2}`},
		{core.TurnedAway{Source: "shop", Kind: core.TooLarge}, `{"level":"DEBUG","msg":"event turned away","target":"intake","source":"shop","reason":"too large"}`},
		{core.TurnedAway{}, `{"level":"DEBUG","msg":"event turned away","target":"intake","source":"","reason":"internal"}`},
		{core.Confirmed{Source: "orders", Topic: "arn:aws:sns:eu-west-1:123456789012:orders"},
			`{"level":"INFO","msg":"subscription confirmed","target":"intake","source":"orders","topic":"arn:aws:sns:eu-west-1:123456789012:orders"}`},
		{core.Unsubscribed{Source: "orders", Topic: "arn:aws:sns:eu-west-1:123456789012:orders"},
			`{"level":"WARN","msg":"subscription has ended; the topic sends no more","target":"intake","source":"orders","topic":"arn:aws:sns:eu-west-1:123456789012:orders"}`},
		{core.Skipped{Source: "nightly", Slots: 3, First: at, Last: at.Add(2 * time.Hour)},
			`{"level":"WARN","msg":"slots passed unseen and are too old to be made up for","target":"cron","source":"nightly","slots":3,"first_slot":"2026-11-20T07:28:11.000","last_slot":"2026-11-20T09:28:11.000"}`},
		{core.Skipped{Source: "nightly", Slots: 1, First: at, Last: at, Held: true},
			`{"level":"INFO","msg":"slots skipped: the source is held","target":"cron","source":"nightly","slots":1,"first_slot":"2026-11-20T07:28:11.000","last_slot":"2026-11-20T07:28:11.000"}`},
		{core.Superseded{Job: job},
			`{"level":"WARN","msg":"outcome came after its lease; another attempt stands","target":"worker","job":"J1","handler":"billing","attempt":2}`},
		{core.Released{Jobs: 3, Why: "stopping"}, `{"level":"INFO","msg":"jobs given back","target":"worker","jobs":3,"why":"stopping"}`},
		{core.Replayed{Event: core.Event{ID: "E4", Source: "shop", Type: "order.created"}, Asked: make([]core.NewJob, 2)},
			`{"level":"INFO","msg":"event replayed","target":"manage","event":"E4","source":"shop","type":"order.created","jobs":2}`},
		{core.Revived{Jobs: 3}, `{"level":"INFO","msg":"dead jobs retried","target":"manage","jobs":3}`},
		{core.Revived{ID: "J4", Lane: "handler/mail", Jobs: 1, Early: true}, `{"level":"INFO","msg":"job retried before its time","target":"manage","jobs":1,"job":"J4","handler":"mail"}`},
		{core.Revived{ID: "J5", Lane: "handler/mail", Jobs: 1, Canceled: true}, `{"level":"INFO","msg":"canceled job retried","target":"manage","jobs":1,"job":"J5","handler":"mail"}`},
		{core.EventCanceled{ID: "E1", Jobs: 2, Running: 1, Runs: 3}, `{"level":"INFO","msg":"event canceled","target":"manage","event":"E1","jobs":2,"runs":3,"running":1}`},
		{core.Revived{ID: "J3", Lane: "queue/work", Jobs: 1}, `{"level":"INFO","msg":"dead jobs retried","target":"manage","jobs":1,"job":"J3","queue":"work"}`},
		{core.Drained{Queue: "work", Messages: 3}, `{"level":"WARN","msg":"queue drained","target":"manage","queue":"work","messages":3}`},
		{core.Recovered{Jobs: 3}, `{"level":"INFO","msg":"jobs of an earlier process recovered","target":"worker","jobs":3}`},
		{core.Purged{Rows: 3, Took: time.Second, More: true}, `{"level":"INFO","msg":"old records deleted","target":"store","rows":3,"duration_ms":1000,"more":true}`},
		{core.Reloaded{From: "gateway.yaml", Result: core.ReloadApplied}, `{"level":"INFO","msg":"configuration applied","target":"config","from":"gateway.yaml"}`},
		{core.Reloaded{From: "gateway.yaml", Result: core.ReloadUnchanged}, `{"level":"INFO","msg":"configuration is unchanged","target":"config","from":"gateway.yaml"}`},
		{core.Reloaded{From: "gateway.yaml", Result: core.ReloadInvalid, Err: errors.New("gateway.yaml:1:1: a\ngateway.yaml:2:1: b")},
			`{"level":"WARN","msg":"configuration ignored: it has errors; the one before stays","target":"config","from":"gateway.yaml","error":"gateway.yaml:1:1: a; gateway.yaml:2:1: b"}`},
		{core.Reloaded{From: "gateway.yaml", Result: core.ReloadForbidden, Err: errors.New("gateway.yaml:1:1: a")},
			`{"level":"WARN","msg":"configuration ignored: a running gateway does not go over to it; the one before stays","target":"config","from":"gateway.yaml","error":"gateway.yaml:1:1: a"}`},
		{core.Reloaded{From: "https://config.example/gateway.yaml", Result: core.ReloadUnreachable, Err: errors.New("connection refused")},
			`{"level":"WARN","msg":"configuration cannot be read; the one before stays","target":"config","from":"https://config.example/gateway.yaml","error":"connection refused"}`},
		{core.Troubled{Doing: "settle", Err: errors.New("disk full")},
			`{"level":"WARN","msg":"trying again","target":"store","doing":"settle","error":"disk full"}`},
		{core.Troubled{Doing: "deliver", Err: fmt.Errorf("job J1: %w", &core.Panic{Value: "no words", Stack: "main.go:1"})},
			`{"level":"ERROR","msg":"panic","target":"store","doing":"deliver","error":"job J1: panic: no words","stack":"main.go:1"}`},
	}
	for _, tt := range tests {
		if got := lineOf(t, tt.fact); got != tt.want {
			t.Errorf("%T\n got %s\nwant %s", tt.fact, got, tt.want)
		}
	}
}

// TestTerminalObeysNobody: text from outside is shown on a terminal, but cannot control it.
func TestTerminalObeysNobody(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		log, _ := NewLogger(LogOptions{Out: &out, Terminal: terminal})
		for _, hostile := range []string{"\x1b[2J", "two words \x1b]0;title\a", `a text \x1b[2J`, `\x1b[2J`, "\u009b2J", "\r\nERR it is", "\u202e"} {
			log.Error(hostile, "reason", hostile, "error", errors.New(hostile), "all", []string{hostile})
		}
		colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
		got := colours.ReplaceAllString(out.String(), "")
		if lines := strings.Count(got, "\n"); lines != 7 {
			t.Errorf("terminal %v: %d lines for 7", terminal, lines)
		}
		for _, r := range strings.ReplaceAll(got, "\n", "") {
			if !unicode.IsPrint(r) {
				t.Errorf("terminal %v: %q is in %q", terminal, r, got)
			}
		}
	}
}

func TestTerminalIsColoured(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		log, _ := NewLogger(LogOptions{Out: &out, Terminal: terminal})
		log.Warn("careful")
		if got := strings.Contains(out.String(), "\x1b["); got != terminal {
			t.Errorf("terminal %v: coloured %v in %q", terminal, got, out.String())
		}
	}
}
