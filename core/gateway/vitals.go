package gateway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// vitals is a store that notices when something cannot be written. A database whose disk
// is full, or that has become somebody's copy, answers every question and keeps nothing.
//
// What is noticed is what a gateway lives on: events, outcomes, and the turns of the
// purger, which asks for one every minute even if nothing else happens.
type vitals struct {
	core.Store
	clock  core.Clock
	ailing *atomic.Bool
}

// check reports why nothing can be written. It costs nothing as long as everything could
// be; after a failure it tries, with the smallest write there is, until one succeeds. So
// one failure alone makes nobody ill, and who is kept from events because of it recovers
// without any.
func (v *vitals) check(ctx context.Context) error {
	if !v.ailing.Load() {
		return nil
	}
	if _, err := v.Store.Turn(ctx, v.clock(), "health", 0); err != nil {
		return err
	}
	v.ailing.Store(false)
	return nil
}

// wrote notices a failure. That somebody lost interest is none.
func (v *vitals) wrote(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		v.ailing.Store(true)
	}
}

func (v *vitals) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	r, err := v.Store.Accept(ctx, a)
	v.wrote(err)
	return r, err
}

func (v *vitals) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	s, err := v.Store.Settle(ctx, outcomes...)
	v.wrote(err)
	return s, err
}

func (v *vitals) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	mine, err := v.Store.Turn(ctx, now, name, hold)
	v.wrote(err)
	return mine, err
}
