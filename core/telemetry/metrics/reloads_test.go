package metrics_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

// TestConfigure: after a change of configuration, its names and those of the configuration
// before it have series of their own. The counts stay.
func TestConfigure(t *testing.T) {
	m := newMetrics()
	deliver := func(handler string) {
		m.Observe(core.Settled{Job: core.Job{Lane: core.HandlerLane(handler)}, Outcome: core.Outcome{Status: core.Completed}})
	}
	counted := func() string {
		var all []string
		series := scrape(t, m)
		for _, name := range slices.Sorted(maps.Keys(series)) {
			if handler, ok := strings.CutPrefix(name, `deliveries_total{handler="`); ok && strings.Contains(name, `result="completed"`) {
				all = append(all, handler[:strings.IndexByte(handler, '"')]+" "+series[name])
			}
		}
		return strings.Join(all, ", ")
	}
	for i, step := range []struct {
		handlers []string
		want     string
	}{
		{[]string{"billing", "mail"}, "billing 1, mail 1, other 1"},
		{[]string{"mail"}, "billing 2, mail 2, other 2"},
		{[]string{"mail", "audit"}, "audit 0, billing 2, mail 3, other 4"}, // billing is long gone
		{[]string{"billing"}, "audit 0, billing 3, mail 4, other 5"},
	} {
		m.Configure(telemetry.Names{Handlers: step.handlers})
		for _, handler := range []string{"billing", "mail", "never"} {
			deliver(handler)
		}
		if got := counted(); got != step.want {
			t.Errorf("%d: %s, want %s", i, got, step.want)
		}
	}
}

func TestNamesAnd(t *testing.T) {
	a := telemetry.Names{
		Sources: []string{"shop", "app"}, Handlers: []string{"billing"},
		Workflows: map[string][]string{"fulfil": {"pay"}},
		Alerts:    map[core.Lane]string{"alert/1": "slack"},
	}
	b := telemetry.Names{
		Sources: []string{"app", "hub"}, Queues: []string{"work"},
		Workflows: map[string][]string{"fulfil": {"ship", "pay"}, "other": nil},
		Alerts:    map[core.Lane]string{"alert/1": "generic", "alert/2": "discord"},
	}
	want := telemetry.Names{
		Sources: []string{"app", "hub", "shop"}, Handlers: []string{"billing"}, Queues: []string{"work"},
		Workflows: map[string][]string{"fulfil": {"pay", "ship"}, "other": nil},
		Alerts:    map[core.Lane]string{"alert/1": "slack", "alert/2": "discord"},
	}
	if diff := cmp.Diff(want, a.And(b)); diff != "" {
		t.Errorf("And (-want +got):\n%s", diff)
	}
}

// TestConfigureWhileCounting: the configuration may change during counts and scrapes.
func TestConfigureWhileCounting(t *testing.T) {
	m := newMetrics()
	var counting sync.WaitGroup
	for range 4 {
		counting.Go(func() {
			for range 200 {
				m.Observe(core.Accepted{Event: core.Event{Source: "shop"}})
				m.Served("/a", "GET", 200)
			}
		})
	}
	for i := range 20 {
		m.Configure(telemetry.Names{Sources: []string{"shop", fmt.Sprint("source", i)}})
		m.Expect("GET", "/a")
		m.Expect("GET", fmt.Sprint("/", i))
		scrape(t, m)
	}
	counting.Wait()
	if got := scrape(t, m)[`events_received_total{result="accepted",source="shop"}`]; got != "800" {
		t.Errorf("800 events are counted as %s", got)
	}
}
