//go:build otel

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The export of the last traces has the rest of the drain time, which begins at the signal to
// end.
func TestFlushTime(t *testing.T) {
	for _, c := range []struct{ drain, used, want time.Duration }{
		{30 * time.Second, 0, 5 * time.Second},
		{30 * time.Second, 27 * time.Second, 3 * time.Second},
		{30 * time.Second, 30 * time.Second, time.Second},
		{30 * time.Second, time.Hour, time.Second},
		{2 * time.Second, 0, 2 * time.Second},
		{0, 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			left := flushTime(ctx, c.drain)
			time.Sleep(time.Hour)
			cancel()
			synctest.Wait()
			time.Sleep(c.used)
			if got := left(); got != c.want {
				t.Errorf("of %v after %v: %v, want %v", c.drain, c.used, got, c.want)
			}
		})
	}
	if got := flushTime(t.Context(), time.Minute)(); got != maxFlush {
		t.Errorf("without being told to end: %v, want %v", got, maxFlush)
	}
}
