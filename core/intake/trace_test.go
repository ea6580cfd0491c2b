package intake

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

const (
	sent    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	begun   = "00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01"
	rooted  = "00-22222222222222222222222222222222-1111111111111111-00"
	invalid = "00-1-2-03"
)

// within is a tracer that makes 11... the span, and 22... a new trace.
func within(parent core.Span) core.Span {
	made, _ := core.ParseSpan(rooted)
	if parent != (core.Span{}) {
		made.Trace, made.Flags = parent.Trace, parent.Flags
	}
	return made
}

// The span of the intake is stored with the event, and the span of the sender is in its fact.
func TestTrace(t *testing.T) {
	for _, c := range []struct {
		name          string
		trace         func(core.Span) core.Span
		header        []string
		parent, state string // stored
		told          string
	}{
		{"sent in a trace", within, []string{"Traceparent", sent, "Tracestate", "a=1"}, begun, "a=1", sent},
		{"sent in none", within, nil, rooted, "", ""},
		{"invalid", within, []string{"Traceparent", invalid, "Tracestate", "a=1"}, rooted, "", ""},
		{"state only", within, []string{"Tracestate", "a=1"}, rooted, "", ""},
		{"of a later version", within, []string{"Traceparent", "cc" + sent[2:] + "-more"}, begun, "", sent},
		{"off", nil, []string{"Traceparent", sent, "Tracestate", "a=1"}, sent, "a=1", ""},
		{"off and invalid", nil, []string{"Traceparent", invalid, "Tracestate", "a=1"}, invalid, "a=1", ""},
		{"off and none", nil, nil, "", "", ""},
	} {
		d := newDoor(testSources)
		d.Trace = c.trace
		if _, err := d.Receive(t.Context(), request(Event, "app", "{}", c.header...)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want := map[string]string{}
		if c.parent != "" {
			want["traceparent"] = c.parent
		}
		if c.state != "" {
			want["tracestate"] = c.state
		}
		got := d.inbox.got[0].Event.Headers
		if got == nil {
			got = map[string]string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: stored (-want +got):\n%s", c.name, diff)
		}
		told, _ := core.ParseSpan(c.told)
		fact := d.facts[0].(core.Accepted)
		if fact.Parent != told || fact.Event.Headers["traceparent"] != c.parent {
			t.Errorf("%s: reported %+v, want parent %q and the headers that are stored", c.name, fact, c.told)
		}
	}
}

// The events of schedules begin traces of their own.
func TestTracesOfTicks(t *testing.T) {
	d := newDoor([]Source{{Name: "nightly", Kind: Tick, Schedule: "0 0 * * *"}})
	d.Trace = within
	if err := d.Fire(t.Context(), "nightly", time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	if got := d.inbox.got[0].Event.Headers["traceparent"]; got != rooted {
		t.Errorf("stored traceparent %q, want %q", got, rooted)
	}
	if fact := d.facts[0].(core.Accepted); fact.Parent != (core.Span{}) {
		t.Errorf("reported parent %v, want none", fact.Parent)
	}
}
