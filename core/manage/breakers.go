package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// ErrHandler is the refusal of a handler that is not configured.
var ErrHandler = core.Refuse(core.NotFound, "handler not found")

// A BreakerStore is what of a store Breakers uses.
type BreakerStore interface {
	CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error)
}

// Breakers are the circuit breakers of the configured handlers. They are safe for concurrent
// use.
type Breakers struct {
	// Observe gets a fact for each breaker that was closed; it may be nil.
	Observe core.Observer

	store BreakerStore
	clock core.Clock
	known map[core.Lane]bool
}

// NewBreakers makes the service. Lanes are those of all that is configured.
func NewBreakers(store BreakerStore, clock core.Clock, lanes []core.Lane) *Breakers {
	return &Breakers{store: store, clock: clock, known: knownOf(lanes)}
}

// Reset closes the circuit breaker of a handler and sets its failures back. It tells whether
// the breaker was open. Deliveries go on slowly at first, as after a probe that succeeded,
// and in every process once that process looks at the database again, which takes a second
// or, of hosted_sql, five. The refusal of a handler that is not configured is ErrHandler.
func (b *Breakers) Reset(ctx context.Context, handler string) (bool, error) {
	lane := core.HandlerLane(handler)
	if !b.known[lane] {
		return false, ErrHandler
	}
	now := b.clock()
	closed, err := b.store.CloseBreakers(ctx, now, lane)
	if err != nil || len(closed) == 0 {
		return false, err
	}
	tell(b.Observe, core.BreakerMoved{Lane: lane, Gate: core.Gate{ClosedAt: now}, Reset: true})
	return true, nil
}
