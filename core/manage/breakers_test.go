package manage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A gateKeeper is a store in which some breakers are open.
type gateKeeper struct {
	open []core.Lane
	err  error
}

func (g *gateKeeper) CloseBreakers(_ context.Context, _ time.Time, lanes ...core.Lane) (closed []core.Lane, _ error) {
	for _, l := range lanes {
		if i := slices.Index(g.open, l); i >= 0 {
			closed, g.open = append(closed, l), slices.Delete(g.open, i, i+1)
		}
	}
	return closed, g.err
}

func TestBreakersReset(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	broken := errors.New("away")
	for name, c := range map[string]struct {
		handler string
		err     error
		want    bool
		refused error
		told    int
	}{
		"open":    {"billing", nil, true, nil, 1},
		"closed":  {"crm", nil, false, nil, 0},
		"unknown": {"gone", nil, false, ErrHandler, 0},
		"queue":   {"../queue/q", nil, false, ErrHandler, 0},
		"broken":  {"billing", broken, false, broken, 0},
	} {
		store := &gateKeeper{open: []core.Lane{"handler/billing", "handler/gone"}, err: c.err}
		b := NewBreakers(store, func() time.Time { return noon }, []core.Lane{"handler/billing", "handler/crm", "queue/q"})
		var told []core.Fact
		b.Observe = func(f core.Fact) { told = append(told, f) }
		got, err := b.Reset(context.Background(), c.handler)
		if got != c.want || !errors.Is(err, c.refused) || len(told) != c.told {
			t.Errorf("%s: Reset(%q) = %v, %v, and reported %v; want %v, %v and %d facts", name, c.handler, got, err, told, c.want, c.refused, c.told)
		}
		if c.told > 0 && told[0] != (core.BreakerMoved{Lane: "handler/billing", Gate: core.Gate{ClosedAt: noon}, Reset: true}) {
			t.Errorf("%s: reported %+v", name, told[0])
		}
	}
}
