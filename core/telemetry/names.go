package telemetry

import (
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Names are the configured names that measurements use as labels. Every other name is measured
// as [Other], so that requests from outside cannot create labels.
type Names struct {
	Sources, Handlers, Queues []string
	Schedules                 []string             // the sources that are schedules
	Workflows                 map[string][]string  // the names of each workflow's steps, at any depth
	Alerts                    map[core.Lane]string // the type of each alert place, by its lane
}

// Other is the label of all names that are not configured.
const Other = "other"

// And returns the names that are in n, in m, or in both. If both have an alert lane, the type
// in n counts.
func (n Names) And(m Names) Names {
	both := Names{
		Sources:   union(n.Sources, m.Sources),
		Handlers:  union(n.Handlers, m.Handlers),
		Queues:    union(n.Queues, m.Queues),
		Schedules: union(n.Schedules, m.Schedules),
		Workflows: map[string][]string{},
		Alerts:    maps.Clone(m.Alerts),
	}
	// A workflow may have other steps in the two configurations. Runs of both may be under way.
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

// union returns the sorted texts of both lists, each one once.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
