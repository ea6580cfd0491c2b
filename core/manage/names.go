package manage

import (
	"context"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Names are the names of all configured entries. Nil knows no name, and refuses none.
type Names struct {
	Sources, Handlers, Queues, Workflows []string

	// Places are the places of alerts. The jobs that this package returns have the lanes of
	// Places, and a caller may use these lanes.
	Places core.Places

	// Unknown returns the refusal of a name that is not among the known ones.
	Unknown func(kind, name string, known []string) error
}

// Source refuses the name of a source that is not configured, with the nearest names. It is
// called after a query without results, since a removed source may still have events.
func (n *Names) Source(name string) error {
	if n == nil || name == "" || name == core.AlertSource {
		return nil
	}
	return n.check("source", name, n.Sources)
}

// Workflow is Source for the name of a workflow.
func (n *Names) Workflow(name string) error {
	if n == nil || name == "" {
		return nil
	}
	return n.check("workflow", name, n.Workflows)
}

// places returns the places of alerts; none if no name is known.
func (n *Names) places() core.Places {
	if n == nil {
		return nil
	}
	return n.Places
}

// Lane is Source for the handler, queue, workflow, source or place for alerts of a lane, as it is
// shown.
func (n *Names) Lane(lane core.Lane) error {
	switch {
	case n == nil || lane == "":
		return nil
	case lane.Alert():
		return n.place(lane)
	case lane.Queue() != "":
		return n.check("queue", lane.Queue(), n.Queues)
	case lane.Workflow() != "":
		return n.check("workflow", lane.Workflow(), n.Workflows)
	case lane.Source() != "":
		return n.check("source", lane.Source(), n.Sources)
	}
	return n.check("handler", lane.Handler(), n.Handlers)
}

// receivers refuses lanes that get no jobs by a replay, and lanes that are not configured.
func (n *Names) receivers(to []core.Lane) error {
	for _, l := range to {
		if l.Alert() || l.Operation() || l.Source() != "" {
			return core.Refuse(core.Invalid, "to: %q is not a handler, queue or workflow", l.Consumer())
		}
		if err := n.Lane(l); err != nil {
			return err
		}
	}
	return nil
}

// lanes returns the lanes of all handlers, queues and workflows.
func (n *Names) lanes() (lanes []core.Lane) {
	if n == nil {
		return nil
	}
	for _, name := range n.Handlers {
		lanes = append(lanes, core.HandlerLane(name))
	}
	for _, name := range n.Queues {
		lanes = append(lanes, core.QueueLane(name))
	}
	for _, name := range n.Workflows {
		lanes = append(lanes, core.WorkflowLane(name))
	}
	return lanes
}

// place is Source for the lane of a place for alerts, as it is shown or as it is stored.
func (n *Names) place(lane core.Lane) error {
	if _, stored := n.Places[lane]; stored {
		return nil
	}
	known := make([]string, 0, len(n.Places))
	for _, place := range n.Places {
		known = append(known, string(place.Lane))
	}
	slices.Sort(known)
	return n.check("place for alerts", string(lane), known)
}

func (n *Names) check(kind, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	return n.Unknown(kind, name, known)
}

// knownLane refuses a lane that is neither configured nor has any job.
func (j *Jobs) knownLane(ctx context.Context, lane core.Lane) error {
	unknown := j.Names.Lane(lane)
	if unknown == nil {
		return nil
	}
	page, err := j.store.Jobs(ctx, core.JobFilter{Lane: j.Names.places().Stored(lane), Limit: 1})
	if err != nil || len(page.Items) > 0 {
		return err
	}
	return unknown
}

// knownSource refuses a source that is neither configured nor has any event.
func (e *Events) knownSource(ctx context.Context, source string) error {
	return e.Names.storedSource(ctx, e.store, source)
}

// knownSource refuses a source that is neither configured nor has any event.
func (j *Jobs) knownSource(ctx context.Context, source string) error {
	return j.Names.storedSource(ctx, j.store, source)
}

// storedSource refuses a source that is neither configured nor has any event.
func (n *Names) storedSource(ctx context.Context, store interface {
	Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
}, source string) error {
	unknown := n.Source(source)
	if unknown == nil {
		return nil
	}
	page, err := store.Events(ctx, core.EventFilter{Source: source, Limit: 1})
	if err != nil || len(page.Items) > 0 {
		return err
	}
	return unknown
}

// knownWorkflow refuses a workflow that is neither configured nor has any run.
func (r *Runs) knownWorkflow(ctx context.Context, workflow string) error {
	unknown := r.Names.Workflow(workflow)
	if unknown == nil {
		return nil
	}
	page, err := r.store.Runs(ctx, core.RunFilter{Workflow: workflow, Limit: 1})
	if err != nil || len(page.Items) > 0 {
		return err
	}
	return unknown
}
