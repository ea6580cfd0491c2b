package traces

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/otlp"
)

const canary = "canary-4f9a"

var came = time.Date(2026, 3, 4, 5, 6, 7, 891_000_000, time.UTC)

// order returns an event that has a secret in each field that could leak one.
func order(span core.Span) core.Event {
	return core.Event{
		ID: "EVENT", Source: "shop", Type: "order.created", CreatedAt: came, ContentType: "text/" + canary, DeliveryID: canary,
		Payload: []byte(`{"card":"` + canary + `"}`),
		Headers: map[string]string{"traceparent": span.String(), "tracestate": "vendor=1", "ce-subject": canary},
	}
}

func attempt(number, status int, wrong string) core.Attempt {
	return core.Attempt{
		Number: number, StatusCode: status, Error: wrong, Response: canary,
		StartedAt: came.Add(time.Second), Duration: 20 * time.Millisecond,
	}
}

// spanOf returns the expected span of a piece of work.
func spanOf(s core.Span, parent core.Span, name, kind string, began, took time.Duration, wrong string, attributes map[string]string) otlp.Span {
	text := func(s core.Span) string { return s.String()[36:52] }
	made := otlp.Span{
		Trace: s.String()[3:35], ID: text(s), Parent: text(parent), State: "vendor=1", Name: name, Kind: kind, Error: wrong,
		Began: came.Add(began), Ended: came.Add(began + took),
		Attributes: map[string]string{"gateway.event": "EVENT", "gateway.source": "shop", "gateway.type": "order.created"},
		Resource: map[string]string{
			"service.name": "gateway", "service.version": "1.2.3",
			"telemetry.sdk.language": "go", "telemetry.sdk.name": "opentelemetry",
		},
	}
	for name, value := range attributes {
		made.Attributes[name] = value
	}
	return made
}

// TestSpans holds every kind of span, with all its fields.
func TestSpans(t *testing.T) {
	collector := otlp.New(t)
	x, _ := start(t, collector.URL)
	sender, _ := core.ParseSpan(sampled)
	intake := x.Begin(sender)
	e := order(intake)
	first := core.Job{ID: "JOB", EventID: "EVENT", Lane: "handler/billing", Attempt: 1, Lease: "LEASE-1"}
	second := first
	second.Attempt, second.Lease = 2, "LEASE-2"
	message := core.Job{ID: "MESSAGE", EventID: "EVENT", Lane: "queue/print", Attempt: 3, Lease: "LEASE-3"}
	run := core.Run{ID: "RUN", Workflow: "fulfil", Epoch: 2, Status: core.RunFailed, Error: "step pack/17/weigh: status: 500", StartedAt: came.Add(time.Second), FinishedAt: came.Add(3 * time.Second)}
	step := core.Step{ID: "STEP", Path: "pack/17/weigh", Name: "weigh", Status: core.StepFailed, Error: canary, State: []byte(canary), Output: []byte(canary)}
	for _, f := range []core.Fact{
		core.Accepted{Event: e, Jobs: 3, Took: 5 * time.Millisecond, Parent: sender},
		core.Settled{Event: e, Job: first, Outcome: core.Outcome{Status: core.Retryable, Attempt: attempt(1, 503, "status: 503 Service Unavailable")}},
		core.Settled{Event: e, Job: second, Outcome: core.Outcome{Status: core.Completed, Attempt: attempt(2, 200, "")}},
		core.Settled{Event: e, Job: message, Outcome: core.Outcome{Status: core.Dead, Attempt: core.Attempt{Number: 3, Error: core.LeaseExpired, StartedAt: came}}},
		core.StepMoved{Event: e, Run: run, Step: step, Attempt: attempt(1, 500, "status: 500")},
		core.RunMoved{Event: e, Run: run},
	} {
		x.Observe(f)
	}
	with := func(parts ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, part := range parts {
			for name, value := range part {
				all[name] = value
			}
		}
		return all
	}
	job := map[string]string{"gateway.job": "JOB", "gateway.handler": "billing"}
	runs := map[string]string{"gateway.workflow": "fulfil", "gateway.run": "RUN", "gateway.epoch": "2"}
	want := []otlp.Span{
		spanOf(intake, sender, "receive shop", "server", 0, 5*time.Millisecond, "", map[string]string{"gateway.jobs": "3"}),
		spanOf(intake.Attempt(first), intake, "deliver billing", "client", time.Second, 20*time.Millisecond, "status: 503 Service Unavailable",
			with(job, map[string]string{"gateway.attempt": "1", "gateway.status": "retryable", "http.response.status_code": "503", "error.type": "status"})),
		spanOf(intake.Attempt(second), intake, "deliver billing", "client", time.Second, 20*time.Millisecond, "",
			with(job, map[string]string{"gateway.attempt": "2", "gateway.status": "completed", "http.response.status_code": "200"})),
		spanOf(intake.Attempt(message), intake, "settle print", "consumer", 0, 0, "lease expired", map[string]string{
			"gateway.job": "MESSAGE", "gateway.queue": "print", "gateway.attempt": "3", "gateway.status": "dead", "error.type": "lease expired"}),
		spanOf(intake.StepAttempt("STEP", 1), intake.Run("RUN", 2), "step fulfil/weigh", "client", time.Second, 20*time.Millisecond, "status: 500",
			with(runs, map[string]string{"gateway.step": "pack/17/weigh", "gateway.status": "failed", "gateway.attempt": "1", "http.response.status_code": "500", "error.type": "status"})),
		spanOf(intake.Run("RUN", 2), intake, "run fulfil", "internal", time.Second, 2*time.Second, "step pack/17/weigh: status: 500",
			with(runs, map[string]string{"gateway.status": "failed"})),
	}
	got := exported(t, x, collector)
	for i := range got {
		delete(got[i].Resource, "telemetry.sdk.version")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if collector.Has(canary) {
		t.Error("a secret was exported")
	}
}

// TestNoSpans: a fact makes no span if its event has no span, if the trace is not sampled, or
// if no work was done.
func TestNoSpans(t *testing.T) {
	collector := otlp.New(t)
	x, _ := start(t, collector.URL)
	kept, _ := core.ParseSpan(sampled)
	left, _ := core.ParseSpan(unsampled)
	e := order(kept)
	for _, f := range []core.Fact{
		core.Accepted{Event: core.Event{Source: "shop"}},
		core.Accepted{Event: core.Event{Source: "shop", Headers: map[string]string{"traceparent": "00-1-2-03"}}},
		core.Accepted{Event: order(left)},
		core.Settled{Event: order(left), Job: core.Job{Lane: "handler/a"}},
		core.Settled{Event: e, Job: core.Job{Lane: "workflow/fulfil"}},
		core.Settled{Event: e, Job: core.Job{Lane: "alert/1"}},
		core.StepMoved{Event: e, Step: core.Step{Status: core.StepWaiting}},
		core.StepMoved{Attempt: attempt(1, 200, "")},
		core.RunMoved{Event: e, Run: core.Run{Status: core.RunPending}},
		core.RunMoved{Event: e, Run: core.Run{Status: core.RunRunning}},
		core.RunMoved{Run: core.Run{Status: core.RunFailed}},
		core.Repeated{Source: "shop"}, core.Recovered{}, core.Pulled{},
	} {
		x.Observe(f)
	}
	if got := exported(t, x, collector); len(got) != 0 {
		t.Errorf("spans %+v, want none", got)
	}
}

// TestEdges: a new trace has no parent. The span of a run that ended before its first step has
// a duration of 0.
func TestEdges(t *testing.T) {
	collector := otlp.New(t)
	x, _ := start(t, collector.URL, "OTEL_SERVICE_NAME", "orders", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=no")
	e := order(x.Begin(core.Span{}))
	x.Observe(core.Accepted{Event: e})
	x.Observe(core.RunMoved{Event: e, Run: core.Run{Status: core.RunFailed, Epoch: 1, FinishedAt: came, Error: strings.Repeat("é", maxWords)}})
	got := exported(t, x, collector)
	if got[0].Parent != "" || got[0].Trace != e.Headers["traceparent"][3:35] {
		t.Errorf("intake %+v, want a root in the trace that is stored", got[0])
	}
	if r := got[0].Resource; r["service.name"] != "orders" || r["deployment.environment"] != "test" {
		t.Errorf("resource %v, want what the environment says", r)
	}
	if !got[1].Began.Equal(came) || !got[1].Ended.Equal(came) || got[1].Error != strings.Repeat("é", maxWords/2) {
		t.Errorf("run %+v, want one at %v with %d bytes of error", got[1], came, maxWords)
	}
}

// BenchmarkObserve measures the naming of an intake's span with the spans of the intake and of
// one attempt.
func BenchmarkObserve(b *testing.B) {
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	x, err := Start(b.Context(), Options{Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer end(x, 0)
	b.ReportAllocs()
	for b.Loop() {
		e := order(x.Begin(core.Span{}))
		x.Observe(core.Accepted{Event: e})
		x.Observe(core.Settled{Event: e, Job: core.Job{ID: "JOB", Lane: "handler/billing"}, Outcome: core.Outcome{Attempt: attempt(1, 200, "")}})
	}
}
