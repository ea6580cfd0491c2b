package manage

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// MaxReason bounds the reason of a hold, in characters.
const MaxReason = 500

// A HoldStore has the methods of a store that Holds uses.
type HoldStore interface {
	Hold(ctx context.Context, now time.Time, lane core.Lane, until time.Time, reason string) error
	Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error)
	Holding(ctx context.Context, now time.Time) ([]core.Hold, error)
}

// Holds are the holds of handlers, queues, workflows and sources. They are safe for concurrent
// use.
type Holds struct {
	// Bell is rung for each lane that is released, and for the lanes of all consumers when a source
	// is released. Observe gets a fact for each hold and release. Both may be nil.
	Bell    *core.Bell
	Observe core.Observer

	store HoldStore
	clock core.Clock
	names *Names
}

// NewHolds makes the service. Names are the names of all configured entries.
func NewHolds(store HoldStore, clock core.Clock, names *Names) *Holds {
	return &Holds{store: store, clock: clock, names: names}
}

// List returns the holds that have not ended, by lane. It has also those of lanes that are not
// configured any more.
func (h *Holds) List(ctx context.Context) ([]core.Hold, error) {
	return h.store.Holding(ctx, h.clock())
}

// Hold holds a lane, until a time or, if that is zero, until Release. Jobs that are being
// tried end as usual, and no process takes another one. The lane of a source stands for all jobs
// of the source's events. A lane that is held already gets the new end and reason. Hold refuses
// a lane that is not configured, a time that has passed, a reason that is no text of at most
// MaxReason characters, and a source beyond the bound on held sources.
func (h *Holds) Hold(ctx context.Context, lane core.Lane, until time.Time, reason string) (core.Hold, error) {
	now := h.clock()
	if err := h.check(now, lane, until, reason); err != nil {
		return core.Hold{}, err
	}
	change := audited(ctx, core.AuditHold, string(lane), "until", timeText(until), "reason", reason)
	if err := h.store.Hold(change, now, lane, until, reason); err != nil {
		return core.Hold{}, err
	}
	// A lane that was held already keeps its beginning, which only the store knows.
	hold, err := h.of(ctx, now, lane)
	if err != nil {
		return core.Hold{}, err
	}
	tell(h.Observe, core.LaneHeld{Hold: hold})
	return hold, nil
}

// check refuses a hold that must not be stored.
func (h *Holds) check(now time.Time, lane core.Lane, until time.Time, reason string) error {
	switch {
	case !until.IsZero() && !until.After(now):
		return core.Refuse(core.Invalid, "until must be in the future, and %s has passed", core.FormatTime(until))
	case utf8.RuneCountInString(reason) > MaxReason || !utf8.ValidString(reason) || strings.ContainsRune(reason, 0):
		return core.Refuse(core.Invalid, "reason must be a text of at most %d characters", MaxReason)
	case lane.Alert(), lane.Source() == core.AlertSource:
		return core.Refuse(core.Invalid, "alerts cannot be held")
	}
	return h.names.Lane(lane)
}

// of returns the hold of a lane that was held just now. Another caller may have ended it
// meanwhile.
func (h *Holds) of(ctx context.Context, now time.Time, lane core.Lane) (core.Hold, error) {
	all, err := h.store.Holding(ctx, now)
	if err != nil {
		return core.Hold{}, err
	}
	for _, hold := range all {
		if hold.Lane == lane {
			return hold, nil
		}
	}
	return core.Hold{}, core.Refuse(core.Unavailable, "another caller released it at the same time")
}

// Release ends the hold of a lane. It returns whether the lane was held. The jobs of a handler
// or workflow go on slowly, as after a circuit breaker closed. Each process notices the change
// at its next look at the database, within 1.25 s, or within 6.25 s for hosted_sql.
// Release refuses a lane that is neither held nor configured.
func (h *Holds) Release(ctx context.Context, lane core.Lane) (bool, error) {
	released, err := h.store.Unhold(audited(ctx, core.AuditRelease, string(lane)), h.clock(), lane)
	if err != nil {
		return false, err
	}
	// A lane that left the configuration while it was held can be released.
	if len(released) == 0 {
		return false, h.names.Lane(lane)
	}
	for _, l := range h.waiting(lane) {
		h.Bell.Ring(l)
	}
	tell(h.Observe, core.LaneReleased{Lane: lane})
	return true, nil
}

// waiting returns the lanes whose jobs may go on after the release of a lane. Jobs of a source may
// be in the lanes of all consumers.
func (h *Holds) waiting(lane core.Lane) []core.Lane {
	if lane.Source() != "" {
		return h.names.lanes()
	}
	return []core.Lane{lane}
}
