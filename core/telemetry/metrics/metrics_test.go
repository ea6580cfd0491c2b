package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
)

var (
	names = telemetry.Names{
		Sources: []string{"shop"}, Handlers: []string{"billing"}, Queues: []string{"work"},
		Schedules: []string{"nightly"},
		Workflows: map[string][]string{"fulfil": {"reserve", "pay"}},
		Alerts:    map[core.Lane]string{core.AlertLane("0123"): "slack"},
	}
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

func newMetrics() *metrics.Metrics {
	return metrics.New(metrics.Options{Names: names, Version: "v1", Revision: "abc", Go: "go1"})
}

// scrape returns the gateway's own series from /metrics, with their values.
func scrape(t testing.TB, m *metrics.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "gateway_"); ok {
			i := strings.LastIndexByte(name, ' ') // labels may hold others
			series[name[:i]] = name[i+1:]
		}
	}
	return series
}

// bucket matches the series of a histogram other than its count.
var bucket = regexp.MustCompile(`_bucket\{|_sum(\{|$)`)

// moves returns the changes of a scrape that do causes, as sorted lines "series +n". A series
// that did not exist before is a line "new series".
func moves(t *testing.T, m *metrics.Metrics, do func()) (changed []string) {
	t.Helper()
	before := scrape(t, m)
	do()
	for name, value := range scrape(t, m) {
		old, ok := before[name]
		switch {
		case !ok:
			changed = append(changed, "new "+name)
		case old != value && !bucket.MatchString(name):
			var from, to float64
			fmt.Sscan(old, &from)
			fmt.Sscan(value, &to)
			changed = append(changed, fmt.Sprintf("%s %+g", name, to-from))
		}
	}
	slices.Sort(changed)
	return changed
}

// logged are facts that move no number, and why.
var logged = map[string]string{
	"Confirmed":           "happens once to a topic",
	"Unsubscribed":        "happens once to a topic; the events that stay away are what to watch",
	"Superseded":          "the attempt that stands is counted",
	"Released":            "the numbers of waiting jobs include them",
	"Recovered":           "happens once at a start",
	"Revived":             "the numbers of waiting jobs include them",
	"EventCanceled":       "the jobs are in the numbers of canceled ones",
	"LaneHeld":            "held_seconds is read at each scrape, also of holds that other processes made",
	"LaneReleased":        "held_seconds is read at each scrape",
	"OperationBegun":      "an operator makes few of them, and their rows have the counts",
	"LineSkipped":         "lines_stopped is read at each scrape",
	"Drained":             "what an operator did to one queue is told once",
	"ClocksDiffer":        "a gauge tells the difference",
	"DatabaseClockJumped": "the gauge of the difference moves with it",
	"Troubled":            "what the store fails at is counted where it does",
}

func TestFactsMoveNumbers(t *testing.T) {
	handler := core.Job{ID: "J1", Lane: core.HandlerLane("billing"), CreatedAt: noon}
	alert := core.Job{ID: "J2", Lane: core.AlertLane("0123")}
	settled := func(j core.Job, s core.Status, a core.Attempt) core.Fact {
		return core.Settled{Job: j, Outcome: core.Outcome{Status: s, Attempt: a}}
	}
	call := func(n int, err string) core.Attempt {
		return core.Attempt{Number: n, Error: err, Duration: time.Second, StartedAt: noon.Add(time.Second)}
	}
	back := handler
	back.LastError = "status: 500"
	run := func(workflow string, s core.RunStatus, err string) core.Fact {
		return core.RunMoved{Run: core.Run{Workflow: workflow, Status: s, Error: err}}
	}
	step := func(workflow, name string, s core.StepStatus) core.Fact {
		return core.StepMoved{Run: core.Run{Workflow: workflow}, Step: core.Step{Name: name, Path: "a/b/" + name + "#2", Status: s}}
	}
	asked := func(keys ...string) (jobs []core.NewJob) {
		for i, lane := range []core.Lane{"handler/billing", "queue/work", "workflow/fulfil", "alert/0123"} {
			jobs = append(jobs, core.NewJob{Lane: lane, Key: keys[i%len(keys)]})
		}
		return jobs
	}
	shop := core.Event{Source: "shop", Type: "order.created"}
	tests := []struct {
		fact core.Fact
		want []string
	}{
		{core.Accepted{Event: shop, Took: time.Second}, []string{
			`events_received_total{result="accepted",source="shop"} +1`, `intake_duration_seconds_count{source="shop"} +1`}},
		{core.Accepted{Event: core.Event{Source: "s3cret"}, Took: time.Second}, []string{
			`events_received_total{result="accepted",source="other"} +1`, `intake_duration_seconds_count{source="other"} +1`}},
		{core.Accepted{Event: core.Event{Source: core.AlertSource}, Jobs: 4, Asked: asked("")}, []string{
			`jobs_created_total{kind="alert"} +1`, `jobs_created_total{kind="handler"} +1`,
			`jobs_created_total{kind="queue"} +1`, `jobs_created_total{kind="workflow"} +1`}},
		{core.Accepted{Event: core.Event{Source: core.AlertSource}, Jobs: 3, Asked: asked("", "key")}, []string{
			`jobs_created_total{kind="handler"} +1`, `jobs_created_total{kind="queue"} +1`, `jobs_created_total{kind="workflow"} +1`}},
		{core.Accepted{Event: core.Event{Source: core.AlertSource}, Jobs: 4, Asked: asked("key")}, []string{
			`jobs_created_total{kind="alert"} +1`, `jobs_created_total{kind="handler"} +1`,
			`jobs_created_total{kind="queue"} +1`, `jobs_created_total{kind="workflow"} +1`}},
		{core.FilterFailed{Event: shop, Undecided: core.Undecided{Lane: "handler/billing"}}, []string{`filter_failures_total{target="billing"} +1`}},
		{core.FilterFailed{Event: shop, Undecided: core.Undecided{Lane: "handler/s3cret"}}, []string{`filter_failures_total{target="other"} +1`}},
		{core.Repeated{Source: "shop"}, []string{
			`events_duplicated_total{source="shop"} +1`, `events_received_total{result="duplicate",source="shop"} +1`}},
		{core.Unverified{Source: "shop"}, []string{
			`events_received_total{result="unverified",source="shop"} +1`, `verification_failures_total{source="shop"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.Invalid}, []string{`events_received_total{result="invalid",source="shop"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.Looped}, []string{`events_received_total{result="looped",source="shop"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.TooLarge}, []string{`events_received_total{result="too_large",source="shop"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.Unauthorized}, []string{`events_received_total{result="refused",source="shop"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.Forbidden}, []string{`events_received_total{result="refused",source="shop"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.Unsupported}, []string{`events_received_total{result="refused",source="shop"} +1`}},
		{core.TurnedAway{Kind: core.NotFound}, []string{`events_received_total{result="refused",source="other"} +1`}},
		{core.TurnedAway{Source: "shop", Kind: core.Unavailable}, []string{`events_received_total{result="failed",source="shop"} +1`}},
		{core.TurnedAway{Source: "shop"}, []string{`events_received_total{result="failed",source="shop"} +1`}},

		{settled(handler, core.Completed, call(1, "")), []string{`deliveries_total{handler="billing",result="completed"} +1`,
			`delivery_duration_seconds_count{handler="billing"} +1`, `delivery_lag_seconds_count{handler="billing"} +1`}},
		{settled(handler, core.Retryable, call(2, "status: 503")), []string{`deliveries_total{handler="billing",result="retryable"} +1`,
			`delivery_duration_seconds_count{handler="billing"} +1`, `delivery_errors_total{class="status",handler="billing"} +1`}},
		{settled(back, core.Dead, call(1, "s3cret")), []string{`deliveries_total{handler="billing",result="dead"} +1`,
			`delivery_duration_seconds_count{handler="billing"} +1`, `delivery_errors_total{class="other",handler="billing"} +1`,
			`dlq_total{target="billing"} +1`}},
		{settled(handler, core.Dead, core.Attempt{Number: 1, Error: core.LeaseExpired}), []string{`deliveries_total{handler="billing",result="dead"} +1`,
			`delivery_errors_total{class="lease expired",handler="billing"} +1`, `dlq_total{target="billing"} +1`}},
		{settled(core.Job{Lane: "handler/gone"}, core.Dead, core.Attempt{Error: "x"}), []string{`deliveries_total{handler="other",result="dead"} +1`,
			`delivery_errors_total{class="other",handler="other"} +1`, `dlq_total{target="other"} +1`}},
		{settled(alert, core.Retryable, call(1, "status: 503")), []string{`alerts_total{result="retryable",type="slack"} +1`}},
		{settled(alert, core.Dead, call(5, "status: 503")), []string{`alerts_total{result="dead",type="slack"} +1`, `dlq_total{target="alert/0123"} +1`}},
		{settled(core.Job{Lane: "alert/4567"}, core.Completed, call(5, "")), []string{`alerts_total{result="completed",type="other"} +1`}},
		{settled(core.Job{Lane: "queue/work"}, core.Dead, core.Attempt{Error: "nacked"}), []string{`dlq_total{target="queue/work"} +1`}},
		{settled(core.Job{Lane: "workflow/fulfil"}, core.Completed, core.Attempt{}), nil},
		{core.BreakerMoved{Lane: "handler/billing", Gate: core.Gate{Failures: 5, OpenUntil: noon}}, []string{`circuit_breaker_transitions_total{handler="billing",to="open"} +1`}},
		{core.BreakerMoved{Lane: "handler/billing"}, []string{`circuit_breaker_transitions_total{handler="billing",to="closed"} +1`}},
		{core.BreakerMoved{Lane: "handler/gone"}, []string{`circuit_breaker_transitions_total{handler="other",to="closed"} +1`}},

		{core.Pulled{Queue: "work", Action: core.MessagesAcked, Messages: 3}, []string{`queue_messages_total{action="acked",queue="work"} +3`}},
		{core.Pulled{Queue: "gone", Action: core.MessagesReturned, Messages: 1}, []string{`queue_messages_total{action="returned",queue="other"} +1`}},

		{run("fulfil", core.RunRunning, ""), []string{`workflow_runs_total{status="running",workflow="fulfil"} +1`}},
		{run("fulfil", core.RunFailed, "status: 500"), []string{`dlq_total{target="workflow/fulfil"} +1`, `workflow_runs_total{status="failed",workflow="fulfil"} +1`}},
		{run("fulfil", core.RunCanceled, "canceled"), []string{`workflow_runs_total{status="canceled",workflow="fulfil"} +1`}},
		{run("gone", core.RunCompleted, ""), []string{`workflow_runs_total{status="completed",workflow="other"} +1`}},
		{step("fulfil", "pay", core.StepSucceeded), []string{`workflow_steps_total{status="succeeded",step="pay",workflow="fulfil"} +1`}},
		{step("fulfil", "ship", core.StepFailed), []string{`workflow_steps_total{status="failed",step="other",workflow="fulfil"} +1`}},
		{step("gone", "pay", core.StepSkipped), []string{`workflow_steps_total{status="skipped",step="other",workflow="other"} +1`}},
		{core.CalledIn{Result: core.CallbackReceived}, []string{`callbacks_total{result="received"} +1`}},
		{core.CalledIn{Result: core.CallbackRepeated}, []string{`callbacks_total{result="repeated"} +1`}},
		{core.CalledIn{Result: core.CallbackUnknown}, []string{`callbacks_total{result="unknown"} +1`}},

		{core.Reloaded{Result: core.ReloadApplied}, []string{`config_reloads_total{result="applied"} +1`}},
		{core.Reloaded{Result: core.ReloadInvalid, Err: io.EOF}, []string{`config_last_reload_successful -1`, `config_reloads_total{result="invalid"} +1`}},
		{core.Reloaded{Result: core.ReloadUnreachable, Err: io.EOF}, []string{`config_reloads_total{result="unreachable"} +1`}},
		{core.Reloaded{Result: core.ReloadUnchanged}, []string{`config_last_reload_successful +1`}},
		{core.Reloaded{Result: core.ReloadUnchanged}, nil},
		{core.Reloaded{Result: core.ReloadForbidden, Err: io.EOF}, []string{`config_last_reload_successful -1`, `config_reloads_total{result="forbidden"} +1`}},

		{core.Replayed{Event: shop, Asked: asked("")}, []string{`jobs_created_total{kind="alert"} +1`, `jobs_created_total{kind="handler"} +1`,
			`jobs_created_total{kind="queue"} +1`, `jobs_created_total{kind="workflow"} +1`}},
		{core.Revived{Jobs: 2}, nil},
		{core.LaneHeld{Hold: core.Hold{Lane: "handler/billing"}}, nil},
		{core.LaneReleased{Lane: "handler/billing"}, nil},
		{core.OperationBegun{}, nil},
		{core.OperationEnded{Operation: core.Operation{State: core.OperationFinished}}, []string{`operations_total{state="finished"} +1`}},
		{core.OperationEnded{Operation: core.Operation{State: core.OperationFailed}}, []string{`operations_total{state="failed"} +1`}},
		{core.OperationEnded{Operation: core.Operation{State: core.OperationCanceled}}, []string{`operations_total{state="canceled"} +1`}},
		{core.LineSkipped{}, nil},
		{core.Drained{Messages: 2}, nil},

		{core.ConnectionClosed{Why: core.ClosedIdle}, []string{`connections_closed_total{reason="idle"} +1`}},
		{core.ConnectionClosed{Why: core.ClosedRefused}, []string{`connections_closed_total{reason="refused"} +1`}},
		{core.Confirmed{Source: "shop"}, nil},
		{core.Unsubscribed{Source: "shop"}, nil},
		{core.Skipped{Source: "nightly", Slots: 3}, []string{`cron_slots_skipped_total{source="nightly"} +3`}},
		{core.Skipped{Source: "gone", Slots: 2}, []string{`cron_slots_skipped_total{source="other"} +2`}},
		{core.Skipped{Source: "nightly", Slots: 4, Held: true}, []string{`cron_slots_held_total{source="nightly"} +4`}},
		{core.Superseded{Job: handler}, nil},
		{core.Released{Jobs: 1}, nil},
		{core.Recovered{Jobs: 1}, nil},
		{core.Purged{Rows: 7}, []string{`purges_total{result="complete"} +1`}},
		{core.Purged{Rows: 7, More: true}, []string{`purges_total{result="partial"} +1`}},
		{core.ClocksDiffer{Ahead: 45 * time.Second}, nil},
		{core.ClocksDiffer{}, nil},
		{core.DatabaseClockJumped{By: -time.Second}, nil},
		{core.Troubled{Err: io.EOF}, nil},
	}
	m := newMetrics()
	moved := map[string]bool{}
	var lines bytes.Buffer
	log, err := telemetry.NewLogger(telemetry.LogOptions{Out: &lines, Filter: "trace"})
	if err != nil {
		t.Fatal(err)
	}
	tell := telemetry.Log(log)
	for _, tt := range tests {
		name := strings.TrimPrefix(fmt.Sprintf("%T", tt.fact), "core.")
		got := moves(t, m, func() { m.Observe(tt.fact) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.fact, diff)
		}
		moved[name] = moved[name] || len(got) > 0
		lines.Reset()
		if tell(tt.fact); strings.Count(lines.String(), "\n") != 1 {
			t.Errorf("%+v is logged as %q, want a line", tt.fact, lines.String())
		}
	}
	for _, fact := range facts(t) {
		if moved[fact] == (logged[fact] != "") {
			t.Errorf("core.%s: moves a number here: %v; for the log alone: %q", fact, moved[fact], logged[fact])
		}
	}
}

// facts are the names of all facts that core has.
func facts(t *testing.T) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../fact.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if m, ok := d.(*ast.FuncDecl); ok && m.Name.Name == "fact" {
			all = append(all, m.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	if len(all) < 15 {
		t.Fatalf("facts %v, want all of them", all)
	}
	return all
}

func TestServed(t *testing.T) {
	m := newMetrics()
	m.Expect("POST", "/webhooks/{source}")
	m.Expect("GET", "/health")
	tests := []struct {
		pattern, method string
		status          int
		want            string
	}{
		{"/webhooks/{source}", "POST", 200, `method="POST",route="/webhooks/{source}",status="200"`},
		{"/webhooks/{source}", "POST", 413, `method="POST",route="/webhooks/{source}",status="413"`},
		{"/webhooks/{source}", "POST", 418, `method="POST",route="/webhooks/{source}",status="other"`},
		{"/health", "GET", 413, `method="GET",route="/health",status="other"`},
		{"/health", "HEAD", 500, `method="HEAD",route="other",status="500"`},
		{"", "PUT", 404, `method="PUT",route="other",status="404"`},
		{"", "BREW", 405, `method="other",route="other",status="405"`},
		{"/s3cret", "s3cret", 299, `method="other",route="other",status="other"`},
	}
	for _, tt := range tests {
		got := moves(t, m, func() { m.Served(tt.pattern, tt.method, tt.status) })
		if want := []string{"http_requests_total{" + tt.want + "} +1"}; !slices.Equal(got, want) {
			t.Errorf("Served(%q, %q, %d) moves %v, want %v", tt.pattern, tt.method, tt.status, got, want)
		}
	}
}

// watched returns metrics with Watch called for these statistics.
func watched(stats func(context.Context) (manage.Stats, error)) *metrics.Metrics {
	m := newMetrics()
	m.Watch(stats, func() int { return 7 }, func() time.Duration { return -1500 * time.Millisecond })
	return m
}

// Gauges of clients are read at a scrape, and refused requests are counted by the limit.
func TestClients(t *testing.T) {
	m := newMetrics()
	m.Refused("polls")
	m.Clients(func() int { return 4096 }, func() int { return 12 }, []string{"polls", "unread"})
	m.Refused("polls")
	m.Refused("polls")
	m.Refused("moonlight")
	got := scrape(t, m)
	maps.DeleteFunc(got, func(name, _ string) bool {
		return !regexp.MustCompile(`^(unread|waiting|requests_refused)`).MatchString(name)
	})
	want := map[string]string{
		"unread_reply_bytes":                      "4096",
		"waiting_polls":                           "12",
		`requests_refused_total{reason="polls"}`:  "2",
		`requests_refused_total{reason="unread"}`: "0",
		`requests_refused_total{reason="other"}`:  "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestGauges(t *testing.T) {
	m := watched(func(context.Context) (manage.Stats, error) {
		return manage.Stats{At: noon, Lanes: []manage.LaneStats{
			{Lane: "handler/billing", Tally: core.Tally{Pending: 5, Processing: 2, Retryable: 3, OldestDue: noon.Add(-90 * time.Second)}, Ended: core.Ended{Dead: 1, Canceled: 6},
				Gate: core.Gate{Failures: core.BreakerThreshold, OpenUntil: noon}},
			{Lane: "handler/mail", Tally: core.Tally{Pending: 1, OldestDue: noon.Add(time.Second)}},
			{Lane: "queue/work", Tally: core.Tally{Pending: 10, Processing: 4, Waiting: 3, Stopped: 2}, Gate: core.Gate{HeldSince: noon.Add(-time.Hour), HeldUntil: core.NoEnd}},
			{Lane: "workflow/fulfil", Tally: core.Tally{Pending: 7, Scheduled: 4, Retryable: 1}, Ended: core.Ended{Dead: 8}, Gate: core.Gate{HeldSince: noon.Add(-time.Hour), HeldUntil: noon}},
			{Lane: "alert/0123", Tally: core.Tally{Retryable: 1, Pending: 1}},
		}, Sources: []manage.SourceStats{
			{Name: "shop"}, {Name: "nightly", Gate: core.Gate{HeldSince: noon.Add(-time.Minute), HeldUntil: core.NoEnd}},
		}}, nil
	})
	got := scrape(t, m)
	maps.DeleteFunc(got, func(name, _ string) bool {
		return !regexp.MustCompile(`^(queue_depth|jobs\{|oldest_due|held_|lines_|circuit_breaker_open|inflight|clock_offset)`).MatchString(name)
	})
	want := map[string]string{
		"inflight_deliveries":                          "7",
		"clock_offset_seconds":                         "-1.5",
		`queue_depth{queue="work"}`:                    "14",
		`circuit_breaker_open{handler="billing"}`:      "1",
		`circuit_breaker_open{handler="mail"}`:         "0",
		`oldest_due_seconds{target="billing"}`:         "90",
		`oldest_due_seconds{target="mail"}`:            "0",
		`oldest_due_seconds{target="queue/work"}`:      "0",
		`oldest_due_seconds{target="workflow/fulfil"}`: "0",
		`oldest_due_seconds{target="alert/0123"}`:      "0",
		`held_seconds{target="billing"}`:               "0",
		`held_seconds{target="mail"}`:                  "0",
		`held_seconds{target="queue/work"}`:            "3600",
		`held_seconds{target="workflow/fulfil"}`:       "0",
		`held_seconds{target="alert/0123"}`:            "0",
		`held_seconds{target="source/shop"}`:           "0",
		`held_seconds{target="source/nightly"}`:        "60",
		`lines_stopped{target="billing"}`:              "0",
		`lines_stopped{target="mail"}`:                 "0",
		`lines_stopped{target="queue/work"}`:           "2",
		`jobs{kind="handler",status="available"}`:      "3",
		`jobs{kind="handler",status="scheduled"}`:      "0",
		`jobs{kind="handler",status="waiting"}`:        "0",
		`jobs{kind="handler",status="running"}`:        "2",
		`jobs{kind="handler",status="retryable"}`:      "3",
		`jobs{kind="handler",status="dead"}`:           "1",
		`jobs{kind="handler",status="canceled"}`:       "6",
		`jobs{kind="queue",status="available"}`:        "7",
		`jobs{kind="queue",status="scheduled"}`:        "0",
		`jobs{kind="queue",status="waiting"}`:          "3",
		`jobs{kind="queue",status="running"}`:          "4",
		`jobs{kind="queue",status="retryable"}`:        "0",
		`jobs{kind="queue",status="dead"}`:             "0",
		`jobs{kind="queue",status="canceled"}`:         "0",
		`jobs{kind="workflow",status="available"}`:     "2",
		`jobs{kind="workflow",status="scheduled"}`:     "4",
		`jobs{kind="workflow",status="waiting"}`:       "0",
		`jobs{kind="workflow",status="running"}`:       "0",
		`jobs{kind="workflow",status="retryable"}`:     "1",
		`jobs{kind="workflow",status="dead"}`:          "8",
		`jobs{kind="workflow",status="canceled"}`:      "0",
		`jobs{kind="alert",status="available"}`:        "0",
		`jobs{kind="alert",status="scheduled"}`:        "0",
		`jobs{kind="alert",status="waiting"}`:          "0",
		`jobs{kind="alert",status="running"}`:          "0",
		`jobs{kind="alert",status="retryable"}`:        "1",
		`jobs{kind="alert",status="dead"}`:             "0",
		`jobs{kind="alert",status="canceled"}`:         "0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}

// TestScrapesOutliveTheDatabase: a scrape without statistics leaves out the numbers of lanes
// and has all others.
func TestScrapesOutliveTheDatabase(t *testing.T) {
	for name, stats := range map[string]func(context.Context) (manage.Stats, error){
		"error": func(context.Context) (manage.Stats, error) { return manage.Stats{}, errors.New("away") },
		"late":  func(ctx context.Context) (manage.Stats, error) { <-ctx.Done(); return manage.Stats{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := scrape(t, watched(stats))
				if _, ok := got[`jobs{kind="handler",status="dead"}`]; ok || got["inflight_deliveries"] != "7" {
					t.Errorf("scrape without statistics: %v", got)
				}
			})
		})
	}
}

// TestExposition holds the names and types of all metrics, and passes the linter of Prometheus.
func TestExposition(t *testing.T) {
	m := watched(func(context.Context) (manage.Stats, error) {
		return manage.Stats{Lanes: []manage.LaneStats{{Lane: "queue/work"}, {Lane: "handler/billing"}}}, nil
	})
	m.Expect("GET", "/health")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	problems, err := promlint.New(strings.NewReader(w.Body.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	var got []string
	for _, found := range regexp.MustCompile(`(?m)^# TYPE gateway_(\S+) (\S+)$`).FindAllStringSubmatch(w.Body.String(), -1) {
		got = append(got, found[1]+" "+found[2])
	}
	want := strings.Split(strings.TrimSpace(`
alerts_total counter
build_info gauge
callbacks_total counter
circuit_breaker_open gauge
circuit_breaker_transitions_total counter
clock_offset_seconds gauge
config_last_reload_successful gauge
config_reloads_total counter
connections_closed_total counter
cron_slots_held_total counter
cron_slots_skipped_total counter
deliveries_total counter
delivery_duration_seconds histogram
delivery_errors_total counter
delivery_lag_seconds histogram
dlq_total counter
events_duplicated_total counter
events_received_total counter
filter_failures_total counter
held_seconds gauge
http_requests_total counter
inflight_deliveries gauge
intake_duration_seconds histogram
jobs gauge
jobs_created_total counter
lines_stopped gauge
oldest_due_seconds gauge
operations_total counter
purges_total counter
queue_depth gauge
queue_messages_total counter
store_duration_seconds histogram
store_errors_total counter
verification_failures_total counter
workflow_runs_total counter
workflow_steps_total counter`), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("families (-want +got):\n%s", diff)
	}
	for _, series := range []string{
		`gateway_build_info{goversion="go1",revision="abc",version="v1"} 1`,
		`gateway_events_received_total{result="too_large",source="shop"} 0`,
		`gateway_delivery_lag_seconds_count{handler="billing"} 0`,
		`gateway_dlq_total{target="workflow/fulfil"} 0`,
		`gateway_http_requests_total{method="GET",route="/health",status="503"} 0`,
		`gateway_store_errors_total{op="dead_letters"} 0`,
	} {
		if !strings.Contains(w.Body.String(), series+"\n") {
			t.Errorf("%s is not there from the start", series)
		}
	}
	for _, own := range []string{"go_goroutines ", "process_cpu_seconds_total "} {
		if !strings.Contains(w.Body.String(), "\n"+own) {
			t.Errorf("%s is not there", own)
		}
	}
}

// TestNothingIsMadeOnTheWay: facts that come with every event allocate no memory.
func TestNothingIsMadeOnTheWay(t *testing.T) {
	m := newMetrics()
	m.Expect("POST", "/webhooks/{source}")
	var (
		accepted core.Fact = core.Accepted{Event: core.Event{Source: "shop"}, Jobs: 1, Asked: []core.NewJob{{Lane: "handler/billing"}}, Took: 1}
		job                = core.Job{Lane: "handler/billing", CreatedAt: noon}
		settled  core.Fact = core.Settled{Job: job, Outcome: core.Outcome{Status: core.Completed, Attempt: core.Attempt{Number: 1, Duration: 1}}}
		pulled   core.Fact = core.Pulled{Queue: "work", Action: core.MessagesReceived, Messages: 1}
	)
	if n := testing.AllocsPerRun(100, func() {
		m.Observe(accepted)
		m.Observe(settled)
		m.Observe(pulled)
		m.Served("/webhooks/{source}", "POST", 200)
	}); n > 0 {
		t.Errorf("%v allocations an event, want none", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	m := metrics.New(metrics.Options{Names: names, Log: slog.New(slog.DiscardHandler)})
	m.Expect("POST", "/webhooks/{source}")
	job := core.Job{Lane: "handler/billing", CreatedAt: noon}
	for name, f := range map[string]core.Fact{
		"accepted": core.Accepted{Event: core.Event{Source: "shop"}, Jobs: 1, Asked: []core.NewJob{{Lane: "handler/billing"}}, Took: 1},
		"settled":  core.Settled{Job: job, Outcome: core.Outcome{Status: core.Completed, Attempt: core.Attempt{Number: 1, Duration: 1}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m.Observe(f)
			}
		})
	}
	b.Run("served", func(b *testing.B) {
		for b.Loop() {
			m.Served("/webhooks/{source}", "POST", 200)
		}
	})
}
