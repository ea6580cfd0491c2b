package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

func TestSendingCountsAttemptsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 3, Batch: 10}, Target{Sender: takesTime(time.Second, ok)})
		b.add(lane, 7, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = b.Tick(context.Background(), core.Budget{})
		}()
		time.Sleep(500 * time.Millisecond)
		for i, want := range []int{3, 3, 1, 0} {
			if got := b.Sending(); got != want {
				t.Errorf("after %d.5 s %d are under way, want %d", i, got, want)
			}
			time.Sleep(time.Second)
		}
		<-ended
	})
}
