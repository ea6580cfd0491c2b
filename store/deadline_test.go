package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestBatchesOfASecondShareADeadline: batches of the same second share a context, and none of
// them gets less than its time.
func TestBatchesOfASecondShareADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p sharedDeadline
		first := p.context()
		time.Sleep(deadlineShare - time.Nanosecond)
		if p.context() != first {
			t.Error("a batch of the same second has a context of its own")
		}
		began := time.Now()
		time.Sleep(time.Nanosecond)
		second := p.context()
		if second == first {
			t.Error("a batch of the next second has the old context")
		}
		time.Sleep(callTimeout - time.Nanosecond)
		if err := first.Err(); err != nil {
			t.Errorf("after %v the context has ended: %v", time.Since(began), err)
		}
		<-first.Done()
		if err := first.Err(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > callTimeout+deadlineShare {
			t.Errorf("after %v: %v, want %v within %v", time.Since(began), err, context.DeadlineExceeded, callTimeout+deadlineShare)
		}
		if err := second.Err(); err != nil {
			t.Errorf("the second context ended with the first: %v", err)
		}
		<-second.Done()
	})
}

// BenchmarkSharedDeadline measures the context of a batch; it must not allocate.
func BenchmarkSharedDeadline(b *testing.B) {
	var p sharedDeadline
	b.ReportAllocs()
	for b.Loop() {
		if p.context().Err() != nil {
			b.Fatal("it has ended")
		}
	}
}
