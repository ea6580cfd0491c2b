package egress

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// spoken returns the trace headers that each kind of call sends for a job's event.
func spoken(t *testing.T, c *Client, headers map[string]string) map[string][2]string {
	t.Helper()
	job, step := taken("01HZY8Q4000000000000000JOB", "{}"), stepJob()
	job.Lease = "01HZY8Q40000000000000LEASE"
	step.Situation.Step.ID = step.ID
	job.Event.Headers, step.Event.Headers = headers, headers
	overHTTP := newSender(t, c, Target{URL: "http://handler.example"}).(*httpSender).delivery(&job, Letter{}, time.Now()).header()
	receiver, err := c.GRPC(Target{URL: "http://handler.example:1"})
	if err != nil {
		t.Fatal(err)
	}
	_, overGRPC := receiver.(*grpcSender).request(&job, Letter{}, time.Now())
	called, err := stepsOf(t, c).(*stepCaller).delivery(asked("http://step.example", ""), &step, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first := func(values []string) string { return append(values, "")[0] }
	return map[string][2]string{
		"http": {overHTTP.Get("Traceparent"), overHTTP.Get("Tracestate")},
		"grpc": {first(overGRPC["traceparent"]), first(overGRPC["tracestate"])},
		"step": {called.header().Get("Traceparent"), called.header().Get("Tracestate")},
	}
}

// TestTraced: a gateway that exports spans sends the span of the attempt. Any other gateway
// passes on the span that came with the event.
func TestTraced(t *testing.T) {
	event, _ := core.ParseSpan(sent)
	attempt := event.Attempt(core.Job{ID: "01HZY8Q4000000000000000JOB", Lease: "01HZY8Q40000000000000LEASE"}).String()
	step := event.StepAttempt("01HZY8Q4000000000000000JOB", 7).String()
	for _, c := range []struct {
		name   string
		traced bool
		parent string
		want   map[string]string
	}{
		{"traced", true, sent, map[string]string{"http": attempt, "grpc": attempt, "step": step}},
		{"of a later version", true, "cc" + sent[2:] + "-more", map[string]string{"http": attempt, "grpc": attempt, "step": step}},
		{"not traced", false, sent, map[string]string{"http": sent, "grpc": sent, "step": sent}},
		{"without a trace", true, "", map[string]string{}},
		{"invalid", true, "00-1-2-03", map[string]string{}},
	} {
		client := New(Options{AllowPrivate: true, Version: "1.2.3", Traced: c.traced})
		t.Cleanup(client.Close)
		for kind, got := range spoken(t, client, map[string]string{"traceparent": c.parent, "tracestate": "a=1"}) {
			want := [2]string{c.want[kind], "a=1"}
			if want[0] == "" {
				want[1] = ""
			}
			if got != want {
				t.Errorf("%s, %s: %q, want %q", c.name, kind, got, want)
			}
		}
	}
	if attempt == sent || step == sent || attempt[:36] != sent[:36] || step[:36] != sent[:36] {
		t.Errorf("attempt %s and step %s, want spans of their own in the trace of %s", attempt, step, sent)
	}
}
