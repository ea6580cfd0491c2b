package gateway

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/series"
)

// lastMinutes bounds the writing of counts at the end of a process, which the database may hold up.
const lastMinutes = 2 * time.Second

// assembleMinutes assembles the counting of minutes. All gateways of a process share it, since a
// process has one row for each minute and lane.
func (g *Gateway) assembleMinutes() {
	s := g.shared
	if s.minutes == nil {
		s.minutes = series.New(g.Clock)
		s.writer = series.NewWriter(series.Deps{Store: g.Store, Clock: g.Clock, Observe: g.observe, Process: g.ids().Next()}, s.minutes)
	}
	g.Minutes = s.writer
	g.Census = series.NewCensus(g.Store, g.Clock, names(g.config).Sources)
}

// writeMinutes stores the counts that are left when the process ends.
func (g *Gateway) writeMinutes() {
	ctx, cancel := context.WithTimeout(context.Background(), lastMinutes)
	defer cancel()
	if err := g.Minutes.WriteAll(ctx); err != nil {
		g.observe(core.Troubled{Doing: "count minutes", Err: err})
	}
}
