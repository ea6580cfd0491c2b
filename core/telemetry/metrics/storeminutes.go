package metrics

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// minutesOps measures [core.Minutes]. SumMinutes serves operators, the others the processes that
// count.
type minutesOps struct{ countMinutes, sumMinutes, received, purgeMinutes *op }

func newMinutesOps(f opFamilies) minutesOps {
	return minutesOps{
		countMinutes: f.op("count_minutes"),
		sumMinutes:   f.op("sum_minutes"),
		received:     f.op("received"),
		purgeMinutes: f.op("purge_minutes"),
	}
}

func (m *measured) CountMinutes(ctx context.Context, process core.ID, counts []core.LaneCounts) (err error) {
	defer m.countMinutes.ended(time.Now(), &err)
	return m.Store.CountMinutes(ctx, process, counts)
}

func (m *measured) SumMinutes(ctx context.Context, from, until time.Time, step time.Duration) (_ []core.LaneCounts, err error) {
	defer m.sumMinutes.ended(time.Now(), &err)
	return m.Store.SumMinutes(ctx, from, until, step)
}

func (m *measured) Received(ctx context.Context, from, until time.Time, sources []string) (_ map[string]int, err error) {
	defer m.received.ended(time.Now(), &err)
	return m.Store.Received(ctx, from, until, sources)
}

func (m *measured) PurgeMinutes(ctx context.Context, before time.Time) (err error) {
	defer m.purgeMinutes.ended(time.Now(), &err)
	return m.Store.PurgeMinutes(ctx, before)
}
