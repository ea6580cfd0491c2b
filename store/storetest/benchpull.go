package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// BenchAck acks so many messages of a lane unmeasured, a hundred at a time, and then
// measures what a queue's consumer does all day: taking ten and acking them by their
// leases. As many come in unmeasured, so that the lane stays as long as it is, and
// once a second somebody looks, as whoever serves a queue does.
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

// look moves the time of the test on and asks what is due, if a second has passed
// since that was asked last.
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
