package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// BenchAck first takes and acks before messages of a lane, 100 at a time, unmeasured. It then
// measures a queue's consumer: taking 10 messages and acking them by their leases. It accepts as
// many new messages, unmeasured, so that the length of the lane does not change, and calls Due
// once a second, as the gateway does for a queue.
func BenchAck(b *testing.B, s core.Store, lane core.Lane, before int) {
	r := newRig(b, s, Options{})
	r.now, r.lane = core.SystemClock().UTC().Truncate(time.Millisecond), lane
	bb := bench{B: b, rig: r}
	for range before / 100 {
		bb.look()
		bb.ack(100)
	}
	done := 0
	for b.Loop() {
		b.StopTimer()
		bb.accept(bb.arrival(lanes(lane, 10)...))
		bb.look()
		b.StartTimer()
		bb.ack(10)
		done += 10
	}
	bb.rate(done, "messages")
}

// look sets the rig's time to the machine's time, and calls Due if another second has begun since
// the last look.
func (b bench) look() {
	now := core.SystemClock().UTC().Truncate(time.Millisecond)
	if now.Truncate(time.Second) != b.now.Truncate(time.Second) {
		b.due(b.lane)
	}
	b.now = now
}

// ack takes n messages of the rig's lane and acks them.
func (b bench) ack(n int) {
	refs := make([]core.Ref, n)
	for i, t := range b.take(n) {
		refs[i] = core.Ref{ID: t.ID, Lease: t.Lease}
	}
	if acked, err := b.store.Ack(context.Background(), b.now, b.lane, refs); acked != n || err != nil {
		b.B.Fatalf("Ack of %d taken messages = %d, %v", n, acked, err)
	}
}
