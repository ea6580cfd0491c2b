package metrics

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// linesOps measures [core.Lines]. AckLined, LinedLanes and Fill serve consumers and workers, the
// others serve operators. LinesOf also says why jobs wait in their lines.
type linesOps struct{ lines, linedLanes, linesOf, ackLined, skip, fill *op }

func newLinesOps(f opFamilies) linesOps {
	return linesOps{
		lines:      f.op("lines"),
		linedLanes: f.op("lined_lanes"),
		linesOf:    f.op("lines_of"),
		ackLined:   f.op("ack_lined"),
		skip:       f.op("skip"),
		fill:       f.op("fill"),
	}
}

func (m *measured) Lines(ctx context.Context, lane core.Lane, after string, limit int) (_ core.Page[core.LineState], err error) {
	defer m.lines.ended(time.Now(), &err)
	return m.Store.Lines(ctx, lane, after, limit)
}

func (m *measured) LinedLanes(ctx context.Context) (_ []core.Lane, err error) {
	defer m.linedLanes.ended(time.Now(), &err)
	return m.Store.LinedLanes(ctx)
}

func (m *measured) LinesOf(ctx context.Context, lane core.Lane, next int, keys ...string) (_ []core.LineJobs, err error) {
	defer m.linesOf.ended(time.Now(), &err)
	return m.Store.LinesOf(ctx, lane, next, keys...)
}

func (m *measured) AckLined(ctx context.Context, now time.Time, lane core.Lane, limit int, refs []core.Ref) (_ int, err error) {
	defer m.ackLined.ended(time.Now(), &err)
	return m.Store.AckLined(ctx, now, lane, limit, refs)
}

func (m *measured) Skip(ctx context.Context, now time.Time, job core.ID) (_ bool, err error) {
	defer m.skip.ended(time.Now(), &err)
	return m.Store.Skip(ctx, now, job)
}

func (m *measured) Fill(ctx context.Context, now time.Time, lane core.Lane, limit int, after string) (_ string, err error) {
	defer m.fill.ended(time.Now(), &err)
	return m.Store.Fill(ctx, now, lane, limit, after)
}
