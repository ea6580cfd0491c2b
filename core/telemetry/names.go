package telemetry

import (
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Names are the configured names by which measurements are distinguished. Other names count
// as [Other], so that requests from outside cannot create series.
type Names struct {
	Sources, Handlers, Queues []string
	Schedules                 []string             // the sources that are schedules
	Workflows                 map[string][]string  // the steps of each, at any depth
	Alerts                    map[core.Lane]string // the type of each place, by the lane that is shown
}

// Other stands for all names that are not configured.
const Other = "other"

// And returns the names of both configurations.
func (n Names) And(m Names) Names {
	both := Names{
		Sources:   union(n.Sources, m.Sources),
		Handlers:  union(n.Handlers, m.Handlers),
		Queues:    union(n.Queues, m.Queues),
		Schedules: union(n.Schedules, m.Schedules),
		Workflows: map[string][]string{},
		Alerts:    maps.Clone(m.Alerts),
	}
	for _, workflows := range []map[string][]string{n.Workflows, m.Workflows} {
		for name, steps := range workflows {
			both.Workflows[name] = union(both.Workflows[name], steps)
		}
	}
	if both.Alerts == nil {
		both.Alerts = map[core.Lane]string{}
	}
	maps.Copy(both.Alerts, n.Alerts)
	return both
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
