package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An EventStore is what of a store Events uses.
type EventStore interface {
	core.Archive
	Event(ctx context.Context, id core.ID) (core.Event, error)
	Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
	Jobs(ctx context.Context, f core.JobFilter) (core.Page[core.Job], error)
	Runs(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error)
	Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error)
}

// ErrEvent is the refusal of an event that is not there.
var ErrEvent = core.Refuse(core.NotFound, "event not found")

// Bounds of a replay.
const (
	DefaultReplay = 100     // events that are selected, unless told
	MaxReplay     = 100_000 // events that are selected by their number

	ReplayTurn = 1000             // events that are replayed in one go
	ReplayTime = 10 * time.Second // about how long one go takes
)

// Events are the stored events. They are safe for concurrent use.
type Events struct {
	// Bell is rung for lanes that get jobs; nil rings for nobody.
	Bell *core.Bell

	// Observe is told of what was replayed; nil tells nobody.
	Observe core.Observer

	// Waits tell what the jobs of an event wait for; nil tells nothing.
	Waits *Waits

	// Decline tells who does not want an event under the current configuration, and why; nil
	// tells nothing.
	Decline func(core.Event) []core.Declined

	// Names are the configured names; nil refuses no name.
	Names *Names

	store EventStore
	clock core.Clock
	match Match
}

// A Match says what a stored event gives rise to under the current configuration,
// filters included, as an arrival with new jobs and runs, none of which has a key. One
// that nobody wants has neither.
type Match func(core.Event) core.Arrival

// NewEvents makes the service.
func NewEvents(store EventStore, clock core.Clock, match Match) *Events {
	return &Events{store: store, clock: clock, match: match}
}

// A Told event is one with all that became of it.
type Told struct {
	core.Event
	Jobs []core.Job // the one created first first
	Runs []core.Run // the newest first

	// Waits is what those of the jobs wait for that do; only Inspect tells it.
	Waits map[core.ID]Wait

	// Declined are the consumers that do not want the event under the current configuration,
	// without those that have a job; only Inspect tells them.
	Declined []core.Declined

	// Attempts are those of the jobs, the oldest first, without what was kept of replies: an
	// export leaves the machine, and a reply may contain secrets. Only Export tells them.
	Attempts map[core.ID][]core.Attempt
}

// A Span is the events from one to another, both included. The zero value is none.
type Span struct{ First, Last core.ID }

// Replayed is how many events were looked at, how many of them got jobs, and how many jobs
// that gave.
type Replayed struct {
	Looked, Events, Jobs int

	// Span is all that was selected, whether it was replayed yet or not; none if nothing
	// was.
	Span

	// Next is where to go on: the rest of the span begins with it. It is "" if all was
	// gone through.
	Next core.ID
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

// Inspect tells all about an event. The error of one that is not there is [ErrEvent],
// here and below.
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
	waits, err := e.Waits.Of(ctx, jobs[id]...)
	return Told{Event: event, Jobs: e.Names.places().Jobs(jobs[id]), Runs: runs, Waits: waits, Declined: e.declined(event, jobs[id])}, err
}

// declined are those who do not want an event. A consumer with a job wanted it once.
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

// Jobs lists the jobs of an event, the one created first first.
func (e *Events) Jobs(ctx context.Context, id core.ID) ([]core.Job, error) {
	jobs, err := e.store.JobsOf(ctx, []core.ID{id})
	if err != nil || len(jobs[id]) > 0 {
		return e.Names.places().Jobs(jobs[id]), err
	}
	_, err = e.event(ctx, id) // it may be that there are none, or that there is no event
	return nil, err
}
