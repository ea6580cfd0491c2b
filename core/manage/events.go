package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An EventStore has the methods of a store that Events uses.
type EventStore interface {
	core.Archive
	Event(ctx context.Context, id core.ID) (core.Event, error)
	Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
	Run(ctx context.Context, id core.ID) (core.Run, error)
	Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error)
	KindsOf(ctx context.Context, events []core.ID) (map[core.ID]core.EventKind, error)
	Cancel(ctx context.Context, now time.Time, event core.ID) (core.Cancellation, error)
	Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error)
}

// ErrEvent is the refusal of an event that does not exist.
var ErrEvent = core.Refuse(core.NotFound, "event not found")

// Events are the stored events. They are safe for concurrent use.
type Events struct {
	// Bell rings for lanes that get jobs from a ReplayOne, or whose lines go on; it may be nil.
	Bell *core.Bell

	// Observe receives a fact for each event of a ReplayOne and each canceled one; it may be nil.
	Observe core.Observer

	// Bulk does the operations of Replay.
	Bulk Bulk

	// Progress receives the numbers of a Replay after each slice; it may be nil.
	Progress func(Replayed)

	// Runs cancels the pending runs of an event; nil cancels none.
	Runs RunCanceler

	// Waits returns why the jobs of an event wait; nil returns nothing.
	Waits *Waits

	// Decline returns the configured consumers that do not want an event, with the reasons;
	// nil returns nothing.
	Decline func(core.Event) []core.Declined

	// Select parses a filter and returns the function that decides about events; Search needs it.
	Select Select

	// Names are the configured names; nil refuses no name.
	Names *Names

	store EventStore
	clock core.Clock
	match Match
}

// A Match matches a stored event with the configured consumers, with their filters. The
// result is an arrival with new jobs and runs, none of which has a key. It has no jobs if
// no consumer wants the event.
type Match func(core.Event) core.Arrival

// A Select parses a filter in the language of a handler's filter. The function that it returns
// reports whether the filter matches a stored event. The error is about the text of the filter.
type Select func(filter string) (func(core.Event) bool, error)

// NewEvents makes the service.
func NewEvents(store EventStore, clock core.Clock, match Match) *Events {
	return &Events{store: store, clock: clock, match: match}
}

// A Told is an event with its jobs, attempts and runs.
type Told struct {
	core.Event
	Jobs []core.Job // in the order of their creation
	Runs []core.Run // the newest first

	// Waits are the reasons of the waiting jobs, by their ids; only Inspect sets them.
	Waits map[core.ID]Wait

	// Declined are the configured consumers that do not want the event, except consumers
	// that have a job for it; only Inspect sets them.
	Declined []core.Declined

	// Attempts are the attempts of the jobs, the oldest first, without the kept parts of
	// replies: an export leaves the machine, and a reply may contain secrets. Only Export
	// sets them.
	Attempts map[core.ID][]core.Attempt
}

// List lists events newest first, without payloads. A source that is neither configured nor
// has events is refused with [core.NotFound], here and by Replay and Export.
func (e *Events) List(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	page, err := e.store.Events(ctx, f)
	if err == nil && len(page.Items) == 0 {
		err = e.knownSource(ctx, f.Source)
	}
	return page, err
}

// Inspect returns an event with its jobs and runs. The error for a missing event is
// [ErrEvent], here and below.
func (e *Events) Inspect(ctx context.Context, id core.ID) (Told, error) {
	event, err := e.event(ctx, id)
	if err != nil {
		return Told{}, err
	}
	jobs, err := e.store.JobsOf(ctx, []core.ID{id})
	if err != nil {
		return Told{}, err
	}
	runs, err := e.runs(ctx, id)
	if err != nil {
		return Told{}, err
	}
	waits, err := e.Waits.Exactly(ctx, jobs[id]...)
	return Told{Event: event, Jobs: e.Names.places().Jobs(jobs[id]), Runs: runs, Waits: waits, Declined: e.declined(event, jobs[id])}, err
}

// declined returns the consumers that do not want an event. A consumer with a job wanted it
// once.
func (e *Events) declined(event core.Event, jobs []core.Job) []core.Declined {
	if e.Decline == nil {
		return nil
	}
	return slices.DeleteFunc(e.Decline(event), func(d core.Declined) bool {
		return slices.ContainsFunc(jobs, func(j core.Job) bool { return j.Lane == d.Lane })
	})
}

func (e *Events) event(ctx context.Context, id core.ID) (core.Event, error) {
	event, err := e.store.Event(ctx, id)
	if core.IsKind(err, core.NotFound) {
		err = ErrEvent
	}
	return event, err
}

func (e *Events) runs(ctx context.Context, event core.ID) ([]core.Run, error) {
	page, err := e.store.Runs(ctx, core.RunFilter{EventID: event, Limit: core.MaxPage})
	return page.Items, err
}

// Jobs lists the jobs of an event in the order of their creation.
func (e *Events) Jobs(ctx context.Context, id core.ID) ([]core.Job, error) {
	jobs, err := e.store.JobsOf(ctx, []core.ID{id})
	if err != nil || len(jobs[id]) > 0 {
		return e.Names.places().Jobs(jobs[id]), err
	}
	_, err = e.event(ctx, id) // distinguishes an event without jobs from a missing event
	return nil, err
}
