package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// ErrHandler is the refusal of a handler that is not configured.
var ErrHandler = core.Refuse(core.NotFound, "handler not found")

// A BreakerStore has the methods of a store that Breakers uses.
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

// NewBreakers makes the service. Lanes are the lanes of all configured consumers.
func NewBreakers(store BreakerStore, clock core.Clock, lanes []core.Lane) *Breakers {
	return &Breakers{store: store, clock: clock, known: knownOf(lanes)}
}

// Reset closes the circuit breaker of a handler and resets its failures. It returns whether
// the breaker was open. Deliveries start slowly, as after a successful probe. Each process
// notices the change at its next look at the database, within 1.25 s, or within 6.25 s for
// hosted_sql. The refusal of a handler that is not configured is ErrHandler.
func (b *Breakers) Reset(ctx context.Context, handler string) (bool, error) {
	lane := core.HandlerLane(handler)
	if !b.known[lane] {
		return false, ErrHandler
	}
	now := b.clock()
	closed, err := b.store.CloseBreakers(audited(ctx, core.AuditResetBreaker, string(lane)), now, lane)
	if err != nil || len(closed) == 0 {
		return false, err
	}
	tell(b.Observe, core.BreakerMoved{Lane: lane, Gate: core.Gate{ClosedAt: now}, Reset: true})
	return true, nil
}
