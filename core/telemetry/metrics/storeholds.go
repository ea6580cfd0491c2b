package metrics

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// holdsOps measures [core.Holds], requests of operators. Holding also says why jobs wait, and
// whether a schedule may fire.
type holdsOps struct{ hold, unhold, holding *op }

func newHoldsOps(f opFamilies) holdsOps {
	return holdsOps{
		hold:    f.op("hold"),
		unhold:  f.op("unhold"),
		holding: f.op("holding"),
	}
}

func (m *measured) Hold(ctx context.Context, now time.Time, lane core.Lane, until time.Time, reason string) (err error) {
	defer m.hold.ended(time.Now(), &err)
	return m.Store.Hold(ctx, now, lane, until, reason)
}

func (m *measured) Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) (_ []core.Lane, err error) {
	defer m.unhold.ended(time.Now(), &err)
	return m.Store.Unhold(ctx, now, lanes...)
}

func (m *measured) Holding(ctx context.Context, now time.Time) (_ []core.Hold, err error) {
	defer m.holding.ended(time.Now(), &err)
	return m.Store.Holding(ctx, now)
}
