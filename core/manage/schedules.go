package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Schedules are the sources of type cron. They are safe for concurrent use.
type Schedules struct {
	// Names are the names of all configured entries, and Cron those of the sources of type cron.
	Names *Names
	Cron  []string

	// FireNow stores an event of such a source, as a slot of its schedule would, and returns when.
	FireNow func(ctx context.Context, source string) (core.Receipt, time.Time, error)

	// Holding returns the holds that have not ended.
	Holding func(ctx context.Context, now time.Time) ([]core.Hold, error)

	Clock core.Clock
}

// A Fired is an event that an operator made of a schedule.
type Fired struct {
	Source string
	Event  core.ID
	Jobs   int
	At     time.Time

	// Held says that the source is held: the jobs wait until it is released. Its slots are
	// skipped meanwhile, but an operator who fires a source means it.
	Held bool
}

// Fire stores an event of a source now, beside the slots of its schedule. Each call stores another
// event. An event whose jobs all repeat keys is not stored; then Event is the one with the keys, and
// there are no jobs. It refuses a source that is not configured or has no schedule.
func (s *Schedules) Fire(ctx context.Context, source string) (Fired, error) {
	if !slices.Contains(s.Cron, source) {
		if err := s.Names.check("source", source, s.Names.Sources); err != nil {
			return Fired{}, err
		}
		return Fired{}, core.Refuse(core.NotFound, "source %q has no schedule; only sources of type cron can be fired", source)
	}
	// The holds are read first: after the event is stored, an error would have the caller fire again.
	holds, err := s.Holding(ctx, s.Clock())
	if err != nil {
		return Fired{}, err
	}
	lane := core.SourceLane(source)
	receipt, at, err := s.FireNow(audited(ctx, core.AuditFire, string(lane)), source)
	if err != nil {
		return Fired{}, err
	}
	held := slices.ContainsFunc(holds, func(h core.Hold) bool { return h.Lane == lane })
	return Fired{Source: source, Event: receipt.EventID, Jobs: receipt.Jobs, At: at, Held: held}, nil
}
