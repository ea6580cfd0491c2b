package core_test

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

func TestRamp(t *testing.T) {
	closed := time.UnixMilli(1_800_000_000_000)
	for _, c := range []struct{ since, want time.Duration }{
		{-core.GateHorizon - time.Millisecond, 0}, // the clock was set back
		{-core.GateHorizon, 200 * time.Millisecond},
		{-time.Millisecond, 200 * time.Millisecond}, // closed by a clock that is ahead
		{0, 200 * time.Millisecond},
		{time.Second - 1, 200 * time.Millisecond},
		{time.Second, 100 * time.Millisecond},
		{core.RampTime - 1, 390625 * time.Nanosecond},
		{core.RampTime, 0},
	} {
		if got := (core.Gate{ClosedAt: closed}).Ramp(closed.Add(c.since)); got != c.want {
			t.Errorf("Ramp %v after it closed = %v, want %v", c.since, got, c.want)
		}
	}
	if got := (core.Gate{}).Ramp(time.Time{}.Add(time.Second)); got != 0 {
		t.Errorf("Ramp of a gate that never opened = %v, want 0", got)
	}
}
